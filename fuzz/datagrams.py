"""What comes by UDP: not one datagram but a story of them, as what harms is mostly what several do to a table.

A story is a row of steps: a datagram as it is, one that answers a question of ours, a peer that knocks and answers our
ping, time that goes by. The socket and its time are made up (`Wire`, `StillLoop`), all else is the peer's own:
protocol, membership, and the overlay that decides whom to ping. After each step everything a stranger could make grow
is within its bound, and the table is as its own rules say.
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
"""So small that a story of a few hundred bytes comes to every bound."""
STEPS_MAX = 200
STEP_S = 0.05
"""What one unit of time in a story is."""

AS_IT_IS, ANSWER, KNOCK, WAIT, NAMED, LEAVING = range(6)
"""The kinds of steps."""


class Story:
    """One peer, and what strangers do to it."""

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
        """Do the next thing, and see that all is in order."""
        kind, number = bites.number() % 6, bites.number()
        received = self.protocol.counters.received
        self.wire.sent.clear()
        if kind == AS_IT_IS:
            self.receive(bites.take(bites.number(2)), place(number))
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
            # An answer, and a ping of who asked or of who might take the place of who left.
            assert len(self.wire.sent) <= 1 + SETTINGS.k, "a datagram makes us send many"
        self.check()

    def receive(self, datagram: bytes, address: tuple[str, int]) -> None:
        self.received += 1
        self.protocol.datagram_received(datagram, address)
        self.loop.advance(0.0)

    def _answer(self, datagram: bytes, number: int) -> None:
        """A datagram that has the ID of a question of ours, from where that was asked."""
        asked = list(self.protocol._pending.by_id.items())
        if asked:
            request_id, exchange = asked[number % len(asked)]
            self.receive(datagram[:2] + request_id.to_bytes(8, "big") + datagram[HEADER.size :], exchange.address)

    def _knock(self, number: int) -> None:
        """A stranger pings us, and answers our ping if we want to know it."""
        self.receive(encode(number, Ping(peer_id(number), 0)), place(number))
        for request_id, exchange in list(self.protocol._pending.by_id.items()):
            if exchange.address == place(number) and exchange.expects is Pong:
                self.receive(encode(request_id, Pong(peer_id(number), number)), place(number))

    def _named(self, datagram: bytes) -> None:
        """Somebody whom we asked names others, as in a look-up."""
        try:
            _, message = decode(datagram)
        except MalformedError:
            return
        if isinstance(message, Nodes):
            for contact in self.protocol.usable(message):
                self.protocol.welcome_if_new(Neighbor(contact))

    def check(self) -> None:
        """See that nothing has grown beyond its bound, and that the table keeps its own rules."""
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


def place(number: int) -> tuple[str, int]:
    """Return the address of a stranger."""
    return (f"10.0.0.{number}" if number else "::1", 4160 + number % 3)


def peer_id(number: int) -> bytes:
    """Return the ID of a stranger: some of the 256 are near us, and each has another distance."""
    return id_bytes(ME ^ number << 152)


def datagram(data: bytes) -> int:
    """Live through a story of datagrams that anybody can send."""
    bites = Bites(data)
    loop = StillLoop()
    with loop.running():
        story = Story(loop)
        for _ in range(STEPS_MAX):
            if not bites.left:
                break
            story.step(bites)
        # Whatever was asked is given up in the end, and nothing goes on by itself.
        loop.advance(10.0)
        assert not story.protocol._pending.by_id, "a question is neither answered nor given up"
        story.check()
    return story.received


# --- to begin with -----------------------------------------------------------------------------------------------


def step(kind: int, number: int = 0, content: bytes | None = None) -> bytes:
    """Return one step as bytes of a story."""
    return bytes((kind, number)) + (b"" if content is None else len(content).to_bytes(2, "big") + content)


def messages() -> Iterator[Message]:
    """Yield a datagram of each kind."""
    other = peer_id(9)
    yield from (Ping(other, 7), Pong(other, 7), FindNode(other, id_bytes(1)), Leave(other), Left(other))
    yield from (GetRange(other), OwnRange(other, id_bytes(3)))
    yield Nodes(other, [Contact(peer_id(number), *place(number)) for number in (0, 1, 2, 255)])


def stories() -> Iterable[bytes]:
    """Yield a story of each kind of message and step, and of peers that come, ever nearer too, fall silent and go."""
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
