"""`Member`: what a full peer and a leaf share: a directory with its journal, connections, and one TaskGroup.

Tests: tests/peer/test_peer.py, tests/peer/test_disk_full.py
"""

import asyncio
import logging
import os
from collections.abc import Coroutine
from contextlib import AsyncExitStack
from random import Random
from types import TracebackType
from typing import Any, Self

from kadcrawl.crawl.build import CrawlComponents
from kadcrawl.crawl.content.record_extractor import Extraction
from kadcrawl.crawl.output.counters import Counters
from kadcrawl.errors import StartError, StorageError
from kadcrawl.link.client import LinkClient
from kadcrawl.link.peer_score import PeerScore
from kadcrawl.overlay.waves.activity import Activity
from kadcrawl.peer.directory import Directory
from kadcrawl.peer.environment import Environment
from kadcrawl.peer.job_store import JobRecord
from kadcrawl.peer.membership.key_rotation import key_rotation
from kadcrawl.peer.membership.known_peers import KnownPeers
from kadcrawl.settings.config import Config, Job
from kadcrawl.settings.page_rules import PageRules
from kadcrawl.sinks.deliveries import Deliveries
from kadcrawl.store.store import Store
from kadcrawl.system.clock import Clock
from kadcrawl.system.daemon_threads import DaemonThreadExecutor

log = logging.getLogger(__name__)


