"""The datagram shell under bytes of every kind."""

import asyncio
import socket
import struct
from random import Random
from typing import Any

import msgpack
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from kadcrawl.keys import NodeId, id_bytes
from kadcrawl.link.wire.codec import MalformedError
from kadcrawl.link.wire.messages import (
    DATAGRAM_BYTES_MAX,
    SMALL_MAX,
    WIRE_VERSION,
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
from kadcrawl.overlay import Overlay
from kadcrawl.overlay.addresses import ip_version, sendable
from kadcrawl.overlay.datagrams import KINDS, decode, encode, fitting
from sim.loop import SimLoop
from tests.support.swarm.overlay_peers import ip, our_peer, scripted_peer

ANNE, BERT = 1 << 150, 2 << 150
ID = id_bytes(BERT)


def datagram(kind: int, body: Any, version: int = WIRE_VERSION) -> bytes:
    packed: bytes = msgpack.packb(body)
    return struct.pack("!BBQ", version, kind, 7) + packed


MALFORMED = [
    b"",
    b"\x01",
    b"\x01" * 9,
    b"\x01\x00" + bytes(8),  # a header without a message
    b"\x00" * 2000,
    datagram(0, ["Ping", ID, 0], version=WIRE_VERSION + 2),
    datagram(len(KINDS), ["Ping", ID, 0]),
    datagram(len(KINDS), ["OwnRange", ID, ID]),  # as the last kind would say
    datagram(255, ["Ping", ID, 0]),
    datagram(2, ["Ping", ID, 0]),  # another kind than the header says
    datagram(0, ["Ping", ID]),
    datagram(0, ["Ping", ID, 0, 0, -1]),
    datagram(0, ["Ping", ID, 0, -1]),
    datagram(0, ["Ping", ID, 0, 2**32]),
    datagram(0, ["Ping", ID[:19], 0]),
    datagram(0, ["Ping", "x" * 20, 0]),
    datagram(0, ["Ping", ID, -SMALL_MAX - 1]),
    datagram(0, ["Ping", ID, 2**63]),
    datagram(0, ["Ping", ID, None]),
    datagram(0, ["Pang", ID, 0]),
    datagram(0, {"Ping": ID}),
    datagram(0, 17),
    datagram(0, ["Ping", ID, 0]) + b"\x00",
    datagram(0, ["Ping", ID, 0])[:-1],
    datagram(7, ["OwnRange", ID, 5]),
    datagram(7, ["OwnRange", ID, ID[:19]]),
    datagram(3, ["Nodes", ID, [[ID, "10.0.0.1", 0]]]),
    datagram(3, ["Nodes", ID, [[ID, "10.0.0.1", 99_999]]]),
    datagram(3, ["Nodes", ID, [[ID, None, 1]]]),
    datagram(3, ["Nodes", ID, [[ID, "x" * 65, 1]]]),
    datagram(3, ["Nodes", ID, [[ID, "10.0.0.1", 1]] * 21]),
    struct.pack("!BBQ", WIRE_VERSION, 0, 7) + b"\x91" * 1100,  # nested too deep
    struct.pack("!BBQ", WIRE_VERSION, 0, 7) + b"\xdf\xff\xff\xff\xff",  # a map of four billion
    struct.pack("!BBQ", WIRE_VERSION, 0, 7) + b"\xc7\x0c\xff" + bytes(12),  # a time stamp
    struct.pack("!BBQ", WIRE_VERSION, 0, 7) + b"\xa4\xff\xff\xff\xff",  # not UTF-8
    struct.pack("!BBQ", WIRE_VERSION, 0, 7) + b"\x81\x90\x01",  # a map with a list for a key
]


@pytest.mark.parametrize("data", MALFORMED)
def test_malformed_datagrams_are_refused(data: bytes) -> None:
    with pytest.raises(MalformedError):
        decode(data)


def test_malformed_datagrams_change_nothing(loop: SimLoop) -> None:
    async def story() -> None:
        anne = await our_peer(loop, 0, ANNE)
        stranger = await scripted_peer(loop, 1)
        for data in MALFORMED:
            stranger.transport.sendto(data, (ip(0), 4160))
        await asyncio.sleep(5)
        assert len(MALFORMED) == anne.counters.malformed == anne.counters.received
        assert anne.counters.sent == 0
        assert [] == anne.contacts() == stranger.heard
        stranger.send(Ping(ID, 0), 0)
        await asyncio.sleep(1)
        assert Pong(anne.me.id, 0) in stranger.heard
        await anne.close()

    loop.run_until_complete(story())


plain = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.floats() | st.binary() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text() | st.binary(), inner, max_size=4),
    max_leaves=20,
)


