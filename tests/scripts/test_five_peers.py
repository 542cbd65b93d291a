"""The web of the five capped peers: its clients, its distribution of pages, and the least possible time."""

import asyncio

import aiohttp
import pytest

from kadcrawl.crawl.scope.partitioner import Partitioner
from kadcrawl.keys import anchor
from scripts.five_peers import run
from scripts.five_peers.web import AccessLine, CappedWeb

ASKER, STRANGER = "127.0.1.1", "127.0.1.99"


def test_the_proportions_are_the_tables_and_the_bandwidths_just_suffice() -> None:
    capped = run.lines()
    assert run.PAGES == 1000
    assert run.PAGES_S == pytest.approx(sum(line.pages_s for line in capped))
    assert [164, 70, 120, 36, 110] == [round(500 * line.pages_s / run.PAGES_S) for line in capped]
    assert [9.0, 2.5, 6.0, 1.0, 6.0] == pytest.approx([line.bytes_s / capped[3].bytes_s for line in capped])
    assert all(line.page_s(run.PAGE_BYTES) == 1 / line.pages_s for line in capped)
    assert run.PAGES / run.PAGES_S == pytest.approx(run.bound_s())
    assert 200 / (run.PAGES_S * 36 / 500) == pytest.approx(run.equal_s())


def test_what_takes_longer_on_a_line_counts() -> None:
    line = AccessLine(pages_s=10.0, bytes_s=1000.0)
    assert [0.1, 0.1, 0.5] == [line.page_s(size) for size in (1, 100, 500)]


async def _status(address: str, url: str) -> tuple[int, int]:
    connector = aiohttp.TCPConnector(local_addr=(address, 0))
    async with aiohttp.ClientSession(connector=connector) as session, session.get(url) as answer:
        return answer.status, len(await answer.read())


async def test_who_has_a_line_is_served_in_turn_and_nobody_else() -> None:
    line = AccessLine(pages_s=1000.0, bytes_s=1e7)
    async with CappedWeb({ASKER: line}, 3, 500) as web:
        await web.open("127.0.3.1")
        await web.open("127.0.3.2")
        urls = [*web.urls("127.0.3.1"), *web.urls("127.0.3.2")]
        assert [(200, 500)] * 6 == await asyncio.gather(*(_status(ASKER, url) for url in urls))
        assert (403, 0) == await _status(STRANGER, urls[0])
        assert 404 == (await _status(STRANGER, f"http://127.0.3.1:{web.port}/robots.txt"))[0]
        assert 404 == (await _status(ASKER, f"http://127.0.3.1:{web.port}/3"))[0]
        assert dict.fromkeys(urls, 1) == web.seen.urls
        assert (6, 1) == (line.pages, web.seen.strangers)


async def test_every_peer_owns_as_many_sites() -> None:
    ids = [number << 157 | 12345 for number in range(5)]
    async with CappedWeb({}, 1, 10) as web:
        opened = await run.dealt(web, ids)
        partitioner = Partitioner("host", run.CELL_BITS)
        places = [anchor(partitioner.locate(web.urls(address)[0]).cell, run.CELL_BITS) for address in opened]
        owners = [min(ids, key=lambda one: one ^ place) for place in places]
    assert dict.fromkeys(ids, run.SITES) == {one: owners.count(one) for one in ids}
