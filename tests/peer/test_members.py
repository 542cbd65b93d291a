"""Test a swarm with a key: holders of the key are in, nobody else is, and the key can change during the crawl."""

import asyncio
import socket
import ssl
import sys
from collections.abc import Callable
from contextlib import suppress
from itertools import pairwise
from pathlib import Path

import pytest

from kadcrawl import Config, ConfigError, Peer, RemoteError, StartError
from kadcrawl.link.client import LinkClient
from kadcrawl.link.client_connection import BrokenError
from kadcrawl.link.peer_score import MISBEHAVIORS_MAX
from kadcrawl.link.wire.messages import (
    Add,
    Added,
    Command,
    Contact,
    FindMyCells,
    GetStatus,
    Message,
    MyCells,
    Ok,
    Ping,
    Pong,
    Rekey,
    Status,
)
from kadcrawl.members.credentials import Credentials
from kadcrawl.members.keyring import OVERLAP_S, Keyring
from kadcrawl.members.peer_key import PeerKey
from kadcrawl.members.sealing import NUMBERS_PER_SECOND, Sealing
from kadcrawl.members.swarm_key import SwarmKey
from kadcrawl.overlay import flood_sampler
from kadcrawl.overlay.datagrams import decode, encode
from kadcrawl.overlay.routing import Neighbor
from kadcrawl.peer.environment import Environment
from kadcrawl.peer.membership import key_store
from kadcrawl.peer.membership.key_rotation import ANSWER_S, RUNS_MAX
from kadcrawl.peer.membership.key_store import KeyStore
from scripts.kadcrawl_run import LoggedPage
from tests.support.links.member_requests import KEY, OTHER_KEY, ask
from tests.support.sites.web import Web, tree
from tests.support.swarm.peers import MakePeer, finish
from tests.support.waiting import until

Lines = Callable[[], dict[str, LoggedPage]]


async def test_members_crawl_together_and_their_ids_are_their_keys(make_peer: MakePeer, lines: Lines) -> None:
    async with Web(4) as site:
        site.fallback = tree(60, 4)(site)
        first = await make_peer("a", key=KEY)
        peers = [first, *[await make_peer(name, key=KEY, join=first) for name in "bc"]]
        await first.crawl([site.url("/0")])
        await finish(peers)
    assert len(lines()) == 60
    assert all(line.status == 200 for line in lines().values())
    for peer in peers:
        assert peer.credentials is not None
        assert peer.contact.id == peer.credentials.peer_key.id
        assert peer.overlay.counters.received > 0
        assert peer.overlay.counters.non_members == 0
        assert {other.contact for other in peers} - {peer.contact} == set(peer.overlay.contacts())


@pytest.mark.parametrize("key", [None, OTHER_KEY], ids=["none", "another"])
async def test_whoever_has_not_the_key_is_not_let_in(make_peer: MakePeer, tmp_path: Path, key: SwarmKey | None) -> None:
    first = await make_peer("one", key=KEY)
    with pytest.raises(StartError, match="cannot join"):
        await make_peer("two", key=key, join=first)
    with pytest.raises(RemoteError):
        await ask(first.contact, GetStatus(), Status, tmp_path, key=key)
    assert first.overlay.contacts() == []


async def test_a_member_of_no_swarm_is_told_what_is_wrong(make_peer: MakePeer, tmp_path: Path) -> None:
    first = await make_peer("one")
    with pytest.raises(RemoteError, match="it goes by none"):
        await ask(first.contact, GetStatus(), Status, tmp_path)


