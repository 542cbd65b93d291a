"""Asking over TCP: every answer or none, and never anything but a RemoteError."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import aiohttp
import pytest
from aiohttp.abc import AbstractResolver

from kadcrawl.errors import ConfigError, RemoteError
from kadcrawl.link.client import LinkClient
from kadcrawl.link.messages import GetStatus, Hello, Message, Ok, Refused, Welcome
from kadcrawl.link.server import PATH, LinkServer

BYTES_MAX = 10_000
LOCAL = "127.0.0.1"


@asynccontextmanager
async def link(answer: Callable[[Hello], Message]) -> AsyncIterator[tuple[LinkServer, LinkClient, tuple[str, int]]]:
    server, client = LinkServer(BYTES_MAX), LinkClient(BYTES_MAX)

    async def handler(hello: Hello) -> Message:
        return answer(hello)

    server.handle(Hello, handler)
    port = await server.listen(LOCAL, 0)
    await client.open()
    try:
        yield server, client, (LOCAL, port)
    finally:
        await client.close()
        await server.close()


async def test_a_question_gets_its_answer() -> None:
    async with link(lambda hello: Ok()) as (_, client, address):
        assert Ok() == await client.ask(address, Hello(1), Ok, 5)


async def test_a_refusal_is_a_remote_error_with_its_sentence() -> None:
    def refuse(hello: Hello) -> Message:
        raise ConfigError("not today")

    async with link(refuse) as (_, client, address):
        with pytest.raises(RemoteError, match="not today"):
            await client.ask(address, Hello(1), Ok, 5)


async def test_a_bug_in_a_handler_is_a_refusal_and_the_server_lives_on() -> None:
    def fail(hello: Hello) -> Message:
        raise ZeroDivisionError

    async with link(fail) as (_, client, address):
        for _ in range(2):
            with pytest.raises(RemoteError, match="fault of this peer"):
                await client.ask(address, Hello(1), Ok, 5)


async def test_an_answer_of_another_kind_is_a_remote_error() -> None:
    async with link(lambda hello: Ok()) as (_, client, address):
        with pytest.raises(RemoteError, match="answered Hello by Ok"):
            await client.ask(address, Hello(1), Welcome, 5)


async def test_a_question_nobody_handles_is_refused() -> None:
    async with link(lambda hello: Ok()) as (_, client, address):
        with pytest.raises(RemoteError, match="does not answer GetStatus"):
            await client.ask(address, GetStatus(), Ok, 5)


async def test_nobody_there_is_a_remote_error() -> None:
    async with link(lambda hello: Ok()) as (server, client, address):
        await server.close()
        with pytest.raises(RemoteError, match="Hello"):
            await client.ask(address, Hello(1), Ok, 5)


async def test_silence_is_a_remote_error_at_the_deadline() -> None:
    async def never(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()

    silent = await asyncio.start_server(never, LOCAL, 0)
    async with link(lambda hello: Ok()) as (_, client, _address):
        with pytest.raises(RemoteError, match="no answer"):
            await client.ask(silent.sockets[0].getsockname(), Hello(1), Ok, 0.05)
    silent.close()
    await silent.wait_closed()


async def test_another_kind_of_server_is_a_remote_error() -> None:
    async def web(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 2\r\nConnection: close\r\n\r\nhi")
        writer.close()

    server = await asyncio.start_server(web, LOCAL, 0)
    async with link(lambda hello: Ok()) as (_, client, _address):
        with pytest.raises(RemoteError, match="not a peer of this version"):
            await client.ask(server.sockets[0].getsockname(), Hello(1), Ok, 5)
    server.close()
    await server.wait_closed()


async def test_an_answer_too_large_is_a_remote_error() -> None:
    async with link(lambda hello: Refused("x" * 1000)) as (_, client, address):
        client.message_bytes_max = 100
        with pytest.raises(RemoteError, match="more than 100 bytes"):
            await client.ask(address, Hello(1), Ok, 5)


async def test_a_question_the_other_side_finds_malformed_is_named_so() -> None:
    async with link(lambda hello: Ok()) as (server, client, address):
        server.message_bytes_max = 3
        with pytest.raises(RemoteError, match="calls this Hello malformed"):
            await client.ask(address, Hello(1), Ok, 5)


@pytest.mark.parametrize("resolver", [aiohttp.ThreadedResolver, aiohttp.AsyncResolver])
@pytest.mark.parametrize("host", ["a..b", ".a", "a" * 64 + ".example", "\xe4..b", "a b", "[", "1.2.3.4.5", "::1%", ""])
async def test_a_host_that_cannot_be_is_a_remote_error(
    host: str, resolver: type[AbstractResolver], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("aiohttp.connector.DefaultResolver", resolver)
    async with link(lambda hello: Ok()) as (_, client, _address):
        with pytest.raises(RemoteError):
            await client.ask((host, 1), Hello(1), Ok, 5)


@pytest.mark.parametrize("disguise", ["{host}:{port}/?", "somebody@{host}", "{host}#"])
async def test_a_host_says_nothing_but_the_host(disguise: str) -> None:
    """Or a contact could send a peer's questions anywhere."""
    async with link(lambda hello: Ok()) as (_, client, (host, port)):
        with pytest.raises(RemoteError, match="is no address"):
            await client.ask((disguise.format(host=host, port=port), port), Hello(1), Ok, 5)


@pytest.mark.parametrize("body", [b"", b"rubbish", b"\x92\xa5Hello", b"x" * (BYTES_MAX + 1)])
async def test_a_malformed_question_is_counted_and_gets_no_word(body: bytes) -> None:
    async with link(lambda hello: Ok()) as (server, client, (host, port)), aiohttp.ClientSession() as session:
        async with session.post(f"http://{host}:{port}{PATH}", data=body) as response:
            assert (400, b"") == (response.status, await response.read())
        assert server.malformed == 1
        assert Ok() == await client.ask((host, port), Hello(1), Ok, 5)


async def test_other_paths_and_methods_are_not_found() -> None:
    async with link(lambda hello: Ok()) as (_, _client, (host, port)), aiohttp.ClientSession() as session:
        async with session.get(f"http://{host}:{port}{PATH}") as response:
            assert response.status == 404
        async with session.post(f"http://{host}:{port}/", data=b"") as response:
            assert response.status == 404
