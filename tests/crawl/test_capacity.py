"""Test that all crawlers of a peer share its limits.

Any crawler wakes a crawler that waits for room.
"""

import pytest

from kadcrawl.crawl.capacity import Capacity
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
