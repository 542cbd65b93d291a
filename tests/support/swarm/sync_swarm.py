"""A swarm of peers that sync cells, without a network and in virtual time."""

import asyncio
import shutil
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any

import pytest

from kadcrawl.crawl.frontier.frontier import Frontier
from kadcrawl.crawl.links.intake import Intake, IntakeEvents, IntakeLimits
from kadcrawl.crawl.output.counters import Counters
from kadcrawl.crawl.scope.partitioner import Partitioner, UrlLocation
from kadcrawl.crawl.scope.scope import Scope
from kadcrawl.errors import KadcrawlError, RemoteError
from kadcrawl.keys import Cell, Key, cell_of, id_bytes
from kadcrawl.link.wire.codec import pack, unpack
from kadcrawl.link.wire.messages import (
    AssignReplica,
    CellsHeld,
    CompareDigests,
    Contact,
    FindMyCells,
    Link,
    Reconcile,
    Replicate,
    Replicated,
    Reply,
    Request,
    TakeOver,
    WasAway,
)
from kadcrawl.overlay.waves.activity import Activity
from kadcrawl.replication.cells import Cells
from kadcrawl.replication.owner import repair_pace
from kadcrawl.replication.placement.placement import HOLDERS, OWNER, holders, placement_keys
from kadcrawl.settings.job import Job
from kadcrawl.settings.limits import Limits
from kadcrawl.settings.site_settings import SiteSettings
from kadcrawl.store.frontier_entry import FrontierEntry
from kadcrawl.store.store import DONE, PENDING, Store
from kadcrawl.system.clock import Clock
from kadcrawl.urls import Partition
from sim.loop import world
from tests.support.swarm.sync_cells import BITS, CELLS, SITES, key, url
from tests.support.swarm.sync_overlay import SwarmOverlay

DELAY_S = 2.0
"""Seconds between two requests to a site, by the job."""
LATENCY_S = 0.002
DETECTED_S = (1.0, 2.0)
"""Seconds until the others miss a dead peer, least and most."""
HEARD_S = (0.05, 0.3)
"""Seconds until the others hear of a new peer, least and most."""
SETTLED_S = 45.0
"""Seconds after which a swarm in which nothing happens is whole again."""
SILENT_S = 2 * repair_pace.silence_max_s(0, 3)
"""Seconds after which the swarm is whole again even if nobody noticed the change."""
MESSAGE_BYTES_MAX = 2 * 1024 * 1024


class SwarmClient:
    """One peer's end of the swarm's link."""

    def __init__(self, swarm: "SyncSwarm", me: Contact) -> None:
        self._swarm = swarm
        self._me = me

    async def ask(self, to: Contact, message: Any, expected: Any, deadline_s: float) -> Any:
        return await self._swarm.carry(self._me, to.address, message, expected, deadline_s)


class FakeCrawler:
    """Takes entries only when a test does."""

    def __init__(self) -> None:
        self.taken: set[Key] = set()

    def is_taken(self, entry: FrontierEntry) -> bool:
        return entry.key in self.taken

    def wake(self) -> None:
        """Do nothing, as this crawler never sleeps."""


