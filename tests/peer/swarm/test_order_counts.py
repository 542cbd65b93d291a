"""The URLs of the latest orders are counted, and those of older orders forgotten."""

from kadcrawl.peer.swarm.order_counts import ORDERS_COUNTED_MAX, OrderCounts


def test_urls_of_an_order_are_counted_by_reason() -> None:
    counts = OrderCounts()
    counts.add(7, "timeout")
    counts.add(7, "http_404", 3)
    counts.add(7, "timeout")
    counts.add(8, "timeout")
    assert {"timeout": 2, "http_404": 3} == counts.of(7)
    assert {} == counts.of(9)


def test_only_the_latest_orders_are_remembered() -> None:
    counts = OrderCounts()
    for stamp in range(ORDERS_COUNTED_MAX + 1):
        counts.add(stamp, "timeout")
    assert [{}, {"timeout": 1}] == [counts.of(0), counts.of(1)]
    counts.add(0, "timeout")
    assert {} == counts.of(0), "an order that is older than all others counts no more"
