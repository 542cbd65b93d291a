"""Tables of memory, made of files in docs/figures.

Tests: tests/docs/test_figures.py
"""

from collections.abc import Callable
from typing import Final

from scripts.bench_memory import AIMS_MB
from scripts.docs.figure_blocks import KeptFigures, table


def idle_memory(kept: KeptFigures) -> str:
    """Return the table of the memory of idle processes."""
    head = ("idle process", "RSS, MB", "aim", "PSS, MB", "private, MB", "CPU s of the start", "modules")
    rows = [
        (
            one["name"],
            f"{one['rss_mb']:.1f}",
            str(AIMS_MB[one["kind"]]),
            f"{one['pss_mb']:.1f}",
            f"{one['private_mb']:.1f}",
            f"{one['cpu_s']:.2f}",
            str(one["modules"]),
        )
        for one in kept["idle-memory"]
    ]
    return f"{table(head, rows)}\n\n{kept.measured('idle-memory')}"


MEMORY_BLOCKS: Final[dict[str, Callable[[KeptFigures], str]]] = {"idle-memory": idle_memory}
