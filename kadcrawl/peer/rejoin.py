"""A restarted peer enters the swarm of its directory, or begins alone if it finds no peer of that swarm.

Tests: tests/peer/test_rejoin.py, tests/peer/membership/test_key_refusals.py
"""

import asyncio
from collections.abc import Sequence
from typing import Protocol

from kadcrawl.errors import StartError, UnansweredError
from kadcrawl.link.wire.messages import Contact
from kadcrawl.members.credentials import Credentials
from kadcrawl.overlay import Overlay
from kadcrawl.peer.membership.known_peers import KnownPeers
from kadcrawl.settings.job import Job

REJOIN_TURN_S = 5.0
"""Longer than a peer takes to begin."""
REJOIN_RETRY_S = 0.5


class Rejoining(Protocol):
    """The part of `Peer` by which it enters a swarm again."""

    @property
    def contact(self) -> Contact: ...
    @property
    def known(self) -> KnownPeers: ...
    @property
    def overlay(self) -> Overlay: ...
    @property
    def credentials(self) -> Credentials | None: ...
    @property
    def journaled_job(self) -> Job | None: ...
    @property
    def begun(self) -> bool: ...
    async def begin(self) -> None: ...
    async def join(self, bootstrap: Sequence[tuple[str, int]]) -> None: ...
    def dial_while_alone(self, bootstrap: Sequence[tuple[str, int]]) -> None: ...


async def come_back(peer: Rejoining, *, briefly_away: bool = False, bootstrap: Sequence[tuple[str, int]] = ()) -> None:
    """Join the swarm of the peer's directory if any peer of it answers, or else begin. Raises StartError.

    A peer that finds none of those it knew joins the swarm of the `bootstrap` peers (host, port) if one of them
    answers. `briefly_away`: the peer was there a moment ago, and all peers it knew may be away for a moment as well.
    Then they take turns: the peer with the lowest ID begins at once, the next waits for that peer, and so on.
    """
    loop = asyncio.get_running_loop()
    turn = sum(contact.id < peer.contact.id for contact in peer.known.contacts) if briefly_away else 0
    begin_at = loop.time() + turn * REJOIN_TURN_S
    while True:
        if known := await peer.known.answering(peer.journaled_job):
            try:
                await peer.join(known)
                return
            except StartError:
                if peer.begun:
                    raise
        if bootstrap and await _joined(peer, bootstrap):
            return
        if loop.time() >= begin_at:
            break
        await asyncio.sleep(REJOIN_RETRY_S)
    await peer.begin()
    if briefly_away or peer.credentials is not None:
        peer.overlay.remember(peer.known.contacts)
    if bootstrap:
        peer.dial_while_alone(bootstrap)


async def _joined(peer: Rejoining, bootstrap: Sequence[tuple[str, int]]) -> bool:
    """Return whether the peer joined the swarm of these peers. Raises StartError if they refuse it."""
    others = [address for address in bootstrap if address != peer.contact.address]
    try:
        if others:
            await peer.join(others)
    except UnansweredError:
        return False
    return bool(others)
