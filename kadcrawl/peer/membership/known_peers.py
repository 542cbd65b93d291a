"""The contacts that a peer knew: a few are in its journal, so that it finds its swarm again after a restart.

A journaled address proves nothing, as another swarm may be there by now. So a peer that answers is first asked for its
job, which introduces nobody, and the job must be this peer's. A peer that finds no known peer begins alone, and keeps
dialing the contacts it knew, like evicted contacts: they may come later, and know only its old address. Without a key
no peer proves its ID, so in such a swarm only peers that were all away for a moment do that, and they take turns at
beginning (peer/rejoin.py).
"""

import asyncio
from collections.abc import Callable, Sequence

import msgspec

from kadcrawl.errors import RemoteError
from kadcrawl.link.client import LinkClient
from kadcrawl.link.wire.messages import WIRE_VERSION, Contact, Hello, Welcome
from kadcrawl.peer.membership.endpoints import HELLO_DEADLINE_S
from kadcrawl.settings.job import Job
from kadcrawl.store.store import Store

KNOWN_PEERS_KEPT_MAX = 16
"""Contacts in the journal: the siblings, or all peers of a small swarm."""


class KnownPeers:
    """The contacts of one peer, as journaled."""

    def __init__(self, store: Store, known: Callable[[], Sequence[Contact]], client: LinkClient) -> None:
        """Read the journaled contacts. `known` returns the contacts of now, the best first."""
        self._store = store
        self._known = known
        self._client = client
        self.contacts = _decoded(store.meta.get("contacts"))
        """The contacts of now, or those of the last run while there are no others."""

    def keep(self) -> None:
        """Journal the contacts of now. The peer calls this before each commit."""
        now = [*self._known()[:KNOWN_PEERS_KEPT_MAX]]
        if now and now != self.contacts:
            self.contacts = now
            self._store.meta.set("contacts", msgspec.msgpack.encode(now))

    async def answering(self, job: Job | None) -> list[tuple[str, int]]:
        """Return the addresses (host, port) of known peers that answer and serve this job."""
        if job is None:
            return []
        welcomes = await asyncio.gather(*(welcome_from(self._client, contact) for contact in self.contacts))
        return [
            contact.address
            for contact, welcome in zip(self.contacts, welcomes, strict=True)
            if welcome is not None and is_same(job, welcome.job)
        ]


async def welcome_from(client: LinkClient, to: Contact | tuple[str, int]) -> Welcome | None:
    """Return the answer to Hello of a peer, or of any peer at an address (host, port), or None without an answer."""
    try:
        return await client.ask(to, Hello(WIRE_VERSION), Welcome, HELLO_DEADLINE_S)
    except RemoteError:
        return None


def _decoded(journaled: bytes | None) -> list[Contact]:
    """Return the journaled contacts, or none if another version wrote them, as they are dispensable."""
    try:
        return msgspec.msgpack.decode(journaled, type=list[Contact]) if journaled else []
    except msgspec.MsgspecError:
        return []


def is_same(ours: Job, theirs: Job) -> bool:
    """Return whether two jobs are of one swarm. Seeds may be added to a job, and are never removed."""
    return ours.name == theirs.name and (not ours.seeds or not set(ours.seeds).isdisjoint(theirs.seeds))
