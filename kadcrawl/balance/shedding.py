"""The offers of heavy blocks to light peers (P1 1.4.2).

All peers decide at the same instant, each on levels it has just been told. So several lenders may choose the same light
peer, and a level may be old. Hence a lender makes an *offer*, and the borrower decides on its own level at that moment.

As published (`offers_as_published`), a peer looks at its buckets from near to far. In the first bucket whose sum of
levels and the peer's own level are together below 0, all blocks go to the first light peer whose level and the peer's
level are together below a threshold. That fails when it is needed most. A peer with more blocks than any single light
peer has room for lends none, and a few very heavy peers in a bucket close it to all lenders. A swarm with more work
than power is soon in that state.

This module (`block_offers_by_level`) offers each light peer the blocks it has room for, and the rest to the next. The
buckets whose sum allows all blocks come first, near to far, so heavy regions keep their light peers for themselves. The
other buckets follow, near to far. Two more rules look at the rates: a peer that gains more URLs than it crawls rounds
up the blocks it lends (`urls_to_keep`), and borrows none (`advertised_level`).

These invariants hold, whatever other peers decide (tests/balance/test_shedding.py):
- A borrower is not heavy after the blocks it took (`accepted_blocks`).
- A lender has room for less than one block after the blocks it lent (`spare_blocks`), so it borrows none in that round.
- Only own URLs are lent: a block moves once, and a second time only if its borrower fails. That costs nothing, as
  borrowed URLs fitted into the work area, so all URLs beyond it are the peer's own.
- A refusal shows that the borrower has no room left, so the offers of one update end (`OfferRound`).
"""

from collections.abc import Iterable, Sequence
from math import floor
from typing import Generic, NamedTuple, TypeVar

from kadcrawl.balance.level import BlockLoad

RESERVE = 0.5
"""Share of a block that other peers leave free in a light peer."""

P = TypeVar("P")
"""The type that stands for a peer."""


class BlockOffer(NamedTuple, Generic[P]):
    """An offer of blocks to a peer."""

    peer: P
    blocks: int


Bucket = Sequence[tuple[P, float]]
"""The neighbors in one k-bucket, each with its load level as last told."""


def room(level: float) -> int:
    """Return how many blocks a peer of this level can take without being heavy after."""
    return max(0, floor(-level))


def advertised_level(load: BlockLoad, arrivals: float | None, crawls: float | None) -> float:
    """Return the level that a peer tells others, which is the room they may fill.

    A light peer of two blocks or more keeps half a block free for its own arrivals: the paper's threshold, at -1/2. A
    peer that gains more URLs than it crawls (rates in URL/s; None: not yet known) is not light at all: borrowed blocks
    would soon be too many, and it could not lend them on.
    """
    level = load.level
    if level >= 0 or _gains(arrivals, crawls):
        return max(0.0, level)
    return min(0.0, level + RESERVE) if load.work_area > load.block else level


def accepted_blocks(level: float, offered: int) -> int:
    """Return how many of the offered blocks a borrower takes, which are none that would make it heavy.

    `level` is the level it would tell (see `advertised_level`) at this moment.
    """
    return min(max(0, offered), room(level))


def urls_to_keep(load: BlockLoad, arrivals: float | None, crawls: float | None, interval_s: float) -> int:
    """Return the least number of URLs that a heavy peer keeps: W, or less while it gains more than it crawls.

    URLs beyond W that make no whole block stay, and are soon crawled, unless URLs arrive faster than they are crawled
    (rates in URL/s; None: not yet known). Then the peer may fill up its last block from the work area, as long as it
    keeps the URLs it crawls until the next update, `interval_s` from now.
    """
    if crawls is None or not _gains(arrivals, crawls):
        return load.work_area
    needed = floor(crawls * interval_s) + 1
    return min(load.work_area, max(needed, load.work_area - load.block + 1))


def spare_blocks(load: BlockLoad, own: int, keep: int) -> int:
    """Return how many blocks a peer can lend if it keeps `keep` URLs (see `urls_to_keep`).

    `own` are its pending URLs without the borrowed URLs, of which it lends none. Raises ValueError for a `keep` that
    would leave room for a block.
    """
    if not load.work_area - load.block < keep <= load.work_area:
        raise ValueError(f"a peer that keeps {keep} of {load.work_area} URLs could borrow the block it has just lent")
    if load.pending <= load.work_area:
        return 0
    return min(load.pending - keep, own) // load.block


def block_offers_by_level(level: float, blocks: int, buckets: Iterable[Bucket[P]]) -> list[BlockOffer[P]]:
    """Return the offers of a peer of this level with so many `blocks`, given its `buckets` from near to far."""
    chosen: list[BlockOffer[P]] = []
    # The sort is stable, so near to far stays.
    for bucket in sorted(buckets, key=lambda bucket: not _allows(bucket, level)):
        for peer, other_level in bucket:
            if blocks <= 0:
                return chosen
            if (count := min(blocks, room(other_level))) > 0:
                chosen.append(BlockOffer(peer, count))
                blocks -= count
    return chosen


class OfferRound(Generic[P]):
    """The offers of one heavy peer at one update: it offers blocks, hears the answers, and offers the rest on."""

    def __init__(self, level: float, blocks: int, buckets: Iterable[Bucket[P]] = ()) -> None:
        self._level = level
        self.blocks = blocks
        """The blocks that are still to be lent."""
        self._buckets = [dict(bucket) for bucket in buckets]

    def add(self, bucket: Bucket[P]) -> None:
        """Add a bucket that is farther than the buckets before."""
        self._buckets.append(dict(bucket))

    def offers(self) -> list[BlockOffer[P]]:
        """Return the offers to make now, or none once all blocks are lent or no peer has room."""
        return block_offers_by_level(self._level, self.blocks, [tuple(bucket.items()) for bucket in self._buckets])

    def answered(self, offer: BlockOffer[P], taken: int) -> None:
        """Note how many blocks of an offer were taken. Fewer than all blocks means that the peer has no more room.

        The answer is not trusted: more blocks than offered count as all, a number below 0 counts as none.
        """
        taken = min(max(0, taken), offer.blocks)
        self.blocks -= taken
        self._level -= taken
        for bucket in self._buckets:
            if offer.peer in bucket:
                known = bucket[offer.peer] + taken
                bucket[offer.peer] = known if taken == offer.blocks else max(0.0, known)


def offers_as_published(
    level: float, blocks: int, buckets: Iterable[Bucket[P]], threshold: float = 0.0
) -> list[BlockOffer[P]]:
    """Return the paper's choice, which offers all `blocks` to one peer or none, given `buckets` from near to far."""
    for bucket in buckets:
        if blocks > 0 and _allows(bucket, level):
            for peer, other_level in bucket:
                if other_level < 0 and other_level + level < threshold:
                    return [BlockOffer(peer, blocks)]
    return []


def _gains(arrivals: float | None, crawls: float | None) -> bool:
    return arrivals is not None and crawls is not None and arrivals > crawls


def _allows(bucket: Bucket[P], level: float) -> bool:
    """Return whether a bucket as a whole has room for all excess blocks of a peer of this level."""
    return sum(other_level for _, other_level in bucket) + level < 0
