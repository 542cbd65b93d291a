"""Direct requests go past aiohttp's session, and keep its rules: the same bytes, one repeat, no header that is two."""

import time
from collections.abc import AsyncIterator

import aiohttp
import pytest
from aiohttp import web
from yarl import URL

from kadcrawl.crawl.fetch import direct_request
from kadcrawl.crawl.fetch.address_guard import Guard
from kadcrawl.crawl.fetch.direct_request import DirectRequests, checked, request_line
from kadcrawl.crawl.fetch.fetcher import Fetcher
from kadcrawl.crawl.fetch.metered_connection import meter
from kadcrawl.crawl.fetch.request_rules import RequestRule, request_head
from kadcrawl.crawl.fetch.result import FetchError
from kadcrawl.settings.limits import Limits
from tests.support.sites.web import Web

RULE = RequestRule.of(Limits(), "test")
URLS = (
    "http://example.org/",
    "https://example.org:8443/a/b.html?q=1&r=%2F",
    "http://example.org/?",
    "http://example.org/a??b",
    "http://example.org//a/",
    "http://[2001:db8::1]:8080/a",
    "http://xn--bcher-kva.example/%C3%A4",
    "http://example.org./a",
    "http://example.org/a?next=http://example.net/",
)


@pytest.fixture
async def requests() -> AsyncIterator[DirectRequests]:
    connector = aiohttp.TCPConnector()
    meter(connector, Limits())
    async with aiohttp.ClientSession(connector=connector, auto_decompress=False) as session:
        yield DirectRequests(session, Limits().header_bytes_max)


@pytest.fixture
async def fetcher() -> AsyncIterator[Fetcher]:
    fetcher = Fetcher(Limits(), Guard(["127.0.0.0/8"]), "test", time.time)
    await fetcher.start()
    yield fetcher
    await fetcher.close()


@pytest.mark.parametrize("url", URLS)
async def test_the_head_is_that_of_a_session(requests: DirectRequests, url: str) -> None:
    fields = [("If-None-Match", '"a"'), ("Cookie", "secret=1")]
    assert requests.prepare(url, RULE, fields).head == request_head(URL(url, encoded=True), RULE, fields)


async def test_the_request_is_sent_as_it_is_stored(fetcher: Fetcher) -> None:
    heads: list[tuple[str, list[tuple[str, str]]]] = []

    def answer(request: web.BaseRequest) -> web.Response:
        heads.append((request.raw_path, [(name.decode(), value.decode()) for name, value in request.raw_headers]))
        return web.Response(text="here")

    async with Web() as site:
        site.fallback = answer
        fetched = await fetcher.fetch(site.url("/a?b"), [("If-None-Match", '"a"')])
    assert fetched.status == 200
    first, *lines = fetched.request_head.decode().removesuffix("\r\n\r\n").split("\r\n")
    assert heads == [("/a?b", [tuple(line.split(": ", 1)) for line in lines])]
    assert first == "GET /a?b HTTP/1.1"


async def test_cookies_and_secrets_are_sent_and_not_stored(requests: DirectRequests) -> None:
    rule = RequestRule(Limits(), (), "", secret_headers=(("Authorization", "Basic c2VjcmV0"),))
    async with Web() as site:
        site.fallback = lambda request: web.Response(text=request.headers["Authorization"] + request.headers["Cookie"])
        fields = [("Cookie", "kept=1")]
        request = requests.prepare(site.url("/"), rule, fields)
        assert b"Authorization" not in request.head
        assert b"Cookie" not in request.head
        response = await requests.get(request, lambda: True)
        assert await response.content.read() == b"Basic c2VjcmV0kept=1"
        response.close()


async def test_a_whole_answer_gives_its_connection_back_and_half_an_answer_closes_it(requests: DirectRequests) -> None:
    async with Web() as site:
        site.fallback = lambda request: web.Response(body=b"a" * 1_000_000)
        peers = []
        for read in (True, False, True):
            response = await requests.get(requests.prepare(site.url("/"), RULE, ()), lambda: True)
            assert response.protocol.transport is not None
            peers.append(response.protocol.transport.get_extra_info("sockname"))
            if read:
                await response.content.read()
            response.close()
    assert peers[0] == peers[1] != peers[2]


async def test_nothing_is_sent_once_the_fetch_is_called_off(fetcher: Fetcher) -> None:
    async with Web() as site:
        site.fallback = lambda request: web.Response(text="here")
        fetched = await fetcher.fetch(site.url("/"), may_send=lambda: False)
        assert (fetched.error, dict(site.fetched)) == (FetchError.NOT_SENT, {})


@pytest.mark.parametrize("value", ["a\r\nB: c", "a\nB: c", "a\rb", "a\0b"])
def test_a_header_that_would_be_two_is_refused(value: str) -> None:
    with pytest.raises(ValueError, match="line break"):
        checked([("If-None-Match", value)])


@pytest.mark.parametrize("url", ["http://example.org", "example.org"])
def test_a_url_without_a_path_is_no_target(url: str) -> None:
    with pytest.raises(aiohttp.InvalidURL):
        request_line(url)


async def test_origins_are_remembered_up_to_a_limit(requests: DirectRequests, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(direct_request, "ORIGINS_MAX", 2)
    for number in range(5):
        requests.prepare(f"http://host-{number}.example/", RULE, ())
        assert 1 <= len(requests._origins) <= 2
