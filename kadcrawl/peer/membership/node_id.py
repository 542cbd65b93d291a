"""The node ID of a peer: the ID of its directory for ever, or the best of a few drawn when it first joins a swarm.

A newcomer draws some IDs and asks its bootstrap peer for the range that each of them would split. It takes the ID that
splits the largest range (balance/identity.py says why), journals it, and enters under it. Until then it answers no
datagrams, so that no peer takes it in under an ID that it does not keep. In a swarm with a key an ID is the hash of a
key drawn with it. A newcomer without an answer soon takes the first ID drawn. Newcomers that join at the same moment do
not know of each other, but their bootstrap peer does, if it is the same.
"""

import asyncio
import logging
from collections.abc import Sequence
from random import Random
from typing import TYPE_CHECKING

from kadcrawl.balance.identity import IdCandidate, Range, choose_id
from kadcrawl.errors import RemoteError
from kadcrawl.keys import ID_BITS, ID_BYTES, NodeId, id_bytes
from kadcrawl.link.client import LinkClient
from kadcrawl.link.wire.messages import DRAWN_MAX, FindRanges, FoundRange, Ranges
from kadcrawl.members.peer_key import PeerKey
from kadcrawl.peer.membership.key_rotation import KeyRotation
from kadcrawl.store.store import Store

if TYPE_CHECKING:  # A leaf does without the rooms of a full peer.
    from kadcrawl.overlay import Overlay

DRAWN = DRAWN_MAX
"""IDs a newcomer chooses from. Twice as many gain next to nothing."""
ASK_S = 4.0
"""Seconds a newcomer waits for ranges, for all its bootstrap peers together."""
FIND_S = 2.0
"""Seconds a bootstrap peer looks for ranges."""
FINDING_MAX = 16
"""Ranges a bootstrap peer looks for at once, for all newcomers together. Others wait."""
ENTER_S = 10.0
"""Seconds a bootstrap peer expects a newcomer that it has told of ranges."""
EXPECTED_MAX = 64
"""Newcomers a bootstrap peer expects at most, the latest."""

log = logging.getLogger(__name__)


class Identity:
    """The node ID of one directory's peer."""

    def __init__(self, store: Store, random: Random, key_rotation: KeyRotation | None) -> None:
        self._store = store
        self._random = random
        self._key_rotation = key_rotation
        self._keys: dict[NodeId, PeerKey] = {}
        """ID -> the key drawn with it."""
        self.settled: bool
        """True if the ID is journaled. Otherwise it is only drawn."""
        if key_rotation is not None:
            # A directory from when its swarm had no key gets another ID.
            self.settled = key_rotation.is_known
            self.node_id = self._know(key_rotation.credentials.peer_key)
            if self.settled:
                store.meta.set("node_id", id_bytes(self.node_id))
        else:
            journaled = store.meta.read("node_id", _node_id)
            self.settled = journaled is not None
            self.node_id = self._draw() if journaled is None else journaled

    def settle(self, overlay: "Overlay") -> None:
        """Keep the ID, and enter nowhere under another. Raises StartError if its key cannot be kept."""
        if not self.settled:
            if self._key_rotation is not None:
                self._key_rotation.settle(self._keys[self.node_id])
            self._store.meta.set("node_id", id_bytes(self.node_id))
            overlay.identify(self.node_id)
            self.settled = True

    async def choose(self, overlay: "Overlay", client: LinkClient, bootstrap: Sequence[tuple[str, int]]) -> None:
        """Settle on the best of a few IDs, by the ranges that one of these peers (host, port) tells."""
        if self.settled:
            return
        drawn = [self.node_id, *(self._draw() for _ in range(DRAWN - 1))]
        try:
            async with asyncio.timeout(ASK_S):
                self.node_id = chosen(drawn, await _ask(client, bootstrap, drawn))
        except (RemoteError, TimeoutError) as error:
            log.info("identity.drawn_blindly why=%s", str(error) or "no answer in time")
        self.settle(overlay)

    def _draw(self) -> NodeId:
        if self._key_rotation is not None:
            return self._know(PeerKey.generate())
        return NodeId(self._random.getrandbits(ID_BITS))

    def _know(self, key: PeerKey) -> NodeId:
        self._keys[key.node_id] = key
        return key.node_id


def _node_id(journaled: bytes) -> NodeId:
    if len(journaled) != ID_BYTES:
        raise ValueError("an ID has another length")
    return number(journaled)


def chosen(drawn: Sequence[NodeId], found: Sequence[FoundRange | None]) -> NodeId:
    """Return the ID that splits the largest range, or the first ID if no range was found."""
    candidates = [
        IdCandidate(node_id=node_id, range=Range(owner=number(one.owner), live_mask=number(one.live_mask)))
        for node_id, one in zip(drawn, found, strict=False)
        if one is not None and one.owner != id_bytes(node_id)
    ]
    return choose_id(candidates).node_id if candidates else drawn[0]


async def _ask(
    client: LinkClient, bootstrap: Sequence[tuple[str, int]], drawn: Sequence[NodeId]
) -> list[FoundRange | None]:
    """Return the ranges of the first of these peers to answer. Raises RemoteError if none does."""
    question = FindRanges([id_bytes(node_id) for node_id in drawn])
    failure = RemoteError("bootstrap", "nobody to ask")
    for address in bootstrap:
        try:
            # One that is silent must leave time for the next.
            return (await client.ask(address, question, Ranges, ASK_S / len(bootstrap))).found
        except RemoteError as error:
            failure = error
    raise failure


class RangeFinder:
    """Finds ranges for newcomers, and counts newcomers it has just told as if they had entered."""

    def __init__(self) -> None:
        self._places = asyncio.Semaphore(FINDING_MAX)
        self._expected: dict[NodeId, float] = {}
        """ID that a newcomer will have chosen -> loop second until which it is expected, the earliest first."""

    async def find(self, overlay: "Overlay", question: FindRanges) -> Ranges:
        """Return the ranges found within `FIND_S`."""
        drawn = [number(node_id) for node_id in question.ids]
        found: dict[NodeId, Range] = {}

        async def find_one(node_id: NodeId) -> None:
            async with self._places:
                at = await overlay.range_at(node_id)
            if at is not None and at[0].number != node_id:
                found[node_id] = Range(owner=NodeId(at[0].number), live_mask=at[1])

        try:
            async with asyncio.timeout(FIND_S), asyncio.TaskGroup() as group:
                for node_id in dict.fromkeys(drawn):
                    group.create_task(find_one(node_id), name="range")
        except TimeoutError:
            pass  # The newcomer chooses among what there is.
        now = asyncio.get_running_loop().time()
        others = self._others(drawn, now)
        candidates = {
            one: IdCandidate(node_id=one, range=found[one].shared_with(one, others)) for one in drawn if one in found
        }
        if candidates:
            self._expected[choose_id([*candidates.values()]).node_id] = now + ENTER_S
        return Ranges([_told(candidates[one].range) if one in candidates else None for one in drawn])

    def _others(self, drawn: Sequence[NodeId], now: float) -> list[NodeId]:
        """Return the IDs of newcomers to expect besides the newcomer that drew these."""
        kept = {one: until for one, until in self._expected.items() if until > now and one not in drawn}
        self._expected = dict([*kept.items()][-EXPECTED_MAX:])
        return [*self._expected]


def number(node_id: bytes) -> NodeId:
    """Return a node ID of 20 bytes as the number it is."""
    return NodeId(int.from_bytes(node_id, "big"))


def _told(found: Range) -> FoundRange:
    return FoundRange(id_bytes(found.owner), id_bytes(found.live_mask))
