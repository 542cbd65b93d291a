"""Fuzzing of UDP datagrams: an input is a story of several, because most harm comes from their joint effect on a table.

A story is a row of steps: a datagram as it is, an answer to a request of ours, a peer that pings and answers our ping,
and time that passes. Only the socket and the clock are replaced (`SilentTransport`, `StillLoop`). The rest is the
peer's own: protocol, membership, and the overlay that decides which peers to ping. After each step every table that a
non-member can make grow is within its bound, and the routing table satisfies its own rules.
"""

from collections.abc import Iterable, Iterator
from random import Random

from fuzz.silent_transport import SilentTransport
from fuzz.still_loop import StillLoop
from fuzz.target import Bites, Target
from kadcrawl.keys import NodeId, firstdiff, id_bytes
from kadcrawl.link.wire.codec import MalformedError
from kadcrawl.link.wire.messages import (
    DATAGRAM_BYTES_MAX,
    Contact,
    FindNode,
    GetRange,
    Leave,
    Left,
    Message,
    Nodes,
    OwnRange,
    Ping,
    Pong,
)
from kadcrawl.overlay import Overlay, OverlaySettings
from kadcrawl.overlay.datagrams import HEADER, decode, encode
from kadcrawl.overlay.protocol import DatagramProtocol
from kadcrawl.overlay.routing import Neighbor

ME = NodeId(0x5A << 152)
SETTINGS = OverlaySettings(k=3, siblings=2, non_members_max=8, evicted_max=4, unreached_max=3, verifying_max=4)
"""Limits so small that a story of a few hundred bytes reaches every bound."""
STEPS_MAX = 200
STEP_S = 0.05
"""Seconds per unit of time in a story."""

AS_IT_IS, ANSWER, KNOCK, WAIT, NAMED, LEAVING = range(6)
"""The kinds of steps."""


class Story:
    """A peer, and the actions of non-members on it."""

    def __init__(self, loop: StillLoop) -> None:
        random = Random(1)
        self.loop = loop
        self.received = 0
        self.overlay = Overlay(ME, random, cell_bits=16, settings=SETTINGS)
        self.overlay.me = Contact(id_bytes(ME), "10.1.0.1", 4160)
        self.membership = self.overlay._membership
        self.protocol = DatagramProtocol(self.membership, random, SETTINGS, self.overlay._verify)
        self.overlay._protocol = self.protocol
        self.wire = SilentTransport(DATAGRAM_BYTES_MAX)
        self.protocol.connection_made(self.wire)

    def step(self, bites: Bites) -> None:
        """Take the next step, and check the bounds."""
        kind, number = bites.number() % 6, bites.number()
        received = self.protocol.counters.received
        self.wire.sent.clear()
        if kind == AS_IT_IS:
            self.receive(bites.take(bites.number(2)), address_of(number))
        elif kind == ANSWER:
            self._answer(bites.take(bites.number(2)), number)
        elif kind == KNOCK:
            self._knock(number)
        elif kind == WAIT:
            self.loop.advance(STEP_S * number)
        elif kind == NAMED:
            self._named(bites.take(bites.number(2)))
        else:
            self.protocol.set_leaving(bool(number & 1))
            self.protocol.set_nameless(bool(number & 2))
        if kind in (AS_IT_IS, ANSWER):
            assert self.protocol.counters.received <= received + 1
            # An answer, and a ping of the sender or of peers that may replace a leaving peer.
            assert len(self.wire.sent) <= 1 + SETTINGS.k, "one datagram causes too many datagrams"
        self.check()

    def receive(self, datagram: bytes, address: tuple[str, int]) -> None:
        self.received += 1
        self.protocol.datagram_received(datagram, address)
        self.loop.advance(0.0)

    def _answer(self, datagram: bytes, number: int) -> None:
        """Deliver a datagram with the ID of a request of ours, from the address that was asked."""
        asked = list(self.protocol._pending.by_id.items())
        if asked:
            request_id, exchange = asked[number % len(asked)]
            self.receive(datagram[:2] + request_id.to_bytes(8, "big") + datagram[HEADER.size :], exchange.address)

    def _knock(self, number: int) -> None:
        """Let a non-member ping the peer and answer a ping of the peer."""
        self.receive(encode(number, Ping(peer_id(number), 0)), address_of(number))
        for request_id, exchange in list(self.protocol._pending.by_id.items()):
            if exchange.address == address_of(number) and exchange.expects is Pong:
                self.receive(encode(request_id, Pong(peer_id(number), number)), address_of(number))

    def _named(self, datagram: bytes) -> None:
        """Let a peer that was asked name other peers, as in a lookup."""
        try:
            _, message = decode(datagram)
        except MalformedError:
            return
        if isinstance(message, Nodes):
            for contact in self.protocol.usable(message):
                self.protocol.welcome_if_new(Neighbor(contact))

    def check(self) -> None:
        """Check the bounds of all tables, and the rules of the routing table."""
        table, membership = self.membership.table, self.membership
        members = {}
        mask = 0
        for index, bucket in table.buckets.items():
            assert len(bucket.nodes) <= SETTINGS.k + SETTINGS.siblings, f"bucket {index} has grown"
            assert len(bucket.replacement_nodes) <= SETTINGS.k
            for peer, neighbor in bucket.nodes.items():
                assert firstdiff(ME, neighbor.long_id) == index
                members[peer] = neighbor
                mask |= neighbor.live << index
        assert members == table.members
        assert mask == table.live_mask
        assert (
            membership.siblings.nearest == sorted(table.live(), key=lambda one: one.long_id ^ ME)[: SETTINGS.siblings]
        )
        assert len(membership.liveness._members) == len(members)
        assert len(membership.liveness._non_members) <= SETTINGS.non_members_max
        assert len(membership.evicted) <= SETTINGS.evicted_max
        assert len(membership.unreached) <= SETTINGS.unreached_max
        in_flight = len(self.protocol._pending.by_id)
        assert in_flight == len(self.overlay._verifying) <= SETTINGS.verifying_max + len(members)


