"""The report: the same results give the same bytes, and a reader sees each number where it belongs."""

import re
from dataclasses import replace
from pathlib import Path
from unittest.mock import patch
from xml.etree import ElementTree

import msgspec
import numpy as np
import pytest
from click.testing import CliRunner

from sim.papers.__main__ import main
from sim.papers.drawing import INK, draw, inline, standing_alone
from sim.papers.experiment import Figure, Finding, Progress, Result, Series, Table
from sim.papers.registry import EXPERIMENTS, FULL, LARGE, QUICK
from sim.papers.report import json, markdown, number, to_reach, verdict, write

LINE = Figure(
    name="speed",
    title="Speed <of> all",
    x="peers",
    y="URL/s",
    series=[
        Series(label="ours", xs=[1, 2, 3], ys=[1.0, 2.0, 3.5]),
        Series(label="bound", xs=range(1, 4), ys=[1.0, 2.0, 3.0], dashed=True),
    ],
)
BARS = Figure(
    name="shares",
    title="Shares",
    x="node",
    y="URLs",
    series=[
        Series(label="theirs", xs=["1", "2"], ys=[164, 70], dashed=True),
        Series(label="ours", xs=["1", "2"], ys=[160, 74]),
    ],
    kind="bars",
)
RESULT = Result(
    title="Some *title*",
    paper="P1 2, Table 2",
    how="It was <b>done</b> with W = n*H and x_i | y.",
    seed=7,
    findings=[
        Finding(what="gain, %", ours=56.24, theirs=33.3, bound=57.2, least=55),
        Finding(what="flips", ours=2, most=0),
        Finding(what="backlog, URL/s", ours=0.192),
    ],
    tables=[Table(title="Peers", heading=["peer", "u", "note"], rows=[["a", 0.5, "x|y"], ["b", 12_345.6, "–"]])],
    figures=[LINE, BARS],
)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (0, "0"),
        (0.0, "0"),
        (7, "7"),
        (12_345, "12,345"),
        (1.0, "1.00"),
        (0.6364, "0.636"),
        (57.23, "57.2"),
        (99.94, "99.9"),
        (99.96, "100"),
        (12_345.6, "12,346"),
        (0.000123456, "0.000123"),
        (0.0000123456, "1.2e-05"),
        (-2.5, "-2.50"),
        (float("inf"), "∞"),
        (float("nan"), "–"),
        (np.float64(0.5), "0.500"),
        (np.int64(5_000), "5,000"),
    ],
)
def test_numbers_have_three_digits_that_count(value: float, expected: str) -> None:
    assert expected == number(value)


@pytest.mark.parametrize(
    ("finding", "asked", "reached"),
    [
        (Finding(what="", ours=1.0), "–", "–"),
        (Finding(what="", ours=1.0, least=1.0), "≥\N{NO-BREAK SPACE}1.00", "✓ yes"),
        (Finding(what="", ours=0.9, least=1.0), "≥\N{NO-BREAK SPACE}1.00", "✗ no"),
        (Finding(what="", ours=0.9, most=0.5), "≤\N{NO-BREAK SPACE}0.500", "✗ no"),
        (Finding(what="", ours=0.9, least=0.5, most=1.2), "0.500 to 1.20", "✓ yes"),
        (Finding(what="", ours=1.0, least=1.0, most=1.0), "1.00", "✓ yes"),
    ],
)
def test_what_was_to_be_reached_is_told(finding: Finding, asked: str, reached: str) -> None:
    assert (asked, reached) == (to_reach(finding), verdict(finding))


def test_theirs_stand_beside_ours_beside_the_bound() -> None:
    text = markdown({"one": RESULT})
    assert "|  | theirs | ours | bound | to reach | reached |\n| --- | ---: | ---: | ---: | ---: | --- |" in text
    assert "| gain, % | 33.3 | **56.2** | 57.2 | ≥\N{NO-BREAK SPACE}55 | ✓ yes |" in text
    assert "| flips | – | **2** | – | ≤\N{NO-BREAK SPACE}0 | ✗ no |" in text
    assert "| 1 of 2 | ✗ no |" in text
    assert "seed 7" in text


def test_a_column_nobody_has_anything_for_is_left_out() -> None:
    text = markdown({"one": Result(title="t", paper="p", how="h", seed=1, findings=[Finding(what="w", ours=1.5)])})
    assert "|  | ours |\n| --- | ---: |\n| w | **1.50** |" in text


