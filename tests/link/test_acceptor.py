"""Test that peers which only hold a pending handshake keep nobody out, and cost a bounded number of files."""

import asyncio
import contextlib
import socket
import ssl
from pathlib import Path

import pytest

from kadcrawl.link import acceptor, server as server_module
from kadcrawl.link.client import LinkClient
from kadcrawl.link.peer_score import LogLimiter
from kadcrawl.link.server import CONNECTIONS_PER_PEER_MAX, LinkServer
from kadcrawl.link.wire.messages import Hello, Ok
from kadcrawl.members.credentials import Credentials
from kadcrawl.members.keyring import Keyring
from kadcrawl.members.peer_key import PeerKey
from kadcrawl.members.swarm_key import SwarmKey
from tests.support.links.member_links import KEYRING, credentials, files, is_answered, served
from tests.support.waiting import until

KNOCKING = 5


async def test_a_member_gets_in_past_any_number_who_only_stand_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(acceptor, "HANDSHAKES_MAX", KNOCKING)
    async with served(tmp_path) as (server, gate, address):
        standing = [socket.create_connection(address) for _ in range(10 * KNOCKING)]
        await until(lambda: server.non_members == 9 * KNOCKING)
        assert len(gate._pending) == KNOCKING
        assert await is_answered(address, tmp_path)
        for one in standing:
            one.close()
        await until(lambda: not gate._pending)
        assert server.non_members == 10 * KNOCKING


async def test_many_from_one_place_keep_nobody_out_who_comes_from_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(acceptor, "HANDSHAKES_MAX", KNOCKING)
    async with served(tmp_path) as (server, gate, address), contextlib.AsyncExitStack() as knocking:
        knocking.enter_context(socket.create_connection(address, source_address=("127.0.0.2", 0)))
        await until(lambda: len(gate._pending) == 1)
        for count in range(1, 4 * KNOCKING):
            knocking.enter_context(socket.create_connection(address))
            await until(lambda: server.non_members == max(0, count + 1 - KNOCKING))  # noqa: B023 -- awaited here
            assert "127.0.0.2" in {knock.host for knock in gate._pending.values()}


async def test_a_member_that_is_let_in_and_says_nothing_is_sent_away(tmp_path: Path) -> None:
    async with served(tmp_path) as (_, _, address), contextlib.AsyncExitStack() as stack:
        client = LinkClient(1_000_000, credentials(tmp_path))
        await client.open()
        stack.push_async_callback(client.close)
        assert await client.ask(address, Hello(1), Ok, 10) == Ok()
        (kept,) = client._connections.values()
        ((key, shown),) = credentials(tmp_path).to_dial
        reader, writer = await asyncio.open_connection(*address, ssl=shown, server_hostname=key.name)
        assert await asyncio.wait_for(reader.read(), 60) == b""
        writer.close()
        assert await client.ask(address, Hello(1), Ok, 10) == Ok()
        assert [kept] == list(client._connections.values()), "one that asks is kept"


async def test_one_member_holds_no_more_connections_than_it_may(tmp_path: Path) -> None:
    async with served(tmp_path) as (server, _, address), contextlib.AsyncExitStack() as stack:
        greedy = credentials(tmp_path)
        clients = [LinkClient(1_000_000, greedy) for _ in range(3 * CONNECTIONS_PER_PEER_MAX)]
        for client in clients:
            await client.open()
            stack.push_async_callback(client.close)
            assert await client.ask(address, Hello(1), Ok, 10) == Ok()
        await until(lambda: len(server._incoming) == CONNECTIONS_PER_PEER_MAX)
        assert await clients[0].ask(address, Hello(1), Ok, 10) == Ok(), "its oldest was ended: it dials anew"
        assert await is_answered(address, tmp_path)
        assert len(server._incoming) <= CONNECTIONS_PER_PEER_MAX + 1


async def test_members_hold_no_more_connections_than_all_together_may(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server_module, "SERVER_CONNECTIONS_MAX", 4)
    async with served(tmp_path) as (server, _, address), contextlib.AsyncExitStack() as stack:

        async def client(shown: Credentials) -> LinkClient:
            one = LinkClient(1_000_000, shown)
            await one.open()
            stack.push_async_callback(one.close)
            assert await one.ask(address, Hello(1), Ok, 10) == Ok()
            return one

        honest, greedy = await client(credentials(tmp_path)), credentials(tmp_path)
        (kept,) = server._incoming
        for _ in range(6):
            await client(greedy)
            await until(lambda: len(server._incoming) <= 4)
        assert kept in server._incoming, "who has most is parted from"
        others = [await client(credentials(tmp_path)) for _ in range(2)]
        await until(lambda: len(server._incoming) == 4)
        assert kept in server._incoming
        for one in (honest, *others):
            assert await one.ask(address, Hello(1), Ok, 10) == Ok()
        quiet, *_ = sorted(server._incoming, key=lambda one: one.heard_at)
        others.append(await client(credentials(tmp_path)))
        await until(lambda: len(server._incoming) == 4)
        assert quiet not in server._incoming, "of those who have as many, who was quiet longest"
        assert kept in server._incoming
        quiet, other, *_ = sorted(server._incoming, key=lambda one: one.heard_at)
        quiet.under_way = 1
        others.append(await client(credentials(tmp_path)))
        await until(lambda: len(server._incoming) == 4)
        assert quiet in server._incoming, "whoever waits for an answer is not quiet"
        assert other not in server._incoming


