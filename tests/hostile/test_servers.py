"""Test that one request ends in one outcome, in bounded time and memory, and that the archive stays sound.

The servers send anything.
"""

import asyncio
import gzip
import ssl
import tracemalloc
import zlib
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from random import Random

import aiohttp.connector
import brotlicffi
import msgspec
import pytest
from warcio.archiveiterator import ArchiveIterator

from kadcrawl.crawl.fetch.direct_request import HEADERS_MAX
from kadcrawl.crawl.fetch.metered_connection import FRAMING_MAX
from kadcrawl.crawl.fetch.result import BY_PEER, TLS_ERRORS, UNREACHED, FetchError, FetchResult
from kadcrawl.crawl.output.warc import WarcWriter
from tests.support.sites.hostile_site import Drip, Endless, HostileSite
from tests.support.sites.proxies import certificate, serving_tls
from tests.support.sites.scripted_site import (
    CHUNKED,
    DRIP,
    FLOOD,
    GZIPPED,
    HANG,
    KEEP,
    LIMITS,
    OK,
    RESET,
    SEEN,
    Step,
    fetching,
    length,
)
from tests.support.zstd import zstd

EMPTY = b"Content-Length: 0\r\n\r\n"
ZEROS = bytes(2_000_000)
MANY = 10_000
PATIENT = replace(LIMITS, connect_timeout_s=30.0, fetch_timeout_s=30.0, idle_timeout_s=30.0, rate_grace_s=30.0)


def coded(coding: str, body: bytes) -> bytes:
    return OK + b"Content-Encoding: " + coding.encode() + b"\r\n\r\n" + body


def gz(content: bytes) -> bytes:
    return gzip.compress(content, mtime=0)


def headed(field: bytes) -> bytes:
    return OK + field + b"\r\n" + EMPTY


