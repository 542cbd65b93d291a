"""Test that no request leaves for an address that is not public, by page, redirect or name server.

Each row goes the whole way of a URL: canonical form, guard, connection. The row ends in "no such URL" or in
``address_refused``. A listener on all addresses of this machine counts its connections, and there are none.
"""

import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from html import escape
from socket import socket as Socket

import pytest
from aiohappyeyeballs import AddrInfoType
from aiohttp import web

from kadcrawl.crawl.fetch import fetcher as fetcher_module
from kadcrawl.crawl.fetch.address_guard import Guard
from kadcrawl.crawl.fetch.fetcher import Fetcher
from kadcrawl.crawl.fetch.result import FetchError
from kadcrawl.urls import canonical, host_of
from tests.support.cases import cases
from tests.support.sites.address_forms import FORMS, NOT_PUBLIC
from tests.support.sites.foreign_addresses import ALLOWED, CrawlSeeds, Listener, Names
from tests.support.sites.scripted_site import LIMITS
from tests.support.sites.web import Web, html

LOOPBACK = ("127.0.0.1", "::1")


def written(name: str, listener: Listener) -> str:
    return FORMS[name][0].replace("PORT", str(listener.port))


class WatchedGuard(Guard):
    """Knows for which addresses it gave sockets."""

    def __init__(self, *networks: str) -> None:
        super().__init__(networks)
        self.connected: list[str] = []

    def socket(self, addr_info: AddrInfoType) -> Socket:
        made = super().socket(addr_info)
        self.connected.append(str(addr_info[4][0]))
        return made


@asynccontextmanager
async def fetching(guard: Guard, names: Names) -> AsyncIterator[Fetcher]:
    fetcher = Fetcher(LIMITS, guard, "test", time.time, lambda: names)
    await fetcher.start()
    try:
        yield fetcher
    finally:
        await fetcher.close()


@pytest.mark.parametrize("name", FORMS)
async def test_a_form_of_an_address_is_no_url_or_refused(name: str, listener: Listener) -> None:
    url, host = canonical(written(name, listener)), FORMS[name][1]
    assert host == (url and host_of(url))
    if url is None:
        return
    guard = WatchedGuard()
    async with fetching(guard, Names(LOOPBACK)) as fetcher:
        fetched = await fetcher.fetch(url)
    assert (FetchError.ADDRESS_REFUSED, False) == (fetched.error, fetched.passing)
    assert ([], 0) == (guard.connected, listener.connections)


@cases("name", [name for name, (_, host) in FORMS.items() if host and "inner" not in host])
def test_a_proxy_is_not_asked_for_it_either(name: str, listener: Listener) -> None:
    url = canonical(written(name, listener))
    assert url is not None
    assert not Guard().permits_host(host_of(url))


@pytest.mark.parametrize(
    "name", ["plain", "octal part", "full width", "user", "IPv6 mapped", "IPv6 loopback", "localhost"]
)
async def test_the_listener_would_have_counted(name: str, listener: Listener) -> None:
    url = canonical(written(name, listener))
    assert url is not None
    async with fetching(Guard(["127.0.0.1/32", "::1/128"]), Names(LOOPBACK)) as fetcher:
        await fetcher.fetch(url)
    assert 0 < listener.connections


@pytest.mark.parametrize("address", [*NOT_PUBLIC.split(), "127.0.0.1%lo"])
async def test_a_name_server_that_answers_it_leads_nowhere(address: str, listener: Listener) -> None:
    guard = WatchedGuard()
    async with fetching(guard, Names([address])) as fetcher:
        fetched = await fetcher.fetch(f"http://public.example:{listener.port}/")
    assert FetchError.ADDRESS_REFUSED is fetched.error
    assert ([], 0) == (guard.connected, listener.connections)


@pytest.mark.parametrize(
    "answer",
    [
        (ALLOWED, "127.0.0.1"),
        ("127.0.0.1", ALLOWED),
        ("::1", "10.0.0.1", ALLOWED, "::ffff:127.0.0.1", "169.254.169.254"),
        ("::ffff:127.0.0.1", "::", "0.0.0.0", ALLOWED),
    ],
)
async def test_of_mixed_answers_only_what_is_public_is_connected_to(answer: Sequence[str], listener: Listener) -> None:
    """Nobody listens at the permitted address, so the resolver would try all others next."""
    guard = WatchedGuard(f"{ALLOWED}/32")
    async with Web() as site:
        port = site.port  # Nobody listens there any more, at the permitted address.
    async with fetching(guard, Names(answer)) as fetcher:
        fetched = await fetcher.fetch(f"http://public.example:{port}/")
    assert (FetchError.CONNECT, {ALLOWED}) == (fetched.error, set(guard.connected))


