"""A pinned fetch goes to its address, and to no other, whatever names and kept connections say."""

import asyncio
import time
from collections.abc import AsyncIterator

import pytest
from aiohttp import web

from kadcrawl.crawl.fetch.address_guard import Guard
from kadcrawl.crawl.fetch.fetcher import Fetcher
from kadcrawl.crawl.fetch.pinned_address import goes_to, pin, pinned
from kadcrawl.crawl.fetch.result import FetchError, FetchResult
from kadcrawl.settings.limits import Limits
from tests.support.sites.given_names import GivenNames
from tests.support.sites.web import Web

NAMES = {"a.test": ("127.0.0.2", "127.0.0.3"), "b.test": ("127.0.0.2",), "inside.test": ("192.168.0.1",)}


@pytest.fixture
async def site() -> AsyncIterator[Web]:
    async with Web(2) as web_:
        web_.fallback = lambda request: web.Response(text=request.get_extra_info("sockname")[0])
        yield web_


@pytest.fixture
async def fetcher() -> AsyncIterator[Fetcher]:
    one = Fetcher(Limits(), Guard(["127.0.0.0/8"]), "test", time.time, lambda: GivenNames(NAMES), pins=True)
    await one.start()
    yield one
    await one.close()


async def fetch_at(fetcher: Fetcher, site: Web, host: str, address: str, error: OSError | None = None) -> FetchResult:
    """Fetch in a task of its own, as an attempt does."""

    async def fetched() -> FetchResult:
        pin(host, address, error)
        return await fetcher.fetch(f"http://{host}:{site.port}/")

    return await asyncio.create_task(fetched())


@pytest.mark.parametrize("address", ["127.0.0.2", "127.0.0.3"])
async def test_a_pinned_fetch_goes_to_its_address(fetcher: Fetcher, site: Web, address: str) -> None:
    fetched = await fetch_at(fetcher, site, "a.test", address)
    assert (address, address.encode()) == (fetched.address, fetched.content)


async def test_a_connection_kept_to_another_address_is_not_used(fetcher: Fetcher, site: Web) -> None:
    await fetch_at(fetcher, site, "a.test", "127.0.0.2")
    missed = await fetch_at(fetcher, site, "a.test", "127.0.0.3")
    assert FetchError.NOT_SENT is missed.error
    assert 1 == len(site.requests)
    assert b"127.0.0.3" == (await fetch_at(fetcher, site, "a.test", "127.0.0.3")).content


async def test_a_pin_counts_for_its_host_alone(fetcher: Fetcher, site: Web) -> None:
    pin("a.test", "127.0.0.3")
    assert b"127.0.0.2" == (await fetcher.fetch(f"http://b.test:{site.port}/")).content
    assert pinned("b.test") is None


async def test_a_pinned_address_is_judged_as_any_other(fetcher: Fetcher, site: Web) -> None:
    fetched = await fetch_at(fetcher, site, "inside.test", "192.168.0.1")
    assert FetchError.ADDRESS_REFUSED is fetched.error


async def test_a_host_that_could_not_be_looked_up_fails_as_ever(fetcher: Fetcher, site: Web) -> None:
    fetched = await fetch_at(fetcher, site, "a.test", "", OSError(None, "no such host"))
    assert FetchError.DNS is fetched.error
    assert [] == site.requests


def test_an_address_has_one_spelling() -> None:
    assert goes_to(("::ffff:192.0.2.1", 80, 0, 0), "192.0.2.1")
    assert not goes_to(("192.0.2.2", 80), "192.0.2.1")
    assert not goes_to(None, "192.0.2.1")
