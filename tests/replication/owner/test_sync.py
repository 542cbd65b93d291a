"""Cells on the move: peers come, go, die, freeze and come back, and each cell ends open at one peer and whole at three.

The peers here are real but for what crawls, the overlay and the link: those are small, in memory and in virtual time.
"""

import asyncio
import shutil
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any

import pytest
from msgspec.structs import replace

from kadcrawl.crawl.frontier.frontier import Frontier
from kadcrawl.crawl.links.intake import Intake, IntakeEvents, IntakeLimits
from kadcrawl.crawl.output.counters import Counters
from kadcrawl.crawl.scope.partitioner import Partitioner, UrlLocation
from kadcrawl.crawl.scope.scope import Scope
from kadcrawl.errors import KadcrawlError, RemoteError
from kadcrawl.keys import Cell, Key, anchor, cell_of, id_bytes, site_hash, url_key
from kadcrawl.link.wire.codec import pack, unpack
from kadcrawl.link.wire.messages import (
    AssignReplica,
    Batch,
    CellsHeld,
    CellSummary,
    CompareDigests,
    Contact,
    FindMyCells,
    Link,
    MyCells,
    Reconcile,
    Replicate,
    Replicated,
    Reply,
    Request,
    TakeOver,
)
from kadcrawl.overlay.waves.activity import Activity
from kadcrawl.replication.cells import Cells
from kadcrawl.replication.owner import sync
from kadcrawl.replication.owner.catch_up import RELEASE_POLL_MOST_S
from kadcrawl.replication.owner.sync import FIND_MY_CELLS_INTERVAL_S
from kadcrawl.replication.owner.sync_progress import SyncProgress
from kadcrawl.replication.placement.placement import FIRST_BACKUP, HOLDERS, OWNER, holders, placement_keys
from kadcrawl.replication.record_codec import UNFINISHED_WAIT_S
from kadcrawl.settings.job import Job
from kadcrawl.settings.limits import Limits
from kadcrawl.store.frontier_entry import FrontierEntry
from kadcrawl.store.store import DONE, PENDING, Store
from kadcrawl.system.clock import Clock
from sim.loop import world

BITS = 4
CELLS = [Cell(cell) for cell in range(1 << BITS)]
DELAY_S = 2.0
"""Of the job, between two requests to a site."""
LATENCY_S = 0.002
DETECTED_S = (1.0, 2.0)
"""How long the others take to miss a dead peer."""
HEARD_S = (0.05, 0.3)
"""How long the others take to hear of a new one."""
SETTLED_S = 45.0
"""By then a swarm in which nothing happens is whole again."""
SILENT_S = 2 * sync.SILENCE_MAX_S
"""Nor takes it longer if nobody noticed what happened."""
MESSAGE_BYTES_MAX = 2 * 1024 * 1024


def _sites() -> dict[Cell, str]:
    sites: dict[Cell, str] = {}
    number = 0
    while len(sites) < len(CELLS):
        site = f"s{number}.example"
        sites.setdefault(cell_of(Key(site_hash(site) + bytes(8)), BITS), site)
        number += 1
    return sites


SITES = _sites()
"""One site for each cell."""


def url(cell: Cell, number: int) -> str:
    return f"http://{SITES[cell]}/{number}"


def key(cell: Cell, number: int) -> Key:
    return url_key(site_hash(SITES[cell]), url(cell, number))


class SwarmOverlay:
    """What one peer believes about the others, as `SyncSwarm` tells it."""

    def __init__(self, me: Contact) -> None:
        self.me = me
        self.known: dict[bytes, Contact] = {}
        self.on_joined: list[Callable[[Contact], None]] = []
        self.on_lost: list[Callable[[Contact], None]] = []

    def hear(self, contact: Contact) -> None:
        if contact.id not in self.known and contact.id != self.me.id:
            self.known[contact.id] = contact
            for listener in self.on_joined:
                listener(contact)

    def lose(self, contact: Contact) -> None:
        if self.known.pop(contact.id, None) is not None:
            for listener in self.on_lost:
                listener(contact)

    def contacts(self) -> list[Contact]:
        return list(self.known.values())

    def siblings(self) -> list[Contact]:
        return sorted(self.known.values(), key=lambda one: one.number ^ self.me.number)

    def is_live(self, peer: bytes) -> bool:
        return peer in self.known

    def owns(self, cell: Cell) -> bool:
        return self.nearest_known(anchor(cell, BITS), 1)[0] == self.me

    def nearest_known(self, target: int, count: int) -> list[Contact]:
        return sorted([self.me, *self.known.values()], key=lambda one: one.number ^ target)[:count]

    async def nearest(self, target: int, count: int) -> list[Contact]:
        return self.nearest_known(target, count)

    def suspect(self, contact: Contact) -> None:
        """The swarm tells in its own time."""


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
        """It never sleeps."""


