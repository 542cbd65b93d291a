"""Test the bar and the time left, which is told only when it is more than a guess."""

import pytest

from kadcrawl.cli.view.live.estimate import DONE_MIN, Bar, bar_of, time_left
from kadcrawl.cli.view.live.samples import Trend
from kadcrawl.keys import id_bytes
from kadcrawl.link.wire.messages import Contact, PeerCounters, PeerRow
from kadcrawl.link.wire.peer_state import PeerState


def worked_row(
    *, done: int, urls: int, pending: int, granted: int = 0, allowance: int = 0, due_s: float | None = None
) -> PeerRow:
    return PeerRow(
        Contact(id_bytes(1), "10.0.0.1", 1),
        PeerState.CRAWLING,
        pending,
        0,
        1,
        PeerCounters(done=done, urls=urls),
        allowance,
        granted,
        due_s=due_s,
    )


@pytest.mark.parametrize(
    ("rows", "max_pages", "expected"),
    [
        ([], None, Bar(0, 0, False)),
        ([worked_row(done=3, urls=10, pending=7)], None, Bar(3, 10, False)),
        ([worked_row(done=3, urls=10, pending=3), worked_row(done=9, urls=5, pending=0)], None, Bar(12, 15, False)),
        ([worked_row(done=12, urls=10, pending=0)], None, Bar(12, 12, False)),
        ([worked_row(done=12, urls=10, pending=7)], None, Bar(12, 19, False)),
        ([worked_row(done=3, urls=10, pending=7, granted=5, allowance=2)], 10, Bar(3, 10, True)),
        ([worked_row(done=3, urls=10, pending=6, granted=5, allowance=2)], 10, Bar(3, 10, False)),
        ([worked_row(done=90, urls=50, pending=20, due_s=5.0)], None, Bar(30, 50, False)),
    ],
    ids=[
        "nothing yet",
        "done against found",
        "a peer does what another one found",
        "never more than found",
        "what a peer that crashed had found",
        "the budget is the end",
        "fewer URLs than the budget are the end",
        "pages that are fetched again count once",
    ],
)
def test_the_bar_ends_where_the_crawl_does(rows: list[PeerRow], max_pages: int | None, expected: Bar) -> None:
    assert expected == bar_of(rows, max_pages)


@pytest.mark.parametrize(("done", "total", "expected"), [(0, 0, "0 %"), (999, 1000, "99 %"), (5, 5, "100 %")])
def test_nothing_is_whole_before_its_end(done: int, total: int, expected: str) -> None:
    assert expected == Bar(done, total, False).percent


@pytest.mark.parametrize(
    ("bar", "trend", "least_s", "expected"),
    [
        (Bar(10, 10, False), Trend(2.0, 0.0, 100), 0.0, None),
        (Bar(10, 1210, False), None, 0.0, None),
        (Bar(10, 1210, False), None, 600.0, "at least 10 min left"),
        (Bar(10, 1210, False), None, 9.0, None),
        (Bar(10, 1210, False), Trend(2.0, 0.4, 100), 0.0, "about 10 min left"),
        (Bar(10, 1210, False), Trend(2.0, 0.5, 100), 0.0, None),
        (Bar(10, 1210, False), Trend(2.0, 0.5, 100), 300.0, "at least 5 min left"),
        (Bar(10, 1210, False), Trend(2.0, 0.0, 100), 1200.0, "about 20 min left"),
        (Bar(10, 1210, False), Trend(0.1, 0.0, DONE_MIN - 1), 0.0, None),
        (Bar(10, 1210, True), Trend(2.0, 5.0, 100), 9999.0, "about 10 min left"),
        (Bar(9, 10, False), Trend(20.0, 0.0, 100), 0.0, "about 1 s left"),
    ],
    ids=[
        "done",
        "no trend yet",
        "only the slowest site is known",
        "too little to tell",
        "few new URLs",
        "too many new URLs",
        "too many new URLs, and a slow site",
        "the slowest site takes longer than the rate tells",
        "too little is done",
        "a budget does not grow, and slow sites need not be fetched whole",
        "never no time while something is left",
    ],
)
def test_the_time_left_is_no_guess(bar: Bar, trend: Trend | None, least_s: float, expected: str | None) -> None:
    assert expected == time_left(bar, trend, least_s)
