"""Test the link between peers of one process: the same answers and refusals as over TCP, and no socket."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from contextvars import ContextVar
from pathlib import Path

import pytest

from kadcrawl.errors import ConfigError, RemoteError
from kadcrawl.link.client import LinkClient
from kadcrawl.link.client_connection import IN_FLIGHT_MAX
from kadcrawl.link.process_links import ProcessLinks
from kadcrawl.link.server import LinkServer
from kadcrawl.link.wire.messages import Contact, Hello, LeaveStats, Message, Ok
from kadcrawl.members.credentials import Credentials
from kadcrawl.members.keyring import Keyring
from kadcrawl.members.peer_key import PeerKey
from kadcrawl.members.swarm_key import SwarmKey
from tests.support.links.link_ends import BYTES_MAX, LOCAL, Gate
from tests.support.waiting import until

KEY, OTHER = SwarmKey(b"k" * 32), SwarmKey(b"o" * 32)
Handler = Callable[[Hello], Awaitable[Message]]


def credentials(place: Path, key: SwarmKey = KEY, former: SwarmKey | None = None) -> Credentials:
    return Credentials(Keyring(key, former, 100.0), PeerKey.generate(), place, lambda: 0.0, 0)


async def ok(hello: Hello) -> Message:
    return Ok()


@asynccontextmanager
async def inside(
    handler: Handler = ok, of_server: Credentials | None = None, of_client: Credentials | None = None
) -> AsyncIterator[tuple[LinkServer, LinkClient, Contact]]:
    links = ProcessLinks()
    server = LinkServer(BYTES_MAX, of_server, process_links=links)
    client = LinkClient(BYTES_MAX, of_client, process_links=links)
    server.handle(Hello, handler)
    port = await server.listen(LOCAL, 0)
    await client.open()
    contact = Contact(of_server.peer_key.id if of_server is not None else bytes(20), LOCAL, port)
    try:
        yield server, client, contact
    finally:
        await client.close()
        await server.close()


async def test_a_peer_of_the_same_process_answers_without_a_connection() -> None:
    async with inside() as (_, client, contact):
        assert Ok() == await client.ask(contact, Hello(1), Ok, 5)
        assert Ok() == await client.ask(contact.address, Hello(1), Ok, 5)
        assert (2, 0) == (client.asked, client.dialed)
        assert not client._inside, "an idle connection costs nothing"
        assert client._session is None, "what a connection needs is made with the first"


async def test_a_refusal_says_why() -> None:
    async def refuse(hello: Hello) -> Message:
        raise ConfigError("not today")

    async with inside(refuse) as (_, client, contact):
        with pytest.raises(RemoteError, match="not today"):
            await client.ask(contact, Hello(1), Ok, 5)


async def test_peers_of_one_key_ask_each_other_and_others_are_not_let_in(tmp_path: Path) -> None:
    ours = credentials(tmp_path)
    async with inside(of_server=ours, of_client=credentials(tmp_path)) as (_, client, contact):
        assert Ok() == await client.ask(contact, Hello(1), Ok, 5)
    async with inside(of_server=ours, of_client=credentials(tmp_path, OTHER)) as (_, client, contact):
        with pytest.raises(RemoteError, match="another swarm's key"):
            await client.ask(contact, Hello(1), Ok, 5)
    async with inside(of_server=ours) as (_, client, contact):
        with pytest.raises(RemoteError, match="another swarm's key"):
            await client.ask(contact, Hello(1), Ok, 5)
    async with inside(of_client=ours) as (_, client, contact):
        with pytest.raises(RemoteError, match="another swarm's key"):
            await client.ask(contact, Hello(1), Ok, 5)


async def test_a_former_key_is_let_in_while_it_is_valid(tmp_path: Path) -> None:
    changed = credentials(tmp_path, KEY, OTHER)
    async with inside(of_server=changed, of_client=credentials(tmp_path, OTHER)) as (_, client, contact):
        assert Ok() == await client.ask(contact, Hello(1), Ok, 5)
        changed.use_keyring(changed.keyring.at(200.0))
        with pytest.raises(RemoteError, match="another swarm's key"):
            await client.ask(contact, Hello(1), Ok, 5)


async def test_another_peer_than_expected_and_this_very_peer_are_not_asked(tmp_path: Path) -> None:
    ours = credentials(tmp_path)
    async with inside(of_server=ours, of_client=credentials(tmp_path)) as (_, client, contact):
        with pytest.raises(RemoteError, match="is another peer than"):
            await client.ask(Contact(b"x" * 20, *contact.address), Hello(1), Ok, 5)
    async with inside(of_server=ours, of_client=ours) as (_, client, contact):
        with pytest.raises(RemoteError, match="is this very peer"):
            await client.ask(contact.address, Hello(1), Ok, 5)


async def test_nothing_is_taken_in_the_name_of_another(tmp_path: Path) -> None:
    async with inside(of_server=credentials(tmp_path), of_client=credentials(tmp_path)) as (server, client, contact):
        with pytest.raises(RemoteError, match="in the name of another"):
            await client.ask(contact, LeaveStats(b"y" * 20, []), Ok, 5)
        assert 1 == server.malformed


async def test_a_request_is_handled_to_its_end_although_the_asker_has_gone() -> None:
    handled = asyncio.Event()
    gate = Gate()

    async def handler(hello: Hello) -> Message:
        answer = await gate(hello)
        handled.set()
        return answer

    async with inside(handler) as (_, client, contact):
        with pytest.raises(RemoteError, match="no answer within"):
            await client.ask(contact, Hello(1), Ok, 0.01)
        gate.open()
        async with asyncio.timeout(60):
            await handled.wait()


async def test_no_more_requests_of_one_peer_are_under_way_than_over_tcp() -> None:
    gate = Gate()
    async with inside(gate) as (_, client, contact):
        asking = [asyncio.create_task(client.ask(contact, Hello(1), Ok, 20)) for _ in range(IN_FLIGHT_MAX + 10)]
        await until(lambda: gate.inside == IN_FLIGHT_MAX)
        gate.open()
        await asyncio.gather(*asking)
        assert IN_FLIGHT_MAX == gate.most


async def test_a_peer_that_ends_is_a_remote_error_for_waiting_and_for_later_askers() -> None:
    gate = Gate()
    async with inside(gate) as (server, client, contact):
        asking = asyncio.create_task(client.ask(contact, Hello(1), Ok, 20))
        await until(lambda: gate.inside == 1)
        await server.close()
        with pytest.raises(RemoteError, match=r"has closed the connection \(code 1001\)"):
            await asking
        with pytest.raises(RemoteError, match="cannot be reached"):
            await client.ask(contact, Hello(1), Ok, 5)


async def test_an_asker_that_ends_waits_for_no_answer() -> None:
    gate = Gate()
    async with inside(gate) as (_, client, contact):
        asking = asyncio.create_task(client.ask(contact, Hello(1), Ok, 20))
        await until(lambda: gate.inside == 1)
        await client.close()
        with pytest.raises(RemoteError, match="as this peer ends"):
            await asking
        gate.open()


async def test_a_handler_runs_in_the_context_of_its_own_peer() -> None:
    name: ContextVar[str] = ContextVar("name")
    seen: list[str] = []

    async def handler(hello: Hello) -> Message:
        seen.append(name.get())
        return Ok()

    name.set("server")
    async with inside(handler) as (_, client, contact):
        name.set("client")
        await client.ask(contact, Hello(1), Ok, 5)
    assert ["server"] == seen
