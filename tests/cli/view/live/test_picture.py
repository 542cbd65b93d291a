"""Test the picture of a crawl on terminals of many sizes."""

import msgspec

from kadcrawl.cli.view.live.estimate import Bar
from kadcrawl.cli.view.live.layout import table_lines
from kadcrawl.cli.view.live.picture import Drawing, Picture, drawing
from kadcrawl.cli.view.live.sites import SiteLine, SiteReport
from kadcrawl.keys import id_bytes
from kadcrawl.link.wire.messages import Contact, PeerCounters, PeerRow
from kadcrawl.link.wire.peer_state import PeerState
from kadcrawl.settings.job import Job
from kadcrawl.settings.site_settings import SiteSettings
from tests.support.cases import cases

ROWS = [
    PeerRow(
        Contact(id_bytes(number << 140), "192.168.100.200", 40_000 + number),
        PeerState.REFUSED if number == 3 else PeerState.CRAWLING,
        12_345 * number,
        8,
        900,
        PeerCounters(
            pages=23_456 * number,
            bytes=10**9,
            failed={"http_404": 120, "robots_unreachable": 3, "timeout": 44, "http_503": 10},
            peer_messages=10**6,
        ),
        0,
        0,
        lent=40,
        lag=10**7,
        refused_by=2,
    )
    for number in range(1, 26)
]
SITES = [
    SiteLine("a-very-long-name-of-a-host.with-many-labels.in-its-name.example.org:8080", 1_234_567, 1.0, 0.0, 0.25),
    *(SiteLine(f"site-{number}.example", 900 - number, 10.0, 300.0 * (number % 2), 70.0) for number in range(17)),
]


def picture_of(
    *, rows: list[PeerRow] = ROWS, sites: list[SiteLine] = SITES, time_left: str | None = "about 3 d 4 h left"
) -> Picture:
    return Picture(
        headline=["crawl: 1,234,567 pages", "2,345,678 pending", "25 peers, 1 paused: disk full", "23:45"],
        rows=rows,
        bar=Bar(1_234_567, 3_580_245, False),
        time_left=time_left,
        page_rate=12.5,
        page_rates=[float(number % 7) for number in range(60)],
        sites_head="largest and slowest sites",
        sites=SiteReport(sites, len(sites)),
        site_settings=SiteSettings(Job()),
    )


def lines_of(drawn: Drawing) -> list[str]:
    """Return the drawing as lines, with stars for the bar."""
    progress = ["*" * drawn.bar_width + drawn.progress[0], *drawn.progress[1:]] if drawn.progress else []
    lines = [*drawn.headline, *progress, *drawn.notes]
    for table in drawn.tables:
        lines += [*([""] if drawn.spaced else []), *table_lines(table)]
    return lines


@cases("width", [20, 30, 39, 40, 50, 59, 60, 71, 72, 79, 80, 100, 120, 200])
@cases("height", [2, 3, 5, 8, 10, 16, 24, 50])
@cases("peers", [1, 4, 25])
def test_no_line_is_wrapped_and_none_is_below_the_terminal(width: int, height: int, peers: int) -> None:
    lines = lines_of(drawing(picture_of(rows=ROWS[:peers]), width, height))
    assert len(lines) < height
    assert [] == [line for line in lines if len(line) > width]


def test_at_80_columns_nothing_is_missing() -> None:
    lines = lines_of(drawing(picture_of(rows=ROWS[:2], sites=SITES[:3]), 80, 24))
    assert [
        "crawl: 1,234,567 pages, 2,345,678 pending, 25 peers, 1 paused: disk full, 23:45",
        "********************* 1,234,567 of 3,580,245 URLs done, 34 %, about 3 d 4 h left",
    ] == lines[:2]
    assert lines[2].startswith("12.5 pages/s ")
    assert "354 failed: http_404 240, timeout 88, http_503 20, robots_unreachable 6" == lines[3]
    assert ["", "sites"] == [lines[4], lines[5].split("  ")[0]], "the head is short where the name is cut"
    assert "URLs left  delay                 answers in    at least" in lines[5]
    assert "…-name.example.org:8080" in lines[6]
    assert "back-off, 5 min more" in lines[8]
    assert lines[10].startswith("peer ")


def test_a_narrow_terminal_keeps_the_figures_that_matter() -> None:
    drawn = drawing(picture_of(rows=ROWS[:2]), 40, 30)
    assert [["sites", "URLs left", "at least"], ["peer", "pages", "pending"]] == [
        [column.head for column in table if column.head != "state"] for table in drawn.tables
    ]
    assert ["", "1,234,567 of 3,580,245 URLs done, 34 %,", "about 3 d 4 h left"] == drawn.progress
    assert 40 == drawn.bar_width
    assert "08000000" not in "".join(cell for cell in drawn.tables[1][0].cells if "@" in cell), "no address fits"


def test_the_peers_go_before_the_sites_on_a_low_terminal() -> None:
    assert ["largest and slowest sites"] == [table[0].head for table in drawing(picture_of(), 120, 9).tables]
    assert 2 == len(drawing(picture_of(), 120, 14).tables)


def test_before_sites_and_failures_are_known_the_peers_have_the_room() -> None:
    rows = [msgspec.structs.replace(row, counters=PeerCounters(pages=1)) for row in ROWS[:3]]
    drawn = drawing(picture_of(rows=rows, sites=[], time_left=None), 80, 24)
    assert ["peer"] == [table[0].head for table in drawn.tables]
    assert 1 == len(drawn.notes)


def test_of_many_peers_the_busiest_are_shown_and_the_others_counted() -> None:
    peers = drawing(picture_of(sites=[]), 80, 50).tables[0]
    assert 21 == len(peers[0].cells)
    assert "... and 5 more" == peers[0].cells[-1]
    assert "586,400" == peers[2].cells[0]


def test_a_terminal_of_plain_characters_gets_a_plain_sparkline() -> None:
    assert drawing(picture_of(), 80, 24, ascii_only=True).notes[0].isascii()


def test_the_name_of_a_site_steers_no_terminal() -> None:
    drawn = drawing(picture_of(sites=[SiteLine("evil\x1b[2J.example", 1, 1.0, 0.0, 0.1)]), 80, 24)
    assert ["evil?[2J.example"] == drawn.tables[0][0].cells