class FakePeer:
    """One incarnation of a peer: the real history rooms on a real store."""

    def __init__(self, swarm: "SyncSwarm", contact: Contact, directory: Path) -> None:
        self.contact = contact
        self.directory = directory
        self.swarm = swarm
        self.frozen = False
        self.silent = False
        """Lives for the overlay, but answers nothing on the link."""
        job = Job(scope="any", cell_bits=BITS, delay_s=DELAY_S)
        self.store = Store(directory, 0.01, lambda fds: None)
        self.store.begin(BITS)
        self.overlay = SwarmOverlay(contact)
        activity, partitioner, scope = Activity(), Partitioner("host", BITS), Scope(job)
        self.frontier = Frontier(self.store, Limits(), DELAY_S)
        self.intake = Intake(self.store, self.frontier, scope, Counters(), activity, IntakeLimits(), IntakeEvents())
        self.crawler = FakeCrawler()
        self.partitioner = partitioner
        self.clock = Clock(swarm.loop, 1_000_000.0)
        parts: Any = SimpleNamespace(
            job=job, frontier=self.frontier, intake=self.intake, partitioner=partitioner, crawler=self.crawler
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
                await cells.receive(message)
                return Replicated()
            case FindMyCells():
                return cells.sync.find_my_cells(message)
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
        """Begin a request to a URL of this cell, if one may be fetched now."""
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
        """Know a URL of a cell as PENDING, from whoever said so."""
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
    """Some peers in one virtual world, and what a god sees of them."""

    def __init__(self, loop: asyncio.AbstractEventLoop, directory: Path, seed: int = 0) -> None:
        self.loop = loop
        self.random = Random(seed)
        self.peers: dict[bytes, FakePeer] = {}
        """Those that live, frozen ones included."""
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
        """End peers as SIGKILL does, all at the same moment; the others find out in their time."""
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
        """Stop a peer, as far as others see; it believes what it believed."""
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
        """Return what comes of the work at a peer. Raises RemoteError if the peer is killed first."""
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
            sorted(contacts, key=lambda one: one.number ^ place)[:HOLDERS] for place in placement_keys(cell, BITS)
        ]
        return [self.peers[contact.id] for contact in holders(nearest)]

    def open_at(self, cell: Cell) -> list[FakePeer]:
        return [
            peer for peer in self.peers.values() if peer.cells.holdings.is_open(cell) and peer.frontier.is_open(cell)
        ]

    def unsettled(self) -> str:
        """Return what is not as it should be when nothing happens any more; nothing if all is well."""
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
        """Return what was acknowledged and is now known to nobody who lives."""
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
        self.look()

    async def watch(self) -> None:
        """See how often a cell is open at two peers."""
        while True:
            self.look()
            await asyncio.sleep(0.004)

    def look(self) -> None:
        for cell in CELLS:
            self.open_at_once[cell] = max(self.open_at_once.get(cell, 0), len(self.open_at(cell)))


def _innermost(error: BaseException) -> BaseException:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


Play = Callable[[Callable[[SyncSwarm], Awaitable[None]]], None]


@pytest.fixture(params=[1, 2], ids="seed{}".format)
def play(request: pytest.FixtureRequest, tmp_path: Path) -> Play:
    """Give what runs a scenario to its end, then looks whether any peer ran into a fault."""

    def play(scenario: Callable[[SyncSwarm], Awaitable[None]]) -> None:
        async def run(swarm: SyncSwarm) -> None:
            watcher = swarm.loop.create_task(swarm.watch())
            try:
                async with asyncio.timeout(400):
                    await scenario(swarm)
            finally:
                watcher.cancel()
                await swarm.kill(*swarm.peers.values())
            assert [] == swarm.errors

        with world(request.param) as loop:
            loop.run_until_complete(run(SyncSwarm(loop, tmp_path, request.param)))

    return play


async def swarm_of(swarm: SyncSwarm, peers: int, urls: int = 3) -> None:
    """Let so many peers come, one after the other, and take some URLs of every cell."""
    for _ in range(peers):
        await swarm.join()
        await asyncio.sleep(0.5)
    for cell in CELLS:
        await swarm.offer(cell, range(urls))
    await swarm.settle()


# --- coming -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("peers", [1, 2, 3, 6])
def test_each_cell_is_open_at_its_owner_and_held_by_three(play: Play, peers: int) -> None:
    """Fewer than three peers hold as many copies as there are peers."""

    async def scenario(swarm: SyncSwarm) -> None:
        await swarm_of(swarm, peers)
        assert {1} == set(swarm.open_at_once.values())

    play(scenario)


def test_a_newcomer_takes_its_cells_and_no_cell_is_ever_open_twice(play: Play) -> None:
    async def scenario(swarm: SyncSwarm) -> None:
        await swarm_of(swarm, 5)
        await swarm.join()
        await swarm.settle()
        assert {1} == set(swarm.open_at_once.values())

    play(scenario)


def test_the_clocks_of_a_cell_come_with_it(play: Play) -> None:
    """A site asked just before its cell moved is left alone for the rest of its delay."""

    async def scenario(swarm: SyncSwarm) -> None:
        await swarm.join(1)
        cell = Cell(15)
        await swarm.offer(cell, range(3))
        asked_at = swarm.loop.time()
        await swarm.crawl_one(cell)
        newcomer = await swarm.join((1 << 160) - 1)
        while swarm.open_at(cell) != [newcomer]:
            await asyncio.sleep(0.01)
        assert swarm.loop.time() < asked_at + DELAY_S, "it moved too late to show anything"
        while newcomer.fetch(cell) is None:
            await asyncio.sleep(0.01)
        assert swarm.loop.time() >= asked_at + DELAY_S

    play(scenario)


def test_a_cell_moves_only_when_its_requests_are_over(play: Play) -> None:
    async def scenario(swarm: SyncSwarm) -> None:
        old = await swarm.join(1)
        cell = Cell(15)
        await swarm.offer(cell, range(3))
        entry = old.fetch(cell)
        assert entry is not None
        newcomer = await swarm.join((1 << 160) - 1)
        await asyncio.sleep(20.0)
        assert [] == swarm.open_at(cell), "neither may begin anything while a request is under way"
        old.finish(entry)
        await swarm.settle(5.0)
        assert DONE == newcomer.store.state(entry.key)

    play(scenario)