@given(
    st.binary(max_size=1300)
    | st.builds(lambda kind, body: datagram(kind, body)[:1300], st.integers(0, len(KINDS) + 1), plain)
    | st.builds(
        lambda kind, fields: datagram(kind, [KINDS[kind].__name__, *fields]),
        st.integers(0, len(KINDS) - 1),
        st.lists(st.just(ID) | plain, max_size=3),
    )
)
@settings(max_examples=300, suppress_health_check=[HealthCheck.too_slow], deadline=None)
def test_any_bytes_are_a_message_or_malformed(data: bytes) -> None:
    try:
        _, message = decode(data)
    except MalformedError:
        return
    assert isinstance(message, KINDS)


CONTACT = Contact(ID, "10.0.0.1", 65_535)


@pytest.mark.parametrize(
    "message",
    [
        Ping(ID, 5),
        Pong(ID, 0),
        FindNode(ID, ID),
        Nodes(ID, [CONTACT]),
        Leave(ID),
        Left(ID),
        GetRange(ID),
        OwnRange(ID, ID),
    ],
)
def test_messages_survive_the_wire(message: Message) -> None:
    assert (2**64 - 1, message) == decode(encode(2**64 - 1, message))


@pytest.mark.parametrize(("host", "count"), [("255.255.255.25", 20), ("2001:db8:" + ":".join(["ffff"] * 6), 16)])
def test_as_many_contacts_are_sent_as_fit_one_datagram(host: str, count: int) -> None:
    sent = fitting([Contact(ID, host, 65_535)] * 20)
    assert count == len(sent)
    assert len(encode(2**64 - 1, Nodes(ID, sent))) <= DATAGRAM_BYTES_MAX


@pytest.mark.parametrize(
    ("host", "version"),
    [
        ("127.0.0.1", 4),
        ("203.0.113.7", 4),
        ("::1", 6),
        ("2001:db8::1", 6),
        ("0.0.0.0", None),
        ("::", None),
        ("224.0.0.1", None),
        ("ff02::1", None),
        ("255.255.255.255", None),
        ("fe80::1%eth0", None),
        ("localhost", None),
        ("127.1", None),
        ("010.0.0.1", None),
        ("2001:DB8::1", None),
        ("2001:db8:0::1", None),
        ("", None),
        ("\0", None),
    ],
)
def test_addresses_a_datagram_may_go_to(host: str, version: int | None) -> None:
    assert version == ip_version(host)


def test_a_socket_sends_only_to_its_own_ip_version() -> None:
    assert sendable(CONTACT, 4)
    assert not sendable(CONTACT, 6)


def test_unasked_replies_are_counted_and_dropped(loop: SimLoop) -> None:
    async def story() -> None:
        anne = await our_peer(loop, 0, ANNE)
        stranger = await scripted_peer(loop, 1)
        for reply in (Pong(ID, 0), Nodes(ID, [CONTACT]), Left(ID)):
            stranger.send(reply, 0)
        await asyncio.sleep(1)
        assert anne.counters.unexpected == 3
        assert anne.contacts() == []
        await anne.close()

    loop.run_until_complete(story())


def test_a_reply_of_another_kind_answers_nothing(loop: SimLoop) -> None:
    async def story() -> None:
        anne = await our_peer(loop, 0, ANNE)
        await scripted_peer(loop, 1, lambda message: Left(ID))
        anne.suspect(Contact(ID, ip(1), 4160))
        await asyncio.sleep(1)
        assert anne.counters.timeouts == 1
        assert anne.contacts() == []
        await anne.close()

    loop.run_until_complete(story())