class PeerBase:
    """One member of a swarm, as a context manager. All methods belong to the loop it was entered on."""

    known: KnownPeers
    """Set by `_open`."""

    def __init__(self, config: Config, environment: Environment | None) -> None:
        self.config = config
        self.environment = environment or Environment()
        self.random = self.environment.random or Random(os.urandom(32))
        self.activity = Activity()
        self._stopping = asyncio.Event()
        self._stack = AsyncExitStack()
        self._tasks: list[asyncio.Task[Any]] = []
        self._deliverer: asyncio.Task[None] | None = None
        self._broken_off = False
        self._components: CrawlComponents | None = None
        self._extraction: Extraction | None = None

    async def __aenter__(self) -> Self:
        """Lock the directory, open the journal and the connections. Raises StartError, and ConfigError for a sink."""
        async with AsyncExitStack() as stack:
            now = asyncio.get_running_loop().time
            self.deliveries = Deliveries(self.config.data, self.config.sinks, DaemonThreadExecutor(), now)
            stack.callback(Directory(self.config.data).close)
            self.poison_pages = self.environment.poison_pages(self.config.data)
            stack.callback(self.poison_pages.close)
            self.store = Store(self.config.data, self.config.limits.commit_spacing_s, self.environment.sync)
            stack.callback(self.store.close)
            self._jobs = JobRecord(self.store)
            self.clock = Clock(asyncio.get_running_loop(), self.environment.wall)
            self.started_at = self.clock.now()
            self.store.saved_time.restore(self.started_at)
            self.counters = Counters.from_bytes(self.store.meta.get("totals"))
            self._messages_before = self.counters.peer_messages
            self.key_rotation = key_rotation(self.config, self.store, self.clock)
            self.credentials = None
            if self.key_rotation is not None:
                self.credentials = self.key_rotation.credentials
                await self.store.journal.commit()
            self.peer_score = PeerScore()
            self.client = LinkClient(self.config.limits.message_bytes_max, self.credentials, self.peer_score)
            await self.client.open()
            stack.push_async_callback(self.client.close)
            await self._open(stack)
            self._group = await stack.enter_async_context(asyncio.TaskGroup())
            stack.push_async_callback(self._shut)
            self.store.journal.before_commit(self._flush)
            self._committer = self._group.create_task(self.store.journal.run(), name="commit")
            if self.config.sinks:
                self._deliverer = self._group.create_task(self.deliveries.run(), name="sinks")
            self._stack = stack.pop_all()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> bool | None:
        """Commit and close, without handing anything over; say so first (`leave`, `finish`). Raises StorageError.

        Unless it ends by an exception, the sinks are given time for what they lack.
        """
        self._broken_off = kind is not None
        if not isinstance(error, asyncio.CancelledError):
            # The caller's own exception goes on as it is, not inside a group.
            kind = error = traceback = None
        try:
            return await self._stack.__aexit__(kind, error, traceback)
        except BaseExceptionGroup as group:
            if (failure := disk_failure(group)) is not None:
                raise failure from None
            raise

    async def wait_done(self) -> None:
        """Return when the swarm is quiescent: nothing is left to do anywhere, and no page will be due again."""
        await self.activity.over.wait()

    async def wait_stopped(self) -> None:
        """Return when somebody has asked it to stop or leave, or it is to exit when done and all is done."""
        await self._stopping.wait()

    def stop(self) -> None:
        """Let `wait_stopped` return; its caller then calls `finish` and closes."""
        self._stopping.set()

    def leave_soon(self) -> None:
        """As `stop`, but what it holds is to be handed over."""
        self.stop()

    def warning(self) -> str | None:
        """Return what whoever runs it should know and was not told yet, as a sentence; None if there is nothing."""
        return self._components.refused.take() if self._components is not None else None

    @property
    def journaled_job(self) -> Job | None:
        """What an earlier run in this directory crawled."""
        return self._jobs.journaled()

    @property
    def listens_at(self) -> tuple[str, int] | None:
        """The address (host, port) at which others ask it; None if it listens on nothing."""
        return None

    @property
    def ended(self) -> bool:
        """The swarm was quiescent when last heard of, and there has been nothing to do here since."""
        return self.activity.over.is_set()

    # --- inside --------------------------------------------------------------------------------------------------

    async def _open(self, stack: AsyncExitStack) -> None:
        """Open what this kind of member has besides."""
        raise NotImplementedError

    @property
    def _messages(self) -> int:
        """Messages sent in this run."""
        return self.client.asked

    async def _prepare(self, job: Job, given: Job | None = None) -> None:
        """Get ready to take the records of this job out of pages; `given` is the job this peer was made with.

        Raises StartError if the job asks for a hook that nobody here allowed, or that is not here. Whoever can speak to
        a swarm may name any function of any module; only who runs this machine says which of them is called.
        """
        allowed = {*self.config.hooks, *(PageRules(records=given.records).hooks if given is not None else ())}
        if strange := sorted(PageRules(records=job.records).hooks - allowed):
            options = " ".join(f"--hook {hook}" for hook in strange)
            raise StartError(
                f"the job of this swarm calls {', '.join(strange)} on every peer, and here nobody allowed that; "
                f"if you know what it does, join with {options}"
            )
        if job.records:
            self._extraction = self.environment.extraction(job.records, self.config.limits)
            await self._extraction.start()

    def _run(self, work: Coroutine[Any, Any, None], name: str) -> asyncio.Task[None]:
        task = self._group.create_task(work, name=name)
        self._tasks.append(task)
        return task

    async def _shut(self) -> None:
        """End the background tasks, commit what they have done, and close what they used."""
        log.info("link.ends asked=%d dialed=%d", self.client.asked, self.client.dialed)
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._components is not None:
            await self._components.fetcher.close()
        if self._extraction is not None:
            await self._extraction.close()
        try:
            await self.store.journal.commit()
            if self._deliverer is not None and not self._broken_off:
                await self.deliveries.finish()
        finally:
            self._committer.cancel()
            if self._deliverer is not None:
                self._deliverer.cancel()
            if self._components is not None:
                self._components.outputs.close()

    def _flush(self) -> list[int]:
        """Before each commit: journal the counters and hand the outputs to the system."""
        self.counters.peer_messages = self._messages_before + self._messages
        self.store.meta.set("totals", self.counters.to_bytes())
        self.store.saved_time.save(self.clock.now())
        self.known.keep()
        return self._components.outputs.flush() if self._components is not None else []


def disk_failure(group: BaseExceptionGroup[BaseException]) -> StorageError | None:
    """Return the first failure of the disk among those that ended a peer."""
    for error in group.exceptions:
        found = disk_failure(error) if isinstance(error, BaseExceptionGroup) else error
        if isinstance(found, StorageError):
            return found
    return None
