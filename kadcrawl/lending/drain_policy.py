"""`DrainPolicy`: load balance by seconds to drain, as decided in balance/drain.py.

Only URLs that wait for this peer count: URLs that wait for their sites are as well off here as elsewhere. A peer knows
the loads of others by their heartbeats, answers, questions and offers. At an update, a peer that is heavy by what it
knows walks over its k-buckets from near to far (balance/bucket_walk.py). In each bucket it asks the contacts that it
knows nothing fresh about, as far as it must, and lends blocks to the light ones. It goes on to the next bucket with
what is left. An offer carries the lender's backlog. A peer that is offered blocks looks again at how long it is busy by
then, and at the loads that it knows.

The throughput is measured while URLs wait for the peer. With balance `predictive` a network predicts it until enough is
measured (throughput_learning.py), and a solver divides the blocks by predicted times (block_divider.py).
"""

import asyncio
import logging
from collections.abc import Sequence
from functools import partial
from math import inf
from random import Random

from kadcrawl.balance.bucket_walk import BucketWalk
from kadcrawl.balance.drain import Backlog, BlockTrial, accepts
from kadcrawl.balance.known_loads import KnownLoads, PeerLoad
from kadcrawl.balance.level import BlockLoad
from kadcrawl.balance.predict import ThroughputModel
from kadcrawl.balance.shedding import BlockOffer, room
from kadcrawl.balance.sizing import WorkCounts
from kadcrawl.lending.block_divider import BlockDivider
from kadcrawl.lending.blocks import Blocks
from kadcrawl.lending.throughput_learning import ThroughputLearning
from kadcrawl.link.wire.loan_messages import BUSY_S_MAX, LEVEL_MAX, URL_S_MAX, URL_S_MIN
from kadcrawl.link.wire.messages import BacklogRecord, Contact, GetLoad, Load

HAND_OVER_S = 0.2
"""Seconds from the offer of a block until its borrower fetches the first URL: two round trips, offer and report."""
BUSY_SHARE = 0.5
"""Least busy share of the time between updates from which the throughput is measured."""
SAMPLE_URLS_LEAST = 4
"""Least URLs from which the throughput is measured."""
WORK_AREA_UPDATES = 2
"""The work area, in times between updates. A light peer is given work in time, as it has one of them left then."""
TELL_S = 1.0
"""Seconds between two loads for the heartbeats, of which there is one every 3 s."""
PENDING_MOST = 1_000_000
"""Limit on the pending URLs in a backlog, as the wire has it."""

log = logging.getLogger(__name__)


