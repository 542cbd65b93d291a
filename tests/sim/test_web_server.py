"""The web server answers HTTP clients over loopback, bounds the cost of hostile clients, and delays answers as
asked."""

import asyncio
import socket
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from http import HTTPStatus
from math import inf
from typing import Any
from urllib.parse import urlsplit

import aiohttp
import pytest
import pytest_asyncio
from aiohttp.abc import AbstractResolver, ResolveResult
from yarl import URL

from sim.judge import Access, judge
from sim.loop import SimLoop
from sim.synthetic_sites import Mix
from sim.synthetic_web import SyntheticResponse, SyntheticWeb
from sim.web_server import (
    CONNECTION_TIMEOUT_S,
    HEAD_BYTES_MAX,
    SLOW_PIECE_S,
    Head,
    Request,
    Web,
    WebConnection,
    WebServer,
    parse_head,
)

BIG_BYTES = 10_000_000


class HandMade:
    """A web of three pages on every host."""

    def answer(self, host: str, target: str, asked: int) -> SyntheticResponse:
        match target:
            case "/slow":
                return SyntheticResponse(200, body=b"x" * 1000, latency_s=3, bytes_per_s=1000)
            case "/big":
                return SyntheticResponse(200, body=b"x" * BIG_BYTES)
            case "/fickle":
                return SyntheticResponse(503 if asked == 0 else 200, counted=asked < 2)
            case _:
                return SyntheticResponse(200, body=f"{target} {asked}".encode())


def request(target: str, *fields: str) -> bytes:
    return "\r\n".join([f"GET {target} HTTP/1.1", "Host: a.test", *fields, "", ""]).encode()


# --- over loopback -----------------------------------------------------------------------------------------------


class Loopback(AbstractResolver):
    """Finds every host at one port of 127.0.0.1."""

    def __init__(self, port: int) -> None:
        self.port = port

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        return [ResolveResult(hostname=host, host="127.0.0.1", port=self.port, family=socket.AF_INET, proto=0, flags=0)]

    async def close(self) -> None:
        """There is nothing to close."""


@asynccontextmanager
async def served(web: Web) -> AsyncIterator[tuple[WebServer, int]]:
    server = WebServer(web)
    listener = await asyncio.get_running_loop().create_server(server.connect, "127.0.0.1", 0)
    async with listener:
        yield server, listener.sockets[0].getsockname()[1]
        server.close()


@pytest_asyncio.fixture
async def place() -> AsyncIterator[tuple[WebServer, int]]:
    async with served(HandMade()) as place:
        yield place


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(10):
        while not condition():
            await asyncio.sleep(0.001)


