"""Test that a fetch that sent no request says so, and that the site is not to blame."""

import errno
import resource
import socket
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager

import aiohttp
import pytest
from aiohappyeyeballs import AddrInfoType
from aiohttp import web

from kadcrawl.crawl.fetch.address_guard import Guard
from kadcrawl.crawl.fetch.fetcher import Fetcher
from kadcrawl.crawl.fetch.result import UNASKED, FetchError
from kadcrawl.settings.limits import Limits
from tests.support.sites.web import Web


@pytest.fixture
async def answering_web() -> AsyncIterator[Web]:
    async with Web() as site:
        site.fallback = lambda request: web.Response(text="here")
        yield site


@pytest.fixture
async def loopback_fetcher() -> AsyncIterator[Fetcher]:
    fetcher = Fetcher(Limits(), Guard(["127.0.0.0/8"]), "test", time.time)
    await fetcher.start()
    yield fetcher
    await fetcher.close()


@contextmanager
def no_files() -> Iterator[None]:
    """Let this process open no file beyond those it has.

    None at all, not none above the lowest free number: pycares closes a resolver's files in a thread of its own a
    moment after the resolver, so those of an earlier test's may come free meanwhile.
    """
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (0, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "name.example"])
async def test_a_machine_out_of_files_has_no_socket(host: str, loopback_fetcher: Fetcher) -> None:
    """The socket is for the address, for an address beside a forbidden address, or for the resolver."""
    with no_files():
        fetched = await loopback_fetcher.fetch(f"http://{host}:1/")
    assert (fetched.error, fetched.status, fetched.passing) == (FetchError.NO_SOCKET, None, False)


@pytest.mark.parametrize(
    ("number", "failure"),
    [
        (errno.EMFILE, FetchError.NO_SOCKET),
        (errno.ENFILE, FetchError.NO_SOCKET),
        (errno.ENOBUFS, FetchError.NO_SOCKET),
        (errno.ENOMEM, FetchError.NO_SOCKET),
        (errno.ENETUNREACH, FetchError.CONNECT),
        (errno.EADDRNOTAVAIL, FetchError.CONNECT),
    ],
)
async def test_what_the_machine_lacks_is_told_from_what_the_network_lacks(
    number: int, failure: FetchError, loopback_fetcher: Fetcher, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_socket(guard: Guard, addr_info: AddrInfoType) -> socket.socket:
        raise OSError(number, "no")

    monkeypatch.setattr(Guard, "socket", no_socket)
    # The connector has taken the method of the guard itself.
    await loopback_fetcher.close()
    await loopback_fetcher.start()
    assert (await loopback_fetcher.fetch("http://127.0.0.1:1/")).error is failure


@pytest.mark.parametrize("kept", [False, True], ids=["new connection", "kept connection"])
async def test_a_request_that_lost_its_permission_while_connecting_is_not_sent(
    kept: bool, answering_web: Web, loopback_fetcher: Fetcher
) -> None:
    if kept:
        assert (await loopback_fetcher.fetch(answering_web.url())).content == b"here"
    asked = len(answering_web.requests)
    fetched = await loopback_fetcher.fetch(answering_web.url(), may_send=lambda: False)
    assert (fetched.error, fetched.error in UNASKED, fetched.passing) == (FetchError.NOT_SENT, True, False)
    assert (await loopback_fetcher.fetch(answering_web.url())).content == b"here"
    assert asked + 1 == len(answering_web.requests)


async def test_permission_for_a_request_is_asked_once_it_is_connected(
    answering_web: Web, loopback_fetcher: Fetcher, monkeypatch: pytest.MonkeyPatch
) -> None:
    connected = []
    connect = aiohttp.TCPConnector.connect

    async def noted(*args: object, **kwargs: object) -> object:
        connection = await connect(*args, **kwargs)  # type: ignore[arg-type]
        connected.append(connection)
        return connection

    monkeypatch.setattr(aiohttp.TCPConnector, "connect", noted)
    assert (await loopback_fetcher.fetch(answering_web.url(), may_send=lambda: bool(connected))).content == b"here"