def test_numbers_are_aligned_and_words_shown_as_they_are() -> None:
    text = markdown({"one": RESULT})
    assert "| peer | u | note |\n| --- | ---: | --- |\n| a | 0.500 | x\\|y |\n| b | 12,346 | – |" in text
    assert "W = n\\*H and x\\_i \\| y" in text
    assert "![Shares](shares.svg)" in text


def test_a_row_that_does_not_fit_is_refused() -> None:
    crooked = Result(
        title="t", paper="p", how="h", seed=1, findings=[], tables=[Table(title="t", heading=["a"], rows=[["b", 1]])]
    )
    with pytest.raises(ValueError, match="2 cells"):
        markdown({"one": crooked})


def test_the_same_results_give_the_same_bytes(tmp_path: Path) -> None:
    first, second = write({"one": RESULT}, tmp_path / "a"), write({"one": RESULT}, tmp_path / "b")
    assert ["report.html", "report.md", "results.json", "speed.svg", "shares.svg"] == [path.name for path in first]
    assert [path.read_bytes() for path in first] == [path.read_bytes() for path in second]


def test_the_page_needs_nothing_else(tmp_path: Path) -> None:
    html = write({"one": RESULT}, tmp_path)[0].read_text()
    assert 2 == html.count("<svg ")
    assert not re.search(r"<img|<script|<link|@import|(?:src|href)=\"(?!#)", html)
    assert not set(re.findall(r"https?://[^\"'\s<>]+", html)) - {
        "http://www.w3.org/2000/svg",
        "http://www.w3.org/1999/xlink",
    }
    ids = re.findall(r'\bid="([^"]*)"', html)
    assert len(set(ids)) == len(ids)
    assert set(re.findall(r"(?:url\(|href=\")#([^)\"]*)", html)) <= set(ids)


def test_words_of_a_result_are_no_markup(tmp_path: Path) -> None:
    html = write({"one": RESULT}, tmp_path)[0].read_text()
    assert "Some *title*" in html
    assert "&lt;b&gt;done&lt;/b&gt; with W = n*H and x_i | y." in html
    assert '<span class="yes">✓ yes</span>' in html
    assert '<span class="no">✗ no</span>' in html
    assert 'aria-label="Speed &lt;of&gt; all"' in html


def test_pictures_bear_any_page_and_stand_alone() -> None:
    svg = draw(LINE)
    alone, part = standing_alone(svg), inline(svg, "speed", "Speed")
    assert 'fill="#ffffff"' in alone
    assert INK in alone
    assert INK not in part
    assert "currentColor" in part
    assert part.startswith("<svg ")
    for text in (alone, part):
        ElementTree.fromstring(text)
    assert not re.search(r"<dc:date>|Matplotlib v", svg)


def test_long_names_stand_beside_lying_bars() -> None:
    names = [f"an assigner with a long name {number}" for number in range(7)]
    upright = ElementTree.fromstring(draw(BARS))
    lying = ElementTree.fromstring(
        draw(
            Figure(
                name="long", title="t", x="x", y="y", kind="bars", series=[Series(label="a", xs=names, ys=range(1, 8))]
            )
        )
    )
    heights = [float(one.attrib["height"].removesuffix("pt")) for one in (upright, lying)]
    assert heights[0] <= heights[1]


@pytest.mark.parametrize(
    "series",
    [
        pytest.param([], id="no series"),
        pytest.param([Series(label="a", xs=[], ys=[])], id="an empty one"),
        pytest.param([Series(label="a", xs=[1, 2], ys=[1])], id="a lame one"),
    ],
)
def test_a_figure_without_anything_to_draw_is_refused(series: list[Series]) -> None:
    with pytest.raises(ValueError, match="as many xs as ys"):
        draw(Figure(name="n", title="t", x="x", y="y", series=series))


def test_figures_of_one_name_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="name of its own"):
        write({"one": RESULT, "two": RESULT}, tmp_path)


def test_json_has_every_number_and_whether_it_was_reached() -> None:
    told = msgspec.json.decode(json({"one": RESULT}))["one"]
    assert [True, False, None] == [one["reached"] for one in told["findings"]]
    assert {"what": "gain, %", "ours": 56.24, "theirs": 33.3, "bound": 57.2, "least": 55}.items() <= told["findings"][
        0
    ].items()
    assert [1, 2, 3] == told["figures"][0]["series"][1]["xs"]
    assert 7 == told["seed"]


