"""Test the part of the document about the queue, and how often the queue is counted."""

from kadcrawl.link.wire.order_messages import StandingOrder
from kadcrawl.link.wire.queue_messages import Queue, QueueCounts, QueuedSite
from kadcrawl.peer.dashboard.queue_facts import QUEUE_INTERVAL_S, QueueLooks, queue_facts

OWNER = b"\1" * 20


def queue(*sites: QueuedSite, pending: int = 0, counting: int = 0, orders: tuple[StandingOrder, ...] = ()) -> Queue:
    """Return an answer about a queue with these sites."""
    counts = QueueCounts(pending, len(sites), [], [3, 0, 4], list(sites))
    return Queue(counts, 0, counting, list(orders))


def test_a_site_is_shown_with_its_back_off_and_why() -> None:
    refusing = QueuedSite("a.example", 7, OWNER, 1, 503, 1.0, 42.04, 2)
    quick = QueuedSite("b.example", 5, OWNER, 1, 200, 1.0, 0.0)
    shown = queue_facts(queue(refusing, quick))
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
    shown = queue_facts(queue(*sites, orders=orders))["sites"]
    assert ["paused", "slowed", "excluded", None] == [shown[site.site]["order"] for site in sites]


def test_the_ages_are_those_of_all_pending_urls() -> None:
    ages = queue_facts(queue())["queue_ages"]
    assert [(60, 3), (600, 0), (3600, 4), (86_400, 0), (604_800, 0), (None, 0)] == [
        (age["up_to_s"], age["urls"]) for age in ages
    ]


def test_a_large_queue_is_counted_rarely() -> None:
    looks = QueueLooks()
    assert looks.is_due(0.0)
    looks.note(queue(pending=10), 100.0)
    assert [False, True] == [looks.is_due(100.0 + later) for later in (QUEUE_INTERVAL_S - 1, QUEUE_INTERVAL_S)]
    looks.note(queue(pending=10_000_000), 200.0)
    assert [False, True] == [looks.is_due(200.0 + later) for later in (499, 500)]


def test_while_peers_count_the_last_whole_answer_stays() -> None:
    looks, whole = QueueLooks(), queue(pending=5)
    partial = queue(pending=1, counting=1)
    looks.note(partial, 0.0)
    assert (partial, True) == (looks.last, looks.is_due(0.0))
    looks.note(whole, 1.0)
    looks.note(partial, 50.0)
    assert (whole, True) == (looks.last, looks.is_due(50.0))
