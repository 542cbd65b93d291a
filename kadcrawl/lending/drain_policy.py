"""Balance by seconds to drain (balance/drain.py decides): what a peer does at an update that would be busy longest.

What counts is what waits for this peer: URLs that wait for their sites are as well off here as elsewhere. At an update
whoever has a block of its own waiting tells contacts how long it will be busy and asks them the same: all, or as many
by chance as tell how busy the swarm is. If it is busier than that, it offers them blocks, for as long as until the next
update; whoever is offered any looks again at how long it is busy by then, beside what others told that asked it.

The pace is measured while something waits, or predicted by a network until enough is measured (`learning`).
"""

import asyncio
import logging
from collections import OrderedDict
from dataclasses import replace
from random import Random

from kadcrawl.balance.drain import Backlog, BlockTrial, accepts, block_offers
from kadcrawl.balance.level import BlockLoad
from kadcrawl.balance.predict import ThroughputModel
from kadcrawl.balance.shedding import BlockOffer, room
from kadcrawl.balance.sizing import WorkCounts
from kadcrawl.lending.blocks import LOAD_DEADLINE_S, Blocks
from kadcrawl.lending.lender import CONNECTION_WAIT_S
from kadcrawl.lending.throughput_learning import ThroughputLearning
from kadcrawl.link.wire.loan_messages import BUSY_S_MAX, LEVEL_MAX, URL_S_MAX, URL_S_MIN
from kadcrawl.link.wire.messages import BacklogRecord, Contact, GetLoad, Load

HAND_OVER_S = 0.2
"""From the offer of a block until its taker fetches the first of it: an answered offer and an answered report."""
BUSY_SHARE = 0.5
"""Of the time between updates: if less of it was busy, nothing can be said of the pace."""
SAMPLE_URLS_LEAST = 4
"""Of fewer as well."""
ASKED_MAX = 64
"""Contacts asked at one update."""
OFFER_DELAY_MOST_S = LOAD_DEADLINE_S + 2 * CONNECTION_WAIT_S
"""How long after the update an offer may still come, beside the time between updates: until the last contact has
answered, and until the connections of the last loan were free and it was on its way."""
ASKERS_MAX = 1_000
"""Whose backlogs are remembered, for their offers."""
PENDING_MOST = 1_000_000

log = logging.getLogger(__name__)


