"""`Leaf`: a peer that owns nothing, for a machine that nobody can connect to, or that is too weak to keep a range.

It draws pages of full peers by connections of its own making (`drawing`), fetches them on a lease like any taker
(`borrowing`), sends the links found to their owners, and keeps a page log and WARC files of what it fetched. It listens
on nothing, is in no routing table, and keeps no record of the history: what it has in hand is PENDING at its owners, so
that it may vanish at any moment. When its full peer dies it draws of another. Used like a `Peer`:

    async with Leaf(Config(data=Path("crawl"))) as leaf:
        await leaf.join([("peer.example.org", 4160)])
        await leaf.wait_done()
"""

import asyncio
import logging
import os
from collections.abc import Coroutine, Sequence
from contextlib import AsyncExitStack
from random import Random
from types import TracebackType
from typing import Any

from kadcrawl.clock import Clock
from kadcrawl.config import Config, Job
from kadcrawl.crawl.totals import Totals
from kadcrawl.errors import StartError
from kadcrawl.history.store import Store
from kadcrawl.keys import ID_BITS, id_bytes
from kadcrawl.link.client import LinkClient
from kadcrawl.link.leaf_messages import Doing, leaf_contact
from kadcrawl.link.messages import Contact, PeerRow
from kadcrawl.overlay.termination import Activity
from kadcrawl.peer.borrowing import Borrowing
from kadcrawl.peer.directory import Directory
from kadcrawl.peer.drawing import Drawing
from kadcrawl.peer.ending import disk_failure
from kadcrawl.peer.ends import hello
from kadcrawl.peer.full_peers import FullPeers
from kadcrawl.peer.job_record import JobRecord
from kadcrawl.peer.known_peers import KnownPeers
from kadcrawl.peer.leaf_work import LeafWork
from kadcrawl.peer.leaves import why_no_leaf
from kadcrawl.peer.portrait import WAITING
from kadcrawl.peer.world import World

log = logging.getLogger(__name__)


