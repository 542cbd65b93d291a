"""Test that a page comes through each kind of proxy, and that each failure is blamed on the right party."""

import asyncio
import ssl
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp.connector
import pytest
from aiohttp import web

from kadcrawl.crawl.fetch.address_guard import Guard
from kadcrawl.crawl.fetch.fetcher import Fetcher, user_agent
from kadcrawl.crawl.fetch.result import FetchError, FetchResult
from kadcrawl.settings.limits import Limits
from kadcrawl.settings.proxy_list import Proxy, parse
from tests.support.sites.proxies import ProxyServer, certificate, serving_tls

LIMITS = Limits(connect_timeout_s=2, fetch_timeout_s=5)
LOOPBACK = Guard(["127.0.0.0/8"])
SECRET = ("someone", "pa55word")
NAME = "site.example"


@asynccontextmanager
async def fetching_by_proxies(guard: Guard = LOOPBACK) -> AsyncIterator[Fetcher]:
    fetcher = Fetcher(LIMITS, guard, user_agent("0.1"), time.time, by_proxies=True)
    await fetcher.start()
    try:
        yield fetcher
    finally:
        await fetcher.close()


class Site:
    """A site by http and by https, where no name server knows it."""

    def __init__(self, http: int, https: int) -> None:
        self.http, self.https = http, https
        self.heads: list[dict[str, str]] = []

    def url(self, scheme: str, path: str = "/a?b=c") -> str:
        return f"{scheme}://{NAME}:{self.https if scheme == 'https' else self.http}{path}"

    def hosts(self, scheme: str) -> dict[str, tuple[str, int]]:
        return {NAME: ("127.0.0.1", self.https if scheme == "https" else self.http)}


@pytest.fixture
def tls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ssl.SSLContext:
    """Return the TLS context of a server whose certificate the fetcher trusts."""
    path = certificate(tmp_path, "127.0.0.1", NAME)
    trusting = ssl.create_default_context(cafile=str(path))
    monkeypatch.setattr(aiohttp.connector, "_SSL_CONTEXT_VERIFIED", trusting)
    return serving_tls(path)


@pytest.fixture
async def http_and_https_site(tls: ssl.SSLContext) -> AsyncIterator[Site]:
    site = Site(0, 0)

    async def answer(request: web.BaseRequest) -> web.StreamResponse:
        site.heads.append(dict(request.headers))
        return web.Response(text=f"{request.path_qs} by {request.scheme}")

    runner = web.ServerRunner(web.Server(answer, access_log=None), shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=tls).start()
    site.http, site.https = (address[1] for address in runner.addresses)
    yield site
    await runner.cleanup()


def proxy_server(kind: str, tls: ssl.SSLContext, site: Site, scheme: str, **options: Any) -> ProxyServer:
    return ProxyServer(kind, tls=tls if kind == "https" else None, hosts=site.hosts(scheme), **options)


@pytest.mark.parametrize("scheme", ["http", "https"])
@pytest.mark.parametrize("credentials", [None, SECRET])
@pytest.mark.parametrize("kind", ["http", "https", "socks5"])
async def test_a_page_comes_through_each_kind_of_proxy(
    kind: str, credentials: tuple[str, str] | None, scheme: str, http_and_https_site: Site, tls: ssl.SSLContext
) -> None:
    server = proxy_server(kind, tls, http_and_https_site, scheme, credentials=credentials)
    async with server.living(), fetching_by_proxies() as fetcher:
        for _ in range(2):  # The second perhaps by the connection of the first.
            fetched = await fetcher.fetch(http_and_https_site.url(scheme), [("X-More", "1")], proxy=parse(server.url))
            assert (200, None, f"/a?b=c by {scheme}") == (fetched.status, fetched.error, fetched.content.decode())
            assert fetched.request_head.startswith(b"GET /a?b=c HTTP/1.1\r\nHost: " + NAME.encode())
            assert b"Proxy" not in fetched.request_head
            assert fetched.address == ""
    assert all(NAME in where for where in server.asked)
    assert server.asked
    for head in http_and_https_site.heads:
        assert not any("auth" in name.lower() for name in head)
        assert head["X-More"] == "1"
    if kind != "socks5":
        relayed = [head.startswith(b"GET http://") for head in server.heads]
        assert all(relayed) if scheme == "http" else not any(relayed)


@pytest.mark.parametrize("kind", ["http", "https", "socks5"])
@pytest.mark.parametrize("scheme", ["http", "https"])
async def test_of_a_proxy_that_cannot_be_connected_to_the_site_is_not_blamed(
    kind: str, scheme: str, http_and_https_site: Site
) -> None:
    async with ProxyServer().living() as server, fetching_by_proxies() as fetcher:
        await server.die()
        proxy = Proxy(kind, "127.0.0.1", server.port, *SECRET)
        fetched = await fetcher.fetch(http_and_https_site.url(scheme), proxy=proxy)
    assert (None, FetchError.PROXY) == (fetched.status, fetched.error)
    assert SECRET[1] not in repr(fetched)
    assert http_and_https_site.heads == []


