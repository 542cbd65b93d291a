"""One peer of a swarm over several machines, in this process: `kadcrawl start` and `kadcrawl join`.

A peer whose disk is full ends; the command does not: it says so, waits for room, and enters the peer again.
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Any

import click

from kadcrawl.cli.options import shown
from kadcrawl.cli.progress import Progress
from kadcrawl.cli.run import Interrupts, first_of, log_to, until_stopped
from kadcrawl.errors import DiskFullError, StartError
from kadcrawl.peer import Peer
from kadcrawl.peer.disk_guard import Pauses
from kadcrawl.peer.known_peers import come_back
from kadcrawl.peer.portrait import DISK_FULL

SHOW_INTERVAL_S = 1.0

log = logging.getLogger(__name__)

Enter = Callable[[Peer], Coroutine[Any, Any, None]]


async def live(make_peer: Callable[[], Peer], enter: Enter, title: str) -> bool:
    """Let a peer `enter` its swarm and run until it is stopped; return whether that was by a signal.

    Raises StartError, and StorageError for what no room on the disk will cure.
    """
    interrupts = Interrupts()
    with Progress(title) as progress:
        peer = make_peer()
        config = peer.config
        pauses = Pauses(config, peer.world.free_bytes)
        while True:
            try:
                async with peer:
                    if not pauses.count:
                        log_to(config.data)
                    await _one_life(peer, come_back_soon if pauses.count else enter, interrupts, progress)
                break
            except DiskFullError as error:
                log.error("peer.ended why=%s", error)
                if interrupts.first.is_set():
                    raise
                progress.say(f"{DISK_FULL}: {error}")
            except StartError:
                if not pauses.count or pauses.has_room:
                    raise
            await first_of(pauses.wait(), interrupts.first.wait())
            if interrupts.first.is_set():
                return True  # All that was promised is on the disk, and others know it.
            progress.say("going on, as there is room again")
            peer = make_peer()
    if peer.begun:
        row = peer.row()
        click.echo(f"{row.counters.pages} pages fetched by this peer, {row.pending} URLs left on it; {config.data}/")
    return interrupts.first.is_set()


async def come_back_soon(peer: Peer) -> None:
    """Enter again after a pause."""
    await come_back(peer, briefly_away=True)


async def _one_life(peer: Peer, enter: Enter, interrupts: Interrupts, progress: Progress) -> None:
    """Run the peer until it has ended as asked."""
    await first_of(enter(peer), interrupts.first.wait())
    if not interrupts.first.is_set():
        address = shown(peer.contact.address)
        progress.say(f"peer {peer.contact.id.hex()[:8]} listens on {address}")
        progress.say(f"others join with: kadcrawl join --bootstrap {address}")
        await first_of(until_stopped(peer, interrupts), _show(peer, progress))
    if interrupts.first.is_set():
        progress.say("handing over and leaving (Ctrl-C again to force) ...")
        peer.leave_soon()
    if peer.begun:  # Otherwise nobody has heard of it yet.
        await peer.finish()


async def _show(peer: Peer, progress: Progress) -> None:
    while True:
        progress.update((await peer.census()).rows)
        await asyncio.sleep(SHOW_INTERVAL_S)
