"""The cost of moving records between two real stores of any size, by anti-entropy and batches.

Three ways, each with about as many records on the move for every size of the large store. A newcomer fetches cells from
a peer that stores much (*join, owner*). Such a peer sends a newcomer the copies to keep (*join, backup*). A peer that
stores much fetches cells that a small peer leaves behind (*leave*). moving_cells.py decides which cells move, and here
they are drawn at random. Both ends run in this process, which packs and unpacks every message. CPU counts both, with
the journals.
"""

import asyncio
import itertools
import time
from collections.abc import AsyncIterator, Collection, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

from kadcrawl.crawl.frontier.frontier import Frontier
from kadcrawl.crawl.links.intake import Intake, IntakeEvents, IntakeLimits
from kadcrawl.crawl.output.counters import Counters
from kadcrawl.crawl.scope.partitioner import Partitioner
from kadcrawl.crawl.scope.scope import Scope
from kadcrawl.keys import Cell, id_bytes
from kadcrawl.link.wire.codec import pack, unpack
from kadcrawl.link.wire.messages import CompareDigests, Contact, Message, Reconcile, Replicate, Replicated
from kadcrawl.overlay.waves.activity import Activity
from kadcrawl.replication import record_codec
from kadcrawl.replication.anti_entropy import AntiEntropy
from kadcrawl.replication.replicator import digest_of
from kadcrawl.settings.job import Job
from kadcrawl.settings.limits import Limits
from kadcrawl.settings.site_settings import SiteSettings
from kadcrawl.store.cell_digest import EMPTY
from kadcrawl.store.store import Store

JOB = Job(scope="any")
LIMITS = Limits(commit_spacing_s=0.01)
URLS_PER_SITE = 20
PENDING_EVERY = 10
"""One URL in so many is PENDING, the others are DONE."""
AT_ONCE = 256
"""Cells on the move at the same time, as in replication/owner/sync.py."""
COMMIT_EVERY = 20_000


@dataclass(slots=True)
class RecordMoves:
    """One way of moving."""

    event: str
    stored: int
    """Records of the peer that stores much."""
    cells: int
    """Cells that moved."""
    examined: int
    """Records read at either end to find the differences."""
    moved: int
    wrong: int
    """Cells that do not end as they should at the end that receives."""
    cpu_s: float


class Everybody:
    """The answers of a peer that owns nothing and trusts every sender."""

    def owns(self, cell: Cell) -> bool:
        """Return False."""
        return False

    def is_nearest(self, sender: Contact, cell: Cell) -> bool:
        """Return True."""
        return True

    def trusts(self, sender: Contact, cell: Cell, now: float) -> bool:
        """Return True."""
        return True


class StoreEnd:
    """One of two peers: everything that moves records, with the network cut short."""

    def __init__(self, store: Store, number: int) -> None:
        store.begin(JOB.bits)
        self.store = store
        self.contact = Contact(id_bytes(number), "127.0.0.1", 1)
        self.other: StoreEnd = self
        """The other end, which answers this end's questions."""
        frontier = Frontier(store, LIMITS, SiteSettings(JOB))
        intake = Intake(store, frontier, Scope(JOB, LIMITS), Counters(), Activity(), IntakeLimits(), IntakeEvents())
        partitioner = Partitioner(JOB.partition, JOB.bits)
        self._records = record_codec.Records(
            store, frontier, intake, partitioner, lambda entry: False, lambda: 0.0, Everybody()
        )
        client: Any = self
        self.anti_entropy = AntiEntropy(lambda: self.contact, client, store, self._records.moving, self._records.merge)

    async def ask(self, to: Contact, message: Message, expected: Any, deadline_s: float) -> Any:
        """Stand in for the LinkClient: a message goes right to the other end."""
        question = unpack(pack(message), type(message), LIMITS.message_bytes_max)
        answer = await self.other.answer(question)
        return unpack(pack(answer), expected, LIMITS.message_bytes_max)

    async def answer(self, question: Message) -> Message:
        match question:
            case Reconcile():
                return await self.anti_entropy.answer_reconcile(question)
            case CompareDigests():
                return await self.anti_entropy.answer_compare(question)
            case Replicate():
                self._records.merge(question.batch)
                await self.store.journal.durable()
                return Replicated()
        raise AssertionError(f"nobody asks {question} here")


