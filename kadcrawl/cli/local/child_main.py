"""The main function of one peer process of `kadcrawl crawl`: orders come on stdin, and reports go out on stdout.

protocol.py defines the lines. When stdin ends, the parent is gone or wants an end, and the peer finishes and exits. A
peer with a full disk ends, but its process waits for room and enters the peer again.
"""

import asyncio
import logging
import os
import select
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from pathlib import Path

import msgspec

from kadcrawl.cli.local.protocol import (
    PIPE_LINE_BYTES_MAX,
    Assignment,
    Doing,
    DoingSites,
    Final,
    Go,
    Going,
    Ready,
    Report,
    Unable,
    line,
)
from kadcrawl.cli.own_peers import note_peer
from kadcrawl.cli.run import Interrupts, first_of, log_to, run, until_stopped
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
from kadcrawl.system.inherited_fds import close_inherited

log = logging.getLogger(__name__)

REPORT_INTERVAL_S = 0.5
KNOWN_CELLS_WAIT_S = 15.0
"""Seconds for which a restarted swarm waits for the pages that a peer knows to be done. Later they may be fetched
again."""
LOCAL = OverlaySettings(resend_s=0.5, timeout_s=2.0, misses_suspect=3, misses_evict=4)
"""Liveness on one machine. The parent notices dead peers, and a busy machine must not look like a death."""


def main() -> None:
    """Live the life the parent assigns. Exits with 0 if the peer ended as asked, 2 if it could not start."""
    close_inherited()
    try:
        run(_live())
    except KadcrawlError as error:
        _report(Unable(str(error)))
        sys.exit(2)


class Orders:
    """The parent's orders after the assignment. An order stays the next order until it has been carried out."""

    def __init__(self, reader: asyncio.StreamReader) -> None:
        self._reader = reader
        self._next: Go | None = None
        self.obeyed = False
        """An order has been carried out."""

    @property
    def ended(self) -> bool:
        """The parent will say no more."""
        return self._reader.at_eof()

    async def next(self) -> Go | None:
        """Return the next order, or None once there will be no more."""
        if self._next is None and (said := await self._reader.readline()):
            self._next = msgspec.json.decode(said, type=Go)
        return self._next

    def carried_out(self) -> None:
        """The next order is done with."""
        self._next = None
        self.obeyed = True


async def _live() -> None:
    interrupts = Interrupts()
    async with _stdin() as reader:
        if not (order := await reader.readline()):
            return  # The parent is gone.
        assignment = msgspec.json.decode(order, type=Assignment)
        networks = assignment.allow_networks
        config = Config(data=Path(assignment.data), port=0, allow_networks=networks, exit_when_done=True)
        if assignment.swarm_key is not None:
            config = replace(config, swarm_key=SwarmKey.from_text(assignment.swarm_key))
        config = assignment.machine.config(config)
        orders = Orders(reader)
        world = Environment(overlay=LOCAL)
        pauses = Pauses(config, world.free_bytes)
        while True:
            peer = Peer(config, assignment.job, world)
            try:
                await _one_life(peer, assignment, bool(pauses.count), orders, interrupts)
                return
            except DiskFullError as error:
                log.error("peer.ended why=%s", error)
            except StartError:
                if not pauses.count or pauses.has_room:
                    raise
            waiting = _tell_waiting(peer.row() if peer.begun else None, orders)
            await first_of(pauses.wait(), interrupts.first.wait(), waiting)
            if interrupts.first.is_set() or orders.ended:
                return  # All that was promised is on the disk.


async def _one_life(
    peer: Peer, assignment: Assignment, returning: bool, orders: Orders, interrupts: Interrupts
) -> None:
    """Run the peer until it has ended as asked."""
    async with peer:
        if not returning:
            log_to(peer.config.data)
        if returning and (assignment.bootstrap or orders.obeyed):
            await come_back(peer, briefly_away=True)
        elif assignment.bootstrap:
            # All below one directory are of one crawl, whatever became of its key.
            await peer.join(assignment.bootstrap, rekeyed=True)
            await _settle(peer)
        else:
            await peer.begin(paused=True)
        note_peer(peer.contact.address, peer.config.data)
        _report(Ready(peer.contact.address))
        sites_told = _tell_sites(peer, assignment.sites_interval_s)
        await first_of(until_stopped(peer, interrupts), _obey(peer, orders), _tell(peer), sites_told)
        await peer.finish()
        _report(Final(peer.row(), is_stopped=peer.swarm_has_work and not (peer.leaving or orders.ended)))


@asynccontextmanager
async def _stdin() -> AsyncIterator[asyncio.StreamReader]:
    reader = asyncio.StreamReader(PIPE_LINE_BYTES_MAX)
    loop = asyncio.get_running_loop()
    transport, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    try:
        yield reader
    finally:
        transport.close()


async def _obey(peer: Peer, orders: Orders) -> None:
    """Carry out the parent's orders, until no more come."""
    while (order := await orders.next()) is not None:
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
            _report(Unable(str(error)))
        else:
            _report(Going(again))
        orders.carried_out()


async def _settle(peer: Peer) -> None:
    """Tell the owners of pages which pages are done, while nothing is fetched yet: other peers may have fetched
    them."""
    if peer.paused and not await peer.cells.settle(KNOWN_CELLS_WAIT_S):
        log.warning("peer.unsettled cells=%d", peer.cells.unsettled)


async def _tell(peer: Peer) -> None:
    """Report the peer's figures now and then, and warnings for a person at once."""
    warning = None
    while True:
        warning = warning or peer.warning()
        if _report_if_room(Doing(peer.row(), warning)):
            warning = None
        await asyncio.sleep(REPORT_INTERVAL_S)


async def _tell_sites(peer: Peer, interval_s: float) -> None:
    """Report the largest and slowest sites now and then."""
    while True:
        await asyncio.sleep(interval_s)
        report = report_sites(peer.components.frontier.figures(peer.clock.now()), peer.job.partition)
        while not _report_if_room(DoingSites(report)) and report.lines:
            report = msgspec.structs.replace(report, lines=report.lines[: len(report.lines) // 2])


async def _tell_waiting(row: PeerRow | None, orders: Orders) -> None:
    """Say that the peer waits for room on the disk, until the parent wants an end."""
    while not orders.ended:
        if row is not None:
            _report_if_room(Doing(msgspec.structs.replace(row, state=PeerState.DISK_FULL, in_flight=0)))
        await asyncio.sleep(REPORT_INTERVAL_S)


def _report_if_room(report: Report) -> bool:
    """Send a report as `_report` does, unless it would have to wait for a parent that does not read.

    The next report will do then. Returns whether the report was sent.
    """
    said = line(report)
    _, writable, _ = select.select([], [sys.stdout], [], 0)
    has_room = bool(writable) and len(said) <= select.PIPE_BUF
    if has_room:
        _write(said)
    return has_room


def _report(report: Report) -> None:
    _write(line(report))


def _write(said: bytes) -> None:
    with suppress(BrokenPipeError):  # The parent is gone; stdin ends too, and is listened to.
        while said:
            said = said[os.write(sys.stdout.fileno(), said) :]
