"""The life of one peer of a local crawl: it carries out the orders of its parent, and reports how it does.

The ends of the conversation are arguments: the peer may be in a process of its own (child_main.py) or in the process of
its parent (child_task.py). protocol.py defines the messages. When the orders end, the parent is gone or wants an end,
and the peer finishes. A peer with a full disk ends, but its life waits for room and enters the peer again.

Tests: tests/cli/local/test_peer_life.py, tests/cli/test_command_disk_full.py
"""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Protocol

import msgspec

from kadcrawl.cli.local.protocol import Assignment, Doing, DoingSites, Final, Go, Going, Ready, Report, Unable
from kadcrawl.cli.own_peers import note_peer
from kadcrawl.cli.run import first_of
from kadcrawl.cli.view.live.sites import report_sites
from kadcrawl.crawl.disk_guard import Pauses
from kadcrawl.errors import DiskFullError, KadcrawlError, StartError
from kadcrawl.link.wire.messages import BATCH_MAX, PeerRow
from kadcrawl.link.wire.peer_state import PeerState
from kadcrawl.members.swarm_key import SwarmKey
from kadcrawl.overlay import OverlaySettings
from kadcrawl.peer import Peer
from kadcrawl.peer.environment import Environment
from kadcrawl.peer.rejoin import come_back
from kadcrawl.settings.config import Config
from kadcrawl.system.event import Event

log = logging.getLogger(__name__)

REPORT_INTERVAL_S = 0.5
WARNING_BYTES_MAX = 1_000
"""Limit on the bytes of a warning: a report has room for 4,096 bytes, which a pipe takes at once."""
KNOWN_CELLS_WAIT_S = 15.0
"""Seconds for which a restarted swarm waits for the pages that a peer knows to be done. Later they may be fetched
again."""
LOCAL = OverlaySettings(resend_s=0.5, timeout_s=2.0, misses_suspect=3, misses_evict=4)
"""Liveness on one machine. The parent notices dead peers, and a busy machine must not look like a death."""


class Orders(Protocol):
    """The parent's orders after the assignment. An order stays the next order until it has been carried out."""

    obeyed: bool
    """An order has been carried out."""

    @property
    def ended(self) -> bool:
        """The parent will say no more."""

    async def next(self) -> Go | None:
        """Return the next order, or None once there will be no more."""

    def carried_out(self) -> None:
        """The next order is done with."""


class Reports(Protocol):
    """The way of a peer's reports to its parent."""

    def send(self, report: Report) -> None:
        """Send a report, however long it has to wait for a parent that does not read."""

    def send_if_room(self, report: Report) -> bool:
        """Send a report unless it would have to wait, and return whether it was sent. The next report will do then."""


