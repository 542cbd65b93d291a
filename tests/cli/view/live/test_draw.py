"""Test the drawing on a terminal of rich: lines as laid out, and nothing left of them at the end."""

import io

import pytest
from rich.console import Console
from rich.text import Text

from kadcrawl.cli.view.live.draw import LiveView
from kadcrawl.cli.view.live.picture import Picture, drawing
from tests.cli.view.live.test_picture import ROWS, SITES, lines_of, picture_of


def drawn_lines(picture: Picture, width: int, *, in_color: bool) -> list[str]:
    """Return the lines that rich writes for a picture."""
    written = io.StringIO()
    console = Console(
        file=written, width=width, height=24, color_system="truecolor" if in_color else None, force_terminal=in_color
    )
    view = LiveView(console)
    view.update(picture)
    console.print(view._live.renderable)
    return written.getvalue().splitlines()


@pytest.mark.parametrize("width", [40, 79, 80, 200])
@pytest.mark.parametrize("in_color", [True, False], ids=["in color", "without color"])
def test_a_picture_is_drawn_as_it_is_laid_out(width: int, in_color: bool) -> None:
    picture = picture_of(rows=ROWS[:3], sites=SITES[:3])
    laid_out = lines_of(drawing(picture, width, 24))
    drawn = [Text.from_ansi(line).plain.rstrip() for line in drawn_lines(picture, width, in_color=in_color)]
    assert len(laid_out) == len(drawn)
    for expected, line in zip(laid_out, drawn, strict=True):
        if expected.startswith("*"):
            bar, text = len(expected) - len(expected.lstrip("*")), expected.lstrip("*")
            assert text == line[bar:]
            assert in_color or 0.34 * bar == pytest.approx(line.count("━"), abs=1.0), "rich draws the rest in gray"
        else:
            assert expected == line


def test_a_terminal_of_plain_characters_gets_no_others() -> None:
    written = io.BytesIO()
    file = io.TextIOWrapper(written, encoding="ascii", errors="strict")
    console = Console(file=file, width=60, height=24, force_terminal=True)
    view = LiveView(console)
    view.update(picture_of())
    console.print(view._live.renderable)
    file.flush()
    assert b"~" in written.getvalue()
    assert b"1,234,567 of 3,580,245 URLs done" in written.getvalue()