async def say(port: int, *words: bytes) -> bytes:
    """Send the words in order, and return all bytes until the server closes."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        for word in words:
            writer.write(word)
            await writer.drain()
        async with asyncio.timeout(10):
            return await reader.read()
    finally:
        writer.close()


async def test_a_real_client_gets_the_whole_web_and_the_log_says_so() -> None:
    web = SyntheticWeb(1, sites=6, pages=60, mix=Mix(slow=0))
    everything = {**web.robots(), **web.truth()}
    async with (
        served(web) as (server, port),
        aiohttp.ClientSession(connector=aiohttp.TCPConnector(resolver=Loopback(port), limit_per_host=4)) as session,
    ):

        async def fetch(url: str, times: int) -> None:
            for asked in range(times):
                async with session.get(URL(url, encoded=True), allow_redirects=False) as response:
                    body = await response.read()
                parts = urlsplit(url)
                answer = web.answer(parts.netloc, parts.path, asked)
                assert (answer.status, answer.body) == (response.status, body)
                assert set(answer.headers) <= set(response.headers.items())

        for robots in web.robots():
            await fetch(robots, everything[robots].fetches_min)
        async with asyncio.TaskGroup() as fetches:
            for url, expected in web.truth().items():
                fetches.create_task(fetch(url, expected.fetches_min))

        assert len(server.connections) <= 4 * len(web.sites)
    assert judge([seen.access for seen in server.log], everything, web.disallowed()).clean
    assert {"127.0.0.1"} == {seen.peer for seen in server.log}
    assert {} == server.connections


async def test_pipelined_requests_are_answered_in_their_order(place: tuple[WebServer, int]) -> None:
    server, port = place
    words = request("/one") + request("/fickle") + request("/fickle") + request("/last", "Connection: close")
    heard = await say(port, words + request("/never"))
    assert [200, 503, 200, 200] == [int(part[:3]) for part in heard.split(b"HTTP/1.1 ")[1:]]
    assert heard.index(b"/one 0") < heard.index(b"/last 0")
    assert ["/one", "/fickle", "/fickle", "/last"] == [seen.path for seen in server.log]


async def test_a_request_may_come_byte_by_byte(place: tuple[WebServer, int]) -> None:
    server, port = place
    words = request("/one") + request("/two", "Connection: close")
    heard = await say(port, *(bytes([byte]) for byte in words))
    assert heard.index(b"/one 0") < heard.index(b"/two 0")
    assert 2 == len(server.log)


async def test_the_request_of_who_hangs_up_is_over(place: tuple[WebServer, int]) -> None:
    """The server has no request under way for a client that is gone, orderly or not (as in nginx)."""
    server, port = place
    _, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(request("/slow"))
    async with asyncio.timeout(10):
        while not server.log:
            await asyncio.sleep(0.001)
        assert [inf] == server.overs
        writer.close()
        while server.overs == [inf]:
            await asyncio.sleep(0.001)
    assert {0} == server.cut


@pytest.mark.parametrize(
    ("words", "status"),
    [
        (b"\x16\x03\x01\x02\x00\x01\x00\r\n\r\n", 400),
        (b"\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\n\r\n", 400),
        (b"POST / HTTP/1.1\r\nHost: a.test\r\n\r\n", 405),
        (request("/", "Content-Length: 5"), 400),
        (b"x" * (HEAD_BYTES_MAX + 1), 431),
        (request("/", "X: " + "x" * HEAD_BYTES_MAX), 431),
        (request("/one") + b"garbage\r\n\r\n" + request("/never"), 400),
    ],
)
async def test_what_is_no_request_is_refused_and_not_logged(
    place: tuple[WebServer, int], words: bytes, status: int
) -> None:
    server, port = place
    heard = await say(port, words)
    *before, last = heard.split(b"HTTP/1.1 ")[1:]
    assert status == int(last[:3])
    assert len(before) == len(server.log)
    assert 1 == server.refused
    await until(lambda: not server.connections)


async def test_a_head_of_the_largest_size_is_answered(place: tuple[WebServer, int]) -> None:
    _, port = place
    bare = len(request("/one", "Connection: close", "X: ")) - 4
    heard = await say(port, request("/one", "Connection: close", "X: " + "x" * (HEAD_BYTES_MAX - bare)))
    assert heard.startswith(b"HTTP/1.1 200 ")


async def test_a_client_that_goes_away_in_mid_answer_costs_only_its_own_answer(place: tuple[WebServer, int]) -> None:
    server, port = place
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(request("/big"))
    assert (await reader.read(1000)).startswith(b"HTTP/1.1 200 ")
    writer.transport.abort()
    await until(lambda: not server.connections)
    async with aiohttp.ClientSession() as session:
        for name in ("/one", "/big"):
            async with session.get(f"http://127.0.0.1:{port}{name}") as response:
                assert len(await response.read()) == (BIG_BYTES if name == "/big" else len("/one 0"))
    assert ["/big", "/one", "/big"] == [seen.path for seen in server.log]


async def test_one_slow_reader_does_not_keep_the_others_waiting(place: tuple[WebServer, int]) -> None:
    _, port = place
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1000)
    writer.write(request("/big", "Connection: close"))
    heard = await reader.readuntil(b"\r\n\r\n")
    assert (await say(port, request("/one", "Connection: close"))).endswith(b"/one 0")
    async with asyncio.timeout(10):
        body = await reader.read()
    writer.close()
    assert heard.startswith(b"HTTP/1.1 200 ")
    assert len(body) == BIG_BYTES


# --- in virtual time ---------------------------------------------------------------------------------------------


class Wire(asyncio.Transport):
    """The server's end of a connection whose other end is the test."""

    def __init__(self, protocol: WebConnection) -> None:
        super().__init__({"peername": ("10.0.0.7", 4160)})
        self.protocol = protocol
        self.sent: list[tuple[float, bytes]] = []
        self.reading = True
        self.closed_at: float | None = None
        protocol.connection_made(self)

    def write(self, data: Any) -> None:
        assert not self.is_closing(), "nothing is written to a closed connection"
        self.sent.append((asyncio.get_running_loop().time(), bytes(data)))

    def is_closing(self) -> bool:
        return self.closed_at is not None

    def pause_reading(self) -> None:
        assert self.reading
        self.reading = False

    def resume_reading(self) -> None:
        assert not self.reading
        self.reading = True

    def close(self) -> None:
        if self.closed_at is None:
            self.closed_at = asyncio.get_running_loop().time()
            asyncio.get_running_loop().call_soon(self.protocol.connection_lost, None)

    def abort(self) -> None:
        self.close()


def tell(story: Callable[[WebServer, Wire], Any]) -> Any:
    """Run a story of one connection in virtual time, from second 0."""

    async def begin() -> Any:
        server = WebServer(HandMade())
        return await story(server, Wire(server.connect()))

    loop = SimLoop()
    try:
        return loop.run_until_complete(begin())
    finally:
        loop.close()


