"""The page of metrics, from the catalog of the package.

Tests: tests/docs/test_metrics.py
"""

import ast
from pathlib import Path

from kadcrawl.peer.monitoring.catalog import GROUPS
from kadcrawl.peer.monitoring.verdict import CrawlVerdict
from scripts.docs.docstrings import attribute_docstrings
from scripts.docs.markdown import code, page, prose, table

PAGE = "docs/reference/metrics.md"
VERDICTS = "kadcrawl/peer/monitoring/verdict.py"


def _meanings(root: Path) -> dict[str, str]:
    """Return the docstring of each verdict."""
    (definition,) = (
        node
        for node in ast.parse((root / VERDICTS).read_text(encoding="utf-8")).body
        if isinstance(node, ast.ClassDef) and node.name == CrawlVerdict.__name__
    )
    return attribute_docstrings(definition.body)


def generate(root: Path) -> dict[str, str]:
    """Return the page of metrics."""
    parts = []
    for title, metrics in GROUPS.items():
        rows = [
            [code(one.name), one.kind.value, ", ".join(map(code, one.labels)), prose(one.meaning)] for one in metrics
        ]
        parts += [f"## {title}", table(["metric", "kind", "labels", "meaning"], rows)]
    meanings = _meanings(root)
    rows = [[code(each.value), prose(meanings[each.name])] for each in CrawlVerdict]
    return {
        PAGE: page(
            "Metrics",
            "`kadcrawl/peer/monitoring/catalog.py` and `kadcrawl/peer/monitoring/verdict.py`",
            "A peer with [--metrics](../how-to/monitor.md) answers `/metrics` with these metrics. Counters go on after "
            "a restart on the same directory, unless they are said to count this run. A leaf has only the metrics that "
            "apply to it. No label has a URL, a host, or a text of a site or of another peer, so a peer has fewer than "
            "a thousand series.",
            *parts,
            "## The process",
            "The metrics `process_cpu_seconds_total`, `process_resident_memory_bytes`, `process_virtual_memory_bytes`, "
            "`process_open_fds`, `process_max_fds` and `process_start_time_seconds` are those of prometheus-client, on "
            "Linux. They are of the whole process, also of an application that embeds the peer.",
            "## Verdicts",
            "`kadcrawl_verdict` is 1 for one of these. If several apply, the first one does.",
            table(["verdict", "meaning"], rows),
        )
    }