async def fill(store: Store, count: int, name: str, but: Collection[Cell] = (), per_site: int = URLS_PER_SITE) -> None:
    """Let a store, begun already, know so many URLs, none of them in the cells `but`.

    They come in the order in which a crawl might meet them: its sites take turns.
    """
    partitioner = Partitioner(JOB.partition, JOB.bits)
    names = (f"{name}-{number}.example" for number in itertools.count())
    allowed = (site for site in names if partitioner.cell(site) not in but)
    sites = list(itertools.islice(allowed, max(1, count // per_site)))
    for number in range(count):
        url = f"http://{sites[number % len(sites)]}/section/{number // len(sites)}/page-{number}.html"
        place = partitioner.locate(url)
        if number % PENDING_EVERY:
            store.learn_done(place.key)
        else:
            store.accept(place.key, place.site, url, 1, 0)
        if number % COMMIT_EVERY == 0:
            await store.journal.commit()
    await store.journal.commit()


@asynccontextmanager
async def opened(directory: Path, number: int) -> AsyncIterator[StoreEnd]:
    """Open one peer's store in a directory and commit its writes."""
    store = Store(directory, LIMITS.commit_spacing_s)
    committer = asyncio.create_task(store.journal.run(), name="commit")
    try:
        yield StoreEnd(store, number)
    finally:
        committer.cancel()
        await asyncio.gather(committer, return_exceptions=True)
        store.close()


def record_moves(directory: Path, stored: int, moving: int, random: Random) -> list[RecordMoves]:
    """Measure all three ways with `stored` records in the big store and at least `moving` of them on the move.

    Makes one directory per store in `directory`, which is empty.
    """
    for name in ("big", "owner", "backup", "leaver"):
        (directory / name).mkdir()
    return asyncio.run(_record_moves(directory, stored, moving, random))


async def _record_moves(directory: Path, stored: int, moving: int, random: Random) -> list[RecordMoves]:
    async with opened(directory / "big", 1) as big:
        await fill(big.store, stored, "site")
        cells = _drawn(big.store, moving, random)
        async with opened(directory / "owner", 2) as newcomer:
            joined = await _move("join, owner", stored, newcomer, big, cells, push=False)
        async with opened(directory / "backup", 2) as newcomer:
            copied = await _move("join, backup", stored, big, newcomer, cells, push=True)
        async with opened(directory / "leaver", 2) as leaver:
            await fill(leaver.store, moving, "other", but=big.store.cells)
            left = await _move("leave", stored, big, leaver, list(leaver.store.cells), push=False)
    return [joined, copied, left]


def _drawn(store: Store, records: int, random: Random) -> list[Cell]:
    """Return cells of a store, drawn at random, that hold so many records together, or a few more."""
    cells = list(store.cells)
    random.shuffle(cells)
    count = 0
    while cells[count:] and sum(store.cells[cell].keys for cell in cells[:count]) < records:
        count += 1
    return cells[:count]


async def _move(
    event: str, stored: int, asker: StoreEnd, other: StoreEnd, cells: Sequence[Cell], *, push: bool
) -> RecordMoves:
    """Let the asker fetch all of these cells from the other or, with `push`, send it all: nobody has both."""
    asker.other, other.other = other, asker
    tallies = {cell: (asker if push else other).store.cells[cell] for cell in cells}
    taker = other if push else asker
    places = asyncio.Semaphore(AT_ONCE)

    async def reconcile(cell: Cell) -> None:
        async with places:
            held = digest_of(cell, other.store.cells.get(cell, EMPTY))
            await asker.anti_entropy.reconcile(other.contact, held, push=push)

    read_before, moved_before = asker.anti_entropy.examined + other.anti_entropy.examined, asker.anti_entropy.moved
    began = time.process_time()
    async with asyncio.TaskGroup() as group:
        for cell in cells:
            group.create_task(reconcile(cell), name=f"move {cell}")
    cpu_s = time.process_time() - began
    return RecordMoves(
        event=event,
        stored=stored,
        cells=len(cells),
        examined=asker.anti_entropy.examined + other.anti_entropy.examined - read_before,
        moved=asker.anti_entropy.moved - moved_before,
        wrong=sum(taker.store.cells.get(cell, EMPTY) != tally for cell, tally in tallies.items()),
        cpu_s=cpu_s,
    )