def test_non_members_cannot_make_a_peer_ping_without_bound(loop: SimLoop) -> None:
    async def story() -> None:
        anne = await our_peer(loop, 0, ANNE)
        stranger = await scripted_peer(loop, 1)
        for number in range(1000):
            stranger.send(Ping(id_bytes((number + 2) << 140), 0), 0)
        await asyncio.sleep(0.1)
        pings = [message for message in stranger.heard if isinstance(message, Ping)]
        assert len(pings) == 64
        await anne.close()

    loop.run_until_complete(story())


def test_own_requests_in_flight_are_bounded(loop: SimLoop) -> None:
    async def story() -> None:
        anne = await our_peer(loop, 0, ANNE)
        silent = await scripted_peer(loop, 1)
        async with asyncio.TaskGroup() as group:
            for _ in range(300):
                group.create_task(anne._socket.ping((ip(1), 4160), anne.me.id))
            await asyncio.sleep(0.2)
            assert len(silent.heard) == 256
        await anne.close()

    loop.run_until_complete(story())


def test_a_lost_question_is_sent_once_more_under_the_same_id(loop: SimLoop) -> None:
    async def story() -> None:
        anne = await our_peer(loop, 0, ANNE)
        scripted = await scripted_peer(loop, 1, lambda message: None)
        anne.suspect(Contact(ID, ip(1), 4160))
        await asyncio.sleep(0.2)
        assert len(scripted.heard) == 1
        await asyncio.sleep(0.3)
        assert len(scripted.heard) == 2
        await asyncio.sleep(1)
        assert len(scripted.heard) == 2
        await anne.close()

    loop.run_until_complete(story())


def test_a_message_larger_than_a_datagram_may_be_is_malformed() -> None:
    """UDP carries sixty times as much, and each byte costs more memory than its size."""
    large = encode(1, Nodes(ID, [Contact(ID, "1" * 64, 1)] * 20))
    assert len(large) > DATAGRAM_BYTES_MAX
    with pytest.raises(MalformedError):
        decode(large)


def test_peers_whose_loops_stall_together_lose_nobody(loop: SimLoop) -> None:
    """Peers of one process, or of one overloaded machine, all miss the same pings."""
    lost: list[Contact] = []

    async def story() -> None:
        anne = await our_peer(loop, 0, ANNE)
        bert = await our_peer(loop, 1, BERT, bootstrap=0)
        for peer in (anne, bert):
            peer.on_lost.append(lost.append)
        hosts = [loop.network.hosts[ip(number)] for number in range(2)]
        for turn in range(41):
            for host in hosts:
                loop.freeze(host)
            await asyncio.sleep(1.0)
            for host in hosts[: 2 if turn % 8 == 0 else 1]:  # One has much more to do.
                loop.thaw(host)
            await asyncio.sleep(0.05)
        assert ([bert.me], [anne.me]) == (anne.contacts(), bert.contacts())
        await anne.close()
        await bert.close()

    loop.run_until_complete(story())
    assert [] == lost


def test_a_peer_whose_loop_always_stalls_still_finds_that_another_is_dead(loop: SimLoop) -> None:
    async def story() -> None:
        anne = await our_peer(loop, 0, ANNE)
        await our_peer(loop, 1, BERT, bootstrap=0)
        await asyncio.sleep(1.0)
        assert 1 == len(anne.contacts())
        loop.kill(loop.network.hosts[ip(1)])
        for _ in range(60):
            loop.freeze(loop.network.hosts[ip(0)])
            await asyncio.sleep(0.9)
            loop.thaw(loop.network.hosts[ip(0)])
            await asyncio.sleep(0.05)
        assert [] == anne.contacts()
        await anne.close()

    loop.run_until_complete(story())


async def test_all_datagrams_that_wait_are_read_in_one_turn_of_the_loop() -> None:
    """With one in each turn, a loop of long turns answers its siblings too late."""
    anne = Overlay(NodeId(ANNE), Random(1), cell_bits=16)
    await anne.listen("127.0.0.1", 0)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        for _ in range(50):
            sender.sendto(b"x", anne.me.address)
    turns = 0
    while anne.counters.received < 50:
        await asyncio.sleep(0)
        turns += 1
        assert turns < 10
    await anne.close()
