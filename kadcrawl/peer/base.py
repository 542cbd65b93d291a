"""`PeerBase`: the common life of a full peer and a leaf: open resources, one TaskGroup, the last commit.

Tests: tests/peer/test_peer.py, tests/peer/test_disk_full.py, tests/leaf/test_leaf.py
"""

import asyncio
import logging
import os
from collections.abc import Coroutine
from contextlib import AsyncExitStack
from dataclasses import replace
from random import Random
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from kadcrawl.crawl.build import CrawlComponents
from kadcrawl.crawl.content.record_extractor import Extraction
from kadcrawl.crawl.cookies.login_hook import check_login_hooks
from kadcrawl.crawl.fetch.tls import tls_of
from kadcrawl.crawl.output.counters import Counters
from kadcrawl.crawl.time_count import keep_time
from kadcrawl.errors import ConfigError, StartError, StorageError
from kadcrawl.link.client import LinkClient
from kadcrawl.link.peer_score import PeerScore
from kadcrawl.link.wire.peer_row import CrawlLimit, PeerRow
from kadcrawl.members.credentials import Credentials
from kadcrawl.overlay.waves.activity import Activity
from kadcrawl.peer.environment import Environment
from kadcrawl.peer.membership.key_rotation import KeyRotation
from kadcrawl.peer.membership.known_peers import KnownPeers
from kadcrawl.peer.monitoring.monitored_peer import MonitoredPeer
from kadcrawl.peer.resources import Resources, open_resources
from kadcrawl.settings.config import WEB_PORT_DEFAULT, Config
from kadcrawl.settings.job import Job
from kadcrawl.settings.job_limits import limits_with
from kadcrawl.settings.memory_plan import PEER_BASE_BYTES, memory_plan
from kadcrawl.settings.site_rules import (
    check_contact,
    check_key,
    check_secrets,
    login_hooks,
    robots_ignored,
    unverified,
)
from kadcrawl.sinks.deliveries import Deliveries
from kadcrawl.store.store import Store
from kadcrawl.system.clock import Clock
from kadcrawl.system.event import Event

if TYPE_CHECKING:
    from kadcrawl.peer.crawl_status import PeerStatus
    from kadcrawl.peer.dashboard.swarm_access import SwarmAccess
    from kadcrawl.peer.monitoring.listener import MetricsListener
    from kadcrawl.web.listener import DashboardListener

log = logging.getLogger(__name__)


