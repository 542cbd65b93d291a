"""Test the part of the document about the queue, and how often the queue is counted."""

from kadcrawl.link.wire.order_messages import StandingOrder
from kadcrawl.link.wire.queue_messages import Queue, QueueCounts, QueuedSite
from kadcrawl.peer.dashboard.queue_facts import RETRY_S, QueueLooks, queue_facts

OWNER = b"\1" * 20


def queue(
    *sites: QueuedSite,
    pending: int = 0,
    counting: int = 0,
    orders: tuple[StandingOrder, ...] = (),
    age_s: float = 0.0,
) -> Queue:
    """Return an answer about a queue with these sites."""
    counts = QueueCounts(pending, len(sites), [], [3, 0, 4], list(sites), age_s=age_s)
    return Queue(counts, 0, counting, list(orders))


def test_a_site_is_shown_with_its_back_off_and_why() -> None:
    refusing = QueuedSite("a.example", 7, OWNER, 1, 503, 1.0, 42.04, 2)
    quick = QueuedSite("b.example", 5, OWNER, 1, 200, 1.0, 0.0)
    shown = queue_facts(queue(refusing, quick), 0.0)
    why = "it refused requests 2 times in a row, last with 503"
    assert (42.0, why) == (shown["sites"]["a.example"]["back_off_s"], shown["sites"]["a.example"]["back_off_why"])
    assert (None, None) == (shown["sites"]["b.example"]["back_off_s"], shown["sites"]["b.example"]["back_off_why"])
    assert (2, OWNER.hex()) == (shown["sites_total"], shown["sites"]["a.example"]["owner"])


def test_the_narrowest_order_about_a_site_is_shown() -> None:
    orders = (
        StandingOrder("pause", "*.example", 1.0),
        StandingOrder("pause", "b.example", 0.0),
        StandingOrder("delay", "b.example", 9.0),
        StandingOrder("exclude", "c.example", 1.0),
        StandingOrder("exclude", "d.example", None),
        StandingOrder("pause", "d.example", 0.0),
    )
    sites = [QueuedSite(f"{name}.example", 1, OWNER) for name in "abcd"]
    shown = queue_facts(queue(*sites, orders=orders), 0.0)["sites"]
    assert ["paused", "slowed", "excluded", None] == [shown[site.site]["order"] for site in sites]


def test_the_ages_are_those_of_all_pending_urls() -> None:
    ages = queue_facts(queue(), 0.0)["queue_ages"]
    assert [(60, 3), (600, 0), (3600, 4), (86_400, 0), (604_800, 0), (None, 0)] == [
        (age["up_to_s"], age["urls"]) for age in ages
    ]


def test_a_queue_is_asked_for_at_each_look_unless_it_is_large() -> None:
    looks = QueueLooks()
    assert looks.is_due(0.0)
    looks.note(queue(pending=100_000), 50, 100.0)
    assert looks.is_due(100.0)
    looks.note(queue(pending=1_500_000), 2, 200.0)
    assert [False, True] == [looks.is_due(200.0 + later) for later in (49, 50)]
    looks.put_off(300.0)
    assert [False, True] == [looks.is_due(300.0 + later) for later in (RETRY_S - 1, RETRY_S)]


def test_while_peers_count_the_last_whole_answer_stays() -> None:
    looks, whole = QueueLooks(), queue(pending=5, age_s=2.0)
    partial = queue(pending=1, counting=1)
    looks.note(partial, 3, 0.0)
    assert (partial, True) == (looks.last, looks.is_due(0.0))
    looks.note(whole, 3, 10.0)
    assert 8.0 == looks.counted_at
    looks.note(partial, 3, 50.0)
    assert (whole, True) == (looks.last, looks.is_due(50.0))
    assert 8.0 == looks.counted_at
    assert 8.0 == queue_facts(whole, looks.counted_at)["queue_counted"]
