"""`BucketWalk`: the walk of a heavy peer over its k-buckets, from near to far (P1 1.4.2), in seconds to drain.

A *level* is the seconds that a peer needs to drain, less its *work area*: some updates. A peer above it is heavy, as
all that goes beyond its work area may be done elsewhere in the meantime. A peer below it is light, and would run dry
before it is helped again. The level of a bucket is the sum over its peers, in seconds of the heavy peer: a peer twice
as fast does two URLs in the time of one. A heavier peer counts as much as this peer, or one very heavy peer would close
its bucket.

The walk takes one bucket after another. In a bucket it asks only peers of which nothing fresh is known, a few at a
time, and no more once the bucket's level and its own level are together below 0: then the bucket can take all that is
too much here. It offers blocks to the light peers of the bucket, and goes on to the next bucket only with what remains.
So a far bucket is never asked if nearer peers take everything, and a peer that is not heavy asks nobody.

Blocks are offered up to the *target*: the work area, or the common end of all known peers if they can be done sooner.
So at the end of a crawl all known peers end together, and before nobody is lent more than it needs soon: what a peer
borrowed cannot be lent again. And a peer offers no more than its share of the room in a bucket, as other heavy peers
know of that room too.

A decision: the caller asks, offers, and tells the answers.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from math import floor
from typing import Generic, TypeVar

from kadcrawl.balance.drain import DRAIN_MARGIN, Backlog, block_offers, common_end_s
from kadcrawl.balance.known_loads import PeerLoad
from kadcrawl.balance.shedding import BlockOffer

ASKED_AT_ONCE = 5
"""Peers of a bucket that are asked at a time. Often few of them have enough room."""
ASKED_PER_BUCKET_MAX = 20
"""Peers of one bucket that are asked at one update: k of Kademlia. Siblings make some buckets larger."""
SHARES = 2
"""Times its equal share of a bucket's room that a heavy peer offers."""
ASKED_MAX = 64
"""Peers asked at one update. At the next update those that are busy are known, and the walk gets farther."""

P = TypeVar("P")
"""The type that stands for a peer."""

Divide = Callable[[Backlog, Sequence[PeerLoad], int, float, float], Sequence[int]]
"""(own backlog, loads of others, URLs in a block, hand-over seconds, target) -> blocks to offer each."""


