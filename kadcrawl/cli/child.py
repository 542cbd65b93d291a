"""One peer of `kadcrawl crawl`, as a process of its own: told what to do on stdin, answering in lines on stdout.

See `pipe` for what is said. When stdin ends, the parent is gone or wants an end, and the peer finishes and exits.
"""

import asyncio
import os
import select
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import msgspec

from kadcrawl.cli.pipe import LINE_BYTES_MAX, Assignment, Doing, Final, Go, Going, Ready, Report, Unable, line
from kadcrawl.cli.run import Interrupts, first_of, log_to, run, until_stopped
from kadcrawl.config import Config
from kadcrawl.errors import KadcrawlError
from kadcrawl.link.messages import BATCH_MAX, Order
from kadcrawl.overlay import OverlaySettings
from kadcrawl.peer import Peer
from kadcrawl.peer.world import World

REPORT_INTERVAL_S = 0.5
LOCAL = OverlaySettings(resend_s=0.5, timeout_s=2.0, misses_suspect=3, misses_evict=4)
"""Peers of one machine are missed by their parent when they die; a busy machine must not look like a death."""


def main() -> None:
    """Live the life the parent assigns. Exits with 0 if the peer ended as asked, 2 if it could not start."""
    try:
        run(_live())
    except KadcrawlError as error:
        _report(Unable(str(error)))
        sys.exit(2)


async def _live() -> None:
    interrupts = Interrupts()
    async with _stdin() as orders:
        if not (order := await orders.readline()):
            return  # The parent is gone.
        assignment = msgspec.json.decode(order, type=Assignment)
        networks = assignment.allow_networks
        config = Config(data=Path(assignment.data), port=0, allow_networks=networks, exit_when_done=True)
        async with Peer(config, assignment.job, World(overlay=LOCAL)) as peer:
            log_to(config.data)
            if assignment.bootstrap:
                await peer.join(assignment.bootstrap)
            else:
                await peer.begin(paused=True)
            _report(Ready(peer.contact.address))
            await first_of(until_stopped(peer, interrupts), _obey(peer, orders), _tell(peer))
            await peer.finish()
            _report(Final(peer.row()))


@asynccontextmanager
async def _stdin() -> AsyncIterator[asyncio.StreamReader]:
    reader = asyncio.StreamReader(LINE_BYTES_MAX)
    loop = asyncio.get_running_loop()
    transport, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    try:
        yield reader
    finally:
        transport.close()


async def _obey(peer: Peer, orders: asyncio.StreamReader) -> None:
    """Do what the parent says, until it says no more."""
    while order := await orders.readline():
        seeds = msgspec.json.decode(order, type=Go).seeds
        try:
            for start in range(0, len(seeds), BATCH_MAX):
                await peer.crawl(seeds[start : start + BATCH_MAX])
            await peer.waves.tell_all(Order("resume"))
        except KadcrawlError as error:
            _report(Unable(str(error)))
        else:
            _report(Going())


async def _tell(peer: Peer) -> None:
    """Say what the peer has done, every now and then."""
    while True:
        _report_if_room(Doing(peer.row()))
        await asyncio.sleep(REPORT_INTERVAL_S)


def _report_if_room(report: Report) -> None:
    """As `_report`, unless it would have to wait for a parent that does not read: then the next one will do."""
    said = line(report)
    _, writable, _ = select.select([], [sys.stdout], [], 0)
    if writable and len(said) <= select.PIPE_BUF:
        _write(said)


def _report(report: Report) -> None:
    _write(line(report))


def _write(said: bytes) -> None:
    with suppress(BrokenPipeError):  # The parent is gone; stdin ends too, and is listened to.
        while said:
            said = said[os.write(sys.stdout.fileno(), said) :]
