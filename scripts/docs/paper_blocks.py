"""Tables of single experiments of the papers: P1's Table 2 with its figures, and P4's hours and days.

Tests: tests/docs/test_paper_blocks.py
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

from scripts.docs.figure_blocks import KeptFigures, findings_table, number, table

CURVES: Final = {
    "output": "pages/s, {}",
    "gain": "gain since the start (%), {}",
    "messages": "messages in 5 min, {}",
}
"""End of the name of a figure -> the heading of its columns, with the policy."""
ROWS: Final = 6
"""The most rows of a curve."""


def table2(kept: KeptFigures) -> str:
    """Return Table 2 on real peers: what each peer crawled, and Fig 7 and 8 by the time."""
    result = kept["papers"]["table2"]
    shown = [_table(one) for one in result["tables"]]
    return "\n\n".join([*shown, _curves(result, "table2"), kept.measured("papers")])


def table2_unscaled(kept: KeptFigures) -> str:
    """Return the findings of Table 2 at the paper's own rates, and Fig 7 and 8 by the time."""
    results = kept["table2-unscaled"]
    curves = _curves(results["table2-unscaled"], "table2-unscaled")
    return f"{findings_table(results)}\n\n{curves}\n\n{kept.measured('table2-unscaled')}"


def hours_and_days(kept: KeptFigures) -> str:
    """Return P4's hours and days on real peers: what was fetched when, and the filters of the running peers."""
    shown = [_table(one) for one in kept["papers"]["revisits"]["tables"]]
    return "\n\n".join([*shown, kept.measured("papers")])


def _table(one: Mapping[str, Any]) -> str:
    rows = [[str(cell) if isinstance(cell, str) else number(cell) for cell in row] for row in one["rows"]]
    second = one["rows"][0][1]
    text_columns = 2 if isinstance(second, str) and any(map(str.isalpha, second)) else 1
    return f"{one['title']}:\n\n{table(one['heading'], rows, text_columns)}"


def _curves(result: Mapping[str, Any], prefix: str) -> str:
    """Return the lines of some pictures as one table, by the time."""
    pictures = {one["name"]: one["series"] for one in result["figures"]}
    lines = [
        (form.format(line["label"]), line)
        for name, form in CURVES.items()
        for line in pictures[f"{prefix}-{name}"]
        if not line["dashed"]
    ]
    hours = lines[0][1]["xs"]
    step = max(1, len(hours) // ROWS)
    rows = [
        (f"{60 * hours[place]:.0f}", *(number(float(line["ys"][place])) for _, line in lines))
        for place in range(step - 1, len(hours), step)
    ]
    head = ("minute", *(title for title, _ in lines))
    return f"By the time, as in Fig 7 and 8:\n\n{table(head, rows)}"


PAPER_BLOCKS: Final[dict[str, Callable[[KeptFigures], str]]] = {
    "papers-table2": table2,
    "table2-unscaled": table2_unscaled,
    "papers-days": hours_and_days,
}