@pytest.mark.parametrize(("scheme", "failure"), [("http", None), ("https", FetchError.PROXY)])
async def test_wrong_credentials_for_a_tunnel_are_the_proxys_fault(
    scheme: str, failure: FetchError | None, http_and_https_site: Site, caplog: pytest.LogCaptureFixture
) -> None:
    async with ProxyServer(credentials=SECRET).living() as server, fetching_by_proxies() as fetcher:
        fetched = await fetcher.fetch(
            http_and_https_site.url(scheme), proxy=Proxy("http", "127.0.0.1", server.port, "x", "wr0ng")
        )
    assert fetched.error is failure
    assert fetched.status == (407 if failure is None else None)
    assert "wr0ng" not in repr(fetched) + caplog.text


@pytest.mark.parametrize("kind", ["http", "https", "socks5"])
async def test_a_tunnel_that_does_not_come_to_be_says_so_without_credentials(
    kind: str, http_and_https_site: Site, tls: ssl.SSLContext, caplog: pytest.LogCaptureFixture
) -> None:
    server = proxy_server(kind, tls, http_and_https_site, "https", credentials=SECRET)
    server.breaks = True
    async with server.living(), fetching_by_proxies() as fetcher:
        fetched = await fetcher.fetch(http_and_https_site.url("https"), proxy=parse(server.url))
    assert (None, FetchError.CONNECT) == (fetched.status, fetched.error)
    assert SECRET[1] not in repr(fetched) + caplog.text
    assert len(server.asked) == 1  # Nothing is repeated behind the back of the clock.


async def test_a_refused_tunnel_names_the_status(http_and_https_site: Site) -> None:
    async with ProxyServer().living() as server, fetching_by_proxies() as fetcher:
        server.refuses = b"HTTP/1.1 503 Busy"
        fetched = await fetcher.fetch(http_and_https_site.url("https"), proxy=parse(server.url))
    assert (FetchError.CONNECT, "the proxy answered 503") == (fetched.error, fetched.detail)


async def test_a_request_that_a_proxy_may_have_passed_on_is_not_repeated(http_and_https_site: Site) -> None:
    async with (
        ProxyServer(hosts=http_and_https_site.hosts("http")).living() as server,
        fetching_by_proxies() as fetcher,
    ):
        server.breaks = True
        fetched = await fetcher.fetch(http_and_https_site.url("http"), proxy=parse(server.url))
        assert (FetchError.DISCONNECTED, 1) == (fetched.error, len(server.asked))


@pytest.mark.parametrize("kind", ["http", "https", "socks5"])
async def test_a_proxy_at_a_forbidden_address_is_not_connected_to(kind: str, http_and_https_site: Site) -> None:
    connected: list[bool] = []
    server = await asyncio.start_server(lambda reader, writer: connected.append(True), "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    async with server, fetching_by_proxies(Guard()) as fetcher:
        for scheme in ("http", "https"):
            fetched = await fetcher.fetch(f"{scheme}://example.com/", proxy=Proxy(kind, "127.0.0.1", port))
            assert fetched.error is FetchError.PROXY
            assert "address" in fetched.detail
    assert connected == []


@pytest.mark.parametrize(
    "host", ["10.0.0.1", "[::1]", "169.254.169.254", "localhost", "a.localhost", "printer", "nas.local", "x.internal."]
)
async def test_a_private_target_is_refused_before_a_proxy_hears_of_it(host: str) -> None:
    async with ProxyServer().living() as server, fetching_by_proxies(Guard(["127.0.0.1/32"])) as fetcher:
        guard_of_names = Guard()
        fetcher._guard.permits_host = guard_of_names.permits_host  # type: ignore[method-assign]
        fetched = await fetcher.fetch(f"http://{host}/", proxy=parse(server.url))
    assert (FetchError.ADDRESS_REFUSED, []) == (fetched.error, server.asked)


def test_what_a_network_was_allowed_for_may_be_asked_of_a_proxy() -> None:
    guard = Guard(["127.0.0.0/8", "10.0.0.0/8"])
    assert all(map(guard.permits_host, ["localhost", "10.1.2.3", "example.com", "8.8.8.8", "xn--p1ai.xn--p1ai."]))
    assert not any(map(guard.permits_host, ["192.168.1.1", "host", "[fd00::1]", ""]))


async def test_the_environment_is_no_source_of_proxies(
    http_and_https_site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with ProxyServer().living() as server, fetching_by_proxies() as fetcher:
        monkeypatch.setenv("http_proxy", server.url)
        fetched: FetchResult = await fetcher.fetch(f"http://127.0.0.1:{http_and_https_site.http}/")
        assert (200, []) == (fetched.status, server.asked)
