"""`SharedProcess`: what many peers of one process share, so that hundreds of them fit into it.

They talk without sockets (link/process_links.py), ask one resolver, take records out of pages by as many worker
processes as the machine has processors, and measure the machine once. Everything else a peer has to itself.

Tests: tests/peer/test_shared_process.py
"""

import asyncio
import os
import socket
from collections.abc import Callable, Mapping
from pathlib import Path
from random import Random
from threading import Lock

from aiohttp.abc import AbstractResolver, ResolveResult

from kadcrawl.balance.machine_profile import MachineProfile
from kadcrawl.crawl.content.page import Page
from kadcrawl.crawl.content.record_extractor import ExtractedRecords, Extraction, WorkerExtraction
from kadcrawl.crawl.fetch.late_resolver import LateResolver
from kadcrawl.lending.throughput_learning import MeasureMachine, measured_here
from kadcrawl.link.process_links import ProcessLinks
from kadcrawl.overlay import OverlaySettings
from kadcrawl.peer.environment import Environment
from kadcrawl.settings.limits import Limits
from kadcrawl.settings.page_rules import RecordRule
from kadcrawl.store.journal import SMALL_PAGE_BYTES


class SharedProcess:
    """The shared parts of the peers of one process and one event loop."""

    def __init__(self, overlay: OverlaySettings | None = None, workers: int | None = None) -> None:
        """`overlay` is the timing of the overlay, and `workers` the number of processes that take records out of
        pages, by default one for each processor."""
        self._overlay = overlay
        self._workers = workers or os.cpu_count() or 1
        self._links = ProcessLinks()
        self._random = Random(os.urandom(32))
        """The source of all chance, whose state takes 2.5 kB."""
        self._resolving = _Resolving(LateResolver)
        self._extracting: dict[tuple[tuple[RecordRule, ...], Limits], _SharedExtraction] = {}
        self._measure = _MeasuredOnce(measured_here)

    def environment(self) -> Environment:
        """Return the world of one more peer of this process."""
        return Environment(
            random=self._random,
            overlay=self._overlay,
            journal_page_bytes=SMALL_PAGE_BYTES,
            resolver=lambda: _OneUserOfResolver(self._resolving),
            extraction=self._extraction,
            machine_profile=self._measure,
            process_links=self._links,
        )

    def _extraction(self, rules: tuple[RecordRule, ...], limits: Limits) -> Extraction:
        known = (rules, limits)
        if known not in self._extracting:
            self._extracting[known] = _SharedExtraction([WorkerExtraction(rules, limits) for _ in range(self._workers)])
        return _OneUserOfExtraction(self._extracting[known])


class _Resolving:
    """One resolver, open while any peer uses it."""

    def __init__(self, make: Callable[[], AbstractResolver]) -> None:
        self._make = make
        self._resolver: AbstractResolver | None = None
        self._users = 0

    def enter(self) -> AbstractResolver:
        if self._resolver is None:
            self._resolver = self._make()
        self._users += 1
        return self._resolver

    async def leave(self) -> None:
        self._users -= 1
        if self._users == 0 and self._resolver is not None:
            resolver, self._resolver = self._resolver, None
            await resolver.close()


class _OneUserOfResolver(AbstractResolver):
    """The shared resolver, for one fetcher."""

    def __init__(self, shared: _Resolving) -> None:
        self._shared = shared
        self._resolver: AbstractResolver | None = shared.enter()

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        if self._resolver is None:
            raise OSError("the resolver is closed")
        return await self._resolver.resolve(host, port, family)

    async def close(self) -> None:
        if self._resolver is not None:
            self._resolver = None
            await self._shared.leave()


class _SharedExtraction:
    """A few workers for all peers with these rules."""

    def __init__(self, workers: list[WorkerExtraction]) -> None:
        self._workers = workers
        self._free: asyncio.LifoQueue[WorkerExtraction] = asyncio.LifoQueue()
        for worker in reversed(workers):
            self._free.put_nowait(worker)
        self._starting = asyncio.Lock()
        self._users = 0

    async def start(self) -> None:
        """Start the first worker, which finds out whether the hooks are there. Raises StartError."""
        async with self._starting:
            if not self._users:
                await self._workers[0].start()
            self._users += 1

    async def extract(self, rule: int, page: Page) -> ExtractedRecords:
        worker = await self._free.get()  # The one that was used last, so that no more are started than are needed.
        try:
            return await worker.extract(rule, page)
        finally:
            self._free.put_nowait(worker)

    async def close(self) -> None:
        async with self._starting:
            self._users -= 1
            if not self._users:
                for worker in self._workers:
                    await worker.close()


class _OneUserOfExtraction:
    """The shared workers, for one peer."""

    def __init__(self, shared: _SharedExtraction) -> None:
        self._shared = shared
        self._started = False

    async def start(self) -> None:
        await self._shared.start()
        self._started = True

    async def extract(self, rule: int, page: Page) -> ExtractedRecords:
        return await self._shared.extract(rule, page)

    async def close(self) -> None:
        if self._started:
            self._started = False
            await self._shared.close()


class _MeasuredOnce:
    """Measures the machine for the first peer that asks. The others would measure each other's measurements."""

    def __init__(self, measure: MeasureMachine) -> None:
        self._measure = measure
        self._lock = Lock()
        self._found: dict[tuple[tuple[str, float], ...], MachineProfile] = {}

    def __call__(self, directory: Path, declared: Mapping[str, float]) -> MachineProfile:
        known = tuple(sorted(declared.items()))
        with self._lock:
            if known not in self._found:
                self._found[known] = self._measure(directory, declared)
            return self._found[known]
