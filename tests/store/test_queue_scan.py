"""Pending URLs are counted by site, depth and age, some rows at a time, with either kind of partition."""

import pytest

from kadcrawl.keys import SITE_BYTES, site_hash, url_key
from kadcrawl.store import queue_scan
from kadcrawl.store.queue_scan import LAST, QueueScan
from kadcrawl.store.store import Store

END = b"\xff" * SITE_BYTES


def fill(store: Store, *, by_url: bool = False) -> None:
    for site, count in (("a.example", 7), ("b.example", 3), ("c.example", 5)):
        for number in range(count):
            url = f"http://{site}/{number}"
            name = url if by_url else site
            assert store.accept(url_key(site_hash(name), url), name, url, number % 3, 0)


def whole(scan: QueueScan, last: bytes = END, first: bytes = b"") -> int:
    place: tuple[bytes, int, int] | None = (first, LAST if first else 0, 0)
    steps = 0
    while place is not None:
        place = scan.step(place, last)
        steps += 1
    return steps


@pytest.mark.parametrize("rows", [2, 4, 15, 100])
@pytest.mark.parametrize("by_url", [False, True])
def test_each_row_counts_once_however_many_are_read_at_a_time(
    store: Store, monkeypatch: pytest.MonkeyPatch, rows: int, by_url: bool
) -> None:
    monkeypatch.setattr(queue_scan, "ROWS_AT_ONCE", rows)
    monkeypatch.setattr(queue_scan, "URLS_AT_ONCE", rows)
    fill(store, by_url=by_url)
    scan = QueueScan(store.journal, [10, 4], 64, host="" if by_url else None, urls=0)
    steps = whole(scan)
    assert steps == 15 // rows + 1
    assert (15, 3, [6, 5, 4]) == (scan.pending, scan.sites, scan.by_depth)
    assert [5, 6, 4] == scan.by_age, "the last four rows are the youngest but one"
    assert [("a.example", 7), ("c.example", 5)] == scan.top(2)


def test_one_site_counts_alone_with_its_next_urls(store: Store) -> None:
    fill(store)
    scan = QueueScan(store.journal, [], 2, host=None, urls=3)
    name = site_hash("c.example")
    assert 1 == whole(scan, name, (int.from_bytes(name, "big") - 1).to_bytes(SITE_BYTES, "big"))
    assert (5, 1, [2, 3]) == (scan.pending, scan.sites, scan.by_depth), "the deepest count together"
    assert ["/0", "/3", "/1"] == [entry.url[-2:] for entry in scan.next]


def test_one_host_counts_alone_where_each_url_is_a_site(store: Store) -> None:
    fill(store, by_url=True)
    scan = QueueScan(store.journal, [], 64, host="c.example", urls=3)
    whole(scan)
    assert (5, [("c.example", 5)]) == (scan.pending, scan.top(9))
    assert ["/0", "/3", "/1"] == [entry.url[-2:] for entry in scan.next]


def test_sites_beyond_the_limit_count_in_the_totals(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queue_scan, "SITES_COUNTED_MAX", 2)
    monkeypatch.setattr(queue_scan, "ROWS_AT_ONCE", 1)
    fill(store)
    scan = QueueScan(store.journal, [], 64, host=None, urls=0)
    whole(scan)
    assert (15, 3) == (scan.pending, scan.sites)
    assert len(scan.top(9)) <= 2
