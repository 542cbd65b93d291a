"""One peer of a local crawl as the parent sees it: started, talked to, waited for, and mourned.

The peer may be a process of its own (child_process.py) or run in the process of the parent (child_task.py). It is
started anew by the same object, so that what it did stays with it.

Tests: tests/cli/local/test_supervisor.py, tests/cli/test_command_local.py
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Protocol

import msgspec

from kadcrawl.cli.local.protocol import Assignment, Doing, DoingSites, Final, Go, Going, Ready, Report, Unable
from kadcrawl.cli.machine import MachineSettings
from kadcrawl.cli.view.live.sites import SiteReport
from kadcrawl.errors import StartError
from kadcrawl.link.wire.messages import PeerRow
from kadcrawl.link.wire.order_messages import StandingOrder
from kadcrawl.link.wire.peer_state import PeerState
from kadcrawl.members.swarm_key import SwarmKey
from kadcrawl.settings.job import Job
from kadcrawl.system.mailbox import Mailbox

RESTARTS_MAX = 3
"""Limit on the restarts of one peer within `RESTARTS_OVER_S`."""
RESTARTS_OVER_S = 3600.0
"""A peer that dies more often within this time has a reason that starting it again does not cure."""


class RunningPeer(Protocol):
    """A peer that has been started, until it has ended."""

    @property
    def is_running(self) -> bool:
        """False once the peer is known to have ended."""

    def say(self, order: Go) -> None:
        """Send an order. To a peer that ends it is lost, which the end of the reports tells."""

    def end_orders(self) -> None:
        """Say no more, so that the peer finishes its work under way and ends."""

    async def next_report(self) -> Report | None:
        """Return the next report, or None when there will be no more. The reader must not make the peer wait."""

    async def wait(self) -> int:
        """Return the exit status once the peer has ended."""

    def kill(self) -> None:
        """End the peer at once, if it runs."""


Launch = Callable[[Assignment], Awaitable[RunningPeer]]


class Child:
    """One peer, and its successor if it dies."""

    def __init__(self, number: int, directory: Path, launch: Launch, log: Path, last: int) -> None:
        """`launch` starts the peer, `log` is the file of its log, and `last` the number of the last peer."""
        self._launch = launch
        self._log = log
        self.number = number
        self._title = f"peer {number} of {last}"
        self.name = f"peer-{number}"
        self.directory = directory
        self.address: tuple[str, int] | None = None
        """The address where the peer listens, once it is ready."""
        self.pages_begun = 0
        """Fetches of --max-pages that the peer had used when it was started."""
        self.row: PeerRow | None = None
        """The peer's latest report of its figures."""
        self.sites = SiteReport()
        """The peer's latest report of its sites."""
        self.ended = False
        """True once the peer reported that it ends as asked."""
        self.is_stopped = False
        """True once the peer reported that it was told to stop before the swarm was done."""
        self.orders: Sequence[StandingOrder] = ()
        """The standing orders that the peer knew when it ended as asked, lifted ones included."""
        self.why: str | None = None
        """The reason that the peer gave before it ended, if it could not go on."""
        self.warning: str | None = None
        """The latest warning for a person."""
        self.deaths: list[float] = []
        """Loop seconds of the latest."""
        self.dead = False
        """True if the peer has died and is not running again."""
        self.exit_status: int | None = None
        """The exit status of the peer whose end `wait` has seen."""
        self._running: RunningPeer | None = None
        self._is_to_finish = False
        """The peer is to end, also if it is still to be started."""
        self._answers: Mailbox[Report | None] = Mailbox()
        self._reading: asyncio.Task[None] | None = None

    @property
    def was_started(self) -> bool:
        """True if the peer runs or has run."""
        return self._running is not None

    @property
    def alive(self) -> bool:
        """True if the peer is ready and has neither ended nor died, as far as is known."""
        running = self._running is not None and self._running.is_running
        return running and self.address is not None and not self.ended

    @property
    def ended_with_all(self) -> bool:
        """True if the peer has ended because all peers do: the crawl is done, or was told to stop."""
        return self.ended and self.row is not None and self.row.state is not PeerState.LEAVING

    async def start(
        self,
        job: Job,
        allow_networks: tuple[str, ...],
        bootstrap: Sequence[tuple[str, int]],
        machine: MachineSettings,
        swarm_key: SwarmKey | None,
        sites_interval_s: float,
    ) -> None:
        """Start the peer and wait until it is ready. Raises StartError with its own reason if it cannot start."""
        self.address, self.dead = None, False
        key = swarm_key.text if swarm_key is not None else None
        directory = str(self.directory)
        self._running = await self._launch(
            Assignment(directory, job, allow_networks, list(bootstrap), machine, key, sites_interval_s, self._title)
        )
        if self._is_to_finish:
            self._running.end_orders()
        self._answers = Mailbox()
        self._reading = asyncio.create_task(self._read(self._running, self._answers), name=f"read {self.name}")
        try:
            report = await _next(self._answers)
        except StartError:
            await self.close()  # So that its directory is free.
            raise
        if not isinstance(report, Ready):
            raise StartError(f"{self.name} ended before it was ready; see {self._log}")
        self.address, self.pages_begun = report.address, report.pages_begun

    async def go(self, seeds: Sequence[str], *, resume: bool = True, named_again: Sequence[str] = ()) -> int:
        """Hand over the seeds and let the swarm fetch, if `resume`. Raises StartError if that cannot be done.

        Returns how many of the seeds in `named_again` failed before and are fetched again.
        """
        self._say(Go(list(seeds), resume, list(named_again)))
        while not isinstance(report := await _next(self._answers), Going | Final):
            if report is None:
                raise StartError(f"{self.name} died at the start (log {self._log})")
        return report.again if isinstance(report, Going) else 0

    async def wait(self) -> bool:
        """Wait until the peer ends, and return whether it ended as asked."""
        assert self._running is not None, "started before waited for"
        assert self._reading is not None, "a started peer is read from"
        # Of this peer, even if the next one is started before we notice the end.
        running, answers, reading = self._running, self._answers, self._reading
        await reading
        self.exit_status = await running.wait()
        self.why = None
        while (report := await answers.get()) is not None:
            if isinstance(report, Unable):
                self.why = report.why
        answers.put(None)
        return self.ended

    def died(self, now: float) -> None:
        """Note that the peer has ended, and not as asked."""
        self.dead, self.sites = True, SiteReport()
        self.deaths = [death for death in self.deaths if death > now - RESTARTS_OVER_S] + [now]
        if self.row is not None:
            self.row = msgspec.structs.replace(self.row, state=PeerState.DIED, pending=0, in_flight=0)

    @property
    def may_be_started(self) -> bool:
        """True if the peer has not died too often lately."""
        return len(self.deaths) <= RESTARTS_MAX

    @property
    def exit_report(self) -> str:
        """Return a sentence about the peer's death."""
        why = f": {self.why}" if self.why else ""
        return f"{self.name} died (exit status {self.exit_status}, log {self._log}){why}"

    def finish(self) -> None:
        """Ask the peer to finish its work under way and to end, or to end as soon as it is started."""
        self._is_to_finish = True
        if self._running is not None:
            self._running.end_orders()

    def kill(self) -> None:
        """Kill the peer if it still runs."""
        if self._running is not None:
            self._running.kill()

    async def close(self) -> None:
        """Kill the peer if it still runs, and see it end."""
        if self._running is not None and self._reading is not None:
            self.kill()
            await self._running.wait()
            await self._reading

    def _say(self, order: Go) -> None:
        assert self._running is not None, "started before talked to"
        self._running.say(order)

    async def _read(self, running: RunningPeer, answers: Mailbox[Report | None]) -> None:
        """Read the peer's reports without pause, as the peer must not wait for its parent. The answers end with
        None."""
        try:
            while (report := await running.next_report()) is not None:
                if isinstance(report, Doing | Final):
                    self.row = report.row
                if isinstance(report, Doing) and report.warning is not None:
                    self.warning = report.warning
                if isinstance(report, DoingSites | Final):
                    self.sites = report.sites if isinstance(report, DoingSites) else SiteReport()
                if isinstance(report, Ready):
                    self.address = report.address  # It may have moved, if it was away for want of room on the disk.
                if not isinstance(report, Doing | DoingSites):
                    if isinstance(report, Final):
                        self.ended, self.is_stopped, self.orders = True, report.is_stopped, report.orders
                    answers.put(report)
        finally:
            answers.put(None)


async def _next(answers: Mailbox[Report | None]) -> Report | None:
    """Return the next answer, None when the peer is ending. Raises StartError if it is Unable."""
    report = await answers.get()
    if report is None:
        answers.put(None)  # For whoever asks next.
    if isinstance(report, Unable):
        raise StartError(report.why)
    return report