class PeerLife:
    """One peer from its assignment to its end."""

    def __init__(
        self,
        assignment: Assignment,
        world: Environment,
        orders: Orders,
        reports: Reports,
        interrupted: Event,
        opened: Callable[[Peer], None] = lambda peer: None,
        interval_s: float | None = None,
    ) -> None:
        """`opened` is called once, with the peer, when its directory is there and the peer has it to itself.

        `interval_s` is the time between two reports of the figures.
        """
        self._assignment = assignment
        self._world = world
        self._orders = orders
        self._reports = reports
        self._interrupted = interrupted
        self._opened = opened
        self._interval_s = REPORT_INTERVAL_S if interval_s is None else interval_s

    async def run(self) -> None:
        """Run the peer to its end. Raises KadcrawlError."""
        assignment = self._assignment
        networks = assignment.allow_networks
        config = Config(data=Path(assignment.data), port=0, allow_networks=networks, exit_when_done=True)
        if assignment.swarm_key is not None:
            config = replace(config, swarm_key=SwarmKey.from_text(assignment.swarm_key))
        config = assignment.machine.config(config)
        pauses = Pauses(config, self._world.free_bytes)
        while True:
            peer = Peer(config, assignment.job, self._world)
            try:
                await self.one_life(peer, bool(pauses.count))
                return
            except DiskFullError as error:
                log.error("peer.ended why=%s", error)
            except StartError:
                if not pauses.count or pauses.has_room:
                    raise
            waiting = self._tell_waiting(peer.row() if peer.begun else None)
            await first_of(pauses.wait(), self._interrupted.wait(), waiting)
            if self._interrupted.is_set() or self._orders.ended:
                return  # All that was promised is on the disk.

    async def one_life(self, peer: Peer, returning: bool) -> None:
        """Run the peer until it has ended as asked."""
        assignment, orders = self._assignment, self._orders
        async with peer:
            if not returning:
                self._opened(peer)
            if not await self._entered(peer, returning):
                return  # As nothing was promised yet. Those that it wants to join may be gone already.
            note_peer(peer.contact.address, peer.config.data)
            self._reports.send(Ready(peer.contact.address, peer.row().begun))
            sites_told = self.tell_sites(peer, assignment.sites_interval_s)
            is_over = False

            async def stopped() -> None:
                nonlocal is_over
                await peer.wait_stopped()
                # At once: while the peer ends, it may meet a peer that it missed, and that reopens the question.
                is_over = not peer.swarm_has_work

            await first_of(stopped(), self._interrupted.wait(), self._obey(peer), self._tell(peer), sites_told)
            await peer.finish()
            is_stopped = peer.swarm_has_work and not (is_over or peer.leaving or orders.ended)
            standing = peer.runtime.standing_orders.to_wire()
            self._reports.send(Final(peer.row(), is_stopped=is_stopped, orders=standing))

    async def _entered(self, peer: Peer, returning: bool) -> bool:
        """Enter the swarm, and return whether that was done before an end was wanted."""
        bootstrap, has_entered = self._assignment.bootstrap, False

        async def enter() -> None:
            nonlocal has_entered
            if returning and (bootstrap or self._orders.obeyed):
                await come_back(peer, briefly_away=True)
            elif bootstrap:
                # All below one directory are of one crawl, whatever became of its key.
                await peer.join(bootstrap, rekeyed=True)
                await _settle(peer)
            else:
                await peer.begin(paused=True)
            has_entered = True

        await first_of(enter(), self._interrupted.wait(), self._no_more_orders())
        return has_entered

    async def _no_more_orders(self) -> None:
        """Return once there will be no more orders. The next order, if there is one, stays the next."""
        if await self._orders.next() is not None:
            await Event().wait()

    async def tell_sites(self, peer: Peer, interval_s: float) -> None:
        """Report the largest and slowest sites now and then."""
        while True:
            await asyncio.sleep(interval_s)
            parts = peer.components
            figures = parts.frontier.figures(peer.clock.now())
            report = report_sites(figures, peer.job.partition, parts.site_settings.delay_s)
            while not self._reports.send_if_room(DoingSites(report)) and report.lines:
                report = msgspec.structs.replace(report, lines=report.lines[: len(report.lines) // 2])

    async def _obey(self, peer: Peer) -> None:
        """Carry out the parent's orders, until no more come."""
        while (order := await self._orders.next()) is not None:
            try:
                for start in range(0, len(order.seeds), BATCH_MAX):
                    await peer.crawl(order.seeds[start : start + BATCH_MAX])
                again = await peer.fetch_again(order.named_again, only_failed=True) if order.named_again else 0
                await _settle(peer)
                if order.resume:
                    await peer.state_gossip.order("resume")
            except DiskFullError:
                raise
            except KadcrawlError as error:
                self._reports.send(Unable(str(error)))
            else:
                self._reports.send(Going(again))
            self._orders.carried_out()

    async def _tell(self, peer: Peer) -> None:
        """Report the peer's figures now and then, and warnings for a person at once."""
        warning = None
        while True:
            warning = warning or _cut(peer.warning())
            if self._reports.send_if_room(Doing(row := peer.row(), warning)):
                warning = None
            elif warning is not None:  # It may be too long for this row, and is said when that is shorter.
                self._reports.send_if_room(Doing(row))
            await asyncio.sleep(self._interval_s)

    async def _tell_waiting(self, row: PeerRow | None) -> None:
        """Say that the peer waits for room on the disk, until the parent wants an end."""
        while not self._orders.ended:
            if row is not None:
                full = msgspec.structs.replace(row, state=PeerState.DISK_FULL, in_flight=0)
                self._reports.send_if_room(Doing(full))
            await asyncio.sleep(self._interval_s)


async def _settle(peer: Peer) -> None:
    """Tell the owners of pages which pages are done, while nothing is fetched yet: other peers may have fetched
    them."""
    if peer.paused and not await peer.cells.settle(KNOWN_CELLS_WAIT_S):
        log.warning("peer.unsettled cells=%d", peer.cells.unsettled)


def _cut(warning: str | None) -> str | None:
    """Return the whole characters at the start of a warning that have room in a report."""
    return None if warning is None else warning.encode(errors="replace")[:WARNING_BYTES_MAX].decode(errors="ignore")