def small_result(seed: int, progress: Progress) -> Result:
    progress(0.5)
    return Result(title="Small", paper="P1", how="h", seed=seed, findings=[Finding(what="w [x]", ours=seed, most=1)])


@pytest.mark.parametrize(
    ("seed", "options", "code", "verdict"),
    [(1, [], 0, "reached"), (1, ["--check"], 0, "reached"), (2, [], 0, "missed"), (2, ["--check"], 1, "missed")],
)
def test_the_command_writes_the_report_and_fails_of_a_missed_aim_if_it_is_to_check(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int, options: list[str], code: int, verdict: str
) -> None:
    monkeypatch.setitem(EXPERIMENTS, "joining", small_result)
    told = CliRunner().invoke(main, ["-o", str(tmp_path), "--only", "joining", "--seed", str(seed), *options])
    assert code == told.exit_code
    assert verdict in told.output
    assert "w [x]" in told.output
    assert f"seed {seed}" in (tmp_path / "report.md").read_text()
    assert list(msgspec.json.decode((tmp_path / "results.json").read_bytes())) == ["joining"]


@pytest.mark.parametrize(("seed", "code"), [(1, 0), (2, 1)])
def test_a_quick_run_has_only_the_quick_experiments_in_their_short_forms(tmp_path: Path, seed: int, code: int) -> None:
    options = ["-o", str(tmp_path), "--quick", "--check", "--seed", str(seed)]
    # Monkeypatch would give the experiments back in another order.
    with patch.dict(EXPERIMENTS, clear=True), patch.dict(QUICK, dict.fromkeys(QUICK, small_result)):
        assert code == CliRunner().invoke(main, options).exit_code
        assert list(QUICK) == list(msgspec.json.decode((tmp_path / "results.json").read_bytes()))
        assert code == CliRunner().invoke(main, [*options, "--only", "table2"]).exit_code
    assert ["table2"] == list(msgspec.json.decode((tmp_path / "results.json").read_bytes()))


def test_quick_forms_are_experiments_with_real_peers_among_them() -> None:
    assert list(QUICK) == [name for name in EXPERIMENTS if name in QUICK]
    assert {"table2", "messages", "revisits"} <= set(QUICK)


@pytest.mark.parametrize(("options", "has_large"), [(["--full"], True), ([], False), (["--quick"], False)])
def test_large_experiments_run_only_with_full_or_by_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: list[str], has_large: bool
) -> None:
    for experiments in (EXPERIMENTS, FULL, LARGE, QUICK):
        for name in experiments:
            monkeypatch.setitem(experiments, name, small_result)

    def ran(*arguments: str) -> set[str]:
        assert 0 == CliRunner().invoke(main, ["-o", str(tmp_path), *arguments]).exit_code
        return set(msgspec.json.decode((tmp_path / "results.json").read_bytes()))

    assert has_large is (set(LARGE) <= ran(*options))
    assert set(LARGE) == ran(*(word for name in LARGE for word in ("--only", name)))


def test_what_is_fitted_to_the_papers_numbers_is_marked_wherever_it_stands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fitted = replace(RESULT, fitted=True)
    text = markdown({"one": fitted})
    assert "| gain, % | 33.3 | **56.2** *fitted* | 57.2 |" in text
    assert "### Peers *fitted*" in text
    assert "![Shares](shares.svg) *fitted*" in text
    assert "</svg>\n <em>fitted</em></figure>" in write({"one": fitted}, tmp_path)[0].read_text()
    assert "**56.2** |" in markdown({"one": RESULT})
    monkeypatch.setitem(
        EXPERIMENTS, "joining", lambda seed, progress: replace(small_result(seed, progress), fitted=True)
    )
    assert "(fitted)" in CliRunner().invoke(main, ["-o", str(tmp_path), "--only", "joining"]).output


def test_an_unknown_experiment_is_refused(tmp_path: Path) -> None:
    told = CliRunner().invoke(main, ["-o", str(tmp_path), "--only", "nothing"])
    assert 2 == told.exit_code
    assert "joining" in told.output
    assert not list(tmp_path.iterdir())
