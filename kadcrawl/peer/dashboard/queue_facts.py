"""The part of the document about the queue: the sites with the most pending URLs, and the ages of all. A decision.

A count of the queue reads all pending URLs, so `QueueLooks` spaces the looks by their number.

Tests: tests/peer/dashboard/test_queue_facts.py
"""

from collections.abc import Mapping, Sequence
from itertools import zip_longest
from typing import Any

from kadcrawl.link.wire.order_messages import StandingOrder
from kadcrawl.link.wire.queue_messages import AGES_S, Queue, QueuedSite
from kadcrawl.settings.host_matches import most_specific

QUEUE_INTERVAL_S = 10.0
"""Least time between two looks at the queue."""
URLS_PER_S = 20_000
"""Pending URLs of the swarm per second between two looks, so that counting takes a small part of a core."""


class QueueLooks:
    """The last look at the queue, and the time of the next."""

    def __init__(self) -> None:
        self.last: Queue | None = None
        self._due_at = 0.0

    def is_due(self, now: float) -> bool:
        """Return whether the queue is to be looked at again."""
        return now >= self._due_at

    def note(self, queue: Queue, now: float) -> None:
        """Note an answer. As long as peers count, the next look comes soon, and an earlier whole answer stays."""
        if queue.peers_counting:
            self.last = self.last or queue
            return
        self.last = queue
        self._due_at = now + max(QUEUE_INTERVAL_S, queue.counts.pending / URLS_PER_S)

    def put_off(self, now: float) -> None:
        """Look again later, as nobody has answered."""
        self._due_at = now + QUEUE_INTERVAL_S


def queue_facts(queue: Queue) -> dict[str, Any]:
    """Return the members of the document that an answer about the queue gives."""
    orders = [order for order in queue.orders if order.value is not None]
    return {
        "sites": {site.site: _site(site, orders) for site in queue.counts.top},
        "sites_total": queue.counts.sites,
        "queue_ages": [
            {"up_to_s": up_to_s, "urls": urls}
            for up_to_s, urls in zip_longest((*AGES_S, None), queue.counts.by_age[: len(AGES_S) + 1], fillvalue=0)
        ],
    }


def _site(site: QueuedSite, orders: Sequence[StandingOrder]) -> dict[str, Any]:
    return {
        "pending": site.pending,
        "last_status": site.status or None,
        "delay_s": round(site.delay_s, 2),
        "next_in_s": round(site.wait_s, 1),
        "back_off_s": round(site.wait_s, 1) if site.refusals else None,
        "back_off_why": _refused(site) if site.refusals else None,
        "owner": site.owner.hex(),
        "order": _order_about(site.site, orders),
    }


def _refused(site: QueuedSite) -> str:
    times = f"{site.refusals} times in a row" if site.refusals > 1 else "once"
    status = f", last with {site.status}" if site.status in (429, 503) else ""
    return f"it refused requests {times}{status}"


def _order_about(site: str, orders: Sequence[StandingOrder]) -> str | None:
    """Return the word for the order that holds for a site, or None without any."""
    for kind, word in (("exclude", "excluded"), ("pause", "paused"), ("delay", "slowed")):
        values: Mapping[str, float] = {one.about: one.value or 0.0 for one in orders if one.kind == kind}
        if most_specific(values, site):
            return word
    return None
