import json
import re
from pathlib import Path
from typing import Any

import pytest

from scripts.docs.departures import rows
from scripts.docs.figure_blocks import BLOCKS, campaign_table, number, table
from scripts.docs.figures import RENDERED, Kept, pages_with_figures, with_figures
from scripts.docs.memory_blocks import MEMORY_BLOCKS
from scripts.docs.named_figures import NAMED
from scripts.figures.measurements import MEASUREMENTS
from sim.campaign import Totals
from tests.support.cases import cases

ROOT = Path(__file__).parents[2]
TEXT = "before\n<!-- figures: bench-history -->\nold\n<!-- end figures -->\nafter\n"
COST = {"accept_us": 13.0, "finish_us": 16.5, "new_us": 1.6, "known_us": 2.34, "disk_bytes": 30.1, "wrong": 0}


def kept(directory: Path, name: str, figures: Any) -> Kept:
    meta = {"command": "python -m it", "date": "2026-01-02", "version": "0", "python": "3.11.7", "cores": 2}
    (directory / f"{name}.json").write_text(json.dumps({**meta, "figures": figures}))
    return Kept(directory)


def test_figures_stand_between_the_comments_and_nowhere_else(tmp_path: Path) -> None:
    files = kept(tmp_path, "bench-history", [{"history": "exact", "keys": 1000, **COST}])
    text = with_figures(TEXT, files, "page.md")
    assert text.startswith("before\n<!-- figures: bench-history -->\n1,000 URLs.\n")
    assert "| exact | 13.0 | 16.5 | 1.60 | 2.34 | 30.1 | 0 |" in text
    assert "*Measured by `python -m it` with kadcrawl 0, Python 3.11.7, 2 shared cores, 2026-01-02.*" in text
    assert text.endswith("\n<!-- end figures -->\nafter\n")
    assert text == with_figures(text, files, "page.md")


def test_missing_figures_are_named_with_the_command_that_measures_them(tmp_path: Path) -> None:
    text = with_figures(TEXT, Kept(tmp_path), "page.md")
    assert "*Not measured on this release yet: `python -m scripts.figures bench-history`.*" in text


def test_a_page_cannot_want_figures_that_nobody_makes(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"page.md: no function makes the figures 'bench-histories'"):
        with_figures(TEXT.replace("history", "histories"), Kept(tmp_path), "page.md")


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, ""), (0, "0"), (1234, "1,234"), (12.345, "12.3"), (123.45, "123"), (0.1, "0.100"), (8.8e-5, "8.8e-05")],
)
def test_numbers_have_three_digits_that_count(value: float | None, text: str) -> None:
    assert text == number(value)


def test_a_table_aligns_numbers_to_the_right() -> None:
    assert "| a | b |\n| --- | ---: |\n| x | 1 |" == table(("a", "b"), [("x", "1")])


def test_a_campaign_without_urls_has_a_table() -> None:
    report = Totals().report()
    assert "| URLs lost | 0 |" in campaign_table(report)


def test_the_comparison_of_256_peers_is_a_table_of_its_file(tmp_path: Path) -> None:
    text = "<!-- figures: balancing-256 -->\n<!-- end figures -->\n"
    compared = {
        "title": "256 peers, 7,680 pages",
        "heading": ["policy", "pages / s / peer"],
        "rows": [["drain", 1.0526]],
    }
    page = with_figures(text, kept(tmp_path, "balancing-256", {"balancing-256": {"tables": [compared]}}), "page.md")
    assert "256 peers, 7,680 pages:" in page
    assert "| drain | 1.05 |" in page
    assert "python -m scripts.figures balancing-256" in with_figures(text, Kept(tmp_path / "none"), "page.md")


def test_all_figures_that_are_made_stand_on_a_page() -> None:
    text = "".join(path.read_text(encoding="utf-8") for path in pages_with_figures(ROOT))
    assert [] == [name for name in RENDERED if f"<!-- figures: {name} -->" not in text]


def test_a_single_figure_stands_in_a_sentence_and_all_have_a_place(tmp_path: Path) -> None:
    files = kept(tmp_path, "five-peers", {"crawls": {"shedding": {"over_bound": 1.0043}}})
    text = "a <!-- figure: five-drain -->9<!-- end figure --> b"
    anew = with_figures(text, files, "page.md")
    assert "a <!-- figure: five-drain -->1.00<!-- end figure --> b" == anew == with_figures(anew, files, "page.md")
    assert "-->(not measured yet)<!--" in with_figures(text, Kept(tmp_path / "none"), "page.md")
    with pytest.raises(ValueError, match=r"page.md: no figure has the name 'five-drains'"):
        with_figures(text.replace("drain", "drains"), files, "page.md")
    pages = "".join(path.read_text(encoding="utf-8") for path in pages_with_figures(ROOT))
    assert [] == [name for name in NAMED if f"<!-- figure: {name} -->" not in pages]


class NotedKeys(dict[str, Any]):
    """A file of figures that notes the keys that are asked for."""

    asked: list[str]

    def __getitem__(self, key: str) -> Any:
        self.asked.append(key)
        return super().__getitem__(key)


def experiment_of(name: str) -> str:
    """Return the experiment of the papers that a figure is from, or nothing."""
    files = Kept(ROOT / "docs/figures")
    noted = NotedKeys(files["papers"])
    noted.asked = []
    NAMED[name]({"papers": noted, "bench": files["bench"], "bench-moves": files["bench-moves"],
                 "bench-web": files["bench-web"],
                 "five-peers": files["five-peers"], "papers-full": files["papers-full"],
                 "balancing-256": files["balancing-256"],
                 "table2-unscaled": files["table2-unscaled"]})  # type: ignore[arg-type]  # fmt: skip
    return noted.asked[0] if noted.asked else ""


def test_a_figure_that_is_fitted_to_the_papers_numbers_is_marked_where_it_stands() -> None:
    fitted = {name for name, result in Kept(ROOT / "docs/figures")["papers"].items() if result["fitted"]}
    assert {"powers"} == fitted
    names = [name for name in NAMED if experiment_of(name) in fitted]
    text = "\n\n".join(path.read_text(encoding="utf-8") for path in pages_with_figures(ROOT))
    units = [unit for block in text.split("\n\n") for unit in block.split("\n|")]  # Paragraphs, and rows of tables.
    places = [unit for unit in units if any(f"figure: {name} " in unit for name in names)]
    assert places
    assert [] == [place for place in places if "fitted" not in place]


def test_the_page_of_departures_has_no_measured_number_that_a_script_did_not_write() -> None:
    page = (ROOT / "docs/explanation/departures.md").read_text(encoding="utf-8")
    measured = [row.cells[3] for row in rows(page) if len(row.cells) == 4]
    typed = [re.sub(r"<!-- figure: .*?<!-- end figure -->|P[1-4] [0-9.]+", "", cell) for cell in measured]
    assert [] == [cell for cell in typed if re.search(r"[0-9]\.[0-9]|[0-9] ?%|[0-9]e-", cell)]


@cases("name", NAMED)
def test_each_named_figure_is_in_the_kept_files(name: str) -> None:
    assert NAMED[name](Kept(ROOT / "docs/figures"))


def test_each_measurement_has_a_table_or_a_page_of_its_own() -> None:
    assert set(MEASUREMENTS) == {*BLOCKS, *MEMORY_BLOCKS, "links", "table2-unscaled"}