class DrainPolicy:
    """The seconds to drain of one peer, as a `BalancePolicy` (lending/balancer.py)."""

    def __init__(
        self, blocks: Blocks, learning: ThroughputLearning | None = None, random: Random | None = None
    ) -> None:
        """`learning` is for a job that predicts the throughput.

        `random` rounds this peer's share of a bucket's room, and a particle swarm draws from it.
        """
        self._blocks = blocks
        self._random = random or Random(0)
        self._divider = None if learning is None else BlockDivider(blocks.job, learning, self._random, HAND_OVER_S)
        self._learning = learning
        self._throughput = ThroughputModel(learning.predict if learning is not None else None)
        self._trial = BlockTrial()
        self._last: WorkCounts | None = None
        self._urls = 0
        """URLs crawled since the last measurement, in `_busy_s` seconds."""
        self._busy_s = 0.0
        """Seconds since the last measurement in which URLs waited for this peer."""
        self._work_area_s = WORK_AREA_UPDATES * blocks.job.update_s
        self.known = KnownLoads(blocks.job.update_s, self._work_area_s)
        """The loads of other peers, as this peer knows them."""
        self._told_at = -inf
        """The loop second of the last load for the heartbeats."""

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
        if counts.at >= self._told_at + TELL_S:
            self._told_at = counts.at
            self._blocks.tell_load(self.answer())

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
            self.known.note(question.asker, _backlog(question.backlog), asyncio.get_running_loop().time())
        own, borrowed = self._blocks.waiting  # Read once, as `waiting` looks at every site.
        powers = None if self._divider is None else self._divider.powers
        return Load(min(self._level(own + borrowed), LEVEL_MAX), _record(self._backlog(own, borrowed)), powers)

    def accept(self, lender: bytes, urls: int, backlog: BacklogRecord | None) -> bool:
        """Return whether the URLs are done here earlier than at their lender, and count them as accepted if so."""
        if backlog is None:
            return False  # The lender cannot know that it is busier than this peer.
        block_urls, own, now = self._blocks.job.block_urls, self.backlog(), asyncio.get_running_loop().time()
        lenders = _backlog(backlog)
        self.known.note(lender, lenders, now)
        if own is None:
            if sum(self._blocks.waiting) + urls > self._trial.blocks * block_urls:
                return False
            self._trial.started()
            return True
        others = self.known.backlogs(now, without=lender)
        if not accepts(own, lenders, others, urls, block_urls, HAND_OVER_S, self._work_area_s):
            log.debug("balance.refused urls=%d own=%s lender=%s", urls, own, lenders)
            return False
        return True

    async def shed(self) -> None:
        """Walk over the buckets from near to far, and lend blocks to light peers, while this peer is heavy."""
        own = self.backlog()
        if own is None or not self._blocks.has_spare_connections:
            return
        time = asyncio.get_running_loop().time
        until = time() + self._blocks.job.update_s
        walk, offered = self._walk(own), 0
        while offers := await self._chosen(walk):
            offered += sum(offer.blocks for offer in offers)
            for offer in offers:
                taken = await self._blocks.lend_blocks(offer, until, lambda: _record(self.backlog()))
                walk.lent(offer, taken)
                self._note_lent(walk, offer, taken)
                # By then the answers are too old, and the next update asks again.
                if time() >= until or not self._blocks.has_spare_connections or self._blocks.is_paused():
                    offers = []
                    break
            if not offers:
                break
        if offered:
            left = walk.own.drain_s
            log.info(
                "balance.shed drain=%.2f url=%.3f blocks=%d asked=%d left=%.2f",
                *(own.drain_s, own.url_s, offered, walk.asked, left),
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

    def _walk(self, own: Backlog) -> BucketWalk[Contact]:
        """Return a walk that knows all that this peer knows at this moment."""
        now, heard = asyncio.get_running_loop().time(), self._blocks.heard_loads()
        buckets = list(self._blocks.buckets())
        known: dict[Contact, PeerLoad] = {}
        for contact in (contact for bucket in buckets for contact in bucket):
            if contact.id in heard and (told := _load(heard[contact.id].backlog, heard[contact.id].level / 100)):
                self.known.note(contact.id, told, heard[contact.id].at)
            if (load := self.known.load(contact.id, now)) is not None:
                known[contact] = load
        block_urls = self._blocks.job.block_urls
        return BucketWalk(
            *(own, buckets, known),
            block_urls=block_urls,
            work_area_s=self._work_area_s,
            hand_over_s=HAND_OVER_S,
            luck=self._random.random(),
        )

    async def _chosen(self, walk: BucketWalk[Contact]) -> Sequence[BlockOffer[Contact]]:
        """Walk to the next bucket with light peers, and return the blocks to offer there, or none at the end.

        `walk.region` then has the peers of that bucket with their loads.
        """
        while walk.next_bucket():
            question = GetLoad(self._blocks.me().id, _record(walk.own))
            while asked := walk.questions():
                answers = await asyncio.gather(*(self._blocks.ask(contact, question) for contact in asked))
                now = asyncio.get_running_loop().time()
                for contact, answer in zip(asked, answers, strict=True):
                    load = None if answer is None else _load(answer.backlog, answer.level)
                    walk.answered(contact, load)
                    if load is not None:
                        self.known.note(contact.id, load, now)
                    if answer is not None and self._divider is not None:
                        self._divider.note(contact.id, answer)
            if offers := await self._offers(walk, question):
                return offers
        return []

    async def _offers(self, walk: BucketWalk[Contact], question: GetLoad) -> Sequence[BlockOffer[Contact]]:
        return (
            walk.offers() if self._divider is None else await self._divider.offers(walk, partial(self._ask, question))
        )

    async def _ask(self, question: GetLoad, contact: Contact) -> Load | None:
        return await self._blocks.ask(contact, question)

    def _note_lent(self, walk: BucketWalk[Contact], offer: BlockOffer[Contact], taken: int) -> None:
        """Remember how busy a borrower is after an offer. A borrower that took less has more work than was known."""
        load = walk.load(offer.peer)
        if taken < offer.blocks or not isinstance(load, Backlog):
            self.known.forget(offer.peer.id)
        else:
            self.known.note(offer.peer.id, load, asyncio.get_running_loop().time())


def _load(record: BacklogRecord | None, level: float) -> PeerLoad | None:
    """Return the load that a peer tells, which is None if it is cold and would try no block."""
    return _backlog(record) if record is not None else room(level) or None


def _record(backlog: Backlog | None) -> BacklogRecord | None:
    return None if backlog is None else BacklogRecord(backlog.pending, backlog.url_s, backlog.busy_s)


def _backlog(record: BacklogRecord) -> Backlog:
    return Backlog(record.pending, record.url_s, record.busy_s)
