"""`DrainPolicy`: load balance by seconds to drain, as decided in balance/drain.py.

Only URLs that wait for this peer count: URLs that wait for their sites are as well off here as elsewhere. At an update,
a peer with a waiting block of its own tells contacts how long it will be busy, and asks them the same. It asks all
contacts, or a random sample large enough to tell how busy the swarm is. If it is busier than the swarm, it offers them
blocks until the next update. A peer that is offered blocks looks again at how long it is busy by then, and at what
other askers have told it.

The throughput is measured while URLs wait for the peer. A network predicts it until enough is measured
(throughput_learning.py).
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
"""Seconds from the offer of a block until its borrower fetches the first URL: two round trips, offer and report."""
BUSY_SHARE = 0.5
"""Least busy share of the time between updates from which the throughput is measured."""
SAMPLE_URLS_LEAST = 4
"""Least URLs from which the throughput is measured."""
ASKED_MAX = 64
"""Contacts asked at one update, at most."""
OFFER_DELAY_MOST_S = LOAD_DEADLINE_S + 2 * CONNECTION_WAIT_S
"""An offer may come this long after the update, on top of the time between updates.

The lender first waits for the last contact's answer, and then for the connections of the last loan."""
ASKERS_MAX = 1_000
"""Askers whose backlogs are remembered for their offers."""
PENDING_MOST = 1_000_000
"""Limit on the pending URLs in a backlog, as the wire has it."""

log = logging.getLogger(__name__)


