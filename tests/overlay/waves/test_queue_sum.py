"""The queues of peers add up at each level of a wave, within the limits of the wire."""

from kadcrawl.link.wire.basics import COUNT_MAX
from kadcrawl.link.wire.queue_messages import QueueCounts, QueuedSite, QueuedUrl
from kadcrawl.overlay.waves.queue_sum import sum_of

ONE, TWO = bytes(20), bytes([2] * 20)


def test_counts_add_up_and_the_largest_sites_stay() -> None:
    first = QueueCounts(9, 2, [4, 5], [9], [QueuedSite("a", 5, ONE), QueuedSite("b", 4, ONE)])
    second = QueueCounts(7, 1, [7], [6, 1], [QueuedSite("c", 7, TWO)])
    total = sum_of([first, second], 2, 0)
    assert (16, 3, [11, 5], [15, 1]) == (total.pending, total.sites, total.by_depth, total.by_age)
    assert [("c", 7), ("a", 5)] == [(site.site, site.pending) for site in total.top]
    assert total == sum_of([second, first], 2, 0), "in whatever order they come"
    assert total == sum_of([sum_of([first], 2, 0), sum_of([second], 2, 0)], 2, 0), "and however deep the tree is"


def test_the_sum_is_as_old_as_its_oldest_part() -> None:
    assert 7.5 == sum_of([QueueCounts(age_s=7.5), QueueCounts(age_s=2.0), QueueCounts()], 5, 0).age_s
    assert 0.0 == sum_of([], 5, 0).age_s


def test_a_site_with_several_owners_counts_once() -> None:
    first = QueueCounts(5, 1, top=[QueuedSite("a", 2, ONE, 1, 200, 1.0)])
    second = QueueCounts(5, 1, top=[QueuedSite("a", 3, TWO, 1, 0, 5.0)])
    total = sum_of([first, second], 5, 0)
    assert (1, [QueuedSite("a", 5, TWO, 2, 200, 5.0)]) == (total.sites, total.top)


def test_the_next_urls_come_breadth_first() -> None:
    urls = [QueuedUrl(f"http://a/{depth}", depth, 0, 0.0) for depth in (3, 1, 2)]
    total = sum_of([QueueCounts(next=urls[:1]), QueueCounts(next=urls[1:])], 5, 2)
    assert [1, 2] == [one.depth for one in total.next]


def test_a_peer_that_lies_makes_no_sum_too_large() -> None:
    liar = QueueCounts(COUNT_MAX, COUNT_MAX, [COUNT_MAX], [COUNT_MAX], [QueuedSite("a", COUNT_MAX, ONE)])
    total = sum_of([liar, liar], 5, 0)
    assert (COUNT_MAX, [COUNT_MAX], COUNT_MAX) == (total.pending, total.by_depth, total.top[0].pending)
