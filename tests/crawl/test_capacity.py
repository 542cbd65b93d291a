"""Test that all crawlers of a peer share its limits.

Any crawler wakes a crawler that waits for room.
"""

import pytest

from kadcrawl.crawl.capacity import LADEN_URLS, Capacity
from kadcrawl.settings.limits import Limits

LIMITS = Limits(fetches_max=3, unfinished_max=4, unfinished_bytes_max=10, site_connections_max=1)


def test_requests_of_all_crawlers_count() -> None:
    capacity = Capacity(LIMITS)
    one, other = capacity.join(), capacity.join()
    one.begin(1)
    other.begin(1)
    assert capacity.has_room
    other.begin(2)
    assert not capacity.has_room
    one.end_request(1)
    assert capacity.has_room


def test_an_attempt_counts_until_it_has_ended() -> None:
    capacity = Capacity(LIMITS)
    work = capacity.join()
    for seq in range(4):
        work.begin(seq)
        work.end_request(seq)
    assert not capacity.has_room
    work.end()
    assert capacity.has_room


@pytest.mark.parametrize(("count", "has_room"), [(9, True), (10, False)])
def test_bytes_of_unfinished_pages_count(count: int, has_room: bool) -> None:
    capacity = Capacity(LIMITS)
    one, other = capacity.join(), capacity.join()
    one.add_bytes(5)
    other.add_bytes(count - 5)
    assert has_room == capacity.has_room
    one.add_bytes(-5)
    assert capacity.has_room


def test_all_loops_are_woken() -> None:
    capacity = Capacity(LIMITS)
    one, other = capacity.join(), capacity.join()
    capacity.wake_all(one)
    assert one.changed.is_set()
    assert other.changed.is_set()


def test_a_peer_whose_pages_only_wait_for_acknowledgements_is_idle() -> None:
    """With a request under way it is not: the links of that page can keep the others company."""
    capacity = Capacity(LIMITS)
    work = capacity.join()
    assert capacity.is_idle(0)
    assert not capacity.is_idle(1)
    work.begin(1)
    assert not capacity.is_idle(1)
    work.end_request(1)
    assert capacity.is_idle(1)
    assert not capacity.is_idle(2)


def test_a_peer_is_laden_by_urls_that_it_has_not_begun_while_its_pages_get_finished() -> None:
    capacity = Capacity(LIMITS)
    work = capacity.join()
    assert not capacity.is_laden(LADEN_URLS - 1)
    assert capacity.is_laden(LADEN_URLS)
    work.begin(1)
    assert not capacity.is_laden(LADEN_URLS)
    assert capacity.is_laden(LADEN_URLS + 1)
    work.begin(2)
    assert not capacity.is_laden(LADEN_URLS + 2), "half of the unfinished pages that it may have are there"
