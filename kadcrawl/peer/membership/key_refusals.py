"""A watch for peers that refuse this peer's key, as the swarm's key may have changed.

A peer drops datagrams sealed by another key, so peers with another key look dead to each other, and both sides would go
on alone without notice. A connection tells them apart: a peer with another key refuses it. So this peer dials the peers
that it knew and has lost, now and then. A refusal proves nothing, as another swarm may be at that address by now. So it
is only shown: in the log, and in the status of a peer that is refused by more peers than are in touch with it.
"""

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Iterable
from typing import TYPE_CHECKING

from kadcrawl.errors import RemoteError
from kadcrawl.link.client import ANOTHER_KEY, REFUSED_PREFIX, LinkClient
from kadcrawl.link.wire.messages import WIRE_VERSION, Contact, Hello, Welcome
from kadcrawl.peer.membership.endpoints import HELLO_DEADLINE_S
from kadcrawl.peer.membership.known_peers import KnownPeers

if TYPE_CHECKING:  # A leaf does without the rooms of a full peer.
    from kadcrawl.overlay import Overlay

LOST_PEERS_MAX = 16
"""Peers that are dialled, those lost last: as many as are journaled (peer/membership/known_peers.py)."""
LOST_PEER_KEPT_S = 86_400.0
"""Seconds a lost peer is dialed. A change of keys is no news for ever."""
FIRST_DIAL_S = 10.0
"""Seconds after the start. Most peers have been heard by then."""
EVERY_S = 20.0
SAY_S = 3600.0
"""Seconds between two equal lines of the log."""

log = logging.getLogger(__name__)


class KeyMismatchMonitor:
    """The known peers that one peer has lost, and those of them that refuse it."""

    def __init__(self) -> None:
        self._lost: OrderedDict[bytes, tuple[Contact, float]] = OrderedDict()
        """Peer ID -> (contact, loop second of the loss), the latest last."""
        self._by: frozenset[bytes] = frozenset()
        self._said: frozenset[bytes] = frozenset()
        self._say_at = 0.0

    @property
    def count(self) -> int:
        """The number of known peers that refused when last dialed."""
        return len(self._by)

    def lost(self, contact: Contact, now: float) -> None:
        """Note that this peer is silent for any reason."""
        self._lost.pop(contact.id, None)
        self._lost[contact.id] = contact, now
        if len(self._lost) > LOST_PEERS_MAX:
            self._lost.popitem(last=False)

    def forget(self, contact: Contact) -> None:
        """Note that this peer is in touch, or has left."""
        self._lost.pop(contact.id, None)
        self._by -= {contact.id}

    def to_dial(self, now: float) -> list[Contact]:
        """Return the peers to dial now."""
        for peer_id in [peer_id for peer_id, (_, since) in self._lost.items() if now >= since + LOST_PEER_KEPT_S]:
            del self._lost[peer_id]
        return [contact for contact, _ in self._lost.values()]

    def note(self, refused: Iterable[bytes], now: float) -> bool:
        """Note the peers that refuse, and return whether the log should say so."""
        self._by = frozenset(refused) & self._lost.keys()
        if not self._by or (self._by <= self._said and now < self._say_at):
            return False
        self._said, self._say_at = self._by, now + SAY_S
        return True


async def watch(monitor: KeyMismatchMonitor, overlay: "Overlay", known: KnownPeers, client: LinkClient) -> None:
    """Dial the peers that this peer knew and has lost, until cancelled."""
    now = asyncio.get_running_loop().time
    for contact in known.contacts:
        if not overlay.is_live(contact.id):
            monitor.lost(contact, now())
    overlay.on_lost.append(lambda contact: monitor.lost(contact, now()))
    overlay.on_joined.append(monitor.forget)
    overlay.on_left.append(monitor.forget)
    await asyncio.sleep(FIRST_DIAL_S)
    while True:
        lost = monitor.to_dial(now())
        refuse = await asyncio.gather(*(_refuses(client, contact) for contact in lost))
        if monitor.note([contact.id for contact, does in zip(lost, refuse, strict=True) if does], now()):
            log.warning("swarm.refused by=%d why=%s", monitor.count, "known peers go by another key than this one")
        await asyncio.sleep(EVERY_S)


async def _refuses(client: LinkClient, contact: Contact) -> bool:
    try:
        await client.ask(contact, Hello(WIRE_VERSION), Welcome, HELLO_DEADLINE_S)
    except RemoteError as error:
        return is_refused(error)
    return False


def is_refused(error: RemoteError) -> bool:
    """Return whether the error means that a peer with another key answered."""
    return error.why.startswith(REFUSED_PREFIX) and ANOTHER_KEY in error.why
