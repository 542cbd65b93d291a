"""Test that one request ends in one `FetchResult` with at most one failure, for any server."""

import asyncio
import gzip
import logging
import socket
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from typing import Any, cast

import aiohttp
import brotlicffi
import pytest
from aiohttp.abc import ResolveResult

from kadcrawl.crawl.fetch.address_guard import Guard
from kadcrawl.crawl.fetch.content_encoding import decoding
from kadcrawl.crawl.fetch.fetcher import Fetcher, user_agent
from kadcrawl.crawl.fetch.memory_slots import MemorySlots
from kadcrawl.crawl.fetch.poison_pages import PoisonPages
from kadcrawl.crawl.fetch.result import PASSING, FetchError, FetchResult
from kadcrawl.crawl.fetch.timeouts import ResponseDeadline
from kadcrawl.settings.job_limits import limits_with
from kadcrawl.system.cooperative import CooperativeWork
from tests.support.sites.scripted_site import (
    CHUNKED,
    DRIP,
    FLOOD,
    GZIPPED,
    HANG,
    KEEP,
    LIMITS,
    LOOPBACK,
    OK,
    RESET,
    SEEN,
    ScriptedSite,
    Step,
    fetching,
    length,
)
from tests.support.swarm.poison_pages import dies_reading


@pytest.fixture
async def scripted_site(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[ScriptedSite]:
    async with ScriptedSite().serving() as serving:
        bytes_came = ResponseDeadline.bytes_came

        def seen(patience: ResponseDeadline, count: int, now: float) -> None:
            bytes_came(patience, count, now)
            serving.seen.set()

        monkeypatch.setattr(ResponseDeadline, "bytes_came", seen)
        yield serving


@pytest.fixture
async def fetcher() -> AsyncIterator[Fetcher]:
    async with fetching() as started:
        yield started


async def answered(site: ScriptedSite, fetcher: Fetcher, *steps: Step) -> FetchResult:
    site.answers["/"] = steps
    return await fetcher.fetch(site.url("/"))


async def test_few_large_bodies_are_read_at_once_and_that_wait_blames_no_site(scripted_site: ScriptedSite) -> None:
    limits = replace(LIMITS, large_body_bytes=100, large_bodies_max=1, rate_grace_s=10.0)
    scripted_site.answers = {
        "/slow": [length(1_000), b"x" * 200, DRIP],
        "/large": [length(1_000), b"y" * 1_000],
        "/small": [length(100), b"z" * 100],
    }
    async with fetching(limits=limits) as fetcher:
        slow = asyncio.create_task(fetcher.fetch(scripted_site.url("/slow")))
        await scripted_site.seen.wait()
        large = [asyncio.create_task(fetcher.fetch(scripted_site.url("/large"))) for _ in range(3)]
        small = await fetcher.fetch(scripted_site.url("/small"))
        assert (None, b"z" * 100) == (small.error, small.body)
        await asyncio.sleep(0.1)
        assert not any(task.done() for task in (slow, *large))
        large.pop().cancel()
        for task in large:
            fetched = await task
            assert slow.done()
            assert (None, b"y" * 1_000) == (fetched.error, fetched.body)
        assert (await slow).error is FetchError.TOO_SLOW
        assert not fetcher._large.locked()


@pytest.mark.parametrize("end", [b"", RESET], ids=["closed", "reset"])
async def test_a_server_that_gives_up_while_we_read_nothing_was_kept_waiting(
    scripted_site: ScriptedSite, end: Step
) -> None:
    limits = replace(LIMITS, large_body_bytes=100, large_bodies_max=1)
    gives_up = [length(1_000), b"y" * 200, end] if end else [length(1_000), b"y" * 200]
    scripted_site.answers = {"/slow": [length(1_000), b"x" * 200, DRIP], "/large": gives_up}
    async with fetching(limits=limits) as fetcher:
        slow = asyncio.create_task(fetcher.fetch(scripted_site.url("/slow")))
        await scripted_site.seen.wait()
        assert FetchError.KEPT_WAITING is (await fetcher.fetch(scripted_site.url("/large"))).error
        assert (await slow).error is FetchError.TOO_SLOW
        assert FetchError.TRUNCATED is (await fetcher.fetch(scripted_site.url("/large"))).error


async def test_few_large_contents_are_held_at_a_time_until_they_were_read(scripted_site: ScriptedSite) -> None:
    limits = replace(LIMITS, large_body_bytes=1_000, large_contents_max=2)
    packed = gzip.compress(b"y", mtime=0)
    scripted_site.answers = {
        "/large": [GZIPPED + LARGE],
        "/packed": [length(len(packed)), packed],
        "/small": [GZIPPED + SMALL],
        "/bomb": [GZIPPED + BOMB],
        "/broken": [GZIPPED + LARGE[:-8]],
    }
    async with fetching(limits=limits) as fetcher:
        for name, failure in (("/bomb", FetchError.INFLATED_TOO_LARGE), ("/broken", FetchError.TRUNCATED)):
            for _ in range(3):
                assert failure == (await fetcher.fetch(scripted_site.url(name))).error
        holds = [MemorySlots() for _ in range(5)]
        first = [await fetcher.fetch(scripted_site.url("/large"), memory_slots=hold) for hold in holds[:2]]
        assert [b"x" * 1_001] * 2 == [fetched.content for fetched in first]
        later = [
            asyncio.create_task(fetcher.fetch(scripted_site.url(name), memory_slots=hold))
            for name, hold in zip(("/large", "/packed", "/large"), holds[2:], strict=True)
        ]
        small = await fetcher.fetch(scripted_site.url("/small"), memory_slots=holds[0])
        assert b"x" * 1_000 == small.content
        await asyncio.sleep(0.1)
        assert not any(task.done() for task in later)
        later.pop().cancel()
        for hold in holds[:2]:
            hold.release()
        assert [b"x" * 1_001, packed] == [fetched.content for fetched in await asyncio.gather(*later)]
        for hold in holds[2:]:
            hold.release()
        assert 2 == fetcher._large_contents._value


async def test_suspected_poison_pages_wait_for_no_slot_while_others_await_them(
    scripted_site: ScriptedSite, tmp_path: Path
) -> None:
    """Each has the place the other needs, or waits until the other has been read."""
    scripted_site.answers = {"/one": [GZIPPED + LARGE], "/two": [GZIPPED + LARGE]}
    await dies_reading(tmp_path, scripted_site.url("/one"), scripted_site.url("/two"))
    deadly = PoisonPages(tmp_path)
    async with fetching(limits=replace(LIMITS, large_body_bytes=1_000, large_contents_max=1), deadly=deadly) as fetcher:

        async def page(path: str) -> None:
            hold = MemorySlots()
            assert b"x" * 1_001 == (await fetcher.fetch(scripted_site.url(path), memory_slots=hold)).content
            await asyncio.sleep(0)
            async with deadly.reading(scripted_site.url(path)):
                await asyncio.sleep(0)
            hold.release()

        await asyncio.wait_for(asyncio.gather(page("/one"), page("/two")), 60)
    deadly.close()


SMALL, LARGE = (gzip.compress(b"x" * count, mtime=0) for count in (1_000, 1_001))
BOMB = gzip.compress(b"x" * (LIMITS.inflated_bytes_max + 1), mtime=0)
GZIP_PAGE = gzip.compress(b"x" * 10_000, mtime=0)
BODY = b"x" * 10_000


@pytest.mark.parametrize(
    ("steps", "body"),
    [
        ([length(5), b"hello"], b"hello"),
        ([length(0)], b""),
        ([OK + b"\r\nhello"], b"hello"),
        ([OK + b"\r\n"], b""),
        ([b"HTTP/1.0 200 OK\r\n\r\nhello"], b"hello"),
        ([b"HTTP/1.1 200\r\nContent-Length: 5\r\n\r\nhello"], b"hello"),
        ([CHUNKED + b"2\r\nhe\r\n3;ext=1\r\nllo\r\n0\r\nTrailer: x\r\n\r\n"], b"hello"),
        ([b"HTTP/1.1 100 Continue\r\n\r\n" + length(5) + b"hello"], b"hello"),
        ([b"HTTP/1.1 204 No Content\r\n\r\n"], b""),
        ([b"HTTP/1.1 304 Not Modified\r\nContent-Length: 7\r\n\r\n"], b""),
        ([b"HTTP/1.1 404 Not Found\r\nContent-Length: 2\r\n\r\nno"], b"no"),
        ([length(5) + b"hel", b"lo", HANG], b"hello"),
        ([length(10_000) + BODY], BODY),
        ([length(5) + b"hello world"], b"hello"),
        ([length(5) + b"hello world", HANG], b"hello"),
        ([length(5) + b"hello", SEEN, b"HTTP/1.1 400 no\r\n\r\n"], b"hello"),
        ([length(0) + b"hello", HANG], b""),
        ([b"HTTP/1.1 204 No Content\r\n\r\nhello", HANG], b""),
        ([CHUNKED + b"5\r\nhello\r\n0\r\n\r\nmore", HANG], b"hello"),
        ([OK + b"Content-Length: 5\r\ncontent-length:5\r\n\r\nhello", HANG], b"hello"),
        ([OK + b"Content-Length: 5, 5\r\n\r\nhello world", HANG], b"hello"),
        ([OK + b"Content-Length: 5\r\nConte", b"nt-Length: 5\r", b"\n\r", b"\nhello!", HANG], b"hello"),
        ([CHUNKED + b"2710\r\n" + BODY + b"\r\n0\r\n\r\n"], BODY),
    ],
)
async def test_a_whole_answer_has_no_failure(
    scripted_site: ScriptedSite, fetcher: Fetcher, steps: list[Step], body: bytes
) -> None:
    fetched = await answered(scripted_site, fetcher, *steps)
    assert (fetched.error, fetched.body, fetched.detail) == (None, body, "")
    assert fetched.content is fetched.body
    assert fetched.address == "127.0.0.1"


@pytest.mark.parametrize(
    ("steps", "failure", "status", "body"),
    [
        ([], FetchError.DISCONNECTED, None, b""),
        ([RESET], FetchError.DISCONNECTED, None, b""),
        ([b"HTTP/1.1 200 OK\r\nContent-Le"], FetchError.DISCONNECTED, None, b""),
        ([b"\x16\x03\x01 what is this\r\n\r\n"], FetchError.PROTOCOL, None, b""),
        ([b"SSH-2.0-OpenSSH_9.2\r\n", HANG], FetchError.PROTOCOL, None, b""),
        ([OK + b"no colon\r\n\r\n"], FetchError.PROTOCOL, None, b""),
        ([OK + b"A: b\0c\r\n\r\n"], FetchError.PROTOCOL, None, b""),
        ([OK + b"Content-Length: -1\r\n\r\n"], FetchError.PROTOCOL, None, b""),
        ([OK + b"Content-Length: 1\r\nContent-Length: 2\r\n\r\nxy"], FetchError.PROTOCOL, None, b""),
        ([OK + b"Content-Length: 1, 2\r\n\r\nxy"], FetchError.PROTOCOL, None, b""),
        ([OK + b"Content-Length: 1, 1\r\nContent-Length: 2\r\n\r\nxy"], FetchError.PROTOCOL, None, b""),
        ([b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n", HANG], FetchError.PROTOCOL, None, b""),
        ([CHUNKED + b"5\r\nhello\r\nZZZ\r\n"], FetchError.PROTOCOL, 200, b"hello"),
        ([OK + b"A: " + b"x" * 4_000 + b"\r\n\r\n"], FetchError.HEADERS_TOO_LARGE, None, b""),
        ([OK + b"A: b\r\n" * 300 + b"\r\n"], FetchError.HEADERS_TOO_LARGE, None, b""),
        ([OK + (b"A: " + b"x" * 92 + b"\r\n") * 42 + b"\r\n"], FetchError.HEADERS_TOO_LARGE, None, b""),
        ([OK + b"A: ", FLOOD], FetchError.HEADERS_TOO_LARGE, None, b""),
        ([OK + b"A: ", DRIP], FetchError.TIMEOUT, None, b""),
        ([HANG], FetchError.TIMEOUT, None, b""),
        ([length(5) + b"hel", HANG], FetchError.IDLE, 200, b"hel"),
        ([CHUNKED + b"3\r\nhel\r\n", HANG], FetchError.IDLE, 200, b"hel"),
        ([length(20) + b"hello"], FetchError.TRUNCATED, 200, b"hello"),
        ([length(20) + b"hello", SEEN, RESET], FetchError.TRUNCATED, 200, b"hello"),
        ([OK + b"\r\nhello", SEEN, RESET], FetchError.TRUNCATED, 200, b"hello"),
        ([CHUNKED + b"5\r\nhello\r\n", SEEN, RESET], FetchError.TRUNCATED, 200, b"hello"),
        ([CHUNKED + b"5\r\nhello\r\n", SEEN, b"ZZZ\r\n", HANG], FetchError.PROTOCOL, 200, b"hello"),
        ([CHUNKED + b"5\r\nhello\r\n"], FetchError.TRUNCATED, 200, b"hello"),
        ([CHUNKED + b"9\r\nhello"], FetchError.TRUNCATED, 200, b"hello"),
        ([GZIPPED + GZIP_PAGE[:-1]], FetchError.TRUNCATED, 200, GZIP_PAGE[:-1]),
        ([length(10_001) + BODY, HANG], FetchError.IDLE, 200, BODY),
        ([length(10_001) + BODY + b"y", HANG], FetchError.BODY_TOO_LARGE, 200, BODY),
        ([OK + b"\r\n", FLOOD], FetchError.BODY_TOO_LARGE, 200, BODY),
        ([GZIPPED + BODY[:50]], FetchError.BAD_ENCODING, 200, BODY[:50]),
        ([OK + b"Content-Encoding: lzma\r\n\r\nhello"], FetchError.BAD_ENCODING, 200, b"hello"),
        (
            [GZIPPED + gzip.compress(bytes(20_001), mtime=0)],
            FetchError.INFLATED_TOO_LARGE,
            200,
            gzip.compress(bytes(20_001), mtime=0),
        ),
    ],
)
async def test_each_hostile_answer_is_one_failure(
    scripted_site: ScriptedSite,
    fetcher: Fetcher,
    steps: list[Step],
    failure: FetchError,
    status: int | None,
    body: bytes,
) -> None:
    fetched = await answered(scripted_site, fetcher, *steps)
    assert (fetched.error, fetched.status, len(fetched.body)) == (failure, status, len(body))
    assert fetched.content == (body if failure is FetchError.BODY_TOO_LARGE else b"")
    assert fetched.passing is (failure in PASSING)
    assert len(scripted_site.requests["/"]) == 1, "a failed request is not repeated behind the back of its caller"


async def test_a_slow_drip_is_too_slow(scripted_site: ScriptedSite, fetcher: Fetcher) -> None:
    fetched = await answered(scripted_site, fetcher, length(10_000), DRIP)
    assert (fetched.error, fetched.status) == (FetchError.TOO_SLOW, 200)


async def test_a_compressed_page_is_kept_as_received_and_inflated(
    scripted_site: ScriptedSite, fetcher: Fetcher
) -> None:
    body = gzip.compress(b"hello")
    fetched = await answered(scripted_site, fetcher, GZIPPED + body)
    assert (fetched.error, fetched.body, fetched.content) == (None, body, b"hello")


async def test_a_compressed_body_cut_off_has_no_content(scripted_site: ScriptedSite, fetcher: Fetcher) -> None:
    fetched = await answered(scripted_site, fetcher, GZIPPED + b"\x1f\x8b", FLOOD)
    assert (fetched.error, len(fetched.body), fetched.content) == (FetchError.BODY_TOO_LARGE, 10_000, b"")


@pytest.mark.parametrize(
    ("held", "steps", "failure"),
    [
        (5_000, [length(6_000) + BODY], FetchError.NO_MEMORY),
        (5_000, [GZIPPED + gzip.compress(bytes(6_000))], FetchError.INFLATED_NO_MEMORY),
        (1_000_000, [length(10_001) + BODY + b"y", HANG], FetchError.BODY_TOO_LARGE),
        (1_000_000, [GZIPPED + gzip.compress(bytes(20_001))], FetchError.INFLATED_TOO_LARGE),
    ],
)
async def test_a_body_that_never_fits_into_the_memory_is_no_body_that_the_job_refuses(
    scripted_site: ScriptedSite, held: int, steps: list[Step], failure: FetchError
) -> None:
    async with fetching(limits=limits_with(LIMITS, [("held_bytes_max", held)])) as fetcher:
        fetched = await answered(scripted_site, fetcher, *steps)
    assert (failure, 200) == (fetched.error, fetched.status)
    assert len(fetched.body) <= held
    assert fetched.content == (fetched.body if failure.is_cut_off else b"")


async def test_more_brotli_than_is_decoded_is_too_large(
    scripted_site: ScriptedSite, fetcher: Fetcher, monkeypatch: pytest.MonkeyPatch
) -> None:
    body = brotlicffi.compress(BODY)
    coded = OK + b"Content-Encoding: br\r\nContent-Length: %d\r\n\r\n" % len(body) + body
    monkeypatch.setattr("kadcrawl.crawl.fetch.content_encoding.BROTLI_BYTES_MAX", len(body))
    assert BODY == (await answered(scripted_site, fetcher, coded)).content
    monkeypatch.setattr("kadcrawl.crawl.fetch.content_encoding.BROTLI_BYTES_MAX", len(body) - 1)
    fetched = await answered(scripted_site, fetcher, coded)
    assert (FetchError.INFLATED_TOO_LARGE, body, b"") == (fetched.error, fetched.body, fetched.content)


@pytest.mark.parametrize(("over", "times"), [(0, 2), (1, 1)])
async def test_a_body_that_is_large_as_it_came_is_decoded_once(
    scripted_site: ScriptedSite, over: int, times: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    content = Random(1).randbytes(1_000).hex().encode()
    body = gzip.compress(content, mtime=0)
    begun = []

    def counted(*arguments: Any) -> CooperativeWork[bytes]:
        begun.append(arguments)
        return decoding(*arguments)

    monkeypatch.setattr("kadcrawl.crawl.fetch.fetcher.decoding", counted)
    async with fetching(limits=replace(LIMITS, large_body_bytes=len(body) - over)) as fetcher:
        scripted_site.answers["/"] = [GZIPPED + body]
        assert content == (await fetcher.fetch(scripted_site.url("/"))).content
    assert times == len(begun)


async def test_the_head_is_kept_as_received(scripted_site: ScriptedSite, fetcher: Fetcher) -> None:
    fetched = await answered(
        scripted_site,
        fetcher,
        b"HTTP/1.0 404 Nope \xff\r\nX-One: 1\r\nx-two:  2 \r\nX-ONE: \xe9\r\n"
        b"Content-Type: Text/HTML; charset=x\r\n\r\n",
    )
    assert (fetched.status, fetched.http_version) == (404, "1.0")
    assert fetched.reason.encode(errors="surrogateescape") == b"Nope \xff"
    assert fetched.headers == (
        (b"X-One", b"1"),
        (b"x-two", b"2"),
        (b"X-ONE", b"\xe9"),
        (b"Content-Type", b"Text/HTML; charset=x"),
    )
    assert (fetched.content_type, fetched.mime) == ("Text/HTML; charset=x", "text/html")


async def test_repeated_lengths_are_kept_as_received(scripted_site: ScriptedSite, fetcher: Fetcher) -> None:
    head = OK + b"A: 1\r\nContent-Length: 05\r\nB: 2\r\nCONTENT-LENGTH: 5, 5\r\n\r\n"
    fetched = await answered(scripted_site, fetcher, head + b"hello")
    assert (None, b"hello") == (fetched.error, fetched.body)
    lengths = ((b"Content-Length", b"05"), (b"CONTENT-LENGTH", b"5, 5"))
    assert ((b"A", b"1"), *lengths, (b"B", b"2")) == fetched.headers


@pytest.mark.parametrize("path", ["/", "/a/b?c=d&e", "/%7Euser/%E4?q=%20|[]'", "/a;b=c,d@e:f//g/"])
async def test_the_request_head_is_what_was_sent(scripted_site: ScriptedSite, fetcher: Fetcher, path: str) -> None:
    scripted_site.answers[path] = [length(0)]
    fetched = await fetcher.fetch(scripted_site.url(path), [("If-None-Match", '"x"')])
    assert [fetched.request_head] == scripted_site.requests[path]
    assert (
        fetched.request_head
        == (
            f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{scripted_site.port}\r\n"
            "User-Agent: kadcrawl/0.1 (+https://example.com/bot)\r\n"
            "Accept: text/html,application/xhtml+xml,*/*;q=0.8\r\nAccept-Encoding: gzip, deflate, br, zstd\r\n"
            'If-None-Match: "x"\r\n\r\n'
        ).encode()
    )


async def test_a_redirect_is_returned_not_followed(scripted_site: ScriptedSite, fetcher: Fetcher) -> None:
    redirect = b"HTTP/1.1 302 Found\r\nLocation: /b\r\nSet-Cookie: a=b\r\nContent-Length: 0\r\n\r\n"
    scripted_site.answers = {"/a": [redirect, KEEP], "/b": [length(0)]}
    fetched = await fetcher.fetch(scripted_site.url("/a"))
    assert (fetched.status, fetched.location, fetched.error) == (302, "/b", None)
    assert "/b" not in scripted_site.requests
    assert b"Cookie" not in (await fetcher.fetch(scripted_site.url("/b"))).request_head
    assert b"Cookie" not in scripted_site.requests["/b"][0]


async def test_connections_are_reused(scripted_site: ScriptedSite, fetcher: Fetcher) -> None:
    for _ in range(3):
        assert (await answered(scripted_site, fetcher, length(5) + b"hello", KEEP)).error is None
    assert scripted_site.connections == 1


async def test_a_kept_connection_the_server_has_closed_is_no_failure(
    scripted_site: ScriptedSite, fetcher: Fetcher
) -> None:
    for _ in range(5):
        assert (await answered(scripted_site, fetcher, length(5) + b"hello")).error is None
    assert len(scripted_site.requests["/"]) == 5


@pytest.mark.parametrize(
    ("url", "failure"),
    [
        ("http://10.0.0.1/", FetchError.ADDRESS_REFUSED),
        ("http://[::1]/", FetchError.ADDRESS_REFUSED),
        ("http://[::ffff:10.0.0.1]/", FetchError.ADDRESS_REFUSED),
        ("http://2130706433/", FetchError.BAD_URL),
        ("http://" + "a" * 64 + ".example/", FetchError.BAD_URL),
        ("ftp://127.0.0.1/", FetchError.BAD_URL),
        ("http://127.0.0.1:99999/", FetchError.BAD_URL),
        ("http:///", FetchError.BAD_URL),
    ],
)
async def test_a_url_that_leads_nowhere_says_why(fetcher: Fetcher, url: str, failure: FetchError) -> None:
    fetched = await fetcher.fetch(url)
    assert (fetched.error, fetched.status, fetched.passing) == (failure, None, False)
    assert fetched.detail


async def test_a_closed_port_is_a_connect_failure(fetcher: Fetcher) -> None:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        fetched = await fetcher.fetch(f"http://127.0.0.1:{bound.getsockname()[1]}/")
    assert (fetched.error, fetched.passing) == (FetchError.CONNECT, True)


async def test_a_peer_that_fetches_nothing_opens_no_session(scripted_site: ScriptedSite) -> None:
    async with fetching() as fetcher:
        assert fetcher._session is None
        await answered(scripted_site, fetcher, length(1))
        assert fetcher._session is not None


async def test_a_fetch_of_a_stopping_peer_is_not_sent_and_blames_no_site(scripted_site: ScriptedSite) -> None:
    """Another peer may ask for a request while this one closes, and would take a failure for the site's."""
    async with fetching() as fetcher:
        await fetcher.close()
        fetched = await answered(scripted_site, fetcher, length(1))
    assert FetchError.NOT_SENT is fetched.error


async def test_a_server_that_speaks_no_tls_is_a_tls_failure(fetcher: Fetcher) -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
        fetched = await fetcher.fetch(f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}/")
    assert fetched.error is FetchError.TLS


async def test_a_forbidden_address_is_never_connected_to(scripted_site: ScriptedSite) -> None:
    async with fetching(Guard()) as fetcher:
        fetched = await fetcher.fetch(scripted_site.url("/"))
    assert (fetched.error, fetched.detail) == (
        FetchError.ADDRESS_REFUSED,
        "127.0.0.1 is not a public address",
    )
    assert scripted_site.connections == 0


def resolving(monkeypatch: pytest.MonkeyPatch, *addresses: str) -> None:
    """Make every name resolve to `addresses`, in this order."""

    async def resolve(self: object, host: str, port: int, family: int) -> list[ResolveResult]:
        return [
            ResolveResult(hostname=host, host=address, port=port, family=socket.AF_INET, proto=6, flags=0)
            for address in addresses
        ]

    monkeypatch.setattr(aiohttp.AsyncResolver, "resolve", resolve)


@pytest.mark.parametrize("addresses", [["127.0.0.2"], ["127.0.0.2", "127.0.0.3"], ["10.0.0.1", "127.0.0.2"]])
async def test_a_name_with_forbidden_addresses_only_is_refused(
    scripted_site: ScriptedSite, monkeypatch: pytest.MonkeyPatch, addresses: list[str]
) -> None:
    resolving(monkeypatch, *addresses)
    async with fetching(Guard(["127.0.0.1/32"])) as fetcher:
        fetched = await fetcher.fetch(f"http://public.example:{scripted_site.port}/")
    assert fetched.error is FetchError.ADDRESS_REFUSED


async def test_of_a_names_addresses_only_a_permitted_one_is_connected_to(
    scripted_site: ScriptedSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    resolving(monkeypatch, "127.0.0.2", "10.0.0.1", "127.0.0.1")
    scripted_site.answers["/"] = [length(0)]
    async with fetching(Guard(["127.0.0.1/32"])) as fetcher:
        fetched = await fetcher.fetch(f"http://public.example:{scripted_site.port}/")
    assert (fetched.error, fetched.address) == (None, "127.0.0.1")


async def test_a_name_without_address_is_a_dns_failure(fetcher: Fetcher, monkeypatch: pytest.MonkeyPatch) -> None:
    async def resolve(*_: object, **__: object) -> None:
        raise OSError(None, "Domain name not found")

    monkeypatch.setattr(aiohttp.AsyncResolver, "resolve", resolve)
    fetched = await fetcher.fetch("http://nowhere.example/")
    assert fetched.error is FetchError.DNS


class NameServer(asyncio.DatagramProtocol):
    """Answers 127.0.0.1 for names below good.example, and nothing for all others."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.DatagramTransport, transport)

    def datagram_received(self, question: bytes, address: tuple[str, int]) -> None:
        name_end = question.index(b"\0", 12) + 1
        asks_for_ipv4 = question[name_end : name_end + 2] == b"\0\x01"
        if b"\x04good" in question:
            head = question[:2] + b"\x81\x80\0\x01" + (b"\0\x01" if asks_for_ipv4 else b"\0\0") + bytes(4)
            answer = b"\xc0\x0c\0\x01\0\x01\0\0\0\x3c\0\x04\x7f\0\0\x01" if asks_for_ipv4 else b""
            self.transport.sendto(head + question[12 : name_end + 4] + answer, address)


async def test_silent_name_servers_delay_their_own_hosts_only(scripted_site: ScriptedSite) -> None:
    loop = asyncio.get_running_loop()
    transport, _ = await loop.create_datagram_endpoint(NameServer, ("127.0.0.1", 0))
    resolver = aiohttp.AsyncResolver(
        nameservers=["127.0.0.1"], udp_port=transport.get_extra_info("sockname")[1], timeout=60, tries=1
    )
    scripted_site.answers["/"] = [length(0)]
    patient = replace(LIMITS, connect_timeout_s=30.0, fetch_timeout_s=60.0)
    async with fetching(LOOPBACK, patient, lambda: resolver) as fetcher:
        silent = [asyncio.create_task(fetcher.fetch(f"http://h{n}.silent.example/")) for n in range(60)]
        await asyncio.sleep(0)
        # Were they in each other's way, this would time out as they do.
        fetched = await fetcher.fetch(f"http://good.example:{scripted_site.port}/")
        assert fetched.status == 200
        assert not any(task.done() for task in silent)
        for task in silent:
            task.cancel()
        await asyncio.gather(*silent, return_exceptions=True)
    transport.close()


async def test_slow_name_resolution_is_a_connect_failure(fetcher: Fetcher, monkeypatch: pytest.MonkeyPatch) -> None:
    async def resolve(*_: object, **__: object) -> None:
        await asyncio.get_running_loop().create_future()

    monkeypatch.setattr(aiohttp.AsyncResolver, "resolve", resolve)
    fetched = await fetcher.fetch("http://slow.example/")
    assert fetched.error is FetchError.CONNECT


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (b"0", 0),
        (b"120", 120),
        (b"3600", 3600),
        (b"3601", 3600),
        (b"9" * 500, 3600),
        (b"Fri, 31 Dec 1999 23:59:59 GMT", 0),
        (b"Friday, 31-Dec-99 23:59:59 GMT", 0),
        (b"Fri Dec 31 23:59:59 1999", 0),
        (b"Fri, 31 Dec 2999 23:59:59 GMT", 3600),
        (b"Fri, 31 Dec 99999 23:59:59 GMT", None),
        (b"-1", None),
        (b"1.5", None),
        (b"soon", None),
        (b"\xb2", None),
        (b"", None),
    ],
)
async def test_retry_after_is_read_and_bounded(
    scripted_site: ScriptedSite, fetcher: Fetcher, value: bytes, expected: float | None
) -> None:
    fetched = await answered(
        scripted_site, fetcher, b"HTTP/1.1 503 No\r\nRetry-After: " + value + b"\r\nContent-Length: 0\r\n\r\n"
    )
    assert (fetched.retry_after_s, fetched.passing) == (expected, True)


async def test_the_politeness_clock_counts_from_the_head_of_the_answer(
    scripted_site: ScriptedSite, fetcher: Fetcher
) -> None:
    loop = asyncio.get_running_loop()
    before, wall_before = loop.time(), datetime.now(UTC)
    whole = await answered(scripted_site, fetcher, length(5) + b"hel", DRIP)
    failed = await answered(scripted_site, fetcher)
    after, wall_after = loop.time(), datetime.now(UTC)
    assert before <= whole.first_byte_at <= before + whole.seconds
    assert before + whole.seconds <= failed.first_byte_at <= after
    assert wall_before <= whole.started_at <= failed.started_at <= wall_after


async def test_cancelling_a_fetch_cancels_it(scripted_site: ScriptedSite, fetcher: Fetcher) -> None:
    scripted_site.answers["/"] = [length(5) + b"hel", HANG]
    task = asyncio.create_task(fetcher.fetch(scripted_site.url("/")))
    await scripted_site.seen.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_what_nobody_foresaw_is_a_failure_too(
    fetcher: Fetcher, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def resolve(*_: object, **__: object) -> None:
        raise RuntimeError("a bug in a library")

    monkeypatch.setattr(aiohttp.AsyncResolver, "resolve", resolve)
    with caplog.at_level(logging.WARNING):
        fetched = await fetcher.fetch("http://odd.example/")
    assert fetched.error is FetchError.PROTOCOL
    assert "fetch.unforeseen" in caplog.text


@pytest.mark.parametrize(
    ("contact", "expected"),
    [("", "kadcrawl/1.2"), ("https://example.com/bot", "kadcrawl/1.2 (+https://example.com/bot)")],
)
def test_user_agent_names_the_version_and_a_contact(contact: str, expected: str) -> None:
    assert user_agent("1.2", contact) == expected