def test_an_answer_takes_its_latency_and_its_rate() -> None:
    async def story(server: WebServer, wire: Wire) -> None:
        await asyncio.sleep(1)
        wire.protocol.data_received(request("/slow"))
        assert [Request(1.0, "a.test", "/slow", 200, "10.0.0.7")] == server.log
        assert [inf] == server.overs
        await asyncio.sleep(10)
        times = [at for at, _ in wire.sent]
        assert times[0] == pytest.approx(4.0)
        assert times[-1] == pytest.approx(5.0, abs=SLOW_PIECE_S)
        assert ([times[-1]], set()) == (server.overs, server.cut)
        assert max(len(piece) for _, piece in wire.sent) <= 1000 * SLOW_PIECE_S
        assert b"".join(piece for _, piece in wire.sent).endswith(b"\r\n\r\n" + b"x" * 1000)

    tell(story)


def test_a_form_is_taken_when_all_of_it_is_there() -> None:
    async def story(server: WebServer, wire: Wire) -> None:
        wire.protocol.data_received(b"POST /login HTTP/1.1\r\nHost: a.test\r\nContent-Length: 3\r\n\r\na=")
        assert [] == server.log
        wire.protocol.data_received(b"b" + request("/next"))
        await asyncio.sleep(1)
        assert [("/login", True, 405), ("/next", False, 200)] == [
            (one.path, one.is_form, one.status) for one in server.log
        ]

    tell(story)


def test_a_quick_answer_is_one_write() -> None:
    async def story(server: WebServer, wire: Wire) -> None:
        wire.protocol.data_received(request("/one"))
        await asyncio.sleep(1)
        [(at, answer)] = wire.sent
        assert at == pytest.approx(0.0, abs=1e-5)  # A timer takes a tick of the clock at least.
        assert b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\n/one 0" == answer

    tell(story)


def test_a_client_that_dies_in_mid_answer_is_written_to_no_more() -> None:
    async def story(server: WebServer, wire: Wire) -> None:
        wire.protocol.data_received(request("/slow"))
        await asyncio.sleep(3.1)
        wire.abort()
        await asyncio.sleep(60)
        assert 1 == len(wire.sent)
        assert ([pytest.approx(3.1)], {0}) == (server.overs, server.cut)
        assert {} == server.connections

    tell(story)


def test_a_client_that_does_not_read_gets_the_rest_when_it_does() -> None:
    async def story(server: WebServer, wire: Wire) -> None:
        wire.protocol.data_received(request("/slow"))
        await asyncio.sleep(3.1)
        wire.protocol.pause_writing()
        await asyncio.sleep(5)
        assert 1 == len(wire.sent)
        wire.protocol.resume_writing()
        await asyncio.sleep(5)
        assert b"".join(piece for _, piece in wire.sent).endswith(b"x" * 1000)
        assert not wire.is_closing()

    tell(story)


def test_a_client_that_never_reads_is_given_up() -> None:
    async def story(server: WebServer, wire: Wire) -> None:
        wire.protocol.data_received(request("/slow"))
        await asyncio.sleep(3.1)
        wire.protocol.pause_writing()
        await asyncio.sleep(60)
        assert wire.closed_at == pytest.approx(3.1 + CONNECTION_TIMEOUT_S, abs=SLOW_PIECE_S)

    tell(story)


def test_each_request_must_arrive_whole_within_a_deadline_of_its_own() -> None:
    async def story(server: WebServer, wire: Wire) -> None:
        await asyncio.sleep(CONNECTION_TIMEOUT_S - 1)
        wire.protocol.data_received(request("/one"))
        for byte in b"GET /two HTTP":
            await asyncio.sleep(1)
            wire.protocol.data_received(bytes([byte]))
        assert not wire.is_closing()
        await asyncio.sleep(60)
        assert wire.closed_at == pytest.approx(2 * CONNECTION_TIMEOUT_S - 1)
        assert {} == server.connections

    tell(story)


def test_a_long_latency_is_not_the_clients_silence() -> None:
    class Thinking(HandMade):
        def answer(self, host: str, target: str, asked: int) -> SyntheticResponse:
            return SyntheticResponse(200, latency_s=3 * CONNECTION_TIMEOUT_S)

    async def story(server: WebServer, wire: Wire) -> None:
        server.web = Thinking()
        wire.protocol.data_received(request("/"))
        await asyncio.sleep(3 * CONNECTION_TIMEOUT_S + 1)
        assert 1 == len(wire.sent)
        assert not wire.is_closing()

    tell(story)