class FakePeer:
    """One incarnation of a peer: the real history rooms on a real store."""

    def __init__(self, swarm: "SyncSwarm", contact: Contact, directory: Path) -> None:
        self.contact = contact
        self.directory = directory
        self.swarm = swarm
        self.frozen = False
        self.silent = False
        """Lives for the overlay, but answers nothing on the link."""
        partition: Partition = "url" if swarm.by_url else "host"
        job = Job(scope="any", cell_bits=BITS, delay_s=DELAY_S, copies=swarm.copies, partition=partition)
        self.store = Store(directory, 0.01, lambda fds: None)
        self.store.begin(BITS)
        self.overlay = SwarmOverlay(contact)
        activity, partitioner, scope = Activity(), Partitioner("host", BITS), Scope(job)
        self.frontier = Frontier(self.store, Limits(), SiteSettings(Job(delay_s=DELAY_S)))
        self.intake = Intake(self.store, self.frontier, scope, Counters(), activity, IntakeLimits(), IntakeEvents())
        self.crawler = FakeCrawler()
        self.partitioner = partitioner
        self.clock = Clock(swarm.loop, 1_000_000.0)
        parts: Any = SimpleNamespace(
            has_time=lambda: False,
            job=job,
            frontier=self.frontier,
            intake=self.intake,
            partitioner=partitioner,
            crawler=self.crawler,
        )
        client: Any = SwarmClient(swarm, contact)
        overlay: Any = self.overlay
        self.cells = Cells(parts, overlay, client, self.store, activity, self.clock, 0.01)
        self.task: asyncio.Task[None] | None = None

    def __repr__(self) -> str:
        return f"<peer {self.contact.id.hex()[:4]}>"

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(self.store.journal.run(), name="commit")
            group.create_task(self.cells.run(), name="cells")

    async def answer(self, message: Any) -> Any:
        cells = self.cells
        match message:
            case Replicate():
                return Replicated(await cells.receive(message))
            case FindMyCells():
                return cells.sync.find_my_cells(message)
            case WasAway():
                return cells.absence_seen(message)
            case CellsHeld():
                return cells.sync.cells_held(message)
            case TakeOver():
                return cells.holder_side.answer(message)
            case CompareDigests():
                return await cells.anti_entropy.answer_compare(message)
            case Reconcile():
                return await cells.anti_entropy.answer_reconcile(message)
            case AssignReplica():
                return cells.holder_side.assign_replica(message)
        raise AssertionError(f"nobody sends {message}")

    # --- what a crawler would do

    def fetch(self, cell: Cell) -> FrontierEntry | None:
        """Begin a request to a URL of this cell, if a URL may be fetched now."""
        now = self.clock.now()
        found, others = None, []
        while found is None and (entry := self.frontier.next(now)) is not None:
            if cell == self.store.cell_of(entry.key):
                self.crawler.taken.add(entry.key)
                found = entry
            else:
                others.append(entry)
        for entry in others:
            self.frontier.give_up_slot(entry)
            self.frontier.put_back(entry, now)
        return found

    def take(self, cell: Cell, number: int) -> None:
        """Accept a URL of a cell as PENDING, from any peer."""
        link = Link(url(cell, number), 1, 0)
        self.intake.merge_pending(link, self.partitioner.locate(link.url), self.clock.now(), 0, 0.0)

    def finish(self, entry: FrontierEntry) -> None:
        """The request is over and its page is done."""
        now = self.clock.now()
        self.frontier.release(entry, now, now)
        self.crawler.taken.discard(entry.key)
        self.store.finish(entry, b"{}\n")
        self.frontier.finish(entry, now)
        self.swarm.acknowledged[entry.key] = DONE


