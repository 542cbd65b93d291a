"""Test that a peer asks on, answers on, and names the fault, for any other end."""

import asyncio

import aiohttp
import aiohttp.web
import pytest
from aiohttp.abc import AbstractResolver

from kadcrawl.errors import RemoteError
from kadcrawl.link.handler import LINK_PATH
from kadcrawl.link.wire.codec import pack
from kadcrawl.link.wire.messages import Hello, Ok, Refused
from tests.support.links.link_ends import BYTES_MAX, frames, link, server_frame, serving, shake_hands
from tests.support.waiting import until

NUMBER = b"\0" * 7 + b"\7"


@pytest.mark.parametrize(
    ("head", "why"),
    [
        (b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 2\r\n\r\nhi", r"version \(HTTP 200\)"),
        (b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n", r"version \(HTTP 404\)"),
        (b"HTTP/1.1 302 Found\r\nLocation: /elsewhere\r\nContent-Length: 0\r\n\r\n", r"version \(HTTP 302\)"),
        (
            b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: upgrade\r\n\r\n",
            "is no peer of this version",
        ),
        (b"SSH-2.0-OpenSSH_9.2p1\r\n", "is no peer of this version"),
        (b"", "cannot be reached"),
    ],
)
async def test_another_kind_of_server_is_a_remote_error(head: bytes, why: str) -> None:
    dialled = 0

    async def web(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal dialled
        dialled += 1
        await reader.readuntil(b"\r\n\r\n")
        writer.write(head)
        writer.close()

    async with serving(web) as (client, address):
        with pytest.raises(RemoteError, match=why):
            await client.ask(address, Hello(1), Ok, 5)
    assert dialled == 1 or not head, "a redirect is not followed"


@pytest.mark.parametrize(
    ("said", "why"),
    [
        (server_frame(b"1234567"), "without a number"),
        (server_frame(b"text of some length", 1), "text frame"),
        (server_frame(b"", 2), "without a number"),
        (b"\xf2\x00", "reserved bits"),
        (b"\x82\x7f" + b"\xff" * 8, "Message size|exceeds"),
        (server_frame((1001).to_bytes(2, "big"), 8), r"closed the connection \(code 1001\)"),
        (server_frame(b"", 8), "the connection is lost"),
        (
            server_frame(NUMBER + b"for nobody") + server_frame((1).to_bytes(8, "big") + b"\xff"),
            "not msgpack|malformed",
        ),
        (server_frame((1).to_bytes(8, "big")), "rejects the question as malformed"),
        (server_frame(b"", 9) + server_frame((1).to_bytes(8, "big")), "malformed answer: a ping"),
        (server_frame(b"", 10) + server_frame((1).to_bytes(8, "big")), "malformed answer: a ping"),
    ],
)
async def test_whatever_a_peer_answers_is_an_answer_or_a_remote_error(said: bytes, why: str) -> None:
    async def speak(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await shake_hands(reader, writer)
        await reader.readexactly(6 + 8 + len(pack(Hello(1))))
        writer.write(said)
        await reader.read()
        writer.close()

    async with serving(speak) as (client, address):
        with pytest.raises(RemoteError, match=why):
            await client.ask(address, Hello(1), Ok, 5)


async def test_an_answer_too_large_is_a_remote_error() -> None:
    async with link(lambda hello: Refused("x" * 1000)) as (_, client, address):
        client.message_bytes_max = 100
        with pytest.raises(RemoteError, match="exceeds limit 10"):
            await client.ask(address, Hello(1), Ok, 5)


async def test_what_is_just_as_long_as_allowed_is_read_and_one_byte_more_is_not() -> None:
    async with link() as (server, client, address):
        client.message_bytes_max = len(pack(Ok()))
        server.message_bytes_max = len(pack(Hello(1)))
        assert Ok() == await client.ask(address, Hello(1), Ok, 5)
        with pytest.raises(RemoteError, match=r"closed the connection \(code 1009\)"):
            await client.ask(address, Hello(1000), Ok, 5)
        assert server.malformed == 1


async def test_a_question_the_other_side_finds_malformed_is_named_so() -> None:
    async with link() as (server, client, address):
        assert Ok() == await client.ask(address, Hello(1), Ok, 5)
        server.message_bytes_max = 3
        with pytest.raises(RemoteError, match="rejects the question as malformed"):
            await client.ask(address, Hello(1), Ok, 5)
        assert (1, 1) == (server.malformed, len(server._incoming))


@pytest.mark.parametrize("resolver", [aiohttp.ThreadedResolver, aiohttp.AsyncResolver])
@pytest.mark.parametrize("host", ["a..b", ".a", "a" * 64 + ".example", "\xe4..b", "a b", "[", "1.2.3.4.5", "::1%", ""])
async def test_a_host_that_cannot_be_is_a_remote_error(
    host: str, resolver: type[AbstractResolver], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("aiohttp.connector.DefaultResolver", resolver)
    async with link() as (_, client, _address):
        with pytest.raises(RemoteError):
            await client.ask((host, 1), Hello(1), Ok, 5)


@pytest.mark.parametrize("disguise", ["{host}:{port}/?", "somebody@{host}", "{host}#"])
async def test_a_host_says_nothing_but_the_host(disguise: str) -> None:
    """Otherwise a contact could send the requests of a peer anywhere."""
    async with link() as (_, client, (host, port)):
        with pytest.raises(RemoteError, match="is no address"):
            await client.ask((disguise.format(host=host, port=port), port), Hello(1), Ok, 5)


@pytest.mark.parametrize("body", [b"", b"rubbish", b"\x92\xa5Hello", b"x" * BYTES_MAX])
async def test_a_malformed_question_is_counted_and_answered_by_its_bare_number(body: bytes) -> None:
    async with link() as (server, client, address), frames(address) as socket:
        await socket.send_bytes(NUMBER + body)
        assert NUMBER == await socket.receive_bytes()
        assert server.malformed == 1
        await socket.send_bytes(NUMBER + pack(Hello(1)))
        assert NUMBER + pack(Ok()) == await socket.receive_bytes()
        assert Ok() == await client.ask(address, Hello(1), Ok, 5)


@pytest.mark.parametrize("frame", [b"", b"1234567", "text", b"x" * (BYTES_MAX + 9)])
async def test_what_is_no_question_is_counted_and_ends_the_connection(frame: bytes | str) -> None:
    async with link() as (server, client, address):
        async with frames(address) as socket:
            await (socket.send_str(frame) if isinstance(frame, str) else socket.send_bytes(frame))
            assert aiohttp.WSMsgType.CLOSE is (await socket.receive()).type
            assert (1009 if len(frame) > 8 else 1002) == socket.close_code
        assert server.malformed == 1
        await until(lambda: not server._incoming)
        assert Ok() == await client.ask(address, Hello(1), Ok, 5)


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", LINK_PATH, 400),
        ("POST", LINK_PATH, 404),
        ("GET", "/", 404),
        ("POST", "/kadcrawl/1", 404),
        ("HEAD", LINK_PATH, 404),
    ],
)
async def test_plain_http_is_refused(method: str, path: str, status: int, caplog: pytest.LogCaptureFixture) -> None:
    async with link() as (server, _, (host, port)), aiohttp.ClientSession() as session:
        async with session.request(method, f"http://{host}:{port}{path}") as response:
            assert status == response.status
        assert not server._incoming
    assert not caplog.records


@pytest.mark.parametrize("header", ["Sec-WebSocket-Key", "Sec-WebSocket-Version", "Upgrade", "Connection"])
async def test_a_bad_handshake_is_refused(header: str, caplog: pytest.LogCaptureFixture) -> None:
    headers = {
        "Upgrade": "websocket",
        "Connection": "Upgrade",
        "Sec-WebSocket-Version": "13",
        "Sec-WebSocket-Key": "MDEyMzQ1Njc4OWFiY2RlZg==",
    }
    async with (
        link() as (_server, _, (host, port)),
        aiohttp.ClientSession() as session,
        session.get(f"http://{host}:{port}{LINK_PATH}", headers=headers | {header: "rubbish"}) as response,
    ):
        assert response.status == 400
    assert not caplog.records


async def test_a_dialler_that_is_gone_before_the_handshake_is_no_news(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def lost(*_: object) -> None:
        raise ConnectionResetError

    async with link() as (_, client, address):
        with monkeypatch.context() as patched:
            patched.setattr(aiohttp.web.WebSocketResponse, "prepare", lost)
            with pytest.raises(RemoteError, match=r"version \(HTTP 400\)"):
                await client.ask(address, Hello(1), Ok, 5)
        assert Ok() == await client.ask(address, Hello(1), Ok, 5)
    assert not caplog.records


async def test_a_page_in_a_browser_commands_no_peer() -> None:
    """Any web page may dial a peer on the machine of its visitor. The browser then says where the page is from."""
    async with link() as (_, _, address), aiohttp.ClientSession(headers={"Origin": "https://evil.example"}) as browser:
        with pytest.raises(aiohttp.WSServerHandshakeError, match="403"):
            await browser.ws_connect(f"http://{address[0]}:{address[1]}{LINK_PATH}")
