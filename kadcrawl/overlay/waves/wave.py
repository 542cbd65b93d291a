"""Waves: a question to every peer of the swarm, answered in O(log n) steps. Status, pause, stop and termination use it.

The k-bucket tree is the spanning tree: a peer that receives the wave with `limit` asks one contact in each of its
non-empty buckets below the limit, and gives each the bucket's own index as limit. So the parts are disjoint and
together cover the swarm (El-Ansary et al. 2003, broadcast in structured overlays). Answers are added up on the way
back. A contact that does not answer is suspected and the next of its bucket is asked. A bucket without any answer
counts as missing.
"""

import asyncio
from collections.abc import Callable
from random import Random
from typing import Protocol

from kadcrawl.errors import RemoteError
from kadcrawl.keys import ID_BITS
from kadcrawl.link.client import LinkClient
from kadcrawl.link.wire.census_rows import fitting, has_left, packed_rows
from kadcrawl.link.wire.messages import Answer, Census, Contact, PeerRow, Question, Survey, Tally, Watched, Wave
from kadcrawl.link.wire.queue_messages import QueueCounts, SurveyQueue
from kadcrawl.overlay.waves.queue_sum import sum_of
from kadcrawl.overlay.waves.quiescence import MISSING, add_up
from kadcrawl.overlay.waves.swarm_size import estimated_members
from kadcrawl.overlay.waves.watched_sum import joined
from kadcrawl.system.plural import counted

WAVE_DEADLINE_S = 10.0
PARTS_OF_LAST_LEVEL = 2
"""Parts of the time of a wave that are for a peer without a level below. Each level above it takes one part more."""
TRIES_PER_BUCKET = 3
REACH_ALL_TRIES = 5
"""Tries of a wave that must reach every peer, while a part is missing."""
WAVE_RETRY_S = 0.5
"""First wait before a retry. It doubles."""
NO_BUCKET = 0
"""The limit of a wave that goes no further."""

ROWS_BYTES_MAX = 3 * 1024 * 1024
"""Bytes of all rows in one answer: with the job beside them they fit a message (`Limits.message_bytes_max`)."""
LEFT_BYTES_MAX = 256 * 1024
"""Bytes of the rows of peers that left, in addition: a thousand rows."""

Respond = Callable[[Question], tuple[Tally, list[PeerRow]]]


def share_for(levels: int) -> float:
    """Return the share of its own time that a peer gives to a contact with so many levels below it.

    So the levels of a wave have equal time, and the last has enough for a new connection. A fixed share of each level
    would leave the twelfth level 0.2 of 10 seconds.
    """
    return (levels + PARTS_OF_LAST_LEVEL) / (levels + PARTS_OF_LAST_LEVEL + 1)


class BucketTree(Protocol):
    """The part of the overlay that a wave needs."""

    def subtrees(self, below: int = ID_BITS) -> dict[int, list[Contact]]: ...
    def suspect(self, contact: Contact) -> None: ...


class Waves:
    """Starts waves and passes them on."""

    def __init__(
        self,
        tree: BucketTree,
        client: LinkClient,
        respond: Respond,
        queue: Callable[[SurveyQueue], QueueCounts] = lambda _: QueueCounts(),
        watched: Callable[[float], Watched] = lambda _: Watched(),
    ) -> None:
        """`respond` acts on a question and returns this peer's own tally and, for a census, its row.

        `queue` returns this peer's queue, and `watched` what happened here in the last so many seconds.
        """
        self._tree = tree
        self._client = client
        self._respond = respond
        self._queue = queue
        self._watched = watched
        self.surveys = 0
        """Surveys answered or started here: an idle peer sees by this count that another peer asks already."""

    @property
    def members(self) -> int:
        """The estimated number of peers that a wave reaches, this peer included."""
        return estimated_members(self._tree.subtrees())

    async def ask_all(self, question: Question, deadline_s: float = WAVE_DEADLINE_S) -> Answer:
        """Ask every peer, this one included."""
        return await self.answer(Wave(ID_BITS, deadline_s, question))

    async def reach_all(self, question: Question) -> Answer:
        """Ask every peer until all have answered. Raises RemoteError if some never answer."""
        for attempt in range(REACH_ALL_TRIES):
            answer = await self.ask_all(question)
            if not answer.tally.missing:
                return answer
            await asyncio.sleep(WAVE_RETRY_S * 2**attempt)
        parts = counted(answer.tally.missing, "part of the swarm does", "parts of the swarm do")
        raise RemoteError("swarm", f"{parts} not answer; try again")

    async def ask_some(self, question: Question, count: int, random: Random, deadline_s: float) -> list[Tally]:
        """Ask `count` known peers, drawn at random, each for itself. Return their tallies."""
        known = [contact for members in self._tree.subtrees().values() for contact in members]
        asked = random.sample(known, min(count, len(known)))
        deadline = asyncio.get_running_loop().time() + deadline_s
        answers = await asyncio.gather(*(self._ask_one(NO_BUCKET, [one], question, deadline) for one in asked))
        return [answer.tally for answer in answers]

    async def answer(self, wave: Wave) -> Answer:
        """Respond here, ask the subtrees below the wave's limit, and return the sum."""
        self.surveys += isinstance(wave.question, Survey) and wave.limit > NO_BUCKET
        tally, rows = self._respond(wave.question)
        loop = asyncio.get_running_loop()
        now = loop.time()
        subtrees = sorted(self._tree.subtrees(wave.limit).items())
        # A contact has about as many levels below it as there are filled buckets below its own.
        below = await asyncio.gather(
            *(
                self._ask_one(*subtree, wave.question, now + wave.deadline_s * share_for(levels))
                for levels, subtree in enumerate(subtrees)
            )
        )
        here = packed_rows(row for row in rows if not has_left(row))
        left = packed_rows(row for row in rows if has_left(row))
        queue = None
        if isinstance(survey := wave.question, SurveyQueue):
            queues = [self._queue(survey), *(answer.queue for answer in below if answer.queue is not None)]
            queue = sum_of(queues, survey.sites, survey.urls)
        watched = None
        if isinstance(wave.question, Census) and wave.question.since_s is not None:
            told = [answer.watched for answer in below if answer.watched is not None]
            watched = joined([self._watched(wave.question.since_s), *told])
        return Answer(
            add_up([tally, *(answer.tally for answer in below)]),
            fitting([*here, *(row for answer in below for row in answer.rows)], ROWS_BYTES_MAX),
            fitting([*left, *(row for answer in below for row in answer.left)], LEFT_BYTES_MAX),
            queue,
            watched,
        )

    async def _ask_one(self, index: int, members: list[Contact], question: Question, deadline: float) -> Answer:
        loop = asyncio.get_running_loop()
        for contact in members[:TRIES_PER_BUCKET]:
            left_s = deadline - loop.time()
            if left_s <= 0:
                break
            try:
                return await self._client.ask(contact, Wave(index, left_s, question), Answer, left_s)
            except RemoteError:
                self._tree.suspect(contact)
        return Answer(MISSING, [])
