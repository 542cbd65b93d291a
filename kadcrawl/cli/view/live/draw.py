"""The drawing of a picture at the foot of the terminal, by rich. Only this file loads rich, which takes a while.

Tests: tests/cli/view/live/test_draw.py
"""

from rich.console import Console, ConsoleOptions, RenderResult
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.segment import Segment
from rich.text import Text

from kadcrawl.cli.view.live.layout import ELLIPSIS, table_lines
from kadcrawl.cli.view.live.picture import Picture, drawing

PLAIN_ELLIPSIS = "~"


class LiveView:
    """The picture at the foot of the terminal's standard error, renewed in place."""

    def __init__(self, console: Console | None = None) -> None:
        self._console = console or Console(stderr=True, highlight=False)
        self._live = Live(console=self._console, auto_refresh=False, transient=True)

    def start(self) -> None:
        """Take the foot of the terminal."""
        self._live.start()

    def stop(self) -> None:
        """Take the picture away."""
        self._live.stop()

    def say(self, text: str, *, wrap: bool = False) -> None:
        """Print a sentence above the picture, as one line unless `wrap` allows a break between two words."""
        self._console.print(text, markup=False, soft_wrap=not wrap)

    def update(self, picture: Picture) -> None:
        """Show another picture."""
        self._live.update(_Drawn(picture), refresh=True)


class _Drawn:
    """A picture that is laid out when it is drawn, as the terminal may have another size by then."""

    def __init__(self, picture: Picture) -> None:
        self._picture = picture

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        drawn = drawing(self._picture, options.max_width, console.height, ascii_only=options.ascii_only)
        plain = options.ascii_only
        for line in drawn.headline:
            yield _line(line, plain, "bold")
        if drawn.progress:
            bar = self._picture.bar
            yield ProgressBar(total=max(1, bar.total), completed=bar.done, width=drawn.bar_width)
            if console.color_system is None or console.no_color:  # Then rich leaves out the part that is not done.
                whole = drawn.bar_width * 2 * bar.done // max(1, bar.total)
                yield Segment(" " * (drawn.bar_width - whole // 2 - whole % 2))
        for line in (*drawn.progress, *drawn.notes):
            yield _line(line, plain)
        for table in drawn.tables:
            if drawn.spaced:
                yield Segment.line()
            head, *rows = table_lines(table)
            yield _line(head, plain, "bold")
            yield from (_line(row, plain) for row in rows)


def _line(text: str, plain: bool, style: str = "") -> Text:
    """Return a line that is never wrapped. `plain` is for a terminal that has no ellipsis."""
    text = text.replace(ELLIPSIS, PLAIN_ELLIPSIS) if plain else text
    return Text(text, style=style, no_wrap=True, overflow="crop")  # Text, as [::1] is no markup.