@pytest.mark.parametrize("backups", ["before", "after"])
def test_a_cell_that_waits_for_its_last_requests_is_copied_meanwhile(play: Play, backups: str) -> None:
    """Who began the swarm took links when there was nobody to copy them to, and a request may take minutes.

    Its backups come before its next owner, or after.
    """

    async def scenario(swarm: SyncSwarm) -> None:
        first = await swarm.join(1)
        cell = Cell(15)
        await swarm.offer(cell, range(3))
        assert first.fetch(cell) is not None
        ids = [None, None, None, None]
        newcomers = [*ids, (1 << 160) - 1] if backups == "before" else [(1 << 160) - 1, *ids]
        joined = {number: await swarm.join(number) for number in newcomers}
        newcomer = joined[(1 << 160) - 1]
        await asyncio.sleep(5.0)
        assert [] == swarm.open_at(cell)
        knowing = [one for one in swarm.peers.values() if one.store.state(key(cell, 0)) is not None]
        assert newcomer in knowing
        assert HOLDERS <= len(knowing)
        await swarm.kill(first)
        await swarm.settle()
        assert [newcomer] == swarm.open_at(cell)

    play(scenario)


@pytest.mark.parametrize("known", [True, False], ids=["known", "unknown"])
def test_a_page_in_hand_when_its_cell_moves_is_left_to_whoever_has_it(play: Play, known: bool) -> None:
    """Also if the new owner has it from somebody else, who could say nothing of that."""

    async def scenario(swarm: SyncSwarm) -> None:
        old = await swarm.join(1)
        cell = Cell(15)
        await swarm.offer(cell, range(2))
        entry = old.fetch(cell)
        assert entry is not None
        now = old.clock.now()
        old.frontier.release(entry, now, now)  # Fetched; its links are on their way.
        newcomer = await swarm.join((1 << 160) - 1)
        if known:
            for number in range(2):
                newcomer.take(cell, number)
        released_at = swarm.loop.time()
        while (other := newcomer.fetch(cell)) is None:
            await asyncio.sleep(0.1)
        assert other.key != entry.key
        newcomer.finish(other)
        assert swarm.loop.time() < released_at + UNFINISHED_WAIT_S / 2, "it moved too late to show anything"
        while (again := newcomer.fetch(cell)) is None:
            await asyncio.sleep(0.1)
        assert (entry.key, True) == (again.key, swarm.loop.time() >= released_at + UNFINISHED_WAIT_S)

    play(scenario)


@pytest.mark.parametrize("untold", [True, False])
def test_sites_of_a_crawled_cell_without_clocks_are_left_alone(play: Play, untold: bool) -> None:
    """Whatever others told: it may have asked since."""

    async def scenario(swarm: SyncSwarm) -> None:
        await swarm.join(1)
        other = await swarm.join(2)
        cell = Cell(15)
        await swarm.offer(cell, range(3))
        await swarm.settle()
        answer = other.cells.holder_side.answer

        def cannot(question: TakeOver) -> Any:
            synced = answer(question)
            return replace(synced, cells=[replace(one, clocks_incomplete=untold) for one in synced.cells])

        other.cells.holder_side.answer = cannot  # type: ignore[method-assign]
        newcomer = await swarm.join((1 << 160) - 1)
        while swarm.open_at(cell) != [newcomer]:
            await asyncio.sleep(0.01)
        opened_at = swarm.loop.time()
        while newcomer.fetch(cell) is None:
            await asyncio.sleep(0.01)
        assert (swarm.loop.time() >= opened_at + DELAY_S - 0.1) is untold

    play(scenario)


def test_a_peer_that_appears_during_a_takeover_is_heard_before_the_opening(play: Play) -> None:
    """It may be crawling it."""

    async def scenario(swarm: SyncSwarm) -> None:
        await swarm_of(swarm, 6)
        cell = Cell(15)
        newcomer_id = anchor(cell, BITS) ^ 1
        late = next(peer for peer in swarm.peers.values() if peer not in swarm.holders(cell))
        asked: list[bool] = []

        async def named(sender: Contact, address: tuple[str, int], message: Any) -> None:
            if sender.number == newcomer_id and isinstance(message, CompareDigests | Reconcile) and not asked:
                asked.append(False)
                newcomer.cells.sync.want(cell, late.contact)
            if sender.number == newcomer_id and isinstance(message, TakeOver) and address == late.contact.address:
                asked.extend([cell in message.cells] * bool(asked))

        swarm.hooks.append(named)
        newcomer = await swarm.join(newcomer_id)
        while swarm.open_at(cell) != [newcomer]:
            await asyncio.sleep(0.001)
        assert asked[:1] == [False], "nothing was to be compared"
        assert True in asked

    play(scenario)


def test_whoever_is_lost_is_not_waited_for_by_what_is_being_released(play: Play) -> None:
    async def scenario(swarm: SyncSwarm) -> None:
        await swarm_of(swarm, 3)
        one, other, _ = swarm.peers.values()
        lost: list[FakePeer] = []
        one.cells.holder_side.lost = lambda: lost.append(other)  # type: ignore[method-assign]
        await swarm.kill(other)
        await swarm.settle()
        assert [other] == lost

    play(scenario)


def test_who_finds_that_another_still_crawls_its_cell_stops(play: Play) -> None:
    """It came while nobody knew, e.g. as the one it was released for had gone: it waits until that one is through."""

    async def scenario(swarm: SyncSwarm) -> None:
        old = await swarm.join(1)
        cell = Cell(15)
        await swarm.offer(cell, range(2))
        entry = old.fetch(cell)
        assert entry is not None
        newcomer = await swarm.join((1 << 160) - 1)
        while newcomer.contact.id not in old.overlay.known:
            await asyncio.sleep(0.01)
        # As if it had opened the cell without having heard of the old owner.
        newcomer.cells.holdings.own(cell, 0.0).open = True
        newcomer.cells.crawl.open(cell, hold=False)
        await asyncio.sleep(10.0)
        assert [] == swarm.open_at(cell)
        old.finish(entry)
        await swarm.settle(10.0)
        assert [newcomer] == swarm.open_at(cell)

    play(scenario)