async def test_it_is_said_who_was_refused_and_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    nobody = ssl.create_default_context()
    nobody.check_hostname, nobody.verify_mode = False, ssl.CERT_NONE
    forger = Credentials(Keyring(SwarmKey(b"x" * 32)), PeerKey.generate(), tmp_path, lambda: 0.0, 0).to_dial[0][1]
    forger.verify_mode = ssl.CERT_NONE
    async with served(tmp_path) as (server, _, address):
        for shown, name, why in (
            (nobody, "a.example", "it does not use a key of this swarm"),
            (nobody, KEYRING.key.name, "it has no certificate"),
            (forger, KEYRING.key.name, "its certificate is not of this swarm"),
            (None, None, "it did not prove to be a member within 0 s"),
        ):
            if shown is None:
                monkeypatch.setattr(acceptor, "HANDSHAKE_S", 0.05)
            server._lines = LogLimiter()
            before = server.non_members
            with contextlib.suppress(OSError):
                _, writer = await asyncio.open_connection(*address, ssl=shown, server_hostname=name)
                await until(lambda: server.non_members > before)  # noqa: B023 -- awaited here
                writer.close()
            await until(lambda: server.non_members == before + 1)  # noqa: B023 -- awaited here
            assert caplog.messages[-1] == f"link.non_member from=127.0.0.1 why={why}"


async def test_who_does_not_prove_to_be_a_member_in_time_is_sent_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with served(tmp_path) as (server, _, address):
        before = files()
        with monkeypatch.context() as patch:
            patch.setattr(acceptor, "HANDSHAKE_S", 0.05)
            for said in (b"", b"\x16\x03\x01", b"GET / HTTP/1.1\r\n\r\n", b"\x16\x03\x01\x40\x00" + bytes(20_000)):
                turned_away = server.non_members
                with socket.create_connection(address) as stranger:
                    stranger.setblocking(False)
                    await asyncio.get_running_loop().sock_sendall(stranger, said)
                    await until(lambda: server.non_members > turned_away)  # noqa: B023 -- awaited here
            await until(lambda: files() <= before)
        assert await is_answered(address, tmp_path)
        assert server.malformed == 0


async def test_without_a_file_left_it_waits_for_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(acceptor, "RETRY_S", 0.01)
    refusals = 0
    accept = socket.socket.accept

    def refused(listening: socket.socket) -> tuple[socket.socket, object]:
        nonlocal refusals
        if refusals < 3:
            refusals += 1
            raise OSError(24, "Too many open files")
        return accept(listening)

    monkeypatch.setattr(socket.socket, "accept", refused)
    async with served(tmp_path) as (_, _, address):
        assert await is_answered(address, tmp_path)
    assert refusals == 3


async def test_without_a_file_left_it_tries_now_and_then(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The unaccepted connection remains in the queue, so without a pause the acceptor would do nothing else."""
    monkeypatch.setattr(acceptor, "RETRY_S", 3600.0)
    tries = 0

    def refused(listening: socket.socket) -> tuple[socket.socket, object]:
        nonlocal tries
        tries += 1
        raise OSError(24, "Too many open files")

    monkeypatch.setattr(socket.socket, "accept", refused)
    async with served(tmp_path) as (_, _, address):
        with socket.create_connection(address):
            await until(lambda: tries)
            for _ in range(100):
                await asyncio.sleep(0)
    assert 1 == tries


async def test_a_connection_that_comes_while_the_acceptor_closes_is_closed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The acceptor closes before anything else has a turn."""
    accepted: list[socket.socket] = []
    accept, loop = socket.socket.accept, asyncio.get_running_loop()
    closing: list[asyncio.Task[None]] = []

    def noted(listening: socket.socket) -> tuple[socket.socket, object]:
        accepted.append((connection := accept(listening))[0])
        closing.append(loop.create_task(gate.close()))
        return connection

    monkeypatch.setattr(socket.socket, "accept", noted)
    async with served(tmp_path) as (_, gate, address):
        await asyncio.sleep(0)  # The acceptor waits by then.
        with socket.create_connection(address):
            await until(lambda: closing)
            await asyncio.gather(*closing)
    assert [-1] == [connection.fileno() for connection in accepted]


async def test_an_address_in_use_is_an_error_at_once(tmp_path: Path) -> None:
    async with served(tmp_path) as (_, _, address):
        server = LinkServer(1_000_000, credentials(tmp_path))
        with pytest.raises(OSError, match="in use"):
            await server.listen(*address)


def test_a_network_of_ipv6_is_one_source() -> None:
    assert (
        acceptor._source("2001:db8::1") == acceptor._source("2001:db8::2%eth0") != acceptor._source("2001:db8:0:1::1")
    )
    assert acceptor._source("127.0.0.1") != acceptor._source("127.0.0.2")
    assert acceptor._source("::ffff:10.0.0.1") != acceptor._source("::ffff:10.0.0.2")
