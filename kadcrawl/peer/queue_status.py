"""The queue of a swarm as a program sees it: pending URLs by site, depth and age, without types of the wire.

`Peer.queue` returns it.

Tests: tests/peer/swarm/test_queue_survey.py
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from kadcrawl.link.wire.queue_messages import AGES_S, Queue


@dataclass(frozen=True, slots=True)
class SiteQueue:
    """A site with pending URLs."""

    site: str
    """Name of the site, or its begin. With partition `url`, a host."""
    pending: int
    """URLs not finished."""
    owner: str
    """ID of the peer that owns the most of them, 20 bytes in hex."""
    owners: int
    """Peers that own URLs of the site."""
    status: int | None
    """Status of the last answer to the owner, or None if it is not known."""
    delay_s: float
    """Least seconds between two requests."""
    wait_s: float
    """Seconds before the site may be asked again."""
    refusals: int
    """Answers 429 or 503 in a row."""


@dataclass(frozen=True, slots=True)
class WaitingUrl:
    """A pending URL."""

    url: str
    depth: int
    """Number of links from the nearest seed."""
    tries: int
    """Fetches that failed temporarily so far."""
    wait_s: float
    """Seconds before the URL may be tried again, beside the wait of its site."""


@dataclass(frozen=True, slots=True)
class QueueStatus:
    """The pending URLs of a swarm, or of one site."""

    pending: int
    """URLs not finished."""
    sites: int
    """Sites with pending URLs."""
    by_depth: dict[int, int]
    """Pending URLs by depth. Depths from 63 on count together."""
    by_age: tuple[tuple[int | None, int], ...]
    """(Seconds, pending URLs) by the time since their owner has them: up to a minute, 10 minutes, an hour, a day and a
    week, and None for the older ones."""
    top: tuple[SiteQueue, ...]
    """The sites with the most pending URLs, those first."""
    next: tuple[WaitingUrl, ...]
    """The next URLs, breadth first, if one site was asked about."""
    unanswered: int
    """Parts of the swarm that did not answer, or peers that have not counted yet. Their URLs are missing."""

    @classmethod
    def of(cls, answer: Queue) -> "QueueStatus":
        """Return the answer of the swarm as a program sees it."""
        counts = answer.counts
        by_age = [*counts.by_age, *[0] * (len(AGES_S) + 1 - len(counts.by_age))]
        return cls(
            pending=counts.pending,
            sites=counts.sites,
            by_depth={depth: count for depth, count in enumerate(counts.by_depth) if count},
            by_age=tuple(zip((*AGES_S, None), by_age, strict=True)),
            top=tuple(
                SiteQueue(
                    *(one.site, one.pending, one.owner.hex(), one.owners),
                    one.status or None,
                    *(one.delay_s, one.wait_s, one.refusals),
                )
                for one in counts.top
            ),
            next=tuple(WaitingUrl(one.url, one.depth, one.tries, one.wait_s) for one in counts.next),
            unanswered=answer.parts_missing + answer.peers_counting,
        )


def together(queues: Sequence[QueueStatus]) -> QueueStatus:
    """Return the queues of some sites as one, with a place for each of them. Depths and ages are those of the first."""
    return replace(
        queues[0],
        pending=sum(queue.pending for queue in queues),
        sites=sum(queue.sites for queue in queues),
        top=tuple(site for queue in queues for site in queue.top),
        next=tuple(url for queue in queues for url in queue.next),
        unanswered=max(queue.unanswered for queue in queues),
    )
