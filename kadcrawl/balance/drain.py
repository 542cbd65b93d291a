"""Shedding by time: a peer that would be busy longer than others lends blocks of URLs to peers that idle first.

A count of URLs (P1 1.4) does not tell a slow peer with few URLs from a fast peer with many. Seconds to drain do.
Decisions only: at each update the caller measures the backlogs and makes the moves. Each peer decides for itself, at
the same instants. The *common end* is the time at which all peers that a peer knows about would be done together. A
peer that would be busy beyond it makes `block_offers` (bucket_walk.py says to which peers). A borrower `accepts` an
offer or not, by its backlog at that moment and by the backlogs that it knows. So several lenders may choose the same
borrower without filling it up. A peer with enough work for its *work area*, some updates, needs no more yet: what it
borrowed cannot be lent again.

Moves do not swing back. A peer lends only its own URLs, so a block moves once, and a second time only if its borrower
fails. A lender is above the common end, and a borrower stays below its lender. A difference of less than `DRAIN_MARGIN`
starts no move.

A peer without measurements is *cold*. It lends nothing, as it may be fast. It is lent a block to try, as its throughput
would stay unknown otherwise. If it finishes that at once it is still cold, because it is measured only while URLs wait
for it. It tries twice as many next time (`BlockTrial`). A false backlog costs balance, never a URL.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from heapq import heapify, heappop, heapreplace
from math import inf, isfinite

DRAIN_MARGIN = 0.1
"""Least share of a lender's time to drain by which it exceeds the common end and its borrower's time."""
TRIAL_MAX = 64
"""Blocks that a cold peer tries at most."""
BLOCKS_PER_UPDATE_MAX = 500
"""Blocks offered at one update. The rest waits for the next update."""


@dataclass(frozen=True, slots=True)
class Backlog:
    """The work waiting at one peer. Raises ValueError for a number below 0, or a URL that takes no time."""

    pending: int
    """URLs that could still be lent."""
    url_s: float
    """Seconds per URL, measured or predicted."""
    busy_s: float = 0.0
    """Seconds before the peer can start these URLs (work in progress, borrowed work, start-up)."""

    def __post_init__(self) -> None:
        if self.pending < 0 or not self.url_s > 0 or not self.busy_s >= 0 or not isfinite(self.url_s + self.busy_s):
            raise ValueError(f"{self} cannot be: no number is below 0, and a URL takes some time")

    @property
    def drain_s(self) -> float:
        """Seconds until the peer is idle."""
        return self.busy_s + self.pending * self.url_s


def common_end_s(backlogs: Sequence[Backlog]) -> float:
    """Return the seconds until all peers are done if they share their work by throughput, or 0 without peers."""
    power = sum(1 / backlog.url_s for backlog in backlogs)
    return sum(backlog.drain_s / backlog.url_s for backlog in backlogs) / power if power else 0.0


class BlockTrial:
    """The number of blocks that a cold peer without work tries."""

    def __init__(self) -> None:
        self.blocks = 1
        self._has_some = False

    def started(self) -> None:
        """Note that the peer was lent blocks to try."""
        self._has_some = True

    def update(self, waiting: int) -> None:
        """Note, at an update, how many borrowed URLs wait for the peer and not for their sites."""
        if self._has_some and not waiting:
            self._has_some = False
            self.blocks = min(2 * self.blocks, TRIAL_MAX)


def block_offers(
    own: Backlog,
    others: Sequence[Backlog | int],
    block_urls: int,
    hand_over_s: float = 0.0,
    end_s: float | None = None,
) -> list[int]:
    """Return how many blocks of `block_urls` to offer each of the `others`.

    Each of the `others` is a backlog, or for a cold peer the number of blocks it would try. A cold peer is offered that
    number, up to `TRIAL_MAX` and to half of this peer's URLs. The other peers are offered blocks if this peer is
    `DRAIN_MARGIN` above the common end, and as long as it is above it. Each block goes to the peer that would be done
    first with it. That peer must not be above the common end, must be done before this peer, and must be
    `DRAIN_MARGIN` before this peer to begin with. `end_s` stands for the common end where the caller knows it better.

    Raises:
        ValueError: a block of no URLs.
    """
    _check(block_urls)
    blocks = [0] * len(others)
    longest_s = (1 - DRAIN_MARGIN) * own.drain_s
    if end_s is None:
        end_s = common_end_s([own, *(other for other in others if isinstance(other, Backlog))])
    left = BLOCKS_PER_UPDATE_MAX
    for index, other in enumerate(others):
        if isinstance(other, int):
            # A cold peer as fast as this peer would be done with the blocks before this peer.
            trial = min(other, TRIAL_MAX, left, own.pending // (2 * block_urls))
            if trial > 0 and trial * block_urls * own.url_s + hand_over_s < longest_s:
                own, blocks[index] = _with_less(own, trial * block_urls), trial
                left -= trial
    if longest_s <= end_s:
        return blocks
    borrowers = [
        (after.drain_s, index, after)
        for index, other in enumerate(others)
        if isinstance(other, Backlog)
        and other.drain_s <= end_s
        and (after := _with_more(other, block_urls, hand_over_s)).drain_s < longest_s
    ]
    heapify(borrowers)
    while borrowers and left and own.pending >= block_urls and own.drain_s > end_s:
        ends_s, index, after = borrowers[0]
        if ends_s >= own.drain_s:
            break
        own = _with_less(own, block_urls)
        blocks[index] += 1
        left -= 1
        if ends_s > end_s:
            heappop(borrowers)
        else:
            after = _with_more(after, block_urls, hand_over_s)
            heapreplace(borrowers, (after.drain_s, index, after))
    return blocks


def accepts(
    own: Backlog,
    lender: Backlog,
    others: Sequence[Backlog],
    urls: int,
    block_urls: int,
    hand_over_s: float = 0.0,
    work_area_s: float = inf,
) -> bool:
    """Return whether a peer takes `urls` of a lender that still has them.

    `others` are further known backlogs.
    The peer takes them if it is not above the common end before the last block of them, nor above its work area, and is
    done with all of them before the lender.

    Raises:
        ValueError: a block of no URLs.
    """
    _check(block_urls)
    before = max(0, urls - block_urls)
    lender_then = replace(lender, pending=max(0, lender.pending - before))
    end_s = min(common_end_s([own, lender, *others]), work_area_s)
    return (
        _with_more(own, before, hand_over_s).drain_s <= max(end_s, hand_over_s)
        and _with_more(own, urls, hand_over_s).drain_s < lender_then.drain_s
    )


def _check(block_urls: int) -> None:
    if block_urls < 1:
        raise ValueError(f"a block of {block_urls} URLs cannot be moved: 1 or more")


def _with_less(backlog: Backlog, urls: int) -> Backlog:
    return replace(backlog, pending=backlog.pending - urls)


def _with_more(backlog: Backlog, urls: int, hand_over_s: float) -> Backlog:
    """Return the backlog with `urls` more that arrive after `hand_over_s`."""
    idle_s = max(0.0, hand_over_s - backlog.drain_s)
    return replace(backlog, pending=backlog.pending + urls, busy_s=backlog.busy_s + idle_s)