async def test_a_name_that_is_bound_anew_is_judged_anew(listener: Listener, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetcher_module, "DNS_TTL_S", 0)
    guard = WatchedGuard(f"{ALLOWED}/32")
    async with Web() as site, fetching(guard, Names([ALLOWED], ["127.0.0.1"])) as fetcher:
        site.fallback = lambda request: html("/", Connection="close")
        url = f"http://public.example:{site.port}/"
        outcomes = [(await fetcher.fetch(url)).error for _ in range(3)]
    assert [None, FetchError.ADDRESS_REFUSED, FetchError.ADDRESS_REFUSED] == outcomes
    assert [ALLOWED] == guard.connected


async def test_a_name_that_is_bound_anew_after_its_robots_txt_gets_no_request(
    crawl: CrawlSeeds, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fetcher_module, "DNS_TTL_S", 0)
    async with Web(sites=2) as site:
        site.pages["/robots.txt"] = lambda request: html(Connection="close")
        inner = site.url("/", site=1)
        names = Names([ALLOWED], [host_of(inner)])
        lines = await crawl(f"http://public.example:{site.port}/", names=names)
    assert ["address_refused"] == [line.failed for line in lines.values()]
    assert [f"http://public.example:{site.port}/robots.txt"] == [url for _, url in site.requests]


CHOSEN = [
    "plain", "https", "two parts", "decimal", "octal part", "full width", "escaped digits", "user", "this host",
    "private 10", "metadata", "metadata of AWS, IPv6", "IPv6 loopback", "IPv6 mapped", "NAT64", "6to4",
    "localhost", "below localhost", "name that leads here", "backslashes", "file", "gopher", "javascript",
]  # fmt: skip
RELATIVE = ["//127.0.0.1:PORT/", "//localhost:PORT/", "/\\127.0.0.1:PORT/", "\\\\[::1]:PORT/", "\t//0x7f.1:PORT/"]
REDIRECTS = ["301", "302", "303", "307", "308"]
TAGS = {
    "a": "<a href='{}'>",
    "area": "<area href='{}'>",
    "frame": "<iframe src='{}'></iframe>",
    "link": "<link rel=canonical href='{}'>",
    "base": "<base href='{}base'><a href='{}base'>",
    "meta": "<meta http-equiv=refresh content='0; url={}'>",
}


async def test_an_allowed_site_leads_a_crawl_to_none_of_them(crawl: CrawlSeeds, listener: Listener) -> None:
    """Each URL has one line, which says why the URL was not fetched, for each way to the URL."""
    forms = [written(name, listener) for name in CHOSEN] + [
        form.replace("PORT", str(listener.port)) for form in RELATIVE
    ]

    def led(request: web.BaseRequest) -> web.StreamResponse:
        """Lead to form /WAY/N by that way. Each way leads to a URL of its own, recognized by its end."""
        _, way, number = request.path.split("/")
        target = forms[int(number)] + way
        if way in REDIRECTS:
            return web.Response(status=int(way), headers={"Location": target.replace("\t", "")})
        if way == "header":
            return html(Refresh=f"0; url={target}", Content_Location=target, Link=f"<{target}>; rel=next")
        return web.Response(text=TAGS[way].replace("{}", escape(target)), content_type="text/html")

    ways = [*REDIRECTS, "header", *TAGS]
    async with Web() as site:
        pages = {site.url(f"/{way}/{number}"): (way, form) for way in ways for number, form in enumerate(forms)}
        site.pages["/"] = lambda request: html(*pages)
        site.fallback = led
        lines = await crawl(site.url(), names=Names(LOOPBACK))
        asked = {url for _, url in site.requests}
    ends: dict[str, str | None] = {site.url(): None}
    for page, (way, form) in pages.items():
        target = canonical(form + way, page)
        ends[page] = "bad_redirect" if way in REDIRECTS and target is None else None
        if target is not None:
            ends[target + ("base" if way == "base" else "")] = "address_refused"
    assert ends == {url: line.failed for url, line in lines.items()}
    assert asked == {site.url(), site.url("/robots.txt"), *pages}
    assert 0 == listener.connections


def test_the_forms_are_many() -> None:
    """Else a table that shrinks would pass as well."""
    assert len(FORMS) >= 60