class DrainPolicy:
    """The seconds to drain of one peer, as a `BalancePolicy` (lending/balancer.py)."""

    def __init__(self, blocks: Blocks, random: Random, learning: ThroughputLearning | None = None) -> None:
        """`learning` is for a job that predicts the throughput."""
        self._blocks = blocks
        self._random = random
        self._learning = learning
        self._throughput = ThroughputModel(learning.predict if learning is not None else None)
        self._trial = BlockTrial()
        self._last: WorkCounts | None = None
        self._urls = 0
        """URLs crawled since the last measurement, in `_busy_s` seconds."""
        self._busy_s = 0.0
        """Seconds since the last measurement in which URLs waited for this peer."""
        self._askers: OrderedDict[bytes, tuple[float, Backlog]] = OrderedDict()
        """ID of an asker -> (loop second, its backlog less the URLs accepted from it since)."""

    @property
    def level(self) -> float:
        """Waiting blocks beyond the first, or minus the number of blocks that the idle peer would try."""
        return self._level(sum(self._blocks.waiting))

    def sample(self, counts: WorkCounts) -> None:
        """Add the URLs and busy seconds since the last sample to the measurement."""
        last, self._last = self._last, counts
        # The first URLs do not count: they wait for connections and for robots.txt.
        if last is not None and last.crawled and counts.busy_s > last.busy_s:
            self._urls += counts.crawled - last.crawled
            self._busy_s += counts.busy_s - last.busy_s
            if self._learning is not None:
                self._learning.measured(counts.crawled - last.crawled, counts.busy_s - last.busy_s)

    def update(self, counts: WorkCounts) -> None:
        """Measure the throughput if enough was crawled, and adjust the trial of a peer without measurements."""
        if self._urls >= SAMPLE_URLS_LEAST and self._busy_s >= BUSY_SHARE * self._blocks.job.update_s:
            self._throughput.note_batch(self._urls, self._busy_s)
            self._urls, self._busy_s = 0, 0.0
        self._trial.update(self._blocks.waiting[1])

    def backlog(self) -> Backlog | None:
        """Return the waiting work of this peer, or None while its throughput is not known."""
        return self._backlog(*self._blocks.waiting)

    def answer(self, question: GetLoad | None = None) -> Load:
        """Return the level and backlog of this peer, and remember the asker's backlog."""
        if question is not None and question.backlog is not None:
            self._askers[question.asker] = asyncio.get_running_loop().time(), _backlog(question.backlog)
            self._askers.move_to_end(question.asker)
            if len(self._askers) > ASKERS_MAX:
                self._askers.popitem(last=False)
        own, borrowed = self._blocks.waiting  # Read once, as `waiting` looks at every site.
        return Load(min(self._level(own + borrowed), LEVEL_MAX), _record(self._backlog(own, borrowed)))

    def accept(self, lender: bytes, urls: int) -> bool:
        """Return whether the URLs are done here earlier than at their lender, and count them as accepted if so.

        The lender must have asked for this peer's load first.
        """
        block_urls, own = self._blocks.job.block_urls, self.backlog()
        now, update_s = asyncio.get_running_loop().time(), self._blocks.job.update_s
        at, asker = self._askers.get(lender, (0.0, None))
        if asker is None or at <= now - update_s - OFFER_DELAY_MOST_S:
            return False  # The lender cannot know how busy this peer is.
        # A peer that still has work has asked again by now.
        others = [backlog for peer, (at, backlog) in self._askers.items() if at > now - update_s and peer != lender]
        if own is None:
            if sum(self._blocks.waiting) + urls > self._trial.blocks * block_urls:
                return False
            self._trial.started()
            return True
        if not accepts(own, asker, others, urls, block_urls, HAND_OVER_S):
            log.debug("balance.refused urls=%d own=%s lender=%s", urls, own, asker)
            return False
        self._askers[lender] = at, replace(asker, pending=max(0, asker.pending - urls))
        return True

    async def shed(self) -> None:
        """Ask contacts for their backlogs, and lend blocks to those that drain earlier."""
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
        until, lent = time() + self._blocks.job.update_s, 0
        for offer in chosen:
            lent += await self._blocks.lend_blocks(offer, until)
            # By then the answers are too old, and the next update asks again.
            if time() >= until or not self._blocks.has_spare_connections or self._blocks.is_paused():
                break
        if chosen:
            offered = sum(offer.blocks for offer in chosen)
            log.info(
                "balance.shed drain=%.2f url=%.3f blocks=%d left=%d", own.drain_s, own.url_s, offered, offered - lent
            )

    # --- inside --------------------------------------------------------------------------------------------------

    def _level(self, waiting: int) -> float:
        block_urls = self._blocks.job.block_urls
        return BlockLoad(waiting, block_urls, block_urls).level if waiting else -float(self._trial.blocks)

    def _backlog(self, own: int, borrowed: int) -> Backlog | None:
        seconds = self._throughput.seconds(max(1, own + borrowed))
        if seconds is None:
            return None
        url_s = min(max(seconds / max(1, own + borrowed), URL_S_MIN), URL_S_MAX)
        return Backlog(min(own, PENDING_MOST), url_s, min(borrowed * url_s, BUSY_S_MAX))

    async def _chosen(self, own: Backlog) -> list[BlockOffer[Contact]]:
        """Ask contacts for their backlogs, and return the blocks to offer each."""
        contacts = [contact for bucket in self._blocks.buckets() for contact in bucket]
        sample = self._random.sample(contacts, min(len(contacts), ASKED_MAX))
        question = GetLoad(self._blocks.me().id, _record(own))
        answers = await asyncio.gather(*(self._blocks.ask(contact, question) for contact in sample))
        asked = [
            (contact, room(answer.level) if answer.backlog is None else _backlog(answer.backlog))
            for contact, answer in zip(sample, answers, strict=True)
            if answer is not None and (answer.backlog is not None or room(answer.level) > 0)
        ]
        blocks = block_offers(own, [backlog for _, backlog in asked], self._blocks.job.block_urls, HAND_OVER_S)
        return [BlockOffer(contact, count) for (contact, _), count in zip(asked, blocks, strict=True) if count]


def _record(backlog: Backlog | None) -> BacklogRecord | None:
    return None if backlog is None else BacklogRecord(backlog.pending, backlog.url_s, backlog.busy_s)


def _backlog(record: BacklogRecord) -> Backlog:
    return Backlog(record.pending, record.url_s, record.busy_s)
