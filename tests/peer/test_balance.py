"""A strong peer next to a weak one does more of the work, by itself; every page is fetched once all the same."""

import asyncio
from collections.abc import Callable
from dataclasses import replace

import pytest
from aiohttp import web

from scripts.kadcrawl_run import PageLine
from tests.peer.conftest import QUICK, MakePeer, finish
from tests.web import Web, tree

WEAK = replace(QUICK, fetches_max=1)
"""One request at a time."""
PAGES = 240
SITES = 16
ANSWER_S = 0.03


@pytest.mark.parametrize("balance", ["level", "off"])
async def test_a_strong_peer_fetches_for_a_weak_one(
    make_peer: MakePeer, lines: Callable[[], dict[str, PageLine]], balance: str
) -> None:
    async with Web(SITES) as site:
        pages = tree(PAGES, SITES)(site)

        async def slow(request: web.BaseRequest) -> web.StreamResponse:
            await asyncio.sleep(ANSWER_S)
            page = pages(request)
            assert isinstance(page, web.StreamResponse)
            return page

        site.fallback = slow
        weak = await make_peer("a", limits=WEAK, balance=balance, block_urls=4, update_s=0.2)
        strong = await make_peer("b", join=weak)
        await weak.crawl([site.url()])
        await finish([weak, strong])
        assert PAGES == len(lines())
        loans = weak.balancing.loans
        assert 0 == loans.lending.urls == strong.balancing.loans.borrowing.urls
        assert (loans.lending.done > PAGES // 8) is (balance == "level")
        assert loans.lending.done == strong.balancing.loans.borrowing.done
        assert strong.totals.pages > weak.totals.pages or balance == "off"
