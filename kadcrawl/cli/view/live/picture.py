"""The picture is one state of a crawl in words, laid out for a terminal of some size.

Tests: tests/cli/view/live/test_picture.py
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from kadcrawl.cli.view.live.estimate import Bar
from kadcrawl.cli.view.live.layout import TextColumn, cut_end, fitting, most_frequent, shared_rows, wrapped
from kadcrawl.cli.view.live.samples import BLOCKS, BLOCKS_ASCII, BUCKET_S, sparkline
from kadcrawl.cli.view.live.sites import SiteReport, reason_for_pace
from kadcrawl.cli.view.table import ROWS_SHOWN_MAX, peer_columns
from kadcrawl.link.wire.messages import PeerRow
from kadcrawl.link.wire.unresolved import still_failed
from kadcrawl.settings.durations import roughly
from kadcrawl.settings.site_settings import SiteSettings
from kadcrawl.system.printable import printable

SITES_SHOWN_MAX = 8
"""Limit on the sites in the picture."""
SITE_COLUMNS_MIN = 16
"""Columns that a site's name gets before a column beside it is left out."""
BAR_COLUMNS_MIN, BAR_COLUMNS_MAX = 12, 40
"""Columns of the bar beside its text. A bar that would have fewer stands in a line of its own."""
SPARK_COLUMNS_MAX = 48
"""Blocks of the sparkline: four minutes."""


@dataclass(frozen=True, slots=True)
class Picture:
    """One state of a crawl."""

    headline: Sequence[str]
    """Pieces of the first line, each kept whole."""
    rows: Sequence[PeerRow]
    bar: Bar
    time_left: str | None
    page_rate: float
    page_rates: Sequence[float]
    """Pages per second of the last minutes, the latest last."""
    sites_head: str
    """The head of the table of sites."""
    sites: SiteReport
    site_settings: SiteSettings


@dataclass(frozen=True, slots=True)
class Drawing:
    """A picture, laid out for one size of a terminal."""

    headline: list[str]
    bar_width: int
    """Columns of the bar, which stands before the first line of `progress`."""
    progress: list[str]
    notes: list[str]
    tables: list[list[TextColumn]]
    """The table of sites, then the table of peers, as far as there is room."""
    spaced: bool
    """An empty line stands before each table."""


def drawing(picture: Picture, width: int, height: int, *, ascii_only: bool = False) -> Drawing:
    """Return the picture laid out for a terminal of this size."""
    bar_width, progress = _progress(picture, width)
    notes = [_pace(picture, width, ascii_only), *_failures(picture, width)]
    headline = wrapped(picture.headline, width)
    lines_max = max(1, height - 1)  # The last line of the terminal is for the cursor.
    headline = headline[:lines_max]
    progress = progress[: max(0, lines_max - len(headline))]
    notes = notes[: max(0, lines_max - len(headline) - len(progress))]
    free = lines_max - len(headline) - len(progress) - len(notes)
    lines = picture.sites.lines[:SITES_SHOWN_MAX]
    peers = min(len(picture.rows), ROWS_SHOWN_MAX + 1)
    spaced = free >= len(lines) + peers + 4
    shown_sites, shown_peers = shared_rows(free - (2 if spaced else 0), len(lines), peers)
    tables = []
    if shown_sites:
        tables.append(fitting(_site_columns(picture, shown_sites), width))
    if shown_peers:
        tables.append(fitting(peer_columns(picture.rows, shown_peers, width), width))
    return Drawing(headline, bar_width if progress else 0, progress, notes, tables, spaced)


def _progress(picture: Picture, width: int) -> tuple[int, list[str]]:
    """Return the columns of the bar and the lines beside and below it."""
    pieces = [picture.bar.text, picture.bar.percent, *([picture.time_left] if picture.time_left else [])]
    text = ", ".join(pieces)
    beside = min(BAR_COLUMNS_MAX, width - len(text) - 1)
    if beside >= BAR_COLUMNS_MIN:
        return beside, [f" {text}"]
    return min(BAR_COLUMNS_MAX, width), ["", *wrapped(pieces, width)]


def _pace(picture: Picture, width: int, ascii_only: bool) -> str:
    """Return the rate and its sparkline."""
    text = f"{picture.page_rate:.1f} pages/s "
    blocks = BLOCKS_ASCII if ascii_only else BLOCKS
    line = sparkline(picture.page_rates, min(SPARK_COLUMNS_MAX, width - len(text)), blocks)
    since = f" (last {roughly(len(line) * BUCKET_S)})"
    return cut_end(text + line + (since if line and len(text + line + since) <= width else ""), width).rstrip()


def _failures(picture: Picture, width: int) -> list[str]:
    failed = Counter(still_failed(row.counters for row in picture.rows))
    if not failed:
        return []
    text = f"{failed.total():,} failed: "
    return [text + most_frequent(failed, width - len(text))]


def _site_columns(picture: Picture, count: int) -> list[TextColumn]:
    lines = picture.sites.lines[:count]
    names = [printable(line.site) for line in lines]
    return [
        TextColumn(picture.sites_head, names, is_text=True, least=SITE_COLUMNS_MIN, short_head="sites"),
        TextColumn("URLs left", [f"{line.pending:,}" for line in lines], 4),
        TextColumn("delay", [reason_for_pace(line, picture.site_settings) for line in lines], 2, is_text=True),
        TextColumn("answers in", [_seconds(line.request_s) for line in lines], 1),
        TextColumn("at least", [roughly(line.least_s) if line.least_s >= 1 else "" for line in lines], 3),
    ]


def _seconds(seconds: float) -> str:
    if not seconds:
        return ""
    if seconds < 0.9995:
        return f"{1000 * seconds:.0f} ms"
    return f"{seconds:.1f} s" if seconds < 59.5 else roughly(seconds)