def test_two_that_come_into_one_range_at_once_agree(play: Play) -> None:
    async def scenario(swarm: SyncSwarm) -> None:
        await swarm_of(swarm, 4)
        near = swarm.holders(CELLS[5])[OWNER].contact.number
        await asyncio.gather(swarm.join(near ^ 1 << 100), swarm.join(near ^ 1 << 101), swarm.join())
        await swarm.settle()
        assert {1} == set(swarm.open_at_once.values())

    play(scenario)


def test_links_offered_while_a_cell_moves_are_not_lost(play: Play) -> None:
    async def scenario(swarm: SyncSwarm) -> None:
        await swarm_of(swarm, 4)

        async def offer_on(cell: Cell) -> None:
            for number in range(100, 130):
                await swarm.offer(cell, [number])
                await asyncio.sleep(swarm.random.uniform(0, 0.2))

        async with asyncio.TaskGroup() as group:
            for cell in CELLS:
                group.create_task(offer_on(cell))
            for _ in range(3):
                await swarm.join()
                await asyncio.sleep(1.0)
        await swarm.settle()
        assert {1} == set(swarm.open_at_once.values())

    play(scenario)


# --- going --------------------------------------------------------------------------------------------------------


def test_who_leaves_hands_everything_over(play: Play) -> None:
    async def scenario(swarm: SyncSwarm) -> None:
        await swarm_of(swarm, 5)
        leaver = swarm.holders(CELLS[3])[OWNER]
        began = swarm.loop.time()
        await swarm.leave(leaver)
        assert swarm.loop.time() < began + 20.0
        await swarm.settle()
        assert {1} == set(swarm.open_at_once.values())

    play(scenario)


def test_all_but_one_may_leave_at_once(play: Play) -> None:
    async def scenario(swarm: SyncSwarm) -> None:
        await swarm_of(swarm, 4)
        await asyncio.gather(*(swarm.leave(peer) for peer in list(swarm.peers.values())[1:]))
        await swarm.settle()

    play(scenario)


def test_who_leaves_and_is_killed_meanwhile_takes_nothing_away(play: Play) -> None:
    async def scenario(swarm: SyncSwarm) -> None:
        await swarm_of(swarm, 5)
        leaver = swarm.holders(CELLS[3])[OWNER]
        leaving = swarm.loop.create_task(swarm.leave(leaver))
        await asyncio.sleep(swarm.random.uniform(0, 0.6))
        leaving.cancel()
        await asyncio.gather(leaving, return_exceptions=True)
        if leaver.contact.id in swarm.peers:
            await swarm.kill(leaver)
        await swarm.settle()

    play(scenario)


# --- dying --------------------------------------------------------------------------------------------------------


def test_a_dead_owner_is_followed_by_the_next(play: Play) -> None:
    async def scenario(swarm: SyncSwarm) -> None:
        await swarm_of(swarm, 5)
        await swarm.kill(swarm.holders(CELLS[3])[OWNER])
        await swarm.settle(30.0)
        assert {1} == set(swarm.open_at_once.values())

    play(scenario)


@pytest.mark.parametrize("roles", [(0, 1), (0, 2), (1, 2)], ids=["owner+first", "owner+second", "both backups"])
def test_two_holders_dead_at_once_lose_nothing(play: Play, roles: tuple[int, int]) -> None:
    async def scenario(swarm: SyncSwarm) -> None:
        await swarm_of(swarm, 6)
        them = swarm.holders(CELLS[3])
        await swarm.kill(*(them[role] for role in roles))
        await swarm.settle(30.0)

    play(scenario)


def test_after_a_crash_each_site_is_left_alone_for_a_full_delay(play: Play) -> None:
    """Nobody could tell when the dead owner asked it last."""

    async def scenario(swarm: SyncSwarm) -> None:
        await swarm_of(swarm, 3)
        cell = CELLS[7]
        await swarm.kill(swarm.holders(cell)[OWNER])
        await swarm.settle(30.0)
        heir = swarm.holders(cell)[OWNER]
        opened_at = swarm.loop.time()
        assert heir.frontier.wait_s(SITES[cell], heir.clock.now()) <= DELAY_S
        while heir.fetch(cell) is None:
            assert swarm.loop.time() < opened_at + 3 * DELAY_S
            await asyncio.sleep(0.05)

    play(scenario)


@pytest.mark.parametrize("died", [False, True])
def test_after_a_crash_a_site_nobody_knows_is_left_alone_as_well(play: Play, died: bool) -> None:
    """The dead owner may have asked it before anybody else had a URL of it; if nobody died there is no need."""

    async def scenario(swarm: SyncSwarm) -> None:
        for _ in range(3):
            await swarm.join()
            await asyncio.sleep(0.5)
        await swarm.settle()
        cell = CELLS[7]
        if died:
            await swarm.kill(swarm.holders(cell)[OWNER])
            await swarm.settle(30.0)
        asked_at = swarm.loop.time()
        await swarm.offer(cell, [0])
        await swarm.crawl_one(cell)
        assert died is (swarm.loop.time() >= asked_at + DELAY_S)

    play(scenario)


def test_a_chain_of_crashes_each_after_the_swarm_has_healed_loses_nothing(play: Play) -> None:
    async def scenario(swarm: SyncSwarm) -> None:
        await swarm_of(swarm, 7)
        while len(swarm.peers) > 2:
            await swarm.kill(swarm.random.choice(list(swarm.peers.values())))
            await swarm.settle(30.0)

    play(scenario)