class SyncSwarm:
    """Run peers in one virtual world, and look at them from outside."""

    def __init__(self, loop: asyncio.AbstractEventLoop, directory: Path, seed: int = 0) -> None:
        self.loop = loop
        self.copies = HOLDERS
        """Holders of each cell. Set it before the first peer joins."""
        self.by_url = False
        """The job has `partition` url, so cells open together. Set it before the first peer joins."""
        self.random = Random(seed)
        self.peers: dict[bytes, FakePeer] = {}
        """The live peers, frozen peers included."""
        self.acknowledged: dict[Key, int] = {}
        self.errors: list[str] = []
        self.sent: list[tuple[Contact, tuple[str, int], Any]] = []
        self.hooks: list[Callable[[Contact, tuple[str, int], Any], Awaitable[None]]] = []
        """Awaited before a message is delivered."""
        self.open_at_once: dict[Cell, int] = {}
        """The most peers at which a cell was open at one moment."""
        self._directory = directory
        self._incarnations = 0
        self._contacts: dict[int, Contact] = {}

    # --- peers

    async def join(self, number: int | None = None, *, directory: Path | None = None) -> FakePeer:
        """Let a peer of this ID come, with an empty disk if none is named."""
        number = self.random.getrandbits(160) if number is None else number
        self._incarnations += 1
        place = self._incarnations
        if directory is None:
            directory = self._directory / str(place)
            directory.mkdir()
        # One ID has one address: a peer that restarts listens where it did before.
        contact = self._contacts.setdefault(
            number, Contact(id_bytes(number), f"10.0.{place // 250}.{place % 250 + 1}", 4160)
        )
        peer = FakePeer(self, contact, directory)
        peer.cells.events.cell_opened.append(self._count_open)
        for other in self.peers.values():
            if not other.frozen:
                peer.overlay.known[other.contact.id] = other.contact
        for other in self.peers.values():
            self.loop.call_later(self.random.uniform(*HEARD_S), self._hear, other, peer)
        self.peers[contact.id] = peer
        peer.task = self.loop.create_task(peer.run())
        peer.task.add_done_callback(self._ended)
        await asyncio.sleep(0)
        return peer

    async def kill(self, *peers: FakePeer) -> None:
        """End peers as SIGKILL does, all at the same moment. The others notice in their own time."""
        for peer in peers:
            del self.peers[peer.contact.id]
        for peer in peers:
            assert peer.task is not None
            peer.task.remove_done_callback(self._ended)
            peer.task.cancel()
            await asyncio.gather(peer.task, return_exceptions=True)
            peer.store.close()
            for other in self.peers.values():
                self.loop.call_later(self.random.uniform(*DETECTED_S), self._miss, other, peer)

    async def leave(self, peer: FakePeer) -> None:
        async def goodbye() -> None:
            for other in self.peers.values():
                other.overlay.lose(peer.contact)

        await peer.cells.leave(goodbye, 30.0)
        await peer.store.journal.commit()
        await self.kill(peer)

    async def freeze(self, peer: FakePeer) -> None:
        """Stop a peer as seen by the others. Its own state stays the same."""
        peer.frozen = True
        for other in self.peers.values():
            self.loop.call_later(self.random.uniform(*DETECTED_S), self._miss, other, peer)

    def thaw(self, peer: FakePeer) -> None:
        peer.frozen = False
        for other in self.peers.values():
            self.loop.call_later(self.random.uniform(*HEARD_S), self._hear, other, peer)

    def snapshot(self, peer: FakePeer) -> Path:
        """Copy a peer's disk as it is after its last commit."""
        self._incarnations += 1
        to = self._directory / f"snapshot{self._incarnations}"
        shutil.copytree(peer.directory, to)
        return to

    # --- messages

    async def carry(
        self, sender: Contact, address: tuple[str, int], message: Any, expected: Any, deadline_s: float
    ) -> Any:
        self.sent.append((sender, address, message))
        for hook in self.hooks:
            await hook(sender, address, message)
        await asyncio.sleep(LATENCY_S * self.random.uniform(0.5, 2))
        peer = next((one for one in self.peers.values() if one.contact.address == address), None)
        me = self.peers.get(sender.id)
        if peer is not None and (peer.silent or peer.frozen or me is None or me.frozen):
            await asyncio.sleep(deadline_s)
            raise RemoteError(address, "no answer")
        if peer is None:
            raise RemoteError(address, "connection refused")
        try:
            answer = await self._at(peer, peer.answer(unpack(pack(message), Request, MESSAGE_BYTES_MAX)))
        except KadcrawlError as error:
            raise RemoteError(address, str(error)) from None
        except Exception as error:
            self.errors.append(f"{peer} at {message!r:.200}: {error!r}")
            raise RemoteError(address, "a fault") from None
        await asyncio.sleep(LATENCY_S * self.random.uniform(0.5, 2))
        if peer.contact.id not in self.peers:
            raise RemoteError(address, "connection reset")
        answer = unpack(pack(answer), Reply, MESSAGE_BYTES_MAX)
        assert isinstance(answer, expected), answer
        return answer

    async def _at(self, peer: FakePeer, work: Coroutine[Any, Any, Any]) -> Any:
        """Return the result of the work at a peer. Raises RemoteError if the peer is killed first."""
        assert peer.task is not None
        working = self.loop.create_task(work)
        try:
            await asyncio.wait([working, peer.task], return_when=asyncio.FIRST_COMPLETED)
            if not working.done():
                raise RemoteError(peer.contact, "connection reset")
            return working.result()
        finally:
            working.cancel()

    def _hear(self, one: FakePeer, other: FakePeer) -> None:
        if other.contact.id in self.peers and one.contact.id in self.peers and not other.frozen:
            one.overlay.hear(other.contact)
            if not one.frozen:
                other.overlay.hear(one.contact)

    def _miss(self, one: FakePeer, other: FakePeer) -> None:
        alive = self.peers.get(other.contact.id)
        if one.contact.id in self.peers and (alive is None or alive.frozen):
            one.overlay.lose(other.contact)

    def _ended(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and (error := task.exception()) is not None:
            self.errors.append(f"a peer ended: {_innermost(error)!r}")

    # --- URLs

    async def offer(self, cell: Cell, numbers: Iterable[int]) -> None:
        """Offer URLs to the owner of their cell until they are acknowledged."""
        links = [
            (Link(url(cell, number), 1, 0), UrlLocation(SITES[cell], key(cell, number), cell)) for number in numbers
        ]
        left = links
        while left:
            owner = self.holders(cell)[OWNER]
            try:
                again = await self._at(owner, owner.cells.accept(left, owner.intake.accept))
            except KadcrawlError:
                pass  # It is starting or ending.
            else:
                left = [left[index] for index in again]
            if left:
                await asyncio.sleep(0.2)
        for _, place in links:
            self.acknowledged.setdefault(place.key, PENDING)

    async def crawl_one(self, cell: Cell) -> None:
        """Let the owner fetch one URL of a cell, when it may."""
        owner = self.holders(cell)[OWNER]
        async with asyncio.timeout(60):
            while (entry := owner.fetch(cell)) is None:
                await asyncio.sleep(0.1)
        await asyncio.sleep(0.05)
        owner.finish(entry)

    # --- what a god sees

    def holders(self, cell: Cell) -> list[FakePeer]:
        """Return who is to hold a cell, by role."""
        contacts = [peer.contact for peer in self.peers.values() if not peer.frozen]
        nearest = [
            sorted(contacts, key=lambda one: one.number ^ place)[: self.copies]
            for place in placement_keys(cell, BITS, self.copies)
        ]
        return [self.peers[contact.id] for contact in holders(nearest)]

    def open_at(self, cell: Cell) -> list[FakePeer]:
        return [
            peer for peer in self.peers.values() if peer.cells.holdings.is_open(cell) and peer.frontier.is_open(cell)
        ]

    def unsettled(self) -> str:
        """Return the differences from a settled swarm when nothing happens any more. The text is empty if all is
        well."""
        for cell in sorted({cell_of(one, BITS) for one in self.acknowledged}):
            expected = self.holders(cell)
            truth = {one: state for one, state in self.acknowledged.items() if cell_of(one, BITS) == cell}
            if self.open_at(cell) != expected[:1]:
                return f"cell {cell} is open at {self.open_at(cell)}, not {expected[:1]}"
            backups = {contact.id for contact in expected[0].cells.holdings.owned[cell].backups}
            if backups != {peer.contact.id for peer in expected[1:]}:
                return f"cell {cell}: its owner has other backups than {expected[1:]}"
            for peer in self.peers.values():
                held = dict(peer.store.scan.records(cell, b"", 1_000_000))
                if peer not in expected and held:
                    return f"cell {cell}: {peer} still holds {len(held)} records"
                if peer in expected and any(held.get(one, 0) < state for one, state in truth.items()):
                    return f"cell {cell}: {peer} lacks some of {len(truth)} records"
                if peer in expected[1:] and cell not in peer.cells.holdings.backed:
                    return f"cell {cell}: {peer} does not know that it keeps a copy"
                if peer in expected and held != dict(expected[0].store.scan.records(cell, b"", 1_000_000)):
                    return f"cell {cell}: {peer} holds something else than the owner"
        left = {peer: peer.cells.unacknowledged for peer in self.peers.values() if peer.cells.unacknowledged}
        return f"unacknowledged: {left}" if left else ""

    def lost(self) -> list[Key]:
        """Return the acknowledged keys that no live peer knows."""
        return [
            one
            for one, state in self.acknowledged.items()
            if not any((peer.store.state(one) or 0) >= state for peer in self.peers.values())
        ]

    async def settle(self, seconds: float = SETTLED_S) -> None:
        """Wait until all is as it should be, which must be within so many seconds."""
        end = self.loop.time() + seconds
        while (why := self.unsettled()) and self.loop.time() < end:
            await asyncio.sleep(0.1)
        assert not self.errors, self.errors
        assert not self.lost(), f"lost: {len(self.lost())}"
        assert not why, why
        for cell in CELLS:
            self._count_open(cell)

    def _count_open(self, cell: Cell) -> None:
        """See at how many peers a cell is open. That can only grow when one opens the cell, which calls this."""
        self.open_at_once[cell] = max(self.open_at_once.get(cell, 0), len(self.open_at(cell)))


def _innermost(error: BaseException) -> BaseException:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


Play = Callable[[Callable[[SyncSwarm], Awaitable[None]]], None]


@pytest.fixture(params=[1, 2], ids="seed{}".format)
def play(request: pytest.FixtureRequest, tmp_path: Path) -> Play:
    """Give a function that runs a scenario to its end and then checks that no peer ran into a fault."""

    def play(scenario: Callable[[SyncSwarm], Awaitable[None]]) -> None:
        async def run(swarm: SyncSwarm) -> None:
            try:
                async with asyncio.timeout(400):
                    await scenario(swarm)
            finally:
                await swarm.kill(*swarm.peers.values())
            assert [] == swarm.errors

        with world(request.param) as loop:
            loop.run_until_complete(run(SyncSwarm(loop, tmp_path, request.param)))

    return play


async def swarm_of(swarm: SyncSwarm, peers: int, urls: int = 3) -> None:
    """Let a number of peers join in turn, and accept URLs of every cell."""
    for _ in range(peers):
        await swarm.join()
        await asyncio.sleep(0.5)
    for cell in CELLS:
        await swarm.offer(cell, range(urls))
    await swarm.settle()
