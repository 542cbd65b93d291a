"""One big site without a delay is crawled by all peers, and never over more connections than it may have."""

import asyncio
from collections.abc import Callable
from dataclasses import replace

from aiohttp import web

from scripts.kadcrawl_run import LoggedPage
from tests.support.sites.web import Web, slow, tree
from tests.support.swarm.peers import QUICK, MakePeer, finish, swarm

CONNECTIONS = 5
PAGES = 600
PART = PAGES // 40
"""The pages that each peer must have fetched in the end."""
ANSWER_S = 0.02
LATE_ANSWER_S = 0.3
"""Seconds for an answer of the second half while a peer lacks its part.

On a busy machine the first half may be over too soon for that.
"""


async def test_all_peers_crawl_one_big_site_within_its_connections(
    make_peer: MakePeer, lines: Callable[[], dict[str, LoggedPage]]
) -> None:
    limits = replace(QUICK, site_connections_max=CONNECTIONS)

    async def make(directory: str, **options: object) -> object:
        return await make_peer(directory, limits=limits, **options)

    async with Web() as site:
        pages = slow(tree(PAGES)(site), ANSWER_S)
        under_way: list[int] = [0]

        async def counted(request: web.BaseRequest) -> web.StreamResponse:
            under_way.append(under_way[-1] + 1)
            if sum(site.fetched.values()) > PAGES // 2 and any(peer.counters.pages < PART for peer in peers):
                await asyncio.sleep(LATE_ANSWER_S)
            answer = await pages(request)
            under_way.append(under_way[-1] - 1)
            return answer

        site.fallback = counted
        peers = await swarm(make, "abcd", balance="level", block_urls=8, update_s=0.2)  # type: ignore[arg-type]
        await peers[0].crawl([site.url()])
        await finish(peers)
    assert PAGES == len(lines())
    assert CONNECTIONS == max(under_way)
    assert all(peer.counters.pages >= PART for peer in peers), [peer.counters.pages for peer in peers]