def test_what_was_acknowledged_survives_any_two_that_die_then_and_there(play: Play) -> None:
    """Links are offered all the time; two peers die at any moment, a third at the next one that is quiet."""

    async def scenario(swarm: SyncSwarm) -> None:
        await swarm_of(swarm, 6, urls=1)

        async def offer_on(cell: Cell) -> None:
            for number in range(100, 120):
                await swarm.offer(cell, [number])
                await asyncio.sleep(swarm.random.uniform(0, 0.5))

        async with asyncio.TaskGroup() as group:
            for cell in CELLS:
                group.create_task(offer_on(cell))
            await asyncio.sleep(swarm.random.uniform(0.5, 3))
            await swarm.kill(*swarm.random.sample(list(swarm.peers.values()), 2))
        await swarm.settle()

    play(scenario)


def test_a_backup_replaced_during_its_first_records_is_told_to_drop_them(play: Play) -> None:
    """When it was asked it had nothing, so nobody else would ever say anything to it."""

    async def scenario(swarm: SyncSwarm) -> None:
        for _ in range(3):
            await swarm.join()
            await asyncio.sleep(0.5)
        cell = CELLS[3]
        _, backup, _ = swarm.holders(cell)
        gate = asyncio.Event()

        async def hold_records(sender: Contact, address: tuple[str, int], message: Any) -> None:
            if isinstance(message, Replicate) and address == backup.contact.address:
                await gate.wait()

        swarm.hooks.append(hold_records)
        offering = asyncio.create_task(swarm.offer(cell, range(3)))
        await asyncio.sleep(2.0)
        await swarm.join(placement_keys(cell, BITS)[FIRST_BACKUP] ^ 1)
        await asyncio.sleep(3.0)
        gate.set()
        await offering
        await swarm.settle(20.0)

    play(scenario)


def test_a_source_is_told_to_drop_only_when_the_backups_have_what_it_had(play: Play) -> None:
    """Else the new owner's death alone would lose it."""

    async def scenario(swarm: SyncSwarm) -> None:
        await swarm_of(swarm, 5)
        cell = CELLS[3]
        them = swarm.holders(cell)
        stray = next(peer for peer in swarm.peers.values() if peer not in them)
        slow = them[1]
        gate = asyncio.Event()

        async def hold_records(sender: Contact, address: tuple[str, int], message: Any) -> None:
            if isinstance(message, Replicate) and address == slow.contact.address:
                await gate.wait()

        swarm.hooks.append(hold_records)
        # A page finished late, long after its cell has moved: only the stray knows of it.
        stray.store.learn_done(key(cell, 77))
        swarm.acknowledged[key(cell, 77)] = DONE
        await asyncio.sleep(20.0)
        assert slow.store.state(key(cell, 77)) is None
        assert DONE == stray.store.state(key(cell, 77)), "dropped before both backups had it"
        gate.set()
        await swarm.settle()

    play(scenario)


# --- coming back --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("noticed", [True, False], ids=["noticed", "unnoticed"])
@pytest.mark.parametrize("disk", ["same", "old", "none"])
def test_a_peer_restarted_catches_up_before_it_crawls(play: Play, disk: str, noticed: bool) -> None:
    """Whether the others have missed it or not."""

    async def scenario(swarm: SyncSwarm) -> None:
        await swarm_of(swarm, 5)
        cell = CELLS[3]
        peer = swarm.holders(cell)[OWNER]
        snapshot = swarm.snapshot(peer)
        await swarm.offer(cell, range(10, 20))
        await swarm.crawl_one(cell)
        await asyncio.sleep(1.0)
        await swarm.kill(peer)
        if noticed:
            await swarm.settle()
            # What it thinks to be PENDING is done meanwhile.
            await swarm.crawl_one(cell)
            await swarm.offer(cell, range(20, 30))
        back = await swarm.join(
            peer.contact.number, directory={"same": peer.directory, "old": snapshot, "none": None}[disk]
        )
        assert [] == [one for one in CELLS if back.cells.holdings.is_open(one)]
        await swarm.settle(SILENT_S)

    play(scenario)


def test_a_peer_that_was_away_crawls_nothing_before_it_has_synced_again(play: Play) -> None:
    async def scenario(swarm: SyncSwarm) -> None:
        await swarm_of(swarm, 5)
        sleeper = swarm.holders(CELLS[3])[OWNER]
        await swarm.freeze(sleeper)
        await swarm.offer(CELLS[3], range(50, 60))
        await asyncio.sleep(10.0)
        swarm.thaw(sleeper)
        sleeper.cells._beat_at = swarm.loop.time() - 10.0  # It was stopped, so its beat was too.
        assert sleeper.cells.is_stalled()
        assert [] == [cell for cell in CELLS if sleeper.frontier.is_open(cell)]
        await swarm.settle()

    play(scenario)


def test_a_returning_peer_without_answers_goes_on_alone_after_a_while(play: Play) -> None:
    """It is more likely cut off than the last of all; and of its copies the others may have done much."""

    async def scenario(swarm: SyncSwarm) -> None:
        await swarm_of(swarm, 3)
        sleeper, *others = swarm.peers.values()
        sleeper.cells.sync.close_all()
        woke_at = swarm.loop.time()
        await swarm.kill(*others)
        while not any(sleeper.cells.holdings.is_open(cell) for cell in CELLS):
            await asyncio.sleep(0.5)
        assert 60.0 <= swarm.loop.time() - woke_at <= 63.0
        await swarm.settle()

    play(scenario)


def test_a_peer_that_was_away_and_alone_before_goes_on_at_once(play: Play) -> None:
    async def scenario(swarm: SyncSwarm) -> None:
        await swarm_of(swarm, 1)
        (sleeper,) = swarm.peers.values()
        sleeper.cells.sync.close_all()
        await swarm.settle(3.0)

    play(scenario)