class BucketWalk(Generic[P]):
    """One walk, at one update."""

    def __init__(
        self,
        own: Backlog,
        buckets: Sequence[Sequence[P]],
        known: Mapping[P, PeerLoad],
        *,
        block_urls: int,
        work_area_s: float,
        hand_over_s: float = 0.0,
        divide: Divide = block_offers,
        luck: float = 0.0,
    ) -> None:
        """Start before the nearest bucket: call `next_bucket` first.

        Args:
            own: the backlog of this peer.
            buckets: all contacts, near to far.
            known: the fresh loads among them.
            work_area_s: the highest target.
            divide: decides how many blocks each peer of a bucket is offered.
            luck: a random number from 0 to 1, by which a fraction of a block is rounded up or down.
        """
        self.own = own
        """The backlog without the blocks that were lent."""
        self.asked = 0
        """Peers asked so far."""
        self._buckets = buckets
        self._loads: dict[P, PeerLoad] = dict(known)
        self._block_urls = block_urls
        self._work_area_s = work_area_s
        self._hand_over_s = hand_over_s
        self._divide = divide
        self._luck = luck
        self._at = -1
        self._asked_here: set[P] = set()
        self._tried: set[P] = set()
        """Peers that were offered blocks. A peer is made one offer at an update."""

    @property
    def target_s(self) -> float:
        """Seconds to drain up to which blocks are lent."""
        # A cold peer counts as an idle peer of this peer's speed.
        others = (
            load if isinstance(load, Backlog) else Backlog(0, self.own.url_s)
            for load in self._loads.values()
            if isinstance(load, Backlog) or load > 0
        )
        return min(common_end_s([self.own, *others]) + self._hand_over_s, self._work_area_s)

    @property
    def has_blocks(self) -> bool:
        """True if this peer has a block to lend, and is above the target by more than `DRAIN_MARGIN`."""
        if self.own.pending < self._block_urls or self.own.drain_s <= self._hand_over_s:
            return False
        return (1 - DRAIN_MARGIN) * self.own.drain_s > self.target_s

    @property
    def is_heavy(self) -> bool:
        """True if this peer has a block to lend, and more than its work area."""
        return self.own.pending >= self._block_urls and self._own_level_s > 0

    @property
    def region(self) -> list[tuple[P, PeerLoad]]:
        """The peers of the present bucket whose loads are known, and that were made no offer yet."""
        here = self._buckets[self._at] if self._at >= 0 else []
        return [(peer, self._loads[peer]) for peer in here if peer in self._loads and peer not in self._tried]

    def load(self, peer: P) -> PeerLoad | None:
        """Return the load of a peer as it is known now, the lent blocks included."""
        return self._loads.get(peer)

    @property
    def is_enough(self) -> bool:
        """True if the present bucket can take all that is too much here: L_k + L < 0."""
        own_s = self._own_level_s
        return own_s + sum(min(self._level_s(load), own_s) for _, load in self.region) < 0

    def next_bucket(self) -> bool:
        """Go to the next bucket, and return whether there is one and this peer still has blocks to lend."""
        if self._at + 1 >= len(self._buckets) or not (self.is_heavy or self.has_blocks):
            return False
        self._at += 1
        self._asked_here = set()
        return True

    def questions(self) -> list[P]:
        """Return the peers of the present bucket to ask now, which are none once the bucket has enough room."""
        if not self.is_heavy or self.is_enough:
            return []
        most = min(ASKED_AT_ONCE, ASKED_PER_BUCKET_MAX - len(self._asked_here), ASKED_MAX - self.asked)
        stale = [peer for peer in self._buckets[self._at] if peer not in self._loads and peer not in self._asked_here]
        chosen = stale[: max(0, most)]
        self._asked_here.update(chosen)
        self.asked += len(chosen)
        return chosen

    def answered(self, peer: P, load: PeerLoad | None) -> None:
        """Note the answer of a peer that was asked, or None without an answer."""
        if load is not None:
            self._loads[peer] = load

    def offers(self) -> list[BlockOffer[P]]:
        """Return the blocks to offer to the peers of the present bucket."""
        if not self.has_blocks:
            return []
        region = self.region
        counts = self._divide(
            self.own, [load for _, load in region], self._block_urls, self._hand_over_s, self.target_s
        )
        return self.fair_offers(region, counts)

    def fair_offers(self, region: Sequence[tuple[P, PeerLoad]], counts: Sequence[int]) -> list[BlockOffer[P]]:
        """Return these counts of blocks as offers, but no more than this peer's share of the room in the bucket.

        All heavy peers know much the same and look at the same instants. Without shares all would make their offers to
        the same few light peers. A share is twice the equal one, as not every heavy peer knows every light peer.
        """
        heavy = sum(self._is_rival(load) for load in self._loads.values())
        room = sum(self._room(load) for _, load in region)
        left, offers = int(min(room, SHARES * room / (1 + heavy)) + self._luck), []
        for (peer, _), count in zip(region, counts, strict=True):
            if (fair := min(count, left)) > 0:
                offers.append(BlockOffer(peer, fair))
                left -= fair
        return offers

    def lent(self, offer: BlockOffer[P], blocks: int) -> None:
        """Note how many blocks of an offer a peer has taken."""
        blocks = min(max(0, blocks), offer.blocks)
        self._tried.add(offer.peer)
        urls = min(blocks * self._block_urls, self.own.pending)
        self.own = replace(self.own, pending=self.own.pending - urls)
        load = self._loads.get(offer.peer)
        if isinstance(load, Backlog):
            self._loads[offer.peer] = replace(load, busy_s=load.busy_s + urls * load.url_s)

    @property
    def _own_level_s(self) -> float:
        return self.own.drain_s - self._work_area_s

    def _level_s(self, load: PeerLoad) -> float:
        """Return the level of another peer, in seconds that this peer would take for the same URLs."""
        if isinstance(load, Backlog):
            return (load.drain_s - self._work_area_s) * self.own.url_s / load.url_s
        return -load * self._block_urls * self.own.url_s

    def _is_rival(self, load: PeerLoad) -> bool:
        """Return whether another peer is heavy and has a block to lend."""
        return isinstance(load, Backlog) and load.pending >= self._block_urls and self._level_s(load) > 0

    def _room(self, load: PeerLoad) -> int:
        """Return the blocks for which a peer has room in its work area."""
        if isinstance(load, Backlog):
            left_s = self._work_area_s - load.drain_s
            return 1 + floor(left_s / (self._block_urls * load.url_s)) if left_s >= 0 else 0
        return load
