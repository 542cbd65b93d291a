"""Policies of load balance that kadcrawl does not offer, for real peers in comparisons: P1 as printed, and a sample.

Both lend as kadcrawl does: on a lease, a site at a time. Only the decisions differ.
"""

import asyncio
from dataclasses import replace
from random import Random

from kadcrawl.balance.drain import Backlog, accepts, block_offers
from kadcrawl.balance.known_loads import PeerLoad
from kadcrawl.balance.shedding import BlockOffer, offers_as_published, room
from kadcrawl.lending.blocks import Blocks
from kadcrawl.lending.drain_policy import HAND_OVER_S, DrainPolicy
from kadcrawl.lending.level_policy import LevelPolicy
from kadcrawl.lending.throughput_learning import ThroughputLearning
from kadcrawl.link.wire.messages import BacklogRecord, Contact, GetLoad, Load

SAMPLE = 64
"""Contacts that the sampling policy asks at one update, at most."""
OFFER_DELAY_S = 12.0
"""An offer of the sampling policy may come this long after its update, on top of the time between updates."""


class PrintedLevelPolicy(LevelPolicy):
    """P1 1.4.2 as printed: all blocks go to one light peer of the first bucket with enough room."""

    def answer(self, question: GetLoad | None = None) -> Load:
        """Return the level."""
        return Load(self.level, None)

    def accept(self, lender: bytes, urls: int, backlog: BacklogRecord | None) -> bool:
        """Accept everything."""
        return True

    async def shed(self) -> None:
        """Walk from near to far to the first bucket whose level and the own level are together below 0."""
        load = self.load
        if load.level <= 0:
            return
        question = GetLoad(self._blocks.me().id, None)
        for contacts in self._blocks.buckets():
            answers = await asyncio.gather(*(self._blocks.ask(contact, question) for contact in contacts))
            bucket = [
                (contact, answer.level) for contact, answer in zip(contacts, answers, strict=True) if answer is not None
            ]
            for offer in offers_as_published(load.level, load.blocks, [bucket]):
                await self._blocks.lend_blocks(offer)
                return


class SamplingDrainPolicy(DrainPolicy):
    """The first form of `drain`: a peer with a block asks a random sample of all contacts at each update."""

    def __init__(
        self, blocks: Blocks, learning: ThroughputLearning | None = None, random: Random | None = None
    ) -> None:
        """Draw the samples from `random`."""
        super().__init__(blocks, learning, random)
        self._askers: dict[bytes, tuple[float, Backlog]] = {}
        """ID of an asker -> (loop second, its backlog less the URLs accepted from it since)."""

    def answer(self, question: GetLoad | None = None) -> Load:
        """Return the level and backlog of this peer, and remember the asker's backlog."""
        if question is not None and question.backlog is not None:
            self._askers[question.asker] = asyncio.get_running_loop().time(), _backlog(question.backlog)
        return super().answer(question)

    def accept(self, lender: bytes, urls: int, backlog: BacklogRecord | None) -> bool:
        """Return whether the URLs are done here earlier, by what the lender and other askers have told."""
        block_urls, own = self._blocks.job.block_urls, self.backlog()
        now, update_s = asyncio.get_running_loop().time(), self._blocks.job.update_s
        at, asker = self._askers.get(lender, (0.0, None))
        if asker is None or at <= now - update_s - OFFER_DELAY_S:
            return False
        others = [backlog for peer, (at, backlog) in self._askers.items() if at > now - update_s and peer != lender]
        if own is None:
            if sum(self._blocks.waiting) + urls > self._trial.blocks * block_urls:
                return False
            self._trial.started()
            return True
        if not accepts(own, asker, others, urls, block_urls, HAND_OVER_S):
            return False
        self._askers[lender] = at, replace(asker, pending=max(0, asker.pending - urls))
        return True

    async def shed(self) -> None:
        """Ask the sample for backlogs, and lend blocks to those that drain earlier."""
        own, block_urls = self.backlog(), self._blocks.job.block_urls
        if own is None or own.pending < block_urls or own.drain_s <= HAND_OVER_S:
            return
        contacts = [contact for bucket in self._blocks.buckets() for contact in bucket]
        sample = self._random.sample(contacts, min(len(contacts), SAMPLE))
        question = GetLoad(self._blocks.me().id, BacklogRecord(own.pending, own.url_s, own.busy_s))
        answers = await asyncio.gather(*(self._blocks.ask(contact, question) for contact in sample))
        asked: list[tuple[Contact, PeerLoad]] = [
            (contact, room(answer.level) if answer.backlog is None else _backlog(answer.backlog))
            for contact, answer in zip(sample, answers, strict=True)
            if answer is not None and (answer.backlog is not None or room(answer.level) > 0)
        ]
        counts = block_offers(own, [load for _, load in asked], block_urls, HAND_OVER_S)
        time = asyncio.get_running_loop().time
        until = time() + self._blocks.job.update_s
        for (contact, _), count in zip(asked, counts, strict=True):
            if count:
                await self._blocks.lend_blocks(BlockOffer(contact, count), until)
            if time() >= until or not self._blocks.has_spare_connections or self._blocks.is_paused():
                return


def _backlog(record: BacklogRecord) -> Backlog:
    return Backlog(record.pending, record.url_s, record.busy_s)
