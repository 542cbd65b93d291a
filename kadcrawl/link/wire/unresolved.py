"""The done and failed URLs of some peers, without those that are pending again, by an order or as they were due.

So the totals add up: the URLs found are those done, those pending, and those that died with a peer. The failed URLs are
among those done. URLs that two peers finished count once.

Apart from crawl/output/counters.py, as a command and the parent of a local crawl load nothing of the crawl.

Tests: tests/cli/view/test_status.py, tests/cli/test_parts.py, tests/peer/swarm/test_seed_streams.py
"""

from collections import Counter
from collections.abc import Iterable

from kadcrawl.link.wire.messages import PeerCounters


def still_failed(counters: Iterable[PeerCounters]) -> dict[str, int]:
    """Return the URLs of these peers that are failed now, by reason: without those that are pending again."""
    failed: Counter[str] = Counter()
    for one in counters:
        failed.update(one.failed)
        failed.subtract(one.retried)
    return {reason: urls for reason, urls in sorted(failed.items()) if urls > 0}


def still_done(counters: Iterable[PeerCounters]) -> int:
    """Return the URLs of these peers that are done now, without those that are pending again."""
    return sum(one.done - one.duplicates - sum(one.retried.values()) for one in counters)