def test_a_sync_begun_before_a_stall_opens_nothing_after_it(play: Play) -> None:
    """What the others said before may not hold any more: they are asked again."""

    async def scenario(swarm: SyncSwarm) -> None:
        await swarm_of(swarm, 4)
        cell = CELLS[3]
        owner, backup, _ = swarm.holders(cell)
        gate, reached = asyncio.Event(), asyncio.Event()

        async def hold_exchange(sender: Contact, address: tuple[str, int], message: Any) -> None:
            if isinstance(message, Reconcile) and message.cell == cell and sender == owner.contact:
                reached.set()
                await gate.wait()

        swarm.hooks.append(hold_exchange)
        backup.cells.records.merging = True
        backup.store.learn_done(key(cell, 0))
        backup.cells.records.merging = False
        swarm.acknowledged[key(cell, 0)] = DONE
        owner.cells.sync.close_all()
        await reached.wait()
        owner.cells.sync.close_all()
        asked = len(swarm.sent)
        gate.set()
        while not owner.cells.holdings.is_open(cell):
            await asyncio.sleep(0.01)
        syncs = [
            message
            for sender, _, message in swarm.sent[asked:]
            if isinstance(message, TakeOver) and sender == owner.contact and cell in message.cells
        ]
        assert syncs

    play(scenario)


def test_two_halves_that_crawled_alone_merge(play: Play) -> None:
    async def scenario(swarm: SyncSwarm) -> None:
        await swarm_of(swarm, 6)
        peers = list(swarm.peers.values())
        halves = peers[:3], peers[3:]
        parted = True

        async def cut(sender: Contact, address: tuple[str, int], message: Any) -> None:
            side = [any(peer.contact == sender for peer in half) for half in halves]
            if parted and not any(peer.contact.address == address for peer in halves[side.index(True)]):
                raise RemoteError(address, "unreachable")

        swarm.hooks.append(cut)
        for half, others in (halves, halves[::-1]):
            for peer in half:
                for other in others:
                    peer.overlay.lose(other.contact)
        await asyncio.sleep(20.0)
        for cell in CELLS:
            # A half without any of its three holders knows nothing of a cell.
            for number, owner in enumerate(swarm.open_at(cell), 100):
                owner.store.accept(key(cell, number), SITES[cell], url(cell, number), 0, 0)
                swarm.acknowledged[key(cell, number)] = PENDING
        assert 2 in {len(swarm.open_at(cell)) for cell in CELLS}
        parted = False
        for half, others in (halves, halves[::-1]):
            for peer in half:
                for other in others:
                    peer.overlay.hear(other.contact)
        await swarm.settle()

    play(scenario)


# --- late, silent, unlike -----------------------------------------------------------------------------------------


def test_the_owner_learns_of_a_page_finished_after_its_cell_was_dropped(play: Play) -> None:
    async def scenario(swarm: SyncSwarm) -> None:
        await swarm_of(swarm, 5)
        cell = CELLS[3]
        late = next(peer for peer in swarm.peers.values() if peer not in swarm.holders(cell))
        entry = FrontierEntry(1, 10**6, key(cell, 0), SITES[cell], url(cell, 0), 0, 0, 0.0)
        late.store.finish(entry, b"{}\n")
        swarm.acknowledged[entry.key] = DONE
        await swarm.settle(10.0)

    play(scenario)


def test_a_copy_that_differs_is_found_by_the_repair(play: Play) -> None:
    """However it came about: here a backup's records vanish, and another's know more."""

    async def scenario(swarm: SyncSwarm) -> None:
        await swarm_of(swarm, 5)
        cell = CELLS[3]
        _, first, second = swarm.holders(cell)
        first.store.forget_cell(cell, 2)
        second.cells.records.merging = True
        second.store.learn_done(key(cell, 0))
        second.cells.records.merging = False
        swarm.acknowledged[key(cell, 0)] = DONE
        await swarm.settle(2 * sync.REPAIR_S)

    play(scenario)


def test_a_backup_that_hears_nothing_from_its_owner_asks_who_it_is(play: Play) -> None:
    """The owner died and nobody told the backup: they did not know each other."""

    async def scenario(swarm: SyncSwarm) -> None:
        await swarm_of(swarm, 5)
        cell = CELLS[3]
        owner, first, second = swarm.holders(cell)
        await swarm.kill(owner)
        for peer in swarm.peers.values():
            peer.overlay.known.pop(owner.contact.id)  # No callback.
        await swarm.settle(SILENT_S)
        assert first.cells.holdings.is_open(cell) or second.cells.holdings.is_open(cell) or swarm.open_at(cell)

    play(scenario)


def test_a_silent_backup_delays_acknowledgement_until_it_is_lost(play: Play) -> None:
    async def scenario(swarm: SyncSwarm) -> None:
        await swarm_of(swarm, 5)
        cell = CELLS[3]
        backup = swarm.holders(cell)[1]
        backup.silent = True
        offering = swarm.loop.create_task(swarm.offer(cell, [99]))
        await asyncio.sleep(8.0)
        assert not offering.done()
        await swarm.kill(backup)
        await offering
        await swarm.settle()

    play(scenario)


def test_nothing_stays_unacknowledged_for_a_backup_that_is_gone(play: Play) -> None:
    """Changes between its death and the next backups: else the swarm would never know that it is done."""

    async def scenario(swarm: SyncSwarm) -> None:
        await swarm_of(swarm, 5)
        cell = CELLS[3]
        owner, backup, _ = swarm.holders(cell)
        await swarm.kill(backup)
        for _ in range(30):
            owner.store.accept(
                key(cell, (number := len(swarm.acknowledged) + 1000)), SITES[cell], url(cell, number), 0, 0
            )
            swarm.acknowledged[key(cell, number)] = PENDING
            await asyncio.sleep(0.1)
        await swarm.settle()

    play(scenario)


