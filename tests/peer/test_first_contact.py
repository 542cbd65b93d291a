"""Test the first-contact handshake in the name of another peer: it causes nothing but a ping."""

import asyncio

import pytest

from kadcrawl import Peer
from kadcrawl.link.peer_score import MISBEHAVIORS_MAX
from kadcrawl.link.wire.messages import Contact, FindNode, GetRange, Leave, Message, Ping
from kadcrawl.members.peer_key import PeerKey
from kadcrawl.members.sealing import Sealing
from kadcrawl.members.swarm_key import SwarmKey
from kadcrawl.overlay.datagrams import encode
from kadcrawl.overlay.protocol import NON_MEMBERS_PER_LOG_CHECK, DatagramProtocol
from tests.support.swarm.peers import MakePeer
from tests.support.waiting import until

KEY = SwarmKey(b"k" * 32)
COURSE = 77


async def acquainted_peers(make_peer: MakePeer) -> tuple[DatagramProtocol, Peer, Peer]:
    """Return two peers that know each other, and before them the socket of the first."""
    first = await make_peer("a", key=KEY)
    second = await make_peer("b", key=KEY, join=first)
    await until(lambda: first.overlay.contacts() == [second.contact])
    return first.overlay._socket, first, second


def peer_key_of(peer: Peer) -> PeerKey:
    assert peer.credentials is not None
    return peer.credentials.peer_key


def forger(absent: PeerKey) -> Sealing:
    """Return a member that takes the name of another peer.

    A peer that the member does not know hears only its first-contact handshake.
    """
    forger = Sealing(PeerKey.generate(), (KEY,), 2**63)
    forger.peer_key.public, forger.peer_key.id = absent.public, absent.id
    return forger


def make_first_contact(to: Peer, absent: Peer, message: Message, address: tuple[str, int] | None = None) -> None:
    datagram = forger(peer_key_of(absent)).seal(encode(1, message), to.contact.id)
    assert datagram is not None
    before = to.overlay.counters.non_members
    to.overlay._socket.datagram_received(datagram, address or absent.contact.address)
    assert before == to.overlay.counters.non_members, "it is read"


async def test_no_first_contact_says_goodbye_for_another(make_peer: MakePeer) -> None:
    _, first, second = await acquainted_peers(make_peer)
    make_first_contact(first, second, Leave(second.contact.id))
    assert [second.contact] == first.overlay.contacts()


async def test_no_first_contact_is_a_heartbeat_of_another(make_peer: MakePeer) -> None:
    """Else who is gone could be kept in all tables."""
    _, first, second = await acquainted_peers(make_peer)
    pulse = first.overlay._membership.liveness._members[second.contact.id]
    pulse.heard_at = -1e9
    make_first_contact(first, second, Ping(second.contact.id, 0))
    assert -1e9 == pulse.heard_at


async def test_no_first_contact_tells_the_swarm_state_of_another(
    make_peer: MakePeer, monkeypatch: pytest.MonkeyPatch
) -> None:
    protocol, first, second = await acquainted_peers(make_peer)
    told: list[int] = []
    monkeypatch.setattr(protocol, "_on_heartbeat", lambda contact, course, crawl_ms: told.append(course))
    make_first_contact(first, second, Ping(second.contact.id, 0, COURSE))
    assert COURSE not in told


async def test_first_contacts_in_the_name_of_a_third_get_nobody_banned(make_peer: MakePeer) -> None:
    protocol, first, second = await acquainted_peers(make_peer)
    liar, before = forger(peer_key_of(second)), protocol.counters.malformed
    for _ in range(3 * int(MISBEHAVIORS_MAX)):
        datagram = liar.seal(encode(1, Ping(bytes(20), 0)), first.contact.id)
        protocol.datagram_received(datagram or b"", ("127.0.0.1", 9))
    assert 3 * MISBEHAVIORS_MAX == protocol.counters.malformed - before
    assert first.peer_score.banned_until(second.contact.id, asyncio.get_running_loop().time()) is None


async def test_the_log_names_non_members_and_nonsense_by_datagrams_in_few_lines(
    make_peer: MakePeer, caplog: pytest.LogCaptureFixture
) -> None:
    first = await make_peer("a", key=KEY)
    protocol, fool = first.overlay._socket, Sealing(PeerKey.generate(), (KEY,), 0)
    for _ in range(3 * NON_MEMBERS_PER_LOG_CHECK):
        protocol.datagram_received(KEY.label + bytes(100), ("10.9.8.7", 9))
    for _ in range(30):
        protocol.datagram_received(fool.seal(b"nonsense", first.contact.id) or b"", ("10.9.8.6", 9))
    said = [line.split()[:2] for line in caplog.messages if line.startswith("overlay.")]
    assert [["overlay.non_member", "from=10.9.8.7:9"], ["overlay.malformed", "from=10.9.8.6:9"]] == said


async def test_the_log_names_who_is_banned_for_its_datagrams(
    make_peer: MakePeer, caplog: pytest.LogCaptureFixture
) -> None:
    first = await make_peer("a", key=KEY)
    protocol, fool = first.overlay._socket, Sealing(PeerKey.generate(), (KEY,), 0)
    assert first.credentials is not None
    assert fool.open(first.credentials.sealing.seal(b"", None) or b"") is not None, "it knows its key"
    for _ in range(3 * int(MISBEHAVIORS_MAX)):
        protocol.datagram_received(fool.seal(b"nonsense", first.contact.id) or b"", ("10.9.8.6", 9))
    who = fool.peer_key.id.hex()[:8]
    banned = f"overlay.banned from=10.9.8.6:9 why={who} has misbehaved too often"
    assert [banned] == [line for line in caplog.messages if "banned" in line]


@pytest.mark.parametrize("asked", [Ping, FindNode, GetRange])
async def test_a_first_contact_brings_its_named_peer_a_few_times_its_bytes(
    make_peer: MakePeer, monkeypatch: pytest.MonkeyPatch, asked: type[Message]
) -> None:
    """The datagram may come from anywhere, with any address in it."""
    protocol, first, _ = await acquainted_peers(make_peer)
    contacts = [Contact(bytes((number,)) * 20, f"192.168.100.{number}", 65_000) for number in range(100, 120)]
    monkeypatch.setattr(first.overlay._membership, "nearest", lambda target, count, exclude=None: contacts)
    victim, sent = ("127.0.0.9", 9), 0
    transport = protocol.transport
    assert transport is not None

    class Transport:
        def sendto(self, datagram: bytes, address: tuple[str, int]) -> None:
            nonlocal sent
            sent += len(datagram) if address == victim else 0

        def is_closing(self) -> bool:
            return False

    monkeypatch.setattr(protocol, "transport", Transport())
    liar = PeerKey.generate()
    message = {Ping: Ping(liar.id, 0), FindNode: FindNode(liar.id, bytes(20)), GetRange: GetRange(liar.id)}[asked]
    datagram = Sealing(liar, (KEY,), 2**63).seal(encode(1, message), first.contact.id)
    assert datagram is not None
    protocol.datagram_received(datagram, victim)
    await asyncio.sleep(protocol._settings.timeout_s + 0.2)
    assert 2 * len(datagram) < sent <= 5 * len(datagram), "an answer, and two pings"
    monkeypatch.setattr(protocol, "transport", transport)
