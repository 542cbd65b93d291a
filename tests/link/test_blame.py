"""Test the log lines about rejected members, how often they appear, and which member is asked nothing more."""

import asyncio
import contextlib
from pathlib import Path

import pytest

from kadcrawl.errors import RemoteError
from kadcrawl.link.client import LinkClient
from kadcrawl.link.client_connection import BrokenError, ClientConnection
from kadcrawl.link.peer_score import MISBEHAVIORS_MAX, Misbehavior, PeerScore
from kadcrawl.link.server import CONNECTIONS_PER_PEER_MAX, LinkServer, RemotePeer
from kadcrawl.link.wire.messages import Contact, GetStatus, Hello, Ok
from kadcrawl.members.credentials import Credentials
from tests.support.links.member_links import credentials, is_answered, served
from tests.support.waiting import until

MANY = 3 * int(MISBEHAVIORS_MAX)


def peer_id(of: LinkServer | Credentials) -> bytes:
    one = of._credentials if isinstance(of, LinkServer) else of
    assert one is not None
    return one.peer_key.id


def blame_logged(caplog: pytest.LogCaptureFixture, who: Credentials) -> list[str]:
    """Return the log lines about this member, without reasons."""
    by = f" from={peer_id(who).hex()[:8]}@127.0.0.1 why="
    return [line.partition(by)[0] for line in caplog.messages if by in line]


def shun(conduct: PeerScore, peer: bytes) -> None:
    now = asyncio.get_running_loop().time()
    assert [conduct.note(peer, Misbehavior.MALFORMED, now) for _ in range(int(MISBEHAVIORS_MAX))][-1]


async def talk_nonsense(connection: ClientConnection) -> None:
    for _ in range(MANY):
        await connection.ask(b"nonsense")


async def test_the_log_names_a_misbehaving_peer_and_its_ban_in_few_lines(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with served(tmp_path) as (server, _, address):
        fool = credentials(tmp_path)
        client = LinkClient(1_000_000, fool)
        await client.open()
        with pytest.raises(BrokenError):
            await talk_nonsense(client._connection((*address, None)))
        assert ["link.malformed", "link.banned"] == blame_logged(caplog, fool)
        for _ in range(5):
            with pytest.raises(RemoteError):
                await client.ask(address, Hello(1), Ok, 5)
        await client.close()
        assert MISBEHAVIORS_MAX <= server.malformed < MANY
        assert ["link.malformed", "link.banned"] == blame_logged(caplog, fool)
        assert await is_answered(address, tmp_path)


async def test_the_log_names_who_opens_connection_upon_connection_in_one_line(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with served(tmp_path) as (_, _, address), contextlib.AsyncExitStack() as stack:
        greedy = credentials(tmp_path)
        for _ in range(CONNECTIONS_PER_PEER_MAX + 5):
            client = LinkClient(1_000_000, greedy)
            await client.open()
            stack.push_async_callback(client.close)
            assert Ok() == await client.ask(address, Hello(1), Ok, 10)
        assert ["link.crowded"] == blame_logged(caplog, greedy)


async def test_who_answers_nonsense_again_and_again_is_asked_nothing_for_a_while(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    asked = 0

    async def nonsense(asker: RemotePeer, question: bytes) -> bytes:
        nonlocal asked
        asked += 1
        return b"nonsense"

    async with served(tmp_path) as (server, _, address), contextlib.AsyncExitStack() as stack:
        monkeypatch.setattr(server, "_reply", nonsense)
        client = LinkClient(1_000_000, credentials(tmp_path))
        await client.open()
        stack.push_async_callback(client.close)
        whys: list[str] = []
        for _ in range(MANY):
            with pytest.raises(RemoteError) as refusal:
                await client.ask(Contact(peer_id(server), *address), Hello(1), Ok, 5)
            whys.append(refusal.value.why.partition(":")[0])
        assert "malformed answer" == whys[0]
        assert "is banned, as it has misbehaved too often" == whys[-1]
        assert MISBEHAVIORS_MAX <= asked < MANY
        now = asyncio.get_running_loop().time()
        assert client._peer_score.banned_until(peer_id(server), now) is not None
        assert server._credentials is not None
        assert ["link.banned"] == blame_logged(caplog, server._credentials)


async def test_who_is_banned_keeps_no_connection_wherever_its_faults_came(tmp_path: Path) -> None:
    async with served(tmp_path) as (server, _, address), contextlib.AsyncExitStack() as stack:
        fool, honest = (LinkClient(1_000_000, credentials(tmp_path)) for _ in range(2))
        connections: dict[LinkClient, ClientConnection] = {}
        for client in (fool, honest):
            await client.open()
            stack.push_async_callback(client.close)
            assert Ok() == await client.ask(address, Hello(1), Ok, 5)
            (connections[client],) = client._connections.values()
        assert fool._credentials is not None
        shun(server._peer_score, peer_id(fool._credentials))
        await until(lambda: connections[fool].task is None)
        assert Ok() == await honest.ask(address, Hello(1), Ok, 5)
        assert [connections[honest]] == list(honest._connections.values())


async def test_who_is_banned_is_waited_for_no_longer(tmp_path: Path) -> None:
    async with served(tmp_path) as (server, _, address):
        asked, over = asyncio.Event(), asyncio.Event()

        async def slowly(_: GetStatus) -> Ok:
            asked.set()
            await over.wait()
            return Ok()

        server.handle(GetStatus, slowly)
        client = LinkClient(1_000_000, credentials(tmp_path))
        await client.open()
        waiting = asyncio.create_task(client.ask(Contact(peer_id(server), *address), GetStatus(), Ok, 3600))
        await asked.wait()
        shun(client._peer_score, peer_id(server))
        with pytest.raises(RemoteError, match="is banned"):
            await waiting
        over.set()
        await client.close()


async def test_an_answer_of_whom_nobody_can_name_is_laid_to_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Anybody may be at an address, so only a proven ID is to blame."""

    async def nonsense(asker: RemotePeer, question: bytes) -> bytes:
        return b"nonsense"

    async with served(tmp_path) as (server, _, address), contextlib.AsyncExitStack() as stack:
        monkeypatch.setattr(server, "_reply", nonsense)
        client = LinkClient(1_000_000, credentials(tmp_path))
        await client.open()
        stack.push_async_callback(client.close)
        for _ in range(MANY):
            with pytest.raises(RemoteError, match="malformed answer"):
                await client.ask(address, Hello(1), Ok, 5)
        assert not client._peer_score.misbehaviors
