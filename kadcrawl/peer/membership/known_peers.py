"""Whom a peer knew: a few contacts in its journal, by which it finds its swarm again, whoever has gone meanwhile.

A journaled address proves nothing, as another swarm may live there by now. So those who answer are first asked for
their job, which introduces nobody, and must have this peer's. A peer that finds nobody begins by itself, and keeps
trying those it knew, like evicted contacts: they may come later, and know only where it was before. Without a key
nobody proves who he is, so there only peers that were all away at once, for a moment, do that; these take turns at
beginning.
"""

import asyncio
from collections.abc import Callable, Sequence

import msgspec

from kadcrawl.errors import RemoteError
from kadcrawl.link.client import LinkClient
from kadcrawl.link.wire.messages import WIRE_VERSION, Contact, Hello, Welcome
from kadcrawl.peer.membership.endpoints import HELLO_DEADLINE_S
from kadcrawl.settings.config import Job
from kadcrawl.store.store import Store

KNOWN_PEERS_KEPT_MAX = 16
"""The siblings; in a small swarm everybody."""


class KnownPeers:
    """The contacts of one peer, as journaled."""

    def __init__(self, store: Store, known: Callable[[], Sequence[Contact]], client: LinkClient) -> None:
        """`known` gives whom the peer knows, the best first."""
        self._store = store
        self._known = known
        self._client = client
        self.contacts = _decoded(store.meta.get("contacts"))
        """Of last time, or now; those of last time as long as there are no others."""

    def keep(self) -> None:
        """Journal whom we know now; called before each commit."""
        now = [*self._known()[:KNOWN_PEERS_KEPT_MAX]]
        if now and now != self.contacts:
            self.contacts = now
            self._store.meta.set("contacts", msgspec.msgpack.encode(now))

    async def answering(self, job: Job | None) -> list[tuple[str, int]]:
        """Return the addresses (host, port) of those who are still there, and at this job."""
        if job is None:
            return []
        welcomes = await asyncio.gather(*(self._hello(contact) for contact in self.contacts))
        return [
            contact.address
            for contact, welcome in zip(self.contacts, welcomes, strict=True)
            if welcome is not None and is_same(job, welcome.job)
        ]

    async def _hello(self, contact: Contact) -> Welcome | None:
        try:
            return await self._client.ask(contact, Hello(WIRE_VERSION), Welcome, HELLO_DEADLINE_S)
        except RemoteError:
            return None


def _decoded(journaled: bytes | None) -> list[Contact]:
    """Return the contacts journaled: none if they are not what this version writes, as it can do without."""
    try:
        return msgspec.msgpack.decode(journaled, type=list[Contact]) if journaled else []
    except msgspec.MsgspecError:
        return []


def is_same(ours: Job, theirs: Job) -> bool:
    """Say whether two jobs are of one swarm: seeds are added to a job now and then, and never taken away."""
    return ours.name == theirs.name and (not ours.seeds or not set(ours.seeds).isdisjoint(theirs.seeds))