async def test_a_non_member_gets_no_byte_of_a_datagram_and_no_certificate(make_peer: MakePeer) -> None:
    peer = await make_peer("one", key=KEY)
    loop = asyncio.get_running_loop()
    heard: list[bytes] = []

    class Listener(asyncio.DatagramProtocol):
        def datagram_received(self, data: bytes, addr: object) -> None:
            heard.append(data)

    transport, _ = await loop.create_datagram_endpoint(Listener, remote_addr=peer.contact.address)
    for label in (b"", KEY.label):
        for length in (0, 1, 40, 77, 78, 500, 1400):
            transport.sendto(label + bytes(length))
    await until(lambda: peer.overlay.counters.received >= 7)  # The others never come as far, on Linux.
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    with pytest.raises((ssl.SSLError, ConnectionError)):
        await asyncio.open_connection(*peer.contact.address, ssl=context)
    reader, writer = await asyncio.open_connection(*peer.contact.address, ssl=context, server_hostname=KEY.name)
    writer.write(b"GET / HTTP/1.1\r\n\r\n")
    with suppress(ssl.SSLError, ConnectionError):
        heard.append(await reader.read())
    writer.transport.abort()
    transport.close()
    assert not any(heard)
    assert peer.overlay.counters.non_members == peer.overlay.counters.received


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere no kernel helps")
async def test_in_a_flood_of_non_members_members_are_still_heard(
    make_peer: MakePeer, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(flood_sampler, "NON_MEMBERS_PER_SECOND_MAX", 50)
    first = await make_peer("one", key=KEY)
    second = await make_peer("two", key=KEY, join=first)
    counters = first.overlay.counters
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as stranger:
        stranger.connect(first.contact.address)

        async def flood() -> None:
            while True:
                with suppress(OSError):  # The test may be over.
                    for _ in range(10):
                        stranger.send(KEY.label + bytes(200))
                await asyncio.sleep(0.01)

        flooding = asyncio.create_task(flood())
        await until(lambda: "overlay.flood one_in=" in caplog.text)
        third = await make_peer("three", key=KEY, join=second)
        await until(lambda: third.contact in first.overlay.contacts())
        strangers, heard, began = (
            counters.non_members,
            counters.received - counters.non_members,
            asyncio.get_running_loop().time(),
        )
        await until(lambda: counters.received - counters.non_members > heard + 10)
        flooding.cancel()
        assert (counters.non_members - strangers) / (asyncio.get_running_loop().time() - began) < 200
    assert {second.contact, third.contact} == set(first.overlay.contacts())
    await until(lambda: "overlay.flood one_in=1 " in caplog.text)


async def test_nobody_speaks_in_the_name_of_another(make_peer: MakePeer, tmp_path: Path) -> None:
    first = await make_peer("one", key=KEY)
    second = await make_peer("two", key=KEY, join=first)
    liar = PeerKey.generate()
    with pytest.raises(RemoteError, match="in the name of another"):
        await ask(first.contact, FindMyCells(second.contact), MyCells, tmp_path, peer_key=liar)
    me = Contact(liar.id, "127.0.0.1", 9)
    assert isinstance(await ask(first.contact, FindMyCells(me), MyCells, tmp_path, peer_key=liar), MyCells)
    assert first.server.malformed == 1


async def test_who_is_asked_must_be_who_answers(make_peer: MakePeer, tmp_path: Path) -> None:
    peer = await make_peer("one", key=KEY)
    assert isinstance(await ask(peer.contact, GetStatus(), Status, tmp_path), Status)
    elsewhere = Contact(PeerKey.generate().id, *peer.contact.address)
    with pytest.raises(RemoteError, match="another peer than the one"):
        await ask(elsewhere, GetStatus(), Status, tmp_path)


async def test_a_peer_keeps_its_key_and_takes_another_id_than_it_had_without(
    make_peer: MakePeer, tmp_path: Path
) -> None:
    config = Config(data=tmp_path / "one", port=0)
    ids = []
    for key in (None, KEY, KEY):
        async with Peer(Config(data=config.data, port=0, swarm_key=key)) as peer:
            await peer.begin()
            ids.append(peer.contact.id)
    assert ids[0] != ids[1] == ids[2]
    for name in ("swarm.key", "peer.key"):
        assert (config.data / name).stat().st_mode & 0o777 == 0o600
    assert sorted(path.name for path in config.data.glob(".*")) == []
    with pytest.raises(StartError, match=r"has a key, in .*/one/swarm\.key: give it, without --insecure, or"):
        async with Peer(config):
            pass


async def test_no_number_is_used_by_two_runs_whatever_the_clock_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first: list[int] = []

    class KilledError(Exception):
        """The end of a run before its first output, as by a kill: nothing more is committed."""

    async def killed(client: LinkClient) -> None:
        assert client._credentials is not None
        first.append(client._credentials.sealing.number)
        raise KilledError

    monkeypatch.setattr(LinkClient, "open", killed)
    config = Config(data=tmp_path / "one", port=0, swarm_key=KEY)
    for now in (1000.0, 1000.25, 1000.5, 10.0, 10.0, 2000.0):
        with pytest.raises(KilledError):
            async with Peer(config, environment=Environment(wall=now)):
                pass
    assert all(after - before >= 2**29 for before, after in pairwise(first)), first
    assert 2000 * NUMBERS_PER_SECOND <= first[-1] < 2001 * NUMBERS_PER_SECOND


async def test_a_clock_far_ahead_is_reported_and_spoils_no_directory(tmp_path: Path) -> None:
    config = Config(data=tmp_path / "one", port=0, swarm_key=KEY)
    for now in (1.8e9, 5e9, float(RUNS_MAX), 1.8e9, RUNS_MAX - 9.0, 1.8e9):
        if now < RUNS_MAX:
            async with Peer(config, environment=Environment(wall=now)):
                pass
        else:
            with pytest.raises(StartError, match="set it right"):
                async with Peer(config, environment=Environment(wall=now)):
                    pass


async def test_without_a_key_it_listens_on_loopback_only(tmp_path: Path) -> None:
    for host in ("0.0.0.0", "::", "::ffff:0.0.0.0", "10.0.0.1"):
        with pytest.raises(StartError, match="listens on loopback only"):
            async with Peer(Config(data=tmp_path, host=host, port=0)):
                pass
    with pytest.raises(ConfigError, match="must be an IP address"):
        Config(data=tmp_path, host="localhost")


async def test_a_second_change_ends_what_was_made_by_the_first_key(make_peer: MakePeer, tmp_path: Path) -> None:
    peer = await make_peer("one", key=KEY)
    client = LinkClient(10_000_000, Credentials(Keyring(KEY), PeerKey.generate(), tmp_path, lambda: 0.0, 0))
    await client.open()
    try:
        for key in (OTHER_KEY, SwarmKey(b"t" * 32)):
            await client.ask(peer.contact, GetStatus(), Status, 10)
            assert peer.key_rotation is not None
            peer.key_rotation.change(key)
        await asyncio.sleep(ANSWER_S + 0.5)  # Less than a connection is kept for that nobody uses.
        with pytest.raises(RemoteError, match="does not let us in"):
            await client.ask(peer.contact, GetStatus(), Status, 10)
    finally:
        await client.close()


async def test_going_back_to_the_former_key_ends_nothing_made_by_either(make_peer: MakePeer, tmp_path: Path) -> None:
    peer = await make_peer("one", key=KEY)
    peer.change_key(OTHER_KEY)
    client = LinkClient(10_000_000, Credentials(Keyring(OTHER_KEY), PeerKey.generate(), tmp_path, lambda: 0.0, 0))
    await client.open()
    try:
        await client.ask(peer.contact, GetStatus(), Status, 10)
        peer.change_key(KEY)
        await asyncio.sleep(ANSWER_S + 0.5)
        await client.ask(peer.contact, GetStatus(), Status, 10)
        assert 1 == client.dialed
    finally:
        await client.close()


async def test_the_former_key_is_good_for_an_hour(make_peer: MakePeer, tmp_path: Path) -> None:
    first = await make_peer("a", key=KEY)
    second = await make_peer("b", key=KEY, join=first)
    now = first.clock.now

    async def rekeyed(peer: Peer) -> None:
        own = KeyStore(tmp_path / ("a" if peer is first else "b")).peer_key()
        assert await ask(peer.contact, Rekey(peer.contact.id, b"o" * 32), Ok, tmp_path, peer_key=own) == Ok()

    await rekeyed(first)

    async def let_in(peer: Peer, key: SwarmKey) -> bool:
        try:
            await ask(peer.contact, GetStatus(), Status, tmp_path, key=key)
        except RemoteError as error:
            return "another swarm's key" not in error.why
        return True

    assert [await let_in(first, key) for key in (KEY, OTHER_KEY)] == [True, True]
    assert [await let_in(second, key) for key in (KEY, OTHER_KEY)] == [True, False]
    third = await make_peer("c", key=OTHER_KEY, join=first)
    await until(lambda: first.overlay.contacts().__len__() == 2)
    assert second.overlay.contacts() == [first.contact], "it knows the former key only"
    await rekeyed(second)
    await until(lambda: all(len(peer.overlay.contacts()) == 2 for peer in (first, second, third)))

    later = OVERLAP_S + 1
    for peer in (first, second):
        peer.clock.now = lambda: now() + later  # type: ignore[method-assign]
        assert peer.key_rotation is not None
        peer.key_rotation._changed.set()
    await until(lambda: all(peer.credentials and peer.credentials.keyring.former is None for peer in (first, second)))
    for peer in (first, second):
        assert [await let_in(peer, key) for key in (KEY, OTHER_KEY)] == [False, True]
    assert all(len(peer.overlay.contacts()) == 2 for peer in (first, second, third))
    assert not (tmp_path / "a" / "swarm.key.former").exists()


async def test_a_connection_made_by_the_former_key_ends_with_its_hour(make_peer: MakePeer, tmp_path: Path) -> None:
    """Otherwise a peer that was left out could use the connection on, as nobody is asked twice for a certificate."""
    peer = await make_peer("one", key=KEY)
    peer.change_key(OTHER_KEY)
    now = peer.clock.now
    client = LinkClient(10_000_000, Credentials(Keyring(KEY), PeerKey.generate(), tmp_path, lambda: 0.0, 0))
    await client.open()
    try:
        await client.ask(peer.contact, GetStatus(), Status, 10)
        peer.clock.now = lambda: now() + OVERLAP_S + 1  # type: ignore[method-assign]
        assert peer.key_rotation is not None
        peer.key_rotation._changed.set()
        await until(lambda: peer.credentials is not None and peer.credentials.keyring.former is None)
        with pytest.raises(RemoteError, match=r"does not let us in|the connection is lost"):
            await client.ask(peer.contact, GetStatus(), Status, 10)
    finally:
        await client.close()


async def test_a_full_disk_at_the_end_of_a_rotation_ends_the_key_not_the_peer(
    make_peer: MakePeer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = await make_peer("a", key=KEY)
    first.change_key(OTHER_KEY)
    now = first.clock.now

    def full(path: Path, secret: bytes) -> None:
        raise StartError(f"cannot write {path}: no space left")

    with monkeypatch.context() as patch:
        patch.setattr(key_store, "write_secret", full)
        first.clock.now = lambda: now() + OVERLAP_S + 1  # type: ignore[method-assign]
        assert first.key_rotation is not None
        first.key_rotation._changed.set()
        await until(lambda: first.credentials is not None and first.credentials.keyring.former is None)
        assert isinstance(await ask(first.contact, GetStatus(), Status, tmp_path, key=OTHER_KEY), Status)
    assert KeyStore(tmp_path / "a").keyring(OTHER_KEY, first.clock.now()).former is None


async def test_no_member_changes_the_key_of_anothers_peer(make_peer: MakePeer, tmp_path: Path) -> None:
    first = await make_peer("a", key=KEY)
    somebody = PeerKey.generate()
    for named, why in ((somebody.id, "only whoever runs a peer"), (first.contact.id, "in the name of another")):
        with pytest.raises(RemoteError, match=why):
            await ask(first.contact, Rekey(named, b"o" * 32), Ok, tmp_path, peer_key=somebody)
    assert first.credentials is not None
    assert first.credentials.keyring == Keyring(KEY)


async def test_a_member_that_sends_nonsense_is_banned_for_a_while(make_peer: MakePeer, tmp_path: Path) -> None:
    first = await make_peer("a", key=KEY)
    second = await make_peer("b", key=KEY, join=first)
    fool = PeerKey.generate()
    client = LinkClient(10_000_000, Credentials(Keyring(KEY), fool, tmp_path, lambda: 0.0, 0))
    await client.open()
    connection = client._connection((*first.contact.address, first.contact.id))
    answers: list[bytes] = []

    async def go_on() -> None:
        while True:
            answers.append(await connection.ask(b"nonsense"))

    with pytest.raises(BrokenError):
        await go_on()
    assert not any(answers)
    assert MISBEHAVIORS_MAX - 2 < len(answers) < 2 * MISBEHAVIORS_MAX
    now = asyncio.get_running_loop().time()
    assert first.peer_score.banned_until(fool.id, now) is not None
    with pytest.raises(RemoteError):
        await client.ask(first.contact, GetStatus(), Status, 10)
    assert isinstance(await client.ask(second.contact, GetStatus(), Status, 10), Status), "it has done nothing to this"
    status = await ask(first.contact, GetStatus(), Status, tmp_path)
    assert isinstance(status, Status)
    assert len(status.answer.rows) == 2, "nobody else is"
    first.peer_score._banned.clear()
    assert isinstance(await client.ask(first.contact, GetStatus(), Status, 10), Status)
    await client.close()


async def test_a_member_is_banned_for_its_datagrams_too(make_peer: MakePeer, tmp_path: Path) -> None:
    first = await make_peer("a", key=KEY)
    protocol = first.overlay._socket
    fool = Sealing(PeerKey.generate(), (KEY,), 0)
    client = LinkClient(10_000_000, Credentials(Keyring(KEY), fool.peer_key, tmp_path, lambda: 0.0, 0))
    await client.open()
    assert isinstance(await client.ask(first.contact, GetStatus(), Status, 10), Status)
    (connection,) = client._connections.values()
    assert first.credentials is not None
    assert fool.open(first.credentials.sealing.seal(b"", None) or b"") is not None, "it knows its key"
    address = ("127.0.0.1", 9)

    def send(said: bytes) -> None:
        protocol.datagram_received(fool.seal(said, first.contact.id) or b"", address)

    ping = encode(1, Ping(fool.peer_key.id, 0))
    sent = protocol.counters.sent
    send(ping)
    assert protocol.counters.sent > sent, "answered"
    for _ in range(int(MISBEHAVIORS_MAX)):
        send(b"nonsense")
        send(encode(1, Ping(bytes(20), 0)))  # As somebody else.
    assert MISBEHAVIORS_MAX <= protocol.counters.malformed < MISBEHAVIORS_MAX + 3
    shunned, sent = protocol.counters.banned, protocol.counters.sent
    send(ping)
    assert (protocol.counters.banned, protocol.counters.sent) == (shunned + 1, sent)
    await until(lambda: connection.task is None)  # It is ended, too.
    await client.close()


async def test_first_contacts_in_the_name_of_another_get_nobody_banned(make_peer: MakePeer) -> None:
    first = await make_peer("a", key=KEY)
    forger, honest = Sealing(PeerKey.generate(), (KEY,), 0), PeerKey.generate()
    forger.peer_key.public = honest.public
    for _ in range(3 * int(MISBEHAVIORS_MAX)):
        first.overlay._socket.datagram_received(forger.seal(b"nonsense", None) or b"", ("127.0.0.1", 9))
    assert first.overlay.counters.malformed == 3 * MISBEHAVIORS_MAX
    assert first.peer_score.banned_until(honest.id, asyncio.get_running_loop().time()) is None


async def test_an_answer_in_the_name_of_another_is_none(make_peer: MakePeer) -> None:
    """Any member can read a first-contact handshake, and answer it in the name of the peer that was asked."""
    first = await make_peer("a", key=KEY)
    forger, absent = Sealing(PeerKey.generate(), (KEY,), 0), PeerKey.generate()
    forger.peer_key.public, forger.peer_key.id = absent.public, absent.id
    loop = asyncio.get_running_loop()
    read: list[Message] = []

    class Forger(asyncio.DatagramProtocol):
        def connection_made(self, transport: asyncio.DatagramTransport) -> None:  # type: ignore[override]
            self.transport = transport

        def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
            if (opened := forger.open(data)) is not None:
                number, message = decode(opened.plaintext)
                read.append(message)
                forger._by_id.clear()  # It cannot answer but by an introduction.
                self.transport.sendto(forger.seal(encode(number, Pong(absent.id, 0)), first.contact.id) or b"", addr)

    transport, _ = await loop.create_datagram_endpoint(Forger, local_addr=("127.0.0.1", 0))
    unexpected = first.overlay.counters.unexpected
    first.overlay._socket.welcome_if_new(Neighbor(Contact(absent.id, *transport.get_extra_info("sockname"))))
    await until(lambda: first.overlay.contacts() != [] or first.overlay.counters.unexpected > unexpected)
    transport.close()
    assert read, "asked, as it might be there"
    assert first.overlay.contacts() == []


async def test_the_journal_is_for_its_owner_alone(tmp_path: Path) -> None:
    """The journal contains credentials of proxies, and a process that can open the lock can take the lock."""
    for name in ("peer.sqlite", "lock"):
        (tmp_path / name).touch(0o644)
    async with Peer(Config(data=tmp_path, port=0, swarm_key=KEY)) as peer:
        await peer.begin()
        assert {path.stat().st_mode & 0o777 for path in tmp_path.glob("peer.sqlite*")} == {0o600}
        assert (tmp_path / "lock").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("key", [None, OTHER_KEY], ids=["none", "another"])
@pytest.mark.parametrize(
    "order", [Add(["http://a.example/"]), *(Command(verb) for verb in ("pause", "stop", "leave"))], ids=str
)
async def test_whoever_has_not_the_key_gives_no_orders(
    make_peer: MakePeer, tmp_path: Path, order: Message, key: SwarmKey | None
) -> None:
    peer = await make_peer("one", key=KEY)
    before = (peer.runtime.swarm_state, peer.job, peer.pending)
    with pytest.raises(RemoteError):
        await ask(peer.contact, order, Added if isinstance(order, Add) else Ok, tmp_path, key=key)
    assert before == (peer.runtime.swarm_state, peer.job, peer.pending)
    assert (False, False, False) == (peer.paused, peer.ended, peer.cells.holder_side.leaving)
    assert isinstance(await ask(peer.contact, GetStatus(), Status, tmp_path), Status)


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere each is looked at")
async def test_what_begins_as_no_members_do_never_reaches_a_peer(make_peer: MakePeer) -> None:
    peer = await make_peer("one", key=KEY)
    received = peer.overlay.counters.received
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as stranger:
        for _ in range(50):
            stranger.sendto(b"stray" * 20, peer.contact.address)
        stranger.sendto(KEY.label + bytes(100), peer.contact.address)
    await until(lambda: peer.overlay.counters.received > received)
    assert 1 == peer.overlay.counters.received - received, "the last of them"
