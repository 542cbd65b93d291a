"""The sum of the queues of peers, which a wave makes at each level on its way back. A decision.

A swarm has many sites, so each level passes only the sites with the most URLs on. With partition `host` or `domain` a
site has one owner, so its number is exact. With partition `url` a host has many owners: beyond the largest hosts of
each peer the sum is a lower bound, and a question about one site is exact.
"""

from collections.abc import Iterable
from itertools import zip_longest

import msgspec

from kadcrawl.link.wire.basics import COUNT_MAX, SMALL_MAX
from kadcrawl.link.wire.queue_messages import QueueCounts, QueuedSite


def sum_of(queues: Iterable[QueueCounts], sites: int, urls: int) -> QueueCounts:
    """Return the queue of some peers together, with at most so many sites and next URLs.

    Counts are capped, so that a part that lies cannot make the sum too large for the wire.
    """
    queues = list(queues)
    by_site: dict[str, QueuedSite] = {}
    for one in (site for queue in queues for site in queue.top):
        known = by_site.get(one.site)
        by_site[one.site] = one if known is None else _together(known, one)
    urls_in_order = sorted((one for queue in queues for one in queue.next), key=lambda one: (one.depth, one.wait_s))
    repeats = sum(len(queue.top) for queue in queues) - len(by_site)
    return QueueCounts(
        min(sum(queue.pending for queue in queues), COUNT_MAX),
        min(max(sum(queue.sites for queue in queues) - repeats, 0), COUNT_MAX),
        _added(queue.by_depth for queue in queues),
        _added(queue.by_age for queue in queues),
        sorted(by_site.values(), key=lambda one: (-one.pending, one.site))[:sites],
        urls_in_order[:urls],
        max((queue.age_s for queue in queues), default=0.0),
    )


def _together(one: QueuedSite, other: QueuedSite) -> QueuedSite:
    """Return a site as two of its owners see it."""
    most = one if one.pending >= other.pending else other
    return msgspec.structs.replace(
        most,
        pending=min(one.pending + other.pending, COUNT_MAX),
        owners=min(one.owners + other.owners, SMALL_MAX),
        status=most.status or one.status or other.status,
        delay_s=max(one.delay_s, other.delay_s),
        wait_s=max(one.wait_s, other.wait_s),
        refusals=max(one.refusals, other.refusals),
    )


def _added(lists: Iterable[list[int]]) -> list[int]:
    return [min(sum(counts), COUNT_MAX) for counts in zip_longest(*lists, fillvalue=0)]
