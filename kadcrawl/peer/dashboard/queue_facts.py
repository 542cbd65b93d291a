"""The part of the document about the queue: the sites with the most pending URLs, and the ages of all. A decision.

A count of the queue reads all pending URLs, so `QueueLooks` spaces the looks by their number. A queue of common size is
asked for at each look at the swarm.

Tests: tests/peer/dashboard/test_queue_facts.py
"""

from collections.abc import Mapping, Sequence
from itertools import zip_longest
from typing import Any

from kadcrawl.link.wire.order_messages import StandingOrder
from kadcrawl.link.wire.queue_messages import AGES_S, Queue, QueuedSite
from kadcrawl.settings.host_matches import most_specific

RETRY_S = 10.0
"""Time to the next look at the queue if nobody has answered."""
URLS_PER_S = 15_000
"""Pending URLs of a peer per second between two looks, so that counting takes a small part of a core."""

UNSPACED_S = 0.5
"""Time between two looks that is too short to leave one out."""


class QueueLooks:
    """The last look at the queue, and the time of the next."""

    def __init__(self) -> None:
        self.last: Queue | None = None
        self.counted_at = 0.0
        """The second at which the oldest count of the last look was made."""
        self._due_at = 0.0

    def is_due(self, now: float) -> bool:
        """Return whether the queue is to be looked at again."""
        return now >= self._due_at

    def note(self, queue: Queue, peers: int, now: float) -> None:
        """Note an answer of so many peers.

        As long as some of them count, the next look comes soon, and an earlier whole answer stays.
        """
        if queue.peers_counting:
            if self.last is None:
                self.last, self.counted_at = queue, now
            return
        self.last, self.counted_at = queue, now - queue.counts.age_s
        between_s = queue.counts.pending / max(1, peers) / URLS_PER_S
        self._due_at = now + (between_s if between_s > UNSPACED_S else 0.0)

    def put_off(self, now: float) -> None:
        """Look again later, as nobody has answered."""
        self._due_at = now + RETRY_S


def queue_facts(queue: Queue, counted_at: float) -> dict[str, Any]:
    """Return the members of the document that an answer about the queue gives, which was counted at a second."""
    orders = [order for order in queue.orders if order.value is not None]
    return {
        "queue_counted": round(counted_at, 1),
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