def test_nobody_waits_for_ever_for_a_cell_that_is_not_ours(play: Play) -> None:
    async def scenario(swarm: SyncSwarm) -> None:
        await swarm_of(swarm, 3)
        cell = CELLS[3]
        other = swarm.holders(cell)[1]
        assert set() == await other.cells.sync.opened([cell], 4.0)
        owner = swarm.holders(cell)[OWNER]
        assert {cell} == await owner.cells.sync.opened([cell], 4.0)

    play(scenario)


def test_waiting_in_vain_leaves_nothing_behind(play: Play) -> None:
    """A cell that does not open for a long time is waited for again and again."""

    async def scenario(swarm: SyncSwarm) -> None:
        await swarm_of(swarm, 3)
        cell = CELLS[3]
        owner, backup, _ = swarm.holders(cell)
        backup.silent = True
        owner.cells.sync.close_all()
        for _ in range(20):
            assert set() == await owner.cells.sync.opened([cell], 0.2)
        assert len(owner.cells.sync.opener._waiting.get(cell, [])) <= 1
        backup.silent = False
        await swarm.settle()

    play(scenario)


def test_peers_that_come_and_go_at_once_for_a_while_end_whole(play: Play) -> None:
    async def scenario(swarm: SyncSwarm) -> None:
        await swarm_of(swarm, 6)
        for _ in range(12):
            peer = swarm.random.choice(list(swarm.peers.values()))
            match swarm.random.choice(["join", "join", "kill", "leave", "offer"]):
                case "join":
                    await swarm.join()
                case "kill" if len(swarm.peers) > 4:
                    await swarm.kill(peer)
                    await asyncio.sleep(8.0)
                case "leave" if len(swarm.peers) > 4:
                    await swarm.leave(peer)
                case _:
                    for cell in swarm.random.sample(CELLS, 4):
                        await swarm.offer(cell, [swarm.random.randrange(1_000)])
            await asyncio.sleep(swarm.random.uniform(0, 2))
        await swarm.settle()

    play(scenario)


# --- what costs what ----------------------------------------------------------------------------------------------


def test_a_join_moves_what_the_newcomer_is_to_hold_and_little_else(play: Play) -> None:
    """Records travel to the newcomer and to backups that lack them; a backup that has them all is sent none."""

    async def scenario(swarm: SyncSwarm) -> None:
        await swarm_of(swarm, 5, urls=60)
        before = {peer: dict(peer.store.cells) for peer in swarm.peers.values()}
        sent = len(swarm.sent)
        newcomer = await swarm.join()
        await swarm.settle()
        missing = sum(
            tally.keys - before.get(peer, {}).get(cell, tally._replace(keys=0)).keys
            for peer in swarm.peers.values()
            for cell, tally in peer.store.cells.items()
        )
        pushed = sum(
            len(message.batch.done) + len(message.batch.pending)
            for _, _, message in swarm.sent[sent:]
            if isinstance(message, Replicate)
        )
        assert newcomer.store.cells
        assert pushed <= missing

    play(scenario)


def test_a_swarm_where_nothing_happens_compares_and_moves_nothing(play: Play) -> None:
    async def scenario(swarm: SyncSwarm) -> None:
        await swarm_of(swarm, 5)
        await asyncio.sleep(2 * sync.REPAIR_S)
        sent, examined = len(swarm.sent), [peer.cells.anti_entropy.examined for peer in swarm.peers.values()]
        await asyncio.sleep(sync.REPAIR_S * sync.RECHECK_ROUNDS)
        assert set() == {Replicate, Reconcile, CompareDigests, CellsHeld} & {
            type(message) for _, _, message in swarm.sent[sent:]
        }
        assert examined == [peer.cells.anti_entropy.examined for peer in swarm.peers.values()]

    play(scenario)


# --- whoever asks -------------------------------------------------------------------------------------------------


STRANGER = Contact(id_bytes(12345), "10.9.9.9", 4160)
NOWHERE = 1 << BITS
EMPTY_DIGEST = CellSummary(NOWHERE, 1, 1, bytes(16))


@pytest.mark.parametrize(
    "message",
    [
        pytest.param(CellsHeld(STRANGER, [EMPTY_DIGEST]), id="CellsHeld"),
        pytest.param(TakeOver(STRANGER, [NOWHERE]), id="TakeOver"),
        pytest.param(AssignReplica(STRANGER, 0, [EMPTY_DIGEST]), id="Settle drop"),
        pytest.param(AssignReplica(STRANGER, 1, [EMPTY_DIGEST]), id="Settle keep"),
        pytest.param(Reconcile(NOWHERE, None, None, [], []), id="Reconcile"),
        pytest.param(CompareDigests(NOWHERE, None, []), id="CompareDigests"),
    ],
)
def test_a_cell_that_does_not_exist_harms_nobody(play: Play, message: Any) -> None:
    """The wire allows 24 bits; the job has fewer. No peer may end, now or when its owner falls silent."""

    async def scenario(swarm: SyncSwarm) -> None:
        await swarm_of(swarm, 3)
        for peer in list(swarm.peers.values()):
            try:
                await peer.answer(message)
            except KadcrawlError:
                pass
            assert not [cell for cell in [*peer.cells.holdings.backed, *peer.cells.holdings.owned] if cell >= NOWHERE]
        await asyncio.sleep(SILENT_S)
        await swarm.settle()

    play(scenario)


