"""Test the events of one peer while somebody watches: which are kept, how many, and for how long."""

import logging
from collections.abc import Iterator

import pytest
from msgspec import Raw

from kadcrawl.link.wire.basics import Contact
from kadcrawl.link.wire.codec import pack_part, unpack_part
from kadcrawl.link.wire.watch_messages import SAMPLES_OF_REASON_MAX, Watched
from kadcrawl.peer.dashboard.event_watch import EVENTS_KEPT_MAX, UNWATCHED_S, EventWatch
from kadcrawl.system.peer_name import peer_name

ME, OTHER, THIRD = b"\1" * 20, Contact(b"\2" * 20, "10.0.0.2", 4160), Contact(b"\3" * 20, "10.0.0.3", 4160)
HOLDER, LENDER = logging.getLogger("kadcrawl.replication.holder_side"), logging.getLogger("kadcrawl.lending.lender")
CRAWL = logging.getLogger("kadcrawl.crawl.attempt")


class Seconds:
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.now = 1000.0


@pytest.fixture
def seconds() -> Seconds:
    return Seconds()


@pytest.fixture
def watch(seconds: Seconds) -> Iterator[EventWatch]:
    """Give a watch that is on."""
    package = logging.getLogger("kadcrawl")
    before = package.level
    package.setLevel(logging.INFO)
    one = EventWatch(lambda: ME, lambda: seconds.now)
    one.told(10)
    yield one
    one.close()
    package.setLevel(before)


def test_cells_that_go_to_one_peer_within_a_second_are_one_move(watch: EventWatch, seconds: Seconds) -> None:
    for cell in range(7):
        HOLDER.debug("cell.released cell=%d to=%s", cell, OTHER)
    HOLDER.debug("cell.lost cell=%d to=%s", 9, THIRD)
    seconds.now += 5
    HOLDER.debug("cell.lost cell=%d to=%s", 8, THIRD)
    LENDER.debug("loan.given to=%s site=%s urls=%d", OTHER, "example.org", 40)
    moves = watch.told(10).moves
    assert [
        ("cells", OTHER.id, 7, [0, 1, 2, 3, 4]),
        ("cells", THIRD.id, 1, [9]),
        ("cells", THIRD.id, 1, [8]),
        ("loan", OTHER.id, 40, []),
    ] == [(move.kind, move.taker, move.count, move.cells) for move in moves]
    assert {ME} == {move.giver for move in moves}
    assert 2 == len(watch.told(4).moves), "those of the last seconds alone"


def test_failed_urls_are_kept_by_the_reason_that_is_counted(watch: EventWatch) -> None:
    for number in range(9):
        CRAWL.info("crawl.failed url=%s why=%s", f"http://a/{number}", "http_499")
    told = watch.told(10)
    assert [("http_4xx", f"http://a/{number}") for number in range(9 - SAMPLES_OF_REASON_MAX, 9)] == [
        (one.reason, one.url) for one in told.failed
    ]
    assert [] == told.events


def test_events_of_the_crawl_are_kept_and_others_are_not(watch: EventWatch) -> None:
    CRAWL.warning("disk.full directory=%s reserve_bytes=%d", "/tmp/x", 7)
    CRAWL.info("overlay.non_member from=%s", "10.0.0.9")
    CRAWL.info("crawl.limit_reached limit=%s", "pages")
    CRAWL.info("no event")
    assert [("disk.full", "directory=/tmp/x reserve_bytes=7"), ("crawl.limit_reached", "limit=pages")] == [
        (event.kind, event.text) for event in watch.told(10).events
    ]


def test_what_others_wrote_fits_the_wire(watch: EventWatch) -> None:
    for _ in range(EVENTS_KEPT_MAX + 5):
        CRAWL.info("order.heard user=%s", "\x1b[31m\n\u202e" + "x" * 5000)
        CRAWL.info("crawl.failed url=%s why=%s", "http://a/\x00\u00e9" + "y" * 9000, "z" * 500)
    told = watch.told(10)
    assert EVENTS_KEPT_MAX == len(told.events)
    assert told == unpack_part(Raw(pack_part(told)), Watched)


def test_a_record_without_its_fields_is_no_move(watch: EventWatch) -> None:
    HOLDER.debug("cell.lost")
    HOLDER.debug("cell.lost cell=%s to=%s", "one", "two")
    LENDER.debug("loan.given to=%s site=%s urls=%s", OTHER, "a", "many")
    assert [] == watch.told(10).moves


def test_the_watch_ends_when_nobody_looks(watch: EventWatch, seconds: Seconds) -> None:
    CRAWL.info("disk.full directory=%s", "x")
    seconds.now += UNWATCHED_S + 1
    CRAWL.info("disk.has_room directory=%s", "x")
    assert [] == HOLDER.filters
    assert [] == watch.told(600).events
    CRAWL.info("disk.full directory=%s", "x")
    assert 1 == len(watch.told(600).events)


def test_events_of_another_peer_of_the_process_are_not_its_own(watch: EventWatch) -> None:
    token = peer_name.set("peer-2")
    CRAWL.info("disk.full directory=%s", "x")
    peer_name.reset(token)
    assert [] == watch.told(10).events
