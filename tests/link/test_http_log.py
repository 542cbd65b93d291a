"""Test that a sender of wrong HTTP gets a log line now and then, and no more."""

import asyncio
import logging

import pytest

from kadcrawl.link.handler import LINK_PATH
from kadcrawl.link.http_log import quiet_logger
from kadcrawl.link.server import LinkServer
from kadcrawl.link.wire.messages import Hello, Ok

UPGRADE = (
    f"GET {LINK_PATH} HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\nConnection: upgrade\r\nSec-WebSocket-Version: 13\r\n"
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Protocol: "
).encode() + b"x" * 5000


@pytest.mark.parametrize(
    "said",
    [b"\x00\x01\x02", b"GET / HTTP/9.9", b"GET / HTTP/1.1\r\nContent-Length: x", b"GET /" + b"x" * 20_000, UPGRADE],
    ids=["nonsense", "version", "length", "long", "protocols"],
)
async def test_broken_http_fills_no_log(said: bytes, caplog: pytest.LogCaptureFixture) -> None:
    async def hello(_: Hello) -> Ok:
        return Ok()

    server = LinkServer(1_000_000)
    server.handle(Hello, hello)
    port = await server.listen("127.0.0.1", 0)
    for _ in range(30):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(said + b"\r\n\r\n")
        assert (await reader.read(12)).startswith(b"HTTP/1.")
        writer.transport.abort()
    await server.close()
    assert len(caplog.records) <= 1
    assert all(record.exc_info is None and len(record.getMessage()) < 300 for record in caplog.records)


def test_a_fault_of_ours_is_logged_as_ever(caplog: pytest.LogCaptureFixture) -> None:
    noted: list[str] = []
    logger = quiet_logger(logging.getLogger("kadcrawl.link.server"), noted.append)
    try:
        raise KeyError("ours")
    except KeyError:
        logger.exception("Error handling request")
    assert ["Error handling request"] == [record.getMessage() for record in caplog.records]
    assert not noted