@pytest.mark.parametrize("kind", ["CellsHeld", "TakeOver", "keep", "drop", "Replicate"])
def test_a_message_that_seems_to_come_from_ourselves_changes_nothing(play: Play, kind: str) -> None:
    async def scenario(swarm: SyncSwarm) -> None:
        await swarm_of(swarm, 3)
        cell = CELLS[3]
        owner = swarm.holders(cell)[OWNER]
        tally = owner.store.cells[cell]
        held = CellSummary(cell, tally.keys, tally.pending, tally.digest.to_bytes(16, "big"))
        message = {
            "CellsHeld": CellsHeld(owner.contact, [held]),
            "TakeOver": TakeOver(owner.contact, [cell]),
            "keep": AssignReplica(owner.contact, 1, [held]),
            "drop": AssignReplica(owner.contact, 0, [held]),
            "Replicate": Replicate(owner.contact, Batch([], [], [], [])),
        }[kind]
        try:
            await owner.answer(message)
        except KadcrawlError:
            pass
        assert [owner] == swarm.open_at(cell)
        assert tally == owner.store.cells[cell]
        await swarm.settle(5.0)

    play(scenario)


def test_cells_there_are_none_of_in_an_answer_end_nobody(play: Play) -> None:
    async def scenario(swarm: SyncSwarm) -> None:
        await swarm_of(swarm, 3)
        for peer in swarm.peers.values():
            peer.cells.sync.find_my_cells = lambda message: MyCells(b"\xff" * 8)  # type: ignore[method-assign]
        newcomer = await swarm.join()
        await asyncio.sleep(10.0)
        assert newcomer.contact.id in swarm.peers
        assert not newcomer.task.done()  # type: ignore[union-attr]
        await swarm.settle()

    play(scenario)


def test_a_live_silent_sibling_delays_a_newcomer_only_for_a_while(play: Play) -> None:
    async def scenario(swarm: SyncSwarm) -> None:
        await swarm_of(swarm, 3)
        mute = next(iter(swarm.peers.values()))

        async def say_nothing(sender: Contact, address: tuple[str, int], message: Any) -> None:
            if isinstance(message, FindMyCells) and address == mute.contact.address:
                raise RemoteError(address[0], "no answer")

        swarm.hooks.append(say_nothing)
        newcomer = await swarm.join()
        await asyncio.sleep(60.0)
        assert not newcomer.cells.sync._join_handshake.done.is_set()
        await asyncio.sleep(40.0)
        assert newcomer.cells.sync._join_handshake.done.is_set()
        await swarm.settle()

    play(scenario)


def test_the_peers_that_claim_to_hold_cells_are_bounded(play: Play) -> None:
    async def scenario(swarm: SyncSwarm) -> None:
        await swarm_of(swarm, 3)
        cell = CELLS[3]
        owner = swarm.holders(cell)[OWNER]
        for number in range(3_000):
            stranger = Contact(id_bytes(number + 1), "10.9.9.9", 4160)
            await owner.answer(CellsHeld(stranger, [CellSummary(cell, 1, 1, bytes(16))]))
        assert len(owner.cells.sync._catch_up.providers.of(cell)) <= 1_000
        await swarm.settle(300.0)

    play(scenario)


def test_who_takes_long_to_release_a_cell_is_asked_ever_more_seldom(play: Play) -> None:
    async def scenario(swarm: SyncSwarm) -> None:
        await swarm_of(swarm, 3, urls=7)
        cell = CELLS[3]
        owner, backup, _ = swarm.holders(cell)
        assert 0 == owner.cells.pending_closed
        swarm.sent.clear()
        backup.cells.crawl.is_busy = lambda one: one == cell  # type: ignore[assignment, method-assign]
        owner.cells.sync.want(cell)
        await asyncio.sleep(60.0)
        asked = [
            message
            for _, address, message in swarm.sent
            if isinstance(message, TakeOver) and address == backup.contact.address and cell in message.cells
        ]
        assert 30 <= len(asked) <= 60 / RELEASE_POLL_MOST_S + 50
        assert not owner.cells.holdings.is_open(cell)
        assert 7 == owner.cells.pending_closed
        del backup.cells.crawl.is_busy
        await asyncio.sleep(RELEASE_POLL_MOST_S + 0.1)
        assert owner.cells.holdings.is_open(cell)
        await swarm.settle()

    play(scenario)


def test_a_peer_is_told_once_a_second_at_most_which_cells_are_its_own(play: Play) -> None:
    async def scenario(swarm: SyncSwarm) -> None:
        await swarm_of(swarm, 3)
        peer, *others = swarm.peers.values()
        await asyncio.sleep(FIND_MY_CELLS_INTERVAL_S)
        for _ in range(3):
            for other in others:
                await peer.answer(FindMyCells(other.contact))
                for _ in range(5):
                    with pytest.raises(KadcrawlError):
                        await peer.answer(FindMyCells(other.contact))
            await asyncio.sleep(FIND_MY_CELLS_INTERVAL_S)
        for number in range(1000):
            await peer.answer(FindMyCells(Contact(id_bytes(number + 1), "10.9.9.9", 4160)))
            await asyncio.sleep(0.1)
        assert len(peer.cells.sync._asked_for_cells_at) <= FIND_MY_CELLS_INTERVAL_S / 0.1 + 1
        await swarm.settle(300.0)

    play(scenario)


def test_a_sync_is_cut_off_without_a_word_when_its_world_ends(play: Play) -> None:
    """There is no loop any more by then: a kill in the simulated world, or a program that ends in a hurry."""
    begun: list[Coroutine[Any, Any, bool]] = []

    async def scenario(swarm: SyncSwarm) -> None:
        await swarm_of(swarm, 3)
        cell = CELLS[3]
        owner = swarm.holders(cell)[OWNER]
        owner.cells.holdings.owned[cell].open = False
        begun.append(owner.cells.sync._catch_up.once(SyncProgress(cell)))
        begun[0].send(None)
        await asyncio.sleep(1.0)
        owner.cells.holdings.owned[cell].open = True

    play(scenario)
    begun[0].close()
