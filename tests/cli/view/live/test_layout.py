"""Test how text fits a terminal: whole pieces, whole columns, and the end of a host name."""

import pytest

from kadcrawl.cli.view.live.layout import (
    TextColumn,
    cut_end,
    cut_start,
    fitting,
    most_frequent,
    shared_rows,
    table_lines,
    wrapped,
)
from tests.support.cases import cases


@pytest.mark.parametrize(
    ("width", "expected"),
    [
        (80, ["crawl: 5 pages, 2 peers, 0:10"]),
        (29, ["crawl: 5 pages, 2 peers, 0:10"]),
        (28, ["crawl: 5 pages, 2 peers,", "0:10"]),
        (15, ["crawl: 5 pages,", "2 peers, 0:10"]),
        (14, ["crawl: 5 pages", "2 peers, 0:10"]),
        (9, ["crawl: 5…", "2 peers,", "0:10"]),
    ],
)
def test_pieces_stay_whole_on_as_many_lines_as_they_need(width: int, expected: list[str]) -> None:
    assert expected == wrapped(["crawl: 5 pages", "2 peers", "0:10"], width)


SITES = TextColumn("largest and slowest", ["www.example.org", "a.b"], is_text=True, least=8, short_head="sites")


@pytest.mark.parametrize(
    ("width", "expected"),
    [
        (40, ["largest and slowest  left  why", "www.example.org        12  --delay", "a.b                   500"]),
        (30, ["sites            left  why", "www.example.org    12  --delay", "a.b               500"]),
        (23, ["sites     left  why", "…ple.org    12  --delay", "a.b        500"]),
    ],
)
def test_a_table_is_cut_at_the_start_of_its_first_column(width: int, expected: list[str]) -> None:
    columns = [SITES, TextColumn("left", ["12", "500"], 3), TextColumn("why", ["--delay", ""], 2, is_text=True)]
    assert expected == table_lines(fitting(columns, width))


def test_the_column_with_the_least_worth_goes_first() -> None:
    columns = [SITES, TextColumn("left", ["12", "500"], 3), TextColumn("why", ["--delay", ""], 2, is_text=True)]
    assert ["sites", "left"] == [column.head for column in fitting(columns, 22)]
    assert ["sites"] == [column.head for column in fitting(columns, 13)]


def test_a_first_column_without_a_least_width_stays_whole() -> None:
    columns = [TextColumn("peer", ["12345678@10.0.0.1:4160"], is_text=True), TextColumn("pages", ["5"], 1)]
    assert ["12345678@10.0.0.1:4160"] == fitting(columns, 28)[0].cells
    assert 1 == len(fitting(columns, 28))
    assert 2 == len(fitting(columns, 29))


@cases("free", range(0, 40))
@cases("sites", [0, 1, 8])
@cases("peers", [1, 2, 21])
def test_two_tables_share_the_rows(free: int, sites: int, peers: int) -> None:
    shown_sites, shown_peers = shared_rows(free, sites, peers)
    assert 0 <= shown_sites <= sites
    assert 0 <= shown_peers <= peers
    used = sum(shown + 1 for shown in (shown_sites, shown_peers) if shown)
    assert used <= free
    assert (shown_sites, shown_peers) == (sites, peers) or used >= free - 1, "no two rows are wasted"


@pytest.mark.parametrize(
    ("free", "sites", "peers", "expected"),
    [
        (1, 8, 4, (0, 0)),
        (2, 8, 4, (1, 0)),
        (5, 8, 4, (4, 0)),
        (8, 8, 4, (3, 3)),
        (14, 8, 4, (8, 4)),
        (14, 8, 21, (8, 4)),
        (14, 1, 21, (1, 11)),
        (5, 0, 4, (0, 4)),
    ],
)
def test_sites_come_first_where_there_is_no_room(free: int, sites: int, peers: int, expected: tuple[int, int]) -> None:
    assert expected == shared_rows(free, sites, peers)


@pytest.mark.parametrize(
    ("width", "expected"),
    [
        (80, "http_404 1,200, timeout 7, dns 2"),
        (31, "http_404 1,200 and 2 more"),
        (24, ""),
    ],
)
def test_the_most_frequent_failures_are_named_and_the_others_counted(width: int, expected: str) -> None:
    assert expected == most_frequent({"dns": 2, "http_404": 1200, "timeout": 7}, width)


def test_a_cut_is_seen() -> None:
    assert ["…bbb.ccc.ddd", "aaa.bbb.ccc…", "short", "short"] == [
        cut_start("aaa.bbb.ccc.ddd", 12),
        cut_end("aaa.bbb.ccc.ddd", 12),
        cut_start("short", 12),
        cut_end("short", 12),
    ]
