"""The totals of a campaign that ran in blocks of seeds, from the totals of its blocks.

Tests: tests/scripts/test_figures.py
"""

from collections.abc import Sequence
from typing import Any, Final

SUMMED: Final = (
    "seeds",
    "virtual_hours",
    "messages",
    "kills",
    "partitions",
    "urls",
    "lost",
    "duplicates",
    "lent",
    "cut_short",
    "politeness_violations",
    "robots_violations",
    "false_terminations",
    "missed_terminations",
    "owner_disagreements",
    "parted",
    "wall_seconds",
)


def total(blocks: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return the totals of all blocks.

    Quantiles of repair times cannot be added up, so `repair_seconds` has those of the worst block.
    """
    if not blocks:
        raise ValueError("a campaign has at least one block")
    report: dict[str, Any] = {name: round(sum(block[name] for block in blocks), 3) for name in SUMMED}
    report["duplicate_ratio"] = round(report["duplicates"] / report["urls"], 6) if report["urls"] else 0.0
    report["repair_seconds"] = {
        name: max((block["repair_seconds"][name] or 0.0 for block in blocks), default=None) for name in ("p50", "p99")
    }
    report["failing_seeds"] = sorted(seed for block in blocks for seed in block["failing_seeds"])
    for table in ("violations", "sometimes"):
        report[table] = {name: sum(block[table][name] for block in blocks) for name in blocks[0][table]}
    report["never_met"] = [name for name, count in report["sometimes"].items() if not count]
    report["blocks"] = len(blocks)
    return report
