"""The done and failed URLs of some peers, without those that are pending again, by an order or as they were due.

So the totals add up: the URLs found are those done, those pending, and those that died with a peer. URLs whose finder
is not counted are among those found once they are done or pending. The failed URLs are among those done. A URL that
two peers finished, as after a crash, counts at both, as neither knows of the other.

Apart from crawl/output/counters.py, as a command and the parent of a local crawl load nothing of the crawl.

Tests: tests/cli/view/test_status.py, tests/cli/test_parts.py, tests/peer/swarm/test_seed_streams.py
"""

from collections import Counter
from collections.abc import Iterable, Sequence

from kadcrawl.link.wire.messages import PeerCounters, PeerRow
from kadcrawl.link.wire.peer_state import GONE


def still_failed(counters: Iterable[PeerCounters]) -> dict[str, int]:
    """Return the URLs of these peers that are failed now, by reason: without those that are pending again."""
    failed: Counter[str] = Counter()
    for one in counters:
        failed.update(one.failed)
        failed.subtract(one.retried)
    return {reason: urls for reason, urls in sorted(failed.items()) if urls > 0}


def still_failed_at(counters: Sequence[PeerCounters]) -> list[int]:
    """Return the failed URLs of each of these peers, which add up to `still_failed` of all.

    A URL that failed at one peer may have been retried by another, which owns it since. It is out at a peer with
    failures for that reason.
    """
    reasons = [{name: urls - one.retried.get(name, 0) for name, urls in one.failed.items()} for one in counters]
    excess: Counter[str] = Counter()
    for one, of_one in zip(counters, reasons, strict=True):
        for name, urls in one.retried.items():
            excess[name] += max(0, urls - one.failed.get(name, 0))
        for name, urls in of_one.items():
            of_one[name] = max(0, urls)
    left = []
    for of_one in reasons:
        for name, urls in of_one.items():
            out = min(urls, excess[name])
            excess[name] -= out
            of_one[name] = urls - out
        left.append(sum(of_one.values()))
    return left


def still_done(counters: Iterable[PeerCounters]) -> int:
    """Return the URLs of these peers that are done now, without those that are pending again."""
    return sum(one.done - one.duplicates - sum(one.retried.values()) for one in counters)


def urls_found(rows: Sequence[PeerRow]) -> int:
    """Return the URLs that these peers found, which are never fewer than the URLs done and pending.

    The peers that accepted some of them may have no row: they crashed, or their directories were moved away. Other
    peers have copies of these URLs, finish them, and count only that.
    """
    counters = [row.counters for row in rows]
    pending = sum(row.pending for row in rows if row.state not in GONE)
    return max(sum(one.urls for one in counters), still_done(counters) + pending)
