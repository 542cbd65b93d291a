"""Balance by load level (P1 1.4.2; balance/shedding.py decides): what a heavy peer does at an update.

Only a heavy one asks others: its contacts, bucket by bucket from near to far, until those that answered have room for
all it has too much. It offers them blocks; whoever is offered any looks at its own level again. What they do not take
after all is for the buckets beyond.
"""

import asyncio
import logging
from collections.abc import Iterator

from kadcrawl.balance.level import BlockLoad
from kadcrawl.balance.shedding import OfferRound, accepted_blocks, advertised_level, room, spare_blocks, urls_to_keep
from kadcrawl.balance.sizing import Rates, WorkCounts, work_area_blocks
from kadcrawl.lending.blocks import Blocks
from kadcrawl.link.wire.loan_messages import LEVEL_MAX
from kadcrawl.link.wire.messages import Contact, GetLoad, Load

RATES_INTERVALS = 6
"""Updates over which rates are counted."""
IDLE_BLOCKS = 4
"""Room of a peer for which nothing waits, whatever is pending: it waits for its sites, and no lending would help."""

log = logging.getLogger(__name__)


class LevelPolicy:
    """The load level of one peer; a `balancing.Mode`."""

    def __init__(self, blocks: Blocks, work_area: int | None) -> None:
        """`work_area` in URLs; None for by the rates."""
        self._blocks = blocks
        self._work_area = work_area
        self._rates = Rates(RATES_INTERVALS)

    @property
    def load(self) -> BlockLoad:
        """What there is to crawl here: own URLs that are not with others, and borrowed ones."""
        pending, block = self._blocks.own + self._blocks.borrowed, self._blocks.job.block_urls
        return BlockLoad(pending, self._work_area_blocks(pending) * block, block)

    @property
    def level(self) -> float:
        return self.load.level

    def sample(self, tally: WorkCounts) -> None:
        """Rates are counted by updates."""

    def update(self, tally: WorkCounts) -> None:
        self._rates.add(tally)

    def answer(self, question: GetLoad | None = None) -> Load:
        return Load(min(max(-LEVEL_MAX, self._advertised_level()), LEVEL_MAX), None)

    def accept(self, lender: bytes, urls: int) -> bool:
        blocks = -(-urls // self._blocks.job.block_urls)
        return accepted_blocks(self._advertised_level(), blocks) == blocks

    async def shed(self) -> None:
        load, interval_s = self.load, self._blocks.job.update_s
        keep = urls_to_keep(load, self._rates.arrivals, self._rates.crawls, interval_s)
        blocks = spare_blocks(load, self._blocks.own, keep)
        if not blocks:
            return
        lent: OfferRound[Contact] = OfferRound(load.level, blocks)
        buckets = self._blocks.buckets()
        while lent.blocks and not self._blocks.is_paused():
            if not (offers := lent.offers()) and not await self._ask(buckets, lent):
                break
            for offer in offers:
                taken = await self._blocks.lend_blocks(offer)
                lent.answered(offer, taken)
                if taken < offer.blocks and not self._blocks.has_spare_connections:
                    return
        log.info("balance.shed level=%.2f blocks=%d left=%d", load.level, blocks, lent.blocks)

    # --- inside --------------------------------------------------------------------------------------------------

    def _advertised_level(self) -> float:
        """Return the level told to others."""
        return advertised_level(self.load, self._rates.arrivals, self._rates.crawls)

    def _work_area_blocks(self, pending: int) -> int:
        """Return n: the work area in blocks."""
        job = self._blocks.job
        if self._work_area is not None:
            return max(1, self._work_area // job.block_urls)
        if self._rates.crawls is None:
            return pending // job.block_urls + IDLE_BLOCKS
        arrivals, crawls = self._rates.arrivals, self._rates.crawls
        return work_area_blocks(arrivals, crawls, job.update_s, job.block_urls, RATES_INTERVALS)

    async def _ask(self, buckets: Iterator[list[Contact]], lent: OfferRound[Contact]) -> bool:
        """Ask the next contacts for their levels until these have room for what is left; False if there was nobody."""
        question = GetLoad(self._blocks.me().id, None)
        found = 0
        for contacts in buckets:
            answers = await asyncio.gather(*(self._blocks.ask(contact, question) for contact in contacts))
            bucket = [(contact, one.level) for contact, one in zip(contacts, answers, strict=True) if one is not None]
            lent.add(bucket)
            found += sum(room(level) for _, level in bucket)
            if found >= lent.blocks:
                break
        return found > 0
