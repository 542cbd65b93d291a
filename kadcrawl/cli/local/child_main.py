"""The main function of one peer process of `kadcrawl crawl`: orders come on stdin, and reports go out on stdout.

protocol.py defines the lines, and peer_life.py is the life between them. When stdin ends, the parent is gone or wants
an end, and the peer finishes and exits.
"""

import asyncio
import os
import select
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import msgspec

from kadcrawl.cli.local import peer_life
from kadcrawl.cli.local.protocol import PIPE_LINE_BYTES_MAX, Assignment, Go, Ready, Report, Unable, line
from kadcrawl.cli.log_file import log_to, secrets_of_machine
from kadcrawl.cli.run import Interrupts, run
from kadcrawl.errors import KadcrawlError
from kadcrawl.peer import Peer
from kadcrawl.peer.environment import Environment
from kadcrawl.system.inherited_fds import close_inherited
from kadcrawl.system.process_title import set_title
from kadcrawl.system.quick_exit import exit_quickly
from kadcrawl.system.start_up_memory import give_back


def main() -> None:
    """Live the life the parent assigns. Exits with 0 if the peer ended as asked, 2 if it could not start."""
    close_inherited()
    try:
        run(_live())
    except KadcrawlError as error:
        PipeReports().send(Unable(str(error)))
        exit_quickly(2)
    exit_quickly(0)


class PipeOrders:
    """Orders that come as lines."""

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
        if self._next is None and (said := await _whole_line(self._reader)):
            self._next = msgspec.json.decode(said, type=Go)
        return self._next

    def carried_out(self) -> None:
        """The next order is done with."""
        self._next = None
        self.obeyed = True


class PipeReports:
    """Reports that go out as lines on stdout."""

    def __init__(self, *, is_bounded: bool = False) -> None:
        """`is_bounded` says that the memory of this process is bounded."""
        self._is_bounded = is_bounded

    def send(self, report: Report) -> None:
        """Send a report, however long it has to wait for a parent that does not read."""
        _write(line(report))
        if isinstance(report, Ready):
            give_back(is_bounded=self._is_bounded)

    def send_if_room(self, report: Report) -> bool:
        """Send a report unless it would have to wait, and return whether it was sent."""
        said = line(report)
        _, writable, _ = select.select([], [sys.stdout], [], 0)
        has_room = bool(writable) and len(said) <= select.PIPE_BUF
        if has_room:
            _write(said)
        return has_room


async def _live() -> None:
    interrupts = Interrupts()
    async with _stdin() as reader:
        if not (order := await _whole_line(reader)):
            return  # The parent is gone.
        assignment = msgspec.json.decode(order, type=Assignment)
        set_title(assignment.title)
        world = Environment(overlay=peer_life.LOCAL)
        is_bounded = bool(assignment.machine.limits.get("memory_bytes"))
        orders, reports = PipeOrders(reader), PipeReports(is_bounded=is_bounded)

        def opened(peer: Peer) -> None:
            secrets = secrets_of_machine(peer.config.swarm_key, peer.config.secrets)
            log_to(peer.config.data, assignment.machine.log, secrets, lambda: peer.short_id)

        await peer_life.PeerLife(assignment, world, orders, reports, interrupts.first, opened=opened).run()


@asynccontextmanager
async def _stdin() -> AsyncIterator[asyncio.StreamReader]:
    reader = asyncio.StreamReader(PIPE_LINE_BYTES_MAX)
    loop = asyncio.get_running_loop()
    transport, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    try:
        yield reader
    finally:
        transport.close()


async def _whole_line(reader: asyncio.StreamReader) -> bytes:
    """Return the next line, or nothing at the end. A parent that is killed may have written the beginning of a line."""
    said = await reader.readline()
    return said if said.endswith(b"\n") else b""


def _write(said: bytes) -> None:
    with suppress(BrokenPipeError):  # The parent is gone; stdin ends too, and is listened to.
        while said:
            said = said[os.write(sys.stdout.fileno(), said) :]
