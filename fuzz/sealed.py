"""Fuzzing of datagrams in a swarm with a key: from non-members, changed on the way, and from members.

An input is a story (see `datagrams.py`) for a peer whose key is fixed: bytes as they are, a member's datagram with some
bytes changed, repeated or cut, a member that sends any message, a first contact with any key and any number, and a
change of the swarm's keys. No incomplete datagram may open, no datagram opens twice, and a first contact proves no
identity.
"""

from collections.abc import Iterable
from random import Random

from fuzz.datagrams import SETTINGS, messages
from fuzz.silent_transport import SilentTransport
from fuzz.still_loop import StillLoop
from fuzz.target import Bites, Target
from kadcrawl.link.wire.messages import DATAGRAM_BYTES_MAX
from kadcrawl.members.peer_key import PUBLIC_BYTES, PeerKey
from kadcrawl.members.sealing import FIRST_CONTACT, PAIRED, SEAL_BYTES, Sealing
from kadcrawl.members.swarm_key import SwarmKey
from kadcrawl.overlay.datagrams import encode
from kadcrawl.overlay.membership import Membership
from kadcrawl.overlay.protocol import DatagramProtocol

KEY, NEW = SwarmKey(b"k" * 32), SwarmKey(b"n" * 32)
STEPS_MAX = 60
AS_IT_IS, CHANGED, SENT, FIRST_CONTACT_STEP, KEYS = range(5)
"""The kinds of steps."""


class SealedStory:
    """A peer, a member known to it, and the datagrams from elsewhere."""

    def __init__(self, loop: StillLoop) -> None:
        me, other = (PeerKey(bytes((number,)) * 32) for number in (1, 2))
        self.loop = loop
        self.received = 0
        self.member = Sealing(other, (KEY,), 0)
        self.forged = False
        """True after a forged first contact. The member's own may be dropped then (see the threat model)."""
        self.sealing = Sealing(me, (KEY,), 0)
        self.me = me.id
        assert self.sealing.open(self.member.seal(b"", None) or b"") is not None
        assert self.member.open(self.sealing.seal(b"", other.id) or b"") is not None
        random = Random(1)
        membership = Membership(me.node_id, 16, SETTINGS, random)
        self.protocol = DatagramProtocol(membership, random, SETTINGS, lambda contact: None, self.sealing)
        self.wire = SilentTransport(DATAGRAM_BYTES_MAX + SEAL_BYTES, labels=(KEY.label, NEW.label))
        self.protocol.connection_made(self.wire)

    def step(self, bites: Bites) -> None:
        kind, number = bites.number() % 5, bites.number()
        if kind == AS_IT_IS:
            self.receive(bites.take(bites.number(2)), None)
        elif kind == CHANGED:
            self._changed(number, bites)
        elif kind == SENT:
            said = bites.take(bites.number(2))
            self.receive(self.member.seal(said, self.me if number & 1 else None) or b"", None)
        elif kind == FIRST_CONTACT_STEP:
            self._first_contact(number, bites)
        else:
            self.sealing.use_keys(((KEY,), (KEY, NEW), (NEW, KEY))[number % 3])

    def receive(self, datagram: bytes, opens: bool | None) -> None:
        """Deliver a datagram. `opens` tells whether it must open as a member's, with None for no expectation."""
        self.received += 1
        counters = self.protocol.counters
        non_members, sent = counters.non_members, len(self.wire.sent)
        self.protocol.datagram_received(datagram, ("10.0.0.9", 4160))
        self.loop.advance(0.0)
        known = counters.non_members == non_members
        assert opens in (None, known), (
            "the datagram was taken for a member's" if known else "a member's datagram was not known"
        )
        assert known or len(self.wire.sent) == sent, "a non-member was answered"

    def _changed(self, number: int, bites: Bites) -> None:
        """Deliver a whole datagram with a byte changed, then cut, then as it was, and once more."""
        whole = self.member.seal(b"a few words", self.me if number & 1 else None) or b""
        at, change, cut = bites.number(2) % len(whole), bites.number(), bites.number() % len(whole)
        if change:
            self.receive(whole[:at] + bytes((whole[at] ^ change,)) + whole[at + 1 :], False)
        if cut:
            self.receive(whole[:-cut], False)
        heard = True if whole[4] == PAIRED or not self.forged else None
        self.receive(whole, heard)
        self.receive(whole, False)

    def _first_contact(self, number: int, bites: Bites) -> None:
        """Send a first contact as any member can: with any public key and any number."""
        forger = Sealing(PeerKey(bytes((number,)) * 32), (KEY,), bites.number(8))
        forger.peer_key.public = bites.take(PUBLIC_BYTES).ljust(PUBLIC_BYTES, b"\0")
        self.forged = self.forged or forger.peer_key.public == self.member.peer_key.public
        if forger.number < 2**64 - 1:
            datagram = forger.seal(bites.take(bites.number(2)), self.me) or b""
            assert datagram[4] == FIRST_CONTACT
            self.receive(datagram, None)


def sealed(data: bytes) -> int:
    """Run a story of sealed datagrams."""
    bites = Bites(data)
    loop = StillLoop()
    with loop.running():
        story = SealedStory(loop)
        for _ in range(STEPS_MAX):
            if not bites.left:
                break
            story.step(bites)
    return story.received


def stories() -> Iterable[bytes]:
    """Yield a story of each kind of step."""

    def counted(content: bytes) -> bytes:
        return len(content).to_bytes(2, "big") + content

    for message in messages():
        yield bytes((SENT, 1)) + counted(encode(1, message)) + bytes((SENT, 0)) + counted(encode(2, message))
    yield bytes((CHANGED, 1, 0, 50, 4, 7)) + bytes((CHANGED, 0, 0, 3, 1, 70)) + bytes((KEYS, 1, CHANGED, 1, 0, 1, 1, 1))
    yield bytes((FIRST_CONTACT_STEP, 7)) + bytes(8) + PeerKey(b"x" * 32).public + counted(b"hello")
    forged = (
        bytes((FIRST_CONTACT_STEP, 7)) + (2**63).to_bytes(8, "big") + PeerKey(b"\2" * 32).public + counted(b"hello")
    )
    yield forged + bytes((CHANGED, 0, 0, 3, 1, 70)) + bytes((CHANGED, 1, 0, 3, 1, 70))
    yield bytes((AS_IT_IS, 0)) + counted(KEY.label + bytes(90))


TARGETS = (Target("sealed", sealed, stories, units="datagrams"),)
