"""One peer of a swarm over several machines, in this process: `kadcrawl start` and `kadcrawl join`."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import click

from kadcrawl.cli.options import shown
from kadcrawl.cli.progress import Progress
from kadcrawl.cli.run import Interrupts, first_of, log_to, until_stopped
from kadcrawl.peer import Peer

SHOW_INTERVAL_S = 1.0


async def live(peer: Peer, enter: Callable[[Peer], Coroutine[Any, Any, None]], title: str) -> bool:
    """Let the peer `enter` its swarm and run until it is stopped; return whether that was by a signal."""
    interrupts = Interrupts()
    async with peer:
        log_to(peer.config.data)
        with Progress(title) as progress:
            await first_of(enter(peer), interrupts.first.wait())
            if not interrupts.first.is_set():
                address = shown(peer.contact.address)
                progress.say(f"peer {peer.contact.id.hex()[:8]} listens on {address}")
                progress.say(f"others join with: kadcrawl join --bootstrap {address}")
                await first_of(until_stopped(peer, interrupts), _show(peer, progress))
            if interrupts.first.is_set():
                progress.say("handing over and leaving (Ctrl-C again to force) ...")
                peer.leave_soon()
            if not peer.begun:
                return True  # Nobody has heard of it yet.
            await peer.finish()
        row = peer.row()
    click.echo(f"{row.counters.pages} pages fetched by this peer, {row.pending} URLs left on it; {peer.config.data}/")
    return interrupts.first.is_set()


async def _show(peer: Peer, progress: Progress) -> None:
    while True:
        progress.update((await peer.census()).rows)
        await asyncio.sleep(SHOW_INTERVAL_S)
