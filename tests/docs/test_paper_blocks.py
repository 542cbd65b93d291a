"""Tables of P1's Table 2 and of P4's days are made of kept results, with nothing left out."""

import json
from pathlib import Path
from typing import Any

import pytest

from scripts.docs.figures import Kept
from scripts.docs.paper_blocks import ROWS, hours_and_days, table2, table2_unscaled


def kept(directory: Path, name: str, figures: Any) -> Kept:
    meta = {"command": "python -m it", "date": "2026-01-02", "version": "0", "python": "3.11.7", "cores": 2}
    (directory / f"{name}.json").write_text(json.dumps({**meta, "figures": figures}))
    return Kept(directory)


def result(prefix: str, minutes: int) -> dict[str, Any]:
    xs = [minute / 60 for minute in range(5, minutes + 1, 5)]
    line = {"label": "drain", "xs": xs, "ys": [1.0 * place for place in range(len(xs))], "dashed": False}
    bound = {"label": "bound", "xs": [0, 1], "ys": [7, 7], "dashed": True}
    return {
        "paper": "P1",
        "fitted": False,
        "findings": [{"what": "gain", "theirs": 33.3, "ours": 50.0, "bound": None, "reached": True}],
        "tables": [{"title": "Peers", "heading": ["peer", "pages"], "rows": [[1, 308]]}],
        "figures": [{"name": f"{prefix}-{name}", "series": [line, bound]} for name in ("output", "gain", "messages")],
    }


@pytest.mark.parametrize(("minutes", "rows"), [(15, 3), (60, 6), (240, 6)])
def test_a_curve_has_some_rows_and_ends_with_the_run(tmp_path: Path, minutes: int, rows: int) -> None:
    text = table2(kept(tmp_path, "papers", {"table2": result("table2", minutes)}))
    curve = text[text.index("| minute") :].partition("\n\n")[0].splitlines()[2:]
    assert rows == len(curve) <= ROWS
    assert [minutes, minutes // 5 - 1] == [float(cell) for cell in curve[-1].split("|")[1:3]]
    assert "bound" not in text
    assert "| 1 | 308 |" in text


def test_the_papers_own_rates_have_findings_and_a_curve(tmp_path: Path) -> None:
    files = kept(tmp_path, "table2-unscaled", {"table2-unscaled": result("table2-unscaled", 60)})
    text = table2_unscaled(files)
    assert "| P1 | gain | 33.3 | 50.0 |  | yes |" in text
    assert "gain since the start (%), drain" in text


def test_all_tables_of_the_days_are_shown(tmp_path: Path) -> None:
    days = {"tables": [{"title": title, "heading": ["", "a"], "rows": [["day 1", 2]]} for title in ("one", "two")]}
    text = hours_and_days(kept(tmp_path, "papers", {"revisits": days}))
    assert text.index("one:") < text.index("two:")
    assert 2 == text.count("| day 1 | 2 |")