class DrainPolicy:
    """The seconds to drain of one peer; a `balancing.Mode`."""

    def __init__(self, blocks: Blocks, random: Random, learning: ThroughputLearning | None = None) -> None:
        """`learning` in a job that predicts."""
        self._blocks = blocks
        self._random = random
        self._learning = learning
        self._throughput = ThroughputModel()
        self._trial = BlockTrial()
        self._last: WorkCounts | None = None
        self._urls = 0
        """Crawled since the last update while something waited, ..."""
        self._busy_s = 0.0
        """... in so many seconds."""
        self._askers: OrderedDict[bytes, tuple[float, Backlog]] = OrderedDict()
        """Who asked, by ID; when, in seconds of the loop, and what it told, less what was taken of it since."""

    @property
    def level(self) -> float:
        """Blocks that wait, beside one; below 0 for so many that could be tried."""
        return self._level(sum(self._blocks.waiting))

    def sample(self, tally: WorkCounts) -> None:
        last, self._last = self._last, tally
        # The first ones wait for connections, and for robots.txt.
        if last is not None and last.crawled and tally.busy_s > last.busy_s:
            self._urls += tally.crawled - last.crawled
            self._busy_s += tally.busy_s - last.busy_s
            if self._learning is not None:
                self._learning.measured(tally.crawled - last.crawled, tally.busy_s - last.busy_s)

    def update(self, tally: WorkCounts) -> None:
        if self._urls >= SAMPLE_URLS_LEAST and self._busy_s >= BUSY_SHARE * self._blocks.job.update_s:
            self._throughput.note_batch(self._urls, self._busy_s)
            self._urls, self._busy_s = 0, 0.0
        self._trial.update(self._blocks.waiting[1])

    def backlog(self) -> Backlog | None:
        """Return what waits for this peer; None while it is cold."""
        return self._backlog(*self._blocks.waiting)

    def answer(self, question: GetLoad | None = None) -> Load:
        if question is not None and question.backlog is not None:
            self._askers[question.asker] = asyncio.get_running_loop().time(), _backlog(question.backlog)
            self._askers.move_to_end(question.asker)
            if len(self._askers) > ASKERS_MAX:
                self._askers.popitem(last=False)
        own, borrowed = self._blocks.waiting  # Once, as that looks at every site.
        return Load(min(self._level(own + borrowed), LEVEL_MAX), _record(self._backlog(own, borrowed)))

    def accept(self, lender: bytes, urls: int) -> bool:
        block_urls, own = self._blocks.job.block_urls, self.backlog()
        now, update_s = asyncio.get_running_loop().time(), self._blocks.job.update_s
        at, asker = self._askers.get(lender, (0.0, None))
        if asker is None or at <= now - update_s - OFFER_DELAY_MOST_S:
            return False  # It cannot know how busy we are.
        # Who still has work has asked again by now.
        others = [backlog for one, (at, backlog) in self._askers.items() if at > now - update_s and one != lender]
        if own is None:
            if sum(self._blocks.waiting) + urls > self._trial.blocks * block_urls:
                return False
            self._trial.started()
            return True
        if not accepts(own, asker, others, urls, block_urls, HAND_OVER_S):
            log.debug("balance.refused urls=%d own=%s giver=%s", urls, own, asker)
            return False
        self._askers[lender] = at, replace(asker, pending=max(0, asker.pending - urls))
        return True

    async def shed(self) -> None:
        own, block_urls = self.backlog(), self._blocks.job.block_urls
        if (
            own is None
            or own.pending < block_urls
            or own.drain_s <= HAND_OVER_S
            or not self._blocks.has_spare_connections
        ):
            return
        chosen = await self._chosen(own)
        time = asyncio.get_running_loop().time
        until, given = time() + self._blocks.job.update_s, 0
        for offer in chosen:
            given += await self._blocks.lend_blocks(offer, until)
            # What was told is too old by then, and it is time to look around again.
            if time() >= until or not self._blocks.has_spare_connections or self._blocks.is_paused():
                break
        if chosen:
            offered = sum(offer.blocks for offer in chosen)
            log.info(
                "balance.shed drain=%.2f url=%.3f blocks=%d left=%d", own.drain_s, own.url_s, offered, offered - given
            )

    # --- inside --------------------------------------------------------------------------------------------------

    def _level(self, waiting: int) -> float:
        block_urls = self._blocks.job.block_urls
        return BlockLoad(waiting, block_urls, block_urls).level if waiting else -float(self._trial.blocks)

    def _backlog(self, own: int, borrowed: int) -> Backlog | None:
        if self._learning is not None:
            self._throughput.predicted = self._learning.predicted
        seconds = self._throughput.seconds(max(1, own + borrowed))
        if seconds is None:
            return None
        url_s = min(max(seconds / max(1, own + borrowed), URL_S_MIN), URL_S_MAX)
        return Backlog(min(own, PENDING_MOST), url_s, min(borrowed * url_s, BUSY_S_MAX))

    async def _chosen(self, own: Backlog) -> list[BlockOffer[Contact]]:
        """Ask contacts how long they will be busy; return what to offer whom."""
        contacts = [contact for bucket in self._blocks.buckets() for contact in bucket]
        few = self._random.sample(contacts, min(len(contacts), ASKED_MAX))
        question = GetLoad(self._blocks.me().id, _record(own))
        answers = await asyncio.gather(*(self._blocks.ask(contact, question) for contact in few))
        asked = [
            (contact, room(answer.level) if answer.backlog is None else _backlog(answer.backlog))
            for contact, answer in zip(few, answers, strict=True)
            if answer is not None and (answer.backlog is not None or room(answer.level) > 0)
        ]
        blocks = block_offers(own, [backlog for _, backlog in asked], self._blocks.job.block_urls, HAND_OVER_S)
        return [BlockOffer(contact, count) for (contact, _), count in zip(asked, blocks, strict=True) if count]


def _record(backlog: Backlog | None) -> BacklogRecord | None:
    return None if backlog is None else BacklogRecord(backlog.pending, backlog.url_s, backlog.busy_s)


def _backlog(record: BacklogRecord) -> Backlog:
    return Backlog(record.pending, record.url_s, record.busy_s)
