"""Which heavy blocks go to whom (P1 1.4.2).

All peers decide at the same instant, each on levels it has just been told, so several may choose the same light one,
and a level may be old. Hence an *offer*, and a taker that decides again, on its own level of that moment.

As published (`offers_as_published`): buckets from near to far; in the first whose sum of levels and our own level are
together below 0, all blocks go to the first light peer whose level and ours are together below a threshold. That
stops when it is needed most: a peer with more blocks than any one light peer has room for gives none, and a few very
heavy peers in a bucket close it to all. In a swarm with more work than power that is soon the state of all.

Ours (`offers`): each light peer is offered what it has room for, and the rest goes on to the next. Buckets whose sum
allows all our blocks come first, near to far, so that heavy regions keep their light peers for themselves; then come
the others, near to far. Two more rules look at the rates: who gains more URLs than it crawls rounds up what it gives
(`kept`) and takes nothing (`told`).

What holds, whatever the others decide (tests/balance/test_shedding.py):
- A taker is not heavy after what it took (`accepted`).
- A giver has room for less than one block after what it gave (`spare`), so it takes none in that round.
- Only own URLs go, never taken ones: a block moves once, and a second time only if its taker fails. That costs
  nothing: what was taken fitted into the work area, so all that is beyond it is the peer's own.
- A refusal shows that the taker has no room left, so the offers of one update come to an end (`Round`).
"""

from collections.abc import Iterable, Sequence
from math import floor
from typing import Generic, NamedTuple, TypeVar

from kadcrawl.balance.level import BlockLoad

RESERVE = 0.5
"""Of a block: what a light peer is not filled up with by others."""

P = TypeVar("P")
"""Whatever stands for a peer."""


class BlockOffer(NamedTuple, Generic[P]):
    """Some blocks for a peer."""

    peer: P
    blocks: int


Bucket = Sequence[tuple[P, float]]
"""The neighbors in one k-bucket, each with its load level as last told."""


def room(level: float) -> int:
    """Return how many blocks a peer of this level can take without being heavy after."""
    return max(0, floor(-level))


def advertised_level(load: BlockLoad, arrivals: float | None, crawls: float | None) -> float:
    """Return the level a peer tells others: what they may fill.

    A light peer of two blocks or more keeps half a block free for its own arrivals: the paper's threshold, at -1/2. A
    peer that gains more than it crawls (rates in URL/s; None: not yet known) is not light at all. What it took now it
    would soon have too much of, and could not pass on.
    """
    level = load.level
    if level >= 0 or _gains(arrivals, crawls):
        return max(0.0, level)
    return min(0.0, level + RESERVE) if load.work_area > load.block else level


def accepted_blocks(level: float, offered: int) -> int:
    """Return how many of the offered blocks a taker takes: none that would make it heavy.

    `level` is what it would tell (see `told`) at this moment.
    """
    return min(max(0, offered), room(level))


def urls_to_keep(load: BlockLoad, arrivals: float | None, crawls: float | None, interval_s: float) -> int:
    """Return how many URLs a heavy peer keeps, at least: W, or less while it gains more than it crawls.

    What is beyond W and makes no whole block stays, and is soon crawled. But it is not while URLs arrive faster than
    they are crawled (rates in URL/s; None: not yet known). Such a peer may fill up its last block from the work
    area, as long as it keeps what it crawls until the next update, `interval_s` from now.
    """
    if crawls is None or not _gains(arrivals, crawls):
        return load.work_area
    needed = floor(crawls * interval_s) + 1
    return min(load.work_area, max(needed, load.work_area - load.block + 1))


def spare_blocks(load: BlockLoad, own: int, keep: int) -> int:
    """Return how many blocks a peer has to give, if it keeps `keep` URLs (see `kept`) and all it has taken.

    `own` are those of its pending URLs that it has not taken from others. Raises ValueError for a `keep` that would
    leave room for a block.
    """
    if not load.work_area - load.block < keep <= load.work_area:
        raise ValueError(f"who keeps {keep} of {load.work_area} could take what it has just given")
    if load.pending <= load.work_area:
        return 0
    return min(load.pending - keep, own) // load.block


def block_offers_by_level(level: float, blocks: int, buckets: Iterable[Bucket[P]]) -> list[BlockOffer[P]]:
    """Return whom a peer of this level offers how many of its `blocks`; its `buckets` stand from near to far."""
    chosen: list[BlockOffer[P]] = []
    for bucket in sorted(buckets, key=lambda bucket: not _allows(bucket, level)):  # stable: near to far stays
        for peer, its_level in bucket:
            if blocks <= 0:
                return chosen
            if (count := min(blocks, room(its_level))) > 0:
                chosen.append(BlockOffer(peer, count))
                blocks -= count
    return chosen


class OfferRound(Generic[P]):
    """What one heavy peer does at one update: it offers, hears what was taken, and offers the rest to others."""

    def __init__(self, level: float, blocks: int, buckets: Iterable[Bucket[P]] = ()) -> None:
        self._level = level
        self.blocks = blocks
        """Still to be given."""
        self._buckets = [dict(bucket) for bucket in buckets]

    def add(self, bucket: Bucket[P]) -> None:
        """Take in one more bucket, farther than those before."""
        self._buckets.append(dict(bucket))

    def offers(self) -> list[BlockOffer[P]]:
        """Return whom to offer how many now; none once all are given or nobody has room."""
        return block_offers_by_level(self._level, self.blocks, [tuple(bucket.items()) for bucket in self._buckets])

    def answered(self, offer: BlockOffer[P], taken: int) -> None:
        """Note how many blocks of an offer were taken; less than all means that there is no room for more.

        What a peer answers is not trusted: more than was offered is as good as all, less than none is none.
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
    """Return the paper's choice: all `blocks` to one peer, or nothing; its `buckets` stand from near to far."""
    for bucket in buckets:
        if blocks > 0 and _allows(bucket, level):
            for peer, its_level in bucket:
                if its_level < 0 and its_level + level < threshold:
                    return [BlockOffer(peer, blocks)]
    return []


def _gains(arrivals: float | None, crawls: float | None) -> bool:
    return arrivals is not None and crawls is not None and arrivals > crawls


def _allows(bucket: Bucket[P], level: float) -> bool:
    """Whether a region as a whole has room for all that a peer of this level has too much."""
    return sum(its_level for _, its_level in bucket) + level < 0