def test_what_is_pipelined_beyond_one_head_waits_unread() -> None:
    async def story(server: WebServer, wire: Wire) -> None:
        flood = request("/slow") * (2 + HEAD_BYTES_MAX // len(request("/slow")))
        wire.protocol.data_received(flood)
        assert not wire.reading
        assert 1 == len(server.log)
        await asyncio.sleep(10)
        assert wire.reading

    tell(story)


def test_a_request_that_comes_during_an_answer_is_taken_when_that_is_over() -> None:
    async def story(server: WebServer, wire: Wire) -> None:
        wire.protocol.data_received(request("/slow"))
        await asyncio.sleep(1)
        wire.protocol.data_received(request("/one"))
        assert ["/slow"] == [seen.path for seen in server.log]
        await asyncio.sleep(10)
        assert b"".join(piece for _, piece in wire.sent).count(b"HTTP/1.1 200 OK") == 2
        assert wire.sent[-1][1].endswith(b"/one 0")
        assert server.log[1].time > 3

    tell(story)


def test_only_urls_that_may_change_are_counted() -> None:
    async def story(server: WebServer, wire: Wire) -> None:
        for target in ("/one", "/fickle", "/one", "/fickle"):
            wire.protocol.data_received(request(target))
            await asyncio.sleep(0)
            await asyncio.sleep(0.1)
        assert [200, 503, 200, 200] == [seen.status for seen in server.log]
        assert wire.sent[-2][1].endswith(b"/one 0")

    tell(story)


# --- what a request head says ------------------------------------------------------------------------------------

HOST = "\r\nHost: a.test"


@pytest.mark.parametrize(
    ("head", "meaning"),
    [
        (f"GET /x?y=%20 HTTP/1.1{HOST}", Head("a.test", "/x?y=%20", True)),
        ("GET / HTTP/1.1\r\nHOST:  A.Test:80 ", Head("a.test", "/", True)),
        ("GET / HTTP/1.1\r\nHost: a.test:8080", Head("a.test:8080", "/", True)),
        (f"GET / HTTP/1.1{HOST}\r\nConnection: Close", Head("a.test", "/", False)),
        (f"GET / HTTP/1.0{HOST}", Head("a.test", "/", False)),
        (f"GET / HTTP/1.0{HOST}\r\nConnection: keep-alive", Head("a.test", "/", True)),
        (f"GET / HTTP/1.1{HOST}\r\nX-Rule: a\r\nCookie: b=c", Head("a.test", "/", True, "a", "b=c")),
        (f"POST /login HTTP/1.1{HOST}\r\nContent-Length: 9", Head("a.test", "/login", True, form_bytes=9)),
        (f"POST /login HTTP/1.1{HOST}", HTTPStatus.BAD_REQUEST),
        (f"POST /login HTTP/1.1{HOST}\r\nContent-Length: 1025", HTTPStatus.BAD_REQUEST),
        (f"POST /login HTTP/1.1{HOST}\r\nContent-Length: -9", HTTPStatus.BAD_REQUEST),
        (f"POST /page HTTP/1.1{HOST}\r\nContent-Length: 9", HTTPStatus.METHOD_NOT_ALLOWED),
        (f"HEAD / HTTP/1.1{HOST}", HTTPStatus.METHOD_NOT_ALLOWED),
        (f"GET / HTTP/1.1{HOST}{HOST}", HTTPStatus.BAD_REQUEST),
        ("GET / HTTP/1.1\r\nHost:", HTTPStatus.BAD_REQUEST),
        ("GET / HTTP/1.1", HTTPStatus.BAD_REQUEST),
        (f"GET / HTTP/2.0{HOST}", HTTPStatus.BAD_REQUEST),
        (f"GET  / HTTP/1.1{HOST}", HTTPStatus.BAD_REQUEST),
        (f"GET http://a.test/ HTTP/1.1{HOST}", HTTPStatus.BAD_REQUEST),
        (f"GET /\xe9 HTTP/1.1{HOST}", HTTPStatus.BAD_REQUEST),
        (f"GET / HTTP/1.1{HOST}\r\nno field", HTTPStatus.BAD_REQUEST),
        (f"GET / HTTP/1.1{HOST}\r\n folded: x", HTTPStatus.BAD_REQUEST),
        (f"GET / HTTP/1.1{HOST}\r\nTransfer-Encoding: chunked", HTTPStatus.BAD_REQUEST),
        (f"GET / HTTP/1.1{HOST}\r\nX: a\nY: b", HTTPStatus.BAD_REQUEST),
        ("", HTTPStatus.BAD_REQUEST),
    ],
)
def test_a_request_head_means(head: str, meaning: Head | HTTPStatus) -> None:
    assert meaning == parse_head(head.encode("latin-1"))


def test_a_logged_request_is_what_the_judge_reads() -> None:
    seen = Request(1.5, "a.test", "/x", 200, "10.0.0.7")
    assert Access(1.5, "http://a.test", "/x", 200, "10.0.0.7") == seen.access
    assert "http://a.test/x" == seen.url == seen.access.url
    assert Counter([seen.access.site]) == {"http://a.test": 1}