ROWS: dict[str, tuple[list[Step], str | None, int | None]] = {
    # what the server does: (its steps, what the page line has as `failed`, the status)
    "gzip bomb": ([coded("gzip", gz(ZEROS))], "inflated_too_large", 200),
    "gzip bomb of members": ([coded("gzip", gz(bytes(19_000)) * 16)], "inflated_too_large", 200),
    "gzip members without end": ([coded("gzip", gz(b"") * 400)], "bad_encoding", 200),
    "deflate bomb": ([coded("deflate", zlib.compress(ZEROS))], "inflated_too_large", 200),
    "bare deflate bomb": ([coded("deflate", zlib.compress(ZEROS)[2:-4])], "inflated_too_large", 200),
    "brotli bomb": ([coded("br", brotlicffi.compress(ZEROS))], "inflated_too_large", 200),
    "zstd bomb": ([coded("zstd", zstd.compress(ZEROS))], "inflated_too_large", 200),
    "zstd of blocks of nothing": ([coded("zstd", b"\x28\xb5\x2f\xfd" + bytes(99))], "truncated", 200),
    "zstd with a window of 2 GB": ([coded("zstd", b"\x28\xb5\x2f\xfd\0\xa8\1\0\0")], "bad_encoding", 200),
    "zstd frames without end": ([coded("zstd", zstd.compress(b"") * 400)], "bad_encoding", 200),
    "zstd in gzip": ([coded("zstd, gzip", gz(zstd.compress(ZEROS)))], "inflated_too_large", 200),
    "lzma, which nobody offered": ([coded("lzma", b"hello")], "bad_encoding", 200),
    "gzip in gzip": ([coded("gzip, gzip", gz(gz(ZEROS)))], "inflated_too_large", 200),
    "gzip in gzip by two fields": (
        [OK + b"Content-Encoding: gzip\r\nContent-Encoding: gzip\r\n\r\n" + gz(gz(ZEROS))], "inflated_too_large", 200),
    "brotli in gzip": ([coded("br, gzip", gz(brotlicffi.compress(ZEROS)))], "inflated_too_large", 200),
    "gzip in gzip in gzip": ([coded("gzip, gzip, gzip", gz(gz(gz(ZEROS))))], "bad_encoding", 200),
    "a hundred codings": ([coded("gzip," * 100, gz(ZEROS))], "bad_encoding", 200),
    "coding of 3 kB": ([coded("x" * 3_000, b"hello")], "bad_encoding", 200),
    "gzip cut off": ([coded("gzip", gz(b"hello")[:-4])], "truncated", 200),
    "gzip flood": ([GZIPPED, Endless(gz(b"x") * 1_000)], "body_too_large", 200),
    "header lines without end": ([OK, Endless(b"A: b\r\n" * 1_000)], "headers_too_large", None),
    "header line without end": ([OK + b"A: ", FLOOD], "headers_too_large", None),
    "header name without end": ([OK, FLOOD], "headers_too_large", None),
    "status line without end": ([b"HTTP/1.1 200 ", FLOOD], "headers_too_large", None),
    "10,000 headers": ([OK + b"A: b\r\n" * MANY + b"\r\n"], "headers_too_large", None),
    "a header too many": ([OK + b"A: b\r\n" * (HEADERS_MAX + 1) + b"\r\n"], "headers_too_large", None),
    "cookies": ([OK + b"Set-Cookie: a=" + b"x" * 3_900 + b"\r\nSet-Cookie: b=" + b"x" * 3_900 + b"\r\n" + EMPTY],
                "headers_too_large", None),
    "header byte by byte": ([OK + b"A: ", DRIP], "timeout", None),
    "header line by line": ([OK, Drip(b"A: b\r\n")], "timeout", None),
    "empty lines without end": ([Endless(b"\r\n" * 10_000)], "headers_too_large", None),
    "100 without end": ([Endless(b"HTTP/1.1 100 Continue\r\n\r\n" * 1_000)], "headers_too_large", None),
    "103 without end": ([Endless(b"HTTP/1.1 103 E\r\nLink: </a>\r\n\r\n" * 1_000)], "headers_too_large", None),
    "100 now and then": ([Drip(b"HTTP/1.1 100 Continue\r\n\r\n")], "timeout", None),
    "101": ([b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: h2c\r\n\r\n", FLOOD], "protocol", None),
    "status 000": ([b"HTTP/1.1 000 No\r\n" + EMPTY], "protocol", None),
    "status 099": ([b"HTTP/1.1 099 No\r\n" + EMPTY], "protocol", None),
    "status 99": ([b"HTTP/1.1 99 No\r\n" + EMPTY], "protocol", None),
    "status 999": ([b"HTTP/1.1 999 No\r\n" + EMPTY], "http_999", 999),
    "status 1000": ([b"HTTP/1.1 1000 No\r\n" + EMPTY], "protocol", None),
    "status -1": ([b"HTTP/1.1 -1 No\r\n" + EMPTY], "protocol", None),
    "status of letters": ([b"HTTP/1.1 abc No\r\n" + EMPTY], "protocol", None),
    "status of other digits": (["HTTP/1.1 ２００ OK\r\n".encode() + EMPTY], "protocol", None),
    "HTTP/0.9": ([b"<html><a href=/x>x</a></html>"], "protocol", None),
    "HTTP/0.9, and waits": ([b"<html>\r\n<a href=/x>x</a>\r\n\r\n", HANG], "protocol", None),
    "HTTP/9.9": ([b"HTTP/9.9 200 OK\r\n" + EMPTY], "protocol", None),
    "HTTP/2 frames": ([b"\0\0\x12\x04\0\0\0\0\0" + bytes(18), HANG], "protocol", None),
    "TLS to http": ([b"\x15\x03\x01\0\x02\x02\x46", HANG], "protocol", None),
    "NUL before the status line": ([b"\0HTTP/1.1 200 OK\r\n" + EMPTY], "protocol", None),
    "NUL in the reason": ([b"HTTP/1.1 200 O\0K\r\n" + EMPTY], None, 200),
    "bytes in the reason": ([b"HTTP/1.1 200 \xff\xfe\xed\xa0\x80\r\n" + EMPTY], None, 200),
    "NUL in a header name": ([headed(b"A\0B: c")], "protocol", None),
    "NUL in a header": ([headed(b"A: b\0c")], "protocol", None),
    "CR in a header": ([headed(b"A: b\rC: d")], "protocol", None),
    "header without a name": ([headed(b": b")], "protocol", None),
    "header in two lines": ([headed(b"A: b\r\n c")], None, 200),
    "bytes in headers": ([headed(b"Content-Type: text/html\xff\xfe\x01; charset=\x80\xed\xa0\x80")], None, 200),
    "type of 3 kB": ([headed(b"Content-Type: " + b"x" * 3_000)], None, 200),
    "charset there is none of": ([headed(b"Content-Type: text/html; charset=../../etc/passwd")], None, 200),
    "charset that is a codec": ([headed(b"Content-Type: text/html; charset=zlib_codec")], None, 200),
    "date without end": ([headed(b"Retry-After: " + b"9" * 3_000)], None, 200),
    "negative length": ([OK + b"Content-Length: -5\r\n\r\nhello"], "protocol", None),
    "signed length": ([OK + b"Content-Length: +5\r\n\r\nhello"], "protocol", None),
    "huge length": ([length(2**62) + b"hello"], "truncated", 200),
    "huger length": ([OK + b"Content-Length: " + b"9" * 30 + b"\r\n\r\nhello"], "protocol", None),
    "length of words": ([OK + b"Content-Length: 1e3\r\n\r\nhello"], "protocol", None),
    "two lengths": ([OK + b"Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello!"], "protocol", None),
    "list of lengths": ([OK + b"Content-Length: 5, 5\r\n\r\nhello"], None, 200),
    "length and chunks": (
        [OK + b"Content-Length: 9\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"], "protocol", None),
    "more than the length": ([length(2) + b"hello, you"], None, 200),
    "less than the length": ([length(20) + b"hello"], "truncated", 200),
    "less than the length, and waits": ([length(20) + b"hello", HANG], "idle", 200),
    "body of a 204": ([b"HTTP/1.1 204 No\r\nContent-Length: 5\r\n\r\nhello"], None, 204),
    "coding of the transfer": ([OK + b"Transfer-Encoding: gzip, chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"], None, 200),
    "chunks without end": ([CHUNKED, Endless(b"1000\r\n" + b"x" * 4_096 + b"\r\n")], "body_too_large", 200),
    "chunks of a byte": ([CHUNKED, Endless((b"1;" + b"x" * 100 + b"\r\nx\r\n") * 900)], "protocol", 200),
    "chunks of nothing": ([CHUNKED, Endless(b"1;" + b"x" * 60_000 + b"\r\nx\r\n")], "protocol", 200),
    "chunk extension without end": ([CHUNKED + b"5;", FLOOD], "protocol", 200),
    "chunk size without end": ([CHUNKED, Endless(b"0" * 65_536)], "protocol", 200),
    "negative chunk": ([CHUNKED + b"-5\r\nhello\r\n0\r\n\r\n"], "protocol", 200),
    "chunk with 0x": ([CHUNKED + b"0x5\r\nhello\r\n0\r\n\r\n"], "protocol", 200),
    "chunk with a line": ([CHUNKED + b"5_0\r\nhello\r\n0\r\n\r\n"], "protocol", 200),
    "chunk without size": ([CHUNKED + b"\r\nhello\r\n0\r\n\r\n"], "protocol", 200),
    "chunk too short": ([CHUNKED + b"3\r\nhello\r\n0\r\n\r\n"], "protocol", 200),
    "huge chunk": ([CHUNKED + b"F" * 16 + b"\r\nhello"], "truncated", 200),
    "huger chunk": ([CHUNKED + b"F" * 17 + b"\r\nhello"], "protocol", 200),
    "trailers without end": ([CHUNKED + b"0\r\n", Endless(b"A: b\r\n" * 1_000)], "protocol", 200),
    "trailer without end": ([CHUNKED + b"0\r\nA: ", FLOOD], "protocol", 200),
    "body without end": ([OK + b"\r\n", FLOOD], "body_too_large", 200),
    "body byte by byte": ([OK + b"\r\n", DRIP], "too_slow", 200),
    "chunks now and then": ([CHUNKED, Drip(b"1\r\nx\r\n")], "too_slow", 200),
    "no answer": ([HANG], "timeout", None),
    "reset": ([RESET], "disconnected", None),
    "two answers": ([length(2) + b"ok" + length(4) + b"evil", KEEP], None, 200),
}  # fmt: skip


@pytest.fixture
async def hostile_site() -> AsyncIterator[HostileSite]:
    async with HostileSite().serving() as site:
        assert isinstance(site, HostileSite)
        yield site


async def fetched_from(site: HostileSite, row: str) -> FetchResult:
    """Fetch the answer of a row. A time-out happens only where the row says so, however busy the machine is."""
    steps, failed, _ = ROWS[row]
    site.answers["/"] = steps
    async with fetching(limits=LIMITS if failed in ("timeout", "idle", "too_slow") else PATIENT) as fetcher:
        return await fetcher.fetch(site.url("/"))


@pytest.mark.parametrize("row", ROWS)
async def test_each_answer_has_one_outcome(row: str, hostile_site: HostileSite, tmp_path: Path) -> None:
    _, failed, status = ROWS[row]
    fetched = await fetched_from(hostile_site, row)
    assert (failed, status) == (fetched.why_failed, fetched.status)
    assert 1 == len(hostile_site.requests["/"])
    assert len(fetched.body) <= LIMITS.body_bytes_max
    assert len(fetched.content) <= LIMITS.inflated_bytes_max
    assert not fetched.content or failed in (None, "body_too_large", "http_999")
    # What of it a page line has, and the header fields that are looked at.
    msgspec.json.encode([fetched.detail, fetched.mime, fetched.content_type, fetched.header(b"a"), fetched.location])
    assert_archived(fetched, tmp_path)


def assert_archived(fetched: FetchResult, directory: Path) -> None:
    """Fail unless the answer is a sound WARC record and the next record is found behind it."""
    if fetched.status is None:
        return
    writer = WarcWriter.open(directory, "hostile", None, info={}, bytes_max=10**9, random=Random(1), now=lambda: 0.0)
    after = replace(fetched, url="http://after.example/", headers=(), body=b"after", reason="OK")
    for one in (fetched, after):
        writer.write(one)
    writer.close()
    with (directory / writer.position[0]).open("rb") as stream:
        found = [
            (record.rec_headers.get_header("WARC-Target-URI"), record.raw_stream.read())
            for record in ArchiveIterator(stream, check_digests="raise")
            if record.rec_type == "response"
        ]
    assert [(one.url, one.body) for one in (fetched, after)] == found


@pytest.mark.parametrize(
    "row", [row for row, (steps, _, _) in ROWS.items() if any(isinstance(s, Endless) for s in steps)]
)
async def test_what_never_ends_costs_what_an_answer_may(row: str, hostile_site: HostileSite) -> None:
    """Beyond its limits, an answer takes a few pieces as the system gives them, and the parsed pieces."""
    tracemalloc.start()
    try:
        await fetched_from(hostile_site, row)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 10_000_000
    # Some MB of it wait in the buffers of the system.
    assert hostile_site.sent < 16_000_000 + FRAMING_MAX * LIMITS.body_bytes_max


@pytest.mark.parametrize(
    "answer",
    [length(0), b"HTTP/1.1 100 C\r\n\r\n", b"HTTP/1.1 200 OK\r\n\r\nno", b"\0", b"\r\n" * 99],
    ids=["answers", "interim answers", "answer without end", "NUL", "empty lines"],
)
async def test_what_nobody_asked_for_is_neither_kept_nor_taken_for_an_answer(
    answer: bytes, hostile_site: HostileSite
) -> None:
    """The connection waits for the next request."""
    hostile_site.answers = {"/": [length(2) + b"ok", SEEN, Endless(answer * 2_000)], "/next": [length(4) + b"next"]}
    async with fetching() as fetcher:
        assert b"ok" == (await fetcher.fetch(hostile_site.url("/"))).content
        tracemalloc.start()
        try:
            hostile_site.seen.set()
            async with asyncio.timeout(60):
                while hostile_site.is_connected:
                    await asyncio.sleep(0.001)
            assert tracemalloc.get_traced_memory()[1] < 20_000_000
        finally:
            tracemalloc.stop()
        assert hostile_site.sent < 16_000_000
        assert b"next" == (await fetcher.fetch(hostile_site.url("/next"))).content


async def test_each_request_on_a_kept_connection_has_the_whole_count(hostile_site: HostileSite) -> None:
    hostile_site.answers["/"] = [length(9_000) + b"x" * 9_000, KEEP]
    async with fetching() as fetcher:
        failures = [(await fetcher.fetch(hostile_site.url("/"))).error for _ in range(20)]
    assert ([None] * 20, 1) == (failures, hostile_site.connections)
    assert 20 * 9_000 > LIMITS.header_bytes_max + FRAMING_MAX * LIMITS.body_bytes_max


CERTIFICATES = {
    # The certificate of the server: (for whom, for how many days, whether a crawler trusts it, issuer, failure).
    "self-signed": ("127.0.0.1", 1, False, None, FetchError.TLS_SELF_SIGNED),
    "of an unknown authority": ("127.0.0.1", 1, False, "Private CA", FetchError.TLS_UNKNOWN_CA),
    "expired": ("127.0.0.1", -1, True, None, FetchError.TLS_EXPIRED),
    "of another host": ("other.example", 1, True, None, FetchError.TLS_NAME),
    "of another address": ("127.0.0.9", 1, True, None, FetchError.TLS_NAME),
    "of all hosts": ("*", 1, True, None, FetchError.TLS_NAME),
    "right": ("127.0.0.1", 1, True, None, None),
}


@pytest.mark.parametrize("row", CERTIFICATES)
async def test_a_site_that_is_not_who_it_says_is_sent_no_request(
    row: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name, days, is_trusted, issuer, failure = CERTIFICATES[row]
    path = certificate(tmp_path, name, days=days, issuer=issuer)
    if is_trusted:
        trusting = ssl.create_default_context(cafile=str(path))
        monkeypatch.setattr(aiohttp.connector, "_SSL_CONTEXT_VERIFIED", trusting)
    asked = 0

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal asked
        await reader.readuntil(b"\r\n\r\n")
        asked += 1
        writer.write(length(0))
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0, ssl=serving_tls(path))
    async with server, fetching(limits=replace(LIMITS, connect_timeout_s=5, fetch_timeout_s=5)) as fetcher:
        fetched = await fetcher.fetch(f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}/")
    if failure is None:
        assert (None, 200, 1) == (fetched.error, fetched.status, asked)
    else:
        assert (failure, None, 0, False) == (fetched.error, fetched.status, asked, fetched.passing)
        assert fetched.detail
        assert failure in TLS_ERRORS <= UNREACHED & BY_PEER
