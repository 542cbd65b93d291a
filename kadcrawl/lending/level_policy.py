"""`LevelPolicy`: load balance by load level (P1 1.4.2), as decided in balance/shedding.py.

Only a heavy peer asks others. It asks its contacts bucket by bucket, from near to far, until the answers have room for
all its excess blocks, and then offers them blocks. A peer looks at its own level again before it accepts an offer.
Blocks that nobody takes are offered to the buckets beyond.
"""

import asyncio
import logging
from collections.abc import Iterator

from kadcrawl.balance.level import BlockLoad
from kadcrawl.balance.shedding import OfferRound, accepted_blocks, advertised_level, room, spare_blocks, urls_to_keep
from kadcrawl.balance.sizing import Rates, WorkCounts, work_area_blocks
from kadcrawl.lending.blocks import Blocks
from kadcrawl.link.wire.loan_messages import LEVEL_MAX
from kadcrawl.link.wire.messages import BacklogRecord, Contact, GetLoad, Load

RATES_INTERVALS = 6
"""Updates over which the rates are measured."""
IDLE_BLOCKS = 4
"""Room, in blocks, of a peer without waiting URLs: its pending URLs wait for their sites, so it need not lend."""

log = logging.getLogger(__name__)


class LevelPolicy:
    """The load level of one peer, as a `BalancePolicy` (lending/balancer.py)."""

    def __init__(self, blocks: Blocks, work_area: int | None) -> None:
        """`work_area` is in URLs. None derives it from the measured rates."""
        self._blocks = blocks
        self._work_area = work_area
        self._rates = Rates(RATES_INTERVALS)

    @property
    def load(self) -> BlockLoad:
        """The load of own URLs that are not lent, and of borrowed URLs."""
        pending, block = self._blocks.own + self._blocks.borrowed, self._blocks.job.block_urls
        return BlockLoad(pending, self._work_area_blocks(pending) * block, block)

    @property
    def level(self) -> float:
        """The load level in blocks."""
        return self.load.level

    def sample(self, counts: WorkCounts) -> None:
        """Ignore samples: the rates are measured from update to update."""

    def update(self, counts: WorkCounts) -> None:
        """Add the counts of an update to the rates."""
        self._rates.add(counts)

    def answer(self, question: GetLoad | None = None) -> Load:
        """Return the advertised level, within the bounds of the wire."""
        return Load(min(max(-LEVEL_MAX, self._advertised_level()), LEVEL_MAX), None)

    def accept(self, lender: bytes, urls: int, backlog: BacklogRecord | None) -> bool:
        """Return whether the URLs, as whole blocks, leave this peer not heavy."""
        blocks = -(-urls // self._blocks.job.block_urls)
        return accepted_blocks(self._advertised_level(), blocks) == blocks

    async def shed(self) -> None:
        """Offer the excess blocks to light contacts."""
        load, interval_s = self.load, self._blocks.job.update_s
        keep = urls_to_keep(load, self._rates.arrivals, self._rates.crawls, interval_s)
        blocks = spare_blocks(load, self._blocks.own, keep)
        if not blocks:
            return
        offering: OfferRound[Contact] = OfferRound(load.level, blocks)
        buckets = self._blocks.buckets()
        while offering.blocks and not self._blocks.is_paused():
            if not (offers := offering.offers()) and not await self._ask(buckets, offering):
                break
            for offer in offers:
                taken = await self._blocks.lend_blocks(offer)
                offering.answered(offer, taken)
                if taken < offer.blocks and not self._blocks.has_spare_connections:
                    return
        log.info("balance.shed level=%.2f blocks=%d left=%d", load.level, blocks, offering.blocks)

    # --- inside --------------------------------------------------------------------------------------------------

    def _advertised_level(self) -> float:
        return advertised_level(self.load, self._rates.arrivals, self._rates.crawls)

    def _work_area_blocks(self, pending: int) -> int:
        """Return n, the work area in blocks."""
        job = self._blocks.job
        if self._work_area is not None:
            return max(1, self._work_area // job.block_urls)
        if self._rates.crawls is None:
            return pending // job.block_urls + IDLE_BLOCKS
        arrivals, crawls = self._rates.arrivals, self._rates.crawls
        return work_area_blocks(arrivals, crawls, job.update_s, job.block_urls, RATES_INTERVALS)

    async def _ask(self, buckets: Iterator[list[Contact]], offering: OfferRound[Contact]) -> bool:
        """Ask further buckets for their levels until they have room for the rest, and return whether any has room."""
        question = GetLoad(self._blocks.me().id, None)
        found = 0
        for contacts in buckets:
            answers = await asyncio.gather(*(self._blocks.ask(contact, question) for contact in contacts))
            bucket = [
                (contact, load.level) for contact, load in zip(contacts, answers, strict=True) if load is not None
            ]
            offering.add(bucket)
            found += sum(room(level) for _, level in bucket)
            if found >= offering.blocks:
                break
        return found > 0