class Leaf:
    """One leaf. All methods belong to the loop it was entered on."""

    def __init__(self, config: Config, world: World | None = None) -> None:
        """Of `config` the address to listen on means nothing here. `world` is for simulations."""
        self.config = config
        self.world = world or World()
        self._random = self.world.random or Random(os.urandom(32))
        self._activity = Activity()
        self._stopping = asyncio.Event()
        self._stack = AsyncExitStack()
        self._tasks: list[asyncio.Task[Any]] = []
        self._work: LeafWork | None = None

    def __repr__(self) -> str:
        return f"<Leaf {self.contact} {self.state}>" if hasattr(self, "store") else "<Leaf not started>"

    # --- life ----------------------------------------------------------------------------------------------------

    async def __aenter__(self) -> "Leaf":
        """Lock the directory and open the journal. Raises StartError."""
        async with AsyncExitStack() as stack:
            stack.callback(Directory(self.config.data).close)
            self.store = Store(self.config.data, self.config.limits.commit_spacing_s, self.world.sync)
            stack.callback(self.store.close)
            self._jobs = JobRecord(self.store)
            self.clock = Clock(asyncio.get_running_loop(), self.world.wall)
            self.started_at = self.clock.now()
            self.store.take_up_time(self.started_at)
            self.totals = Totals.from_bytes(self.store.meta("totals"))
            self._messages_before = self.totals.peer_messages
            self._me = leaf_contact(self._identity())
            self.client = LinkClient(self.config.limits.message_bytes_max)
            await self.client.open()
            stack.push_async_callback(self.client.close)
            self.full_peers = FullPeers((), self._random)
            self._known = KnownPeers(self.store, lambda: self.full_peers.contacts(), self.client)
            self._group = await stack.enter_async_context(asyncio.TaskGroup())
            stack.push_async_callback(self._shut)
            self.store.flush = self._flush
            self._committer = self._group.create_task(self.store.run(), name="commit")
            self._stack = stack.pop_all()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> bool | None:
        """Commit and close, without giving anything back; call `finish` first for that. Raises StorageError."""
        if not isinstance(error, asyncio.CancelledError):
            # The caller's own exception goes on as it is, not inside a group.
            kind = error = traceback = None
        try:
            return await self._stack.__aexit__(kind, error, traceback)
        except BaseExceptionGroup as group:
            if (failure := disk_failure(group)) is not None:
                raise failure from None
            raise

    async def join(self, bootstrap: Sequence[tuple[str, int]]) -> None:
        """Draw pages of these full peers (host, port), and of whomever they name, from now on.

        If none of them answers, those are asked whom this leaf knew when it last ran. Raises StartError when none of
        these does either, or the swarm does not fit this directory or has no leaves.
        """
        assert not self.begun, "a leaf joins once"
        known: Sequence[tuple[str, int]] = ()
        try:
            welcome = await hello(self.client, bootstrap)
        except StartError:
            if not (known := await self._known.answering(self._jobs.journaled())):
                raise
            welcome = await hello(self.client, known)
        if (why := why_no_leaf(welcome.job)) is not None:
            raise StartError(why)
        self.full_peers = FullPeers([*bootstrap, *known], self._random)
        self.full_peers.learn(self._known.contacts)
        self._build(self._jobs.joined(welcome.job))
        log.info("leaf.begun id=%s", self._me.id.hex())
        self._run(self.work.run(), "crawl")
        self._drawer = self._run(self._drawing.run(), "draw")

    async def wait_done(self) -> None:
        """Return when the swarm is quiescent, as a full peer says: nothing is left to do anywhere."""
        await self._activity.over.wait()

    async def wait_stopped(self) -> None:
        """Return when the swarm was told to stop, or this leaf is to exit when done and all is done."""
        await self._stopping.wait()

    def stop(self) -> None:
        """Let `wait_stopped` return; its caller then finishes and closes."""
        self._stopping.set()

    leave_soon = stop

    async def finish(self) -> None:
        """Draw nothing more, wait until what is under way is finished and on disk, and give back the rest."""
        if self.begun:
            self._drawer.cancel()
            await self.work.give_back()
        await self.store.commit()

    # --- what it is ----------------------------------------------------------------------------------------------

    @property
    def contact(self) -> Contact:
        """Its ID, and the address of the full peer it hangs on, as it has none itself."""
        home = self._drawing.home if self.begun else None
        return Contact(self._me.id, home.host, home.port) if home is not None else self._me

    @property
    def begun(self) -> bool:
        return self._work is not None

    @property
    def work(self) -> LeafWork:
        assert self._work is not None, "the leaf has not begun: call join"
        return self._work

    @property
    def job(self) -> Job:
        return self.work.job

    @property
    def borrowing(self) -> Borrowing:
        """What it has in hand."""
        return self.work.borrowing

    @property
    def ended(self) -> bool:
        """The swarm was quiescent when a full peer was last asked."""
        return self._activity.over.is_set()

    @property
    def state(self) -> str:
        """A word or a few for the status."""
        if not self.begun:
            return "starting"
        holds = self.work.crawler.holds
        for hold in ("stopping", "paused"):
            if hold in holds:
                return hold
        if self.ended:
            return "done"
        for hold, state in WAITING.items():
            if hold in holds:
                return state
        if self._drawing.is_lost:
            return "looking for a peer"
        return "crawling" if self.borrowing.loans else "idle"

    def row(self) -> PeerRow:
        """Describe this leaf."""
        return PeerRow(
            contact=self.contact,
            state=self.state,
            pending=self.borrowing.urls,
            in_flight=self.work.crawler.in_flight,
            uptime_s=int(self.clock.now() - self.started_at),
            counters=self.totals.counters(),
            allowance=0,
            granted=0,
        )

    # --- putting it together ---------------------------------------------------------------------------------------

    def _identity(self) -> bytes:
        leaf_id = self.store.meta("leaf_id")
        if leaf_id is None:
            leaf_id = id_bytes(self._random.getrandbits(ID_BITS))
            self.store.set_meta("leaf_id", leaf_id)
        return leaf_id

    def _build(self, job: Job) -> None:
        self._jobs.keep(job)
        work = LeafWork(
            me=self._me,
            job=job,
            config=self.config,
            world=self.world,
            store=self.store,
            client=self.client,
            totals=self.totals,
            activity=self._activity,
            clock=self.clock,
            random=self._random,
            home=lambda: self._drawing.hung_on,
        )
        self._drawing = Drawing(
            me=self._me,
            client=self.client,
            peers=self.full_peers,
            take=work.take,
            row=self.row,
            room=work.room,
            job=lambda: self.job,
            on_seeds=self._add_seeds,
            on_doing=self._follow,
        )
        self._work = work

    def _run(self, work: Coroutine[Any, Any, None], name: str) -> asyncio.Task[None]:
        task = self._group.create_task(work, name=name)
        self._tasks.append(task)
        return task

    async def _shut(self) -> None:
        """End the background tasks, commit what they have done, and close what they used."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        try:
            await self.store.commit()
        finally:
            self._committer.cancel()
            if self._work is not None:
                self._work.parts.outputs.close()

    def _flush(self) -> list[int]:
        """Before each commit: journal the counters and hand the outputs to the system."""
        self.totals.peer_messages = self._messages_before + self.client.asked
        self.store.set_meta("totals", self.totals.to_bytes())
        self.store.keep_time(self.clock.now())
        self._known.keep()
        return self._work.parts.outputs.flush() if self._work is not None else []

    # --- what it hears ---------------------------------------------------------------------------------------------

    def _follow(self, doing: Doing) -> None:
        """Do what the swarm does."""
        self.work.hold("paused", doing == "paused")
        if doing == "stopped":
            self.stop()
        elif doing == "ended":
            if not self.ended and not self.borrowing.loans:
                self._activity.end()
                log.info("leaf.done pages=%d", self.totals.pages)
                if self.config.exit_when_done:
                    self.stop()
        elif self.ended:
            self._activity.move()  # There is more to do.

    def _add_seeds(self, urls: Sequence[str]) -> None:
        if self.work.add_seeds(urls):
            self._jobs.keep(self.job)