class PeerBase:
    """One full peer or leaf, as a context manager. All methods belong to the loop it was entered on."""

    _base_bytes = PEER_BASE_BYTES
    """Memory of such a process before its first page."""
    _keeps_history = True
    """True if the peer keeps the history of cells."""

    def __init__(self, config: Config, environment: Environment | None) -> None:
        self.memory = memory_plan(config, self._base_bytes)
        """The plan for the memory of this process, or None if it is not bound."""
        self.config = config if self.memory is None else replace(config, limits=self.memory.bound(config.limits))
        """The configuration of this peer, with the limits that its memory has room for."""
        self.environment = environment or Environment()
        self._random = self.environment.random or Random(os.urandom(32))
        self._resources: Resources | None = None
        self._known: KnownPeers | None = None
        self._messages_before = 0
        """Messages sent in earlier runs."""
        self._stopping = Event()
        self._stack = AsyncExitStack()
        self._tasks: list[asyncio.Task[Any]] = []
        self._deliverer: asyncio.Task[None] | None = None
        self._has_ended = False
        """The context was left."""
        self._broken_off = False
        """The context ended by an exception."""
        self._extraction: Extraction | None = None
        self._metrics: MetricsListener | None = None
        self._dashboard: DashboardListener | None = None
        self._opening = asyncio.Lock()

    async def __aenter__(self) -> Self:
        """Open the resources and the network ends. Raises StartError.

        Raises ConfigError for a sink, and if this object was entered before.
        """
        if self._resources is not None:
            raise ConfigError(f"this object was entered before: make another one for {self.config.data}")
        async with AsyncExitStack() as stack:
            self._resources = await open_resources(self.config, self.environment, self._random, stack)
            self._messages_before = self.counters.peer_messages
            self._known = await self._open(stack)
            if self.config.metrics is not None:
                await self._monitor(self.config.metrics, stack)
            if self.config.web is not None:
                await self._open_dashboard(self.config.web, stack)
            self._group = await stack.enter_async_context(asyncio.TaskGroup())
            stack.push_async_callback(self._shut)
            self.store.journal.before_commit(self._flush)
            self._committer = self._group.create_task(self.store.journal.run(), name="commit")
            if self._metrics is not None:
                self._run(self._metrics.run(), "metrics")
            if self.config.sinks:
                self._deliverer = self._group.create_task(self.deliveries.run(), name="sinks")
            self._stack = stack.pop_all()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> bool | None:
        """Commit and close. Call `finish` or `leave` before, to hand anything over. Raises StorageError.

        Unless the context ends by an exception, the sinks get time for the outputs they lack.
        """
        self._broken_off = kind is not None
        self.resources.note_end(error)
        if not isinstance(error, asyncio.CancelledError):
            # The caller's own exception goes on as it is, not inside a group.
            kind = error = traceback = None
        try:
            return await self._stack.__aexit__(kind, error, traceback)
        except BaseExceptionGroup as group:
            if (failure := disk_failure(group)) is not None:
                raise failure from None
            raise
        finally:
            self._has_ended = True
            for event in (self.activity.over, self._stopping):
                _wake(event)

    async def wait_done(self) -> None:
        """Return when the swarm is quiescent: nothing is left to fetch anywhere, and no page will be due again.

        Raises StorageError if the peer ends before that.
        """
        await self._until(self.activity.over)

    async def wait_stopped(self) -> None:
        """Return when a person asked this peer to stop or leave, or when an exit on completion is due.

        Raises StorageError if the peer ends before that.
        """
        await self._until(self._stopping)

    def stop(self) -> None:
        """Let `wait_stopped` return. The caller of that then calls `finish` and closes."""
        self._stopping.set()

    def leave_soon(self) -> None:
        """Stop, and hand over pending URLs in `finish`."""
        self.stop()

    def figures(self) -> "PeerStatus":
        """Return the figures of this peer. Call it after the peer has begun."""
        from kadcrawl.peer.crawl_status import PeerStatus  # Not at the top: most leaves are never asked.

        return PeerStatus.of(self.row())

    def row(self) -> PeerRow:
        """Describe this peer."""
        raise NotImplementedError

    def warning(self) -> str | None:
        """Return a sentence that the person at this peer should read now, or None."""
        components = self._built()
        if components is None:
            return None
        warning = components.refused.take() or components.reach.health.take_warning()
        return warning or self.resources.store.journal.lost_files.take()

    # --- resources -------------------------------------------------------------------------------------------------

    @property
    def resources(self) -> Resources:
        """The parts that are open from entry to exit."""
        assert self._resources is not None, "enter the peer first: async with Peer(...) as peer"
        return self._resources

    @property
    def known(self) -> KnownPeers:
        """The contacts by which this peer finds its swarm again."""
        assert self._known is not None, "enter the peer first: async with Peer(...) as peer"
        return self._known

    @property
    def store(self) -> Store:
        """The journal."""
        return self.resources.store

    @property
    def client(self) -> LinkClient:
        """The asking end of the link."""
        return self.resources.client

    @property
    def clock(self) -> Clock:
        """The clock of all due times."""
        return self.resources.clock

    @property
    def activity(self) -> Activity:
        """The activity that quiescence is judged by."""
        return self.resources.activity

    @property
    def counters(self) -> Counters:
        """The counters of all runs in this directory."""
        return self.resources.counters

    @property
    def deliveries(self) -> Deliveries:
        """The sinks."""
        return self.resources.deliveries

    @property
    def peer_score(self) -> PeerScore:
        """The misbehavior of other peers."""
        return self.resources.peer_score

    @property
    def key_rotation(self) -> KeyRotation | None:
        """The keys of this peer, or None in a swarm without a key."""
        return self.resources.key_rotation

    @property
    def credentials(self) -> Credentials | None:
        """The certificates of this peer, or None in a swarm without a key."""
        return self.resources.credentials

    @property
    def journaled_job(self) -> Job | None:
        """The job of an earlier run in this directory."""
        return self.resources.jobs.journaled()

    @property
    def listens_at(self) -> tuple[str, int] | None:
        """The address (host, port) at which others ask this peer, or None for a leaf."""
        return None

    @property
    def id(self) -> str:
        """The ID of the peer, 20 bytes in hex. It is final once the peer has begun, and empty before it is entered."""
        return self._monitored().peer_id().hex() if self._known is not None else ""

    @property
    def short_id(self) -> str:
        """The first eight digits of the peer's ID, as logs and the status show it. Empty before the peer is entered."""
        return self.id[:8]

    @property
    def metrics_address(self) -> tuple[str, int] | None:
        """The address (host, port) of the metrics, or None without `Config.metrics`."""
        return self._metrics.address if self._metrics is not None else None

    async def open_dashboard(self) -> tuple[str, int]:
        """Open the dashboard on loopback, unless it is open, and return its address. Raises StartError."""
        self._refuse_if_ended()
        async with self._opening:
            if self._dashboard is None:
                await self._open_dashboard(("127.0.0.1", WEB_PORT_DEFAULT), self._stack)
        assert self._dashboard is not None, "it was opened"
        return self._dashboard.address

    @property
    def web_address(self) -> tuple[str, int] | None:
        """The address (host, port) of the dashboard, or None while there is none."""
        return self._dashboard.address if self._dashboard is not None else None

    @property
    def ended(self) -> bool:
        """True if the swarm was quiescent when last heard of, and nothing has moved here since."""
        return self.activity.over.is_set()

    @property
    def limit_reached(self) -> CrawlLimit:
        """The limit of the whole crawl that is reached, such as `time`, or an empty text."""
        components = self._built()
        return components.crawl_limits.reached if components is not None else ""

    # --- inside ----------------------------------------------------------------------------------------------------

    def _refuse_if_ended(self) -> None:
        """Raise StorageError if the context was left."""
        if self._has_ended:
            raise StorageError(f"the peer of {self.config.data} has ended: enter another Peer for that directory")

    async def _until(self, event: Event) -> None:
        """Return once the event is set. Raises StorageError if the peer ends before that."""
        if not self._has_ended:
            await event.wait()
        if not event.is_set():
            self._refuse_if_ended()

    async def _open(self, stack: AsyncExitStack) -> KnownPeers:
        """Open the parts of this kind of peer, and return the contacts it knows."""
        raise NotImplementedError

    def _built(self) -> CrawlComponents | None:
        """Return the parts of the crawl, or None until the job is known."""
        raise NotImplementedError

    def _monitored(self) -> MonitoredPeer:
        """Return this kind of peer as its monitoring sees it."""
        raise NotImplementedError

    async def _monitor(self, address: tuple[str, int], stack: AsyncExitStack) -> None:
        """Answer requests for metrics at an address. Raises StartError."""
        # Not at the top: a peer without metrics does without these libraries.
        from kadcrawl.peer.monitoring.listener import MetricsListener

        self._metrics = MetricsListener(self._monitored(), address)
        stack.push_async_callback(self._metrics.close)
        await self._metrics.open()

    def _swarm_access(self) -> "SwarmAccess":
        """Return the ways by which this kind of peer asks its swarm and tells it orders."""
        raise NotImplementedError

    async def _open_dashboard(self, address: tuple[str, int], stack: AsyncExitStack) -> None:
        """Open the dashboard at an address, unless it is open. Raises StartError."""
        # Not at the top: a peer without a dashboard does without these rooms.
        from kadcrawl.peer.dashboard.source import dashboard_source
        from kadcrawl.web.listener import DashboardListener

        source = dashboard_source(self._monitored(), self._swarm_access())
        dashboard = DashboardListener(source, address, control=self.config.web_control)
        await dashboard.open()
        stack.push_async_callback(dashboard.close)
        self._dashboard = dashboard

    @property
    def _messages(self) -> int:
        """Messages sent in this run."""
        return self.client.asked

    async def _prepare(self, job: Job, given: Job | None = None) -> None:
        """Start the extraction of this job's records from pages, and import its login hooks.

        `given` is the job this peer was made with.

        Raises StartError if the job needs a secret or a contact that is missing, and if the job names a hook that was
        not allowed here, or that is not installed. Any member of a
        swarm may name any function of any module, so only the person who runs this machine allows hooks.
        """
        allowed = {*self.config.hooks, *(given.hooks if given is not None else ())}
        if strange := sorted(job.hooks - allowed):
            options = " ".join(f"--hook {hook}" for hook in strange)
            raise StartError(
                f"the job of this swarm calls {', '.join(strange)} on every peer, and here nobody allowed that; "
                f"if you know what it does, join with {options}"
            )
        try:
            if self.memory is not None and self._keeps_history:
                self.memory.check_history(job)
            check_contact(job.sites, job.contact)
            check_secrets(job.sites, self.config.secrets)
            is_private = self.config.swarm_key is not None or self.environment.trusted_network
            check_key(job.sites, has_key=is_private)
            for rule in job.sites:
                if rule.client_certificate:
                    tls_of(rule, job.ca_pem, self.config.secrets)
        except ConfigError as error:
            raise StartError(f"this peer cannot work for the job: {error}") from None
        if ignored := robots_ignored(job.sites):
            log.warning("job.robots_ignored hosts=%s", ",".join(ignored))
        if hosts := unverified(job.sites):
            log.warning("job.tls_unverified hosts=%s", ",".join(hosts))
        limits = limits_with(self.config.limits, job.shared_limits)
        await check_login_hooks(login_hooks(job.sites), limits)
        if job.records:
            self._extraction = self.environment.extraction(job.records, limits)
            await self._extraction.start()

    def _run(self, work: Coroutine[Any, Any, None], name: str) -> asyncio.Task[None]:
        task = self._group.create_task(work, name=name)
        self._tasks.append(task)
        return task

    async def _shut(self) -> None:
        """End the background tasks, commit their work, and close the parts they used."""
        log.info("link.ends asked=%d dialed=%d", self.client.asked, self.client.dialed)
        components = self._built()
        async with AsyncExitStack() as closing:  # A cancellation meanwhile leaves none of them out. The last is first.
            if components is not None:
                closing.callback(components.outputs.close)
            if self._deliverer is not None:
                closing.callback(self._deliverer.cancel)
            closing.callback(self._committer.cancel)
            closing.push_async_exit(self._commit_last)
            if self._extraction is not None:
                closing.push_async_callback(self._extraction.close)
            if components is not None:
                closing.push_async_callback(components.reach.proof.close)
                closing.push_async_callback(components.fetcher.close)
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _commit_last(self, kind: type[BaseException] | None, *_: object) -> None:
        """Commit, and give the sinks time unless a failure or a cancellation (`kind`) ends the peer."""
        await self.store.journal.commit()
        if self._deliverer is not None and kind is None and not self._broken_off:
            await self.deliveries.finish()

    def _flush(self) -> list[int]:
        """Journal the counters before each commit, and return the file descriptors of the outputs."""
        self.counters.peer_messages = self._messages_before + self._messages
        self.store.meta.set("totals", self.counters.to_bytes())
        self.store.saved_time.save(self.clock.now())
        self.known.keep()
        components = self._built()
        if components is None:
            return []
        keep_time(components.crawl_limits, self.store.meta, self.clock.now())
        return components.outputs.flush()


def _wake(event: Event) -> None:
    """Let the tasks that wait for an event look around. The event is as it was."""
    if not event.is_set():
        event.set()
        event.clear()


def disk_failure(group: BaseExceptionGroup[BaseException]) -> StorageError | None:
    """Return the first failure of the disk among the exceptions that ended a peer."""
    for error in group.exceptions:
        found = disk_failure(error) if isinstance(error, BaseExceptionGroup) else error
        if isinstance(found, StorageError):
            return found
    return None