def address_of(number: int) -> tuple[str, int]:
    """Return the address of a non-member."""
    return (f"10.0.0.{number}" if number else "::1", 4160 + number % 3)


def peer_id(number: int) -> bytes:
    """Return the ID of a non-member: some of the 256 are near the peer, and each has another distance."""
    return id_bytes(ME ^ number << 152)


def datagram(data: bytes) -> int:
    """Run a story of datagrams that any host can send."""
    bites = Bites(data)
    loop = StillLoop()
    with loop.running():
        story = Story(loop)
        for _ in range(STEPS_MAX):
            if not bites.left:
                break
            story.step(bites)
        # All requests are given up in the end, and no activity continues by itself.
        loop.advance(10.0)
        assert not story.protocol._pending.by_id, "a request is neither answered nor given up"
        story.check()
    return story.received


# --- seed inputs -------------------------------------------------------------------------------------------------


def step(kind: int, number: int = 0, content: bytes | None = None) -> bytes:
    """Return one step as bytes of a story."""
    return bytes((kind, number)) + (b"" if content is None else len(content).to_bytes(2, "big") + content)


def messages() -> Iterator[Message]:
    """Yield a datagram of each kind."""
    other = peer_id(9)
    yield from (Ping(other, 7), Pong(other, 7), FindNode(other, id_bytes(1)), Leave(other), Left(other))
    yield from (GetRange(other), OwnRange(other, id_bytes(3)))
    yield Nodes(other, [Contact(peer_id(number), *address_of(number)) for number in (0, 1, 2, 255)])


def stories() -> Iterable[bytes]:
    """Yield stories of each kind of message and step, and of peers that join, fall silent and leave."""
    for message in messages():
        packed = encode(1, message)
        yield step(AS_IT_IS, 9, packed)
        yield step(NAMED, 0, packed)
        yield step(AS_IT_IS, 9, encode(1, Ping(peer_id(9), 0))) + step(ANSWER, 0, packed)
    yield b"".join(step(KNOCK, number) for number in (1, 2, 4, 8, 16, 32, 64, 128))
    yield b"".join(step(KNOCK, number) for number in range(255, 240, -1))
    yield b"".join(step(KNOCK, number) for number in range(200, 206)) + step(WAIT, 255) + step(LEAVING, 1)
    yield step(KNOCK, 9) + step(AS_IT_IS, 9, encode(2, Leave(peer_id(9)))) + step(WAIT, 20) + step(KNOCK, 9)


TARGETS = (Target("datagram", datagram, stories, units="datagrams"),)
