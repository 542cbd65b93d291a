"""Test how much a connection accepts of a server that says more than the client asked."""

import asyncio
from unittest.mock import Mock

from kadcrawl.crawl.fetch.metered_connection import MeteredConnection
from kadcrawl.settings.limits import Limits

ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"


async def test_only_the_first_answer_to_a_request_counts_and_the_rest_disconnect() -> None:
    """Each takes fifty times its bytes, and nobody would read it."""
    connection, transport = MeteredConnection(asyncio.get_running_loop(), Limits()), Mock(spec=asyncio.Transport)
    connection.connection_made(transport)
    connection.set_response_params()
    connection.data_received(b"HTTP/1.1 103 Early Hints\r\n\r\n" + ANSWER)
    assert not transport.close.called
    kept = len(connection._buffer)
    connection.data_received(ANSWER * 100)
    assert kept == len(connection._buffer)
    assert transport.close.called


async def test_a_body_in_one_piece_that_is_larger_than_the_buffer_is_read_to_its_end() -> None:
    """The parser pauses when the buffer is full, and is told to go on by an empty piece."""
    body = b"x" * 600_000
    connection, transport = MeteredConnection(asyncio.get_running_loop(), Limits()), Mock(spec=asyncio.Transport)
    connection.connection_made(transport)
    connection.set_response_params(read_until_eof=True, read_bufsize=65_536)
    connection.data_received(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
    _, payload = await connection.read()
    async with asyncio.timeout(60):
        assert body == await payload.read()


async def test_a_body_ends_where_its_framing_breaks_although_the_server_keeps_the_connection() -> None:
    connection, transport = MeteredConnection(asyncio.get_running_loop(), Limits()), Mock(spec=asyncio.Transport)
    connection.connection_made(transport)
    connection.set_response_params()
    connection.data_received(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n")
    _, payload = await connection.read()
    assert not connection.has_broken_framing
    connection.data_received(b"-5\r\nhello\r\n")
    assert payload.is_eof()
    assert b"hello" == payload.read_nowait()
    assert connection.has_broken_framing
    assert transport.close.called


async def test_what_follows_a_whole_body_does_not_break_its_framing() -> None:
    connection, transport = MeteredConnection(asyncio.get_running_loop(), Limits()), Mock(spec=asyncio.Transport)
    connection.connection_made(transport)
    connection.set_response_params()
    connection.data_received(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n")
    _, payload = await connection.read()
    connection.data_received(b"hello, world")
    assert payload.is_eof()
    assert b"hello" == payload.read_nowait()
    assert not connection.has_broken_framing
    assert transport.close.called
