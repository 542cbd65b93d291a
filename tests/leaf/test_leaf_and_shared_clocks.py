"""A leaf beside full peers of a crawl by URL: each URL has its own turn on the clock of its host."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from itertools import pairwise
from pathlib import Path

import pytest

from kadcrawl import Config, Leaf, Peer
from scripts.kadcrawl_run import LoggedPage
from tests.support.sites.web import Web, html
from tests.support.swarm.peers import QUICK, MakePeer, finish

HOSTS = 4
PAGES = 80
DELAY_S = 0.2
SPACED_S = 0.98 * DELAY_S
"""The least distance of two requests in the log of a server, which sees them a little later than they were sent."""

MakeLeaf = Callable[..., Awaitable[Leaf]]


@pytest.fixture
async def make_leaf(tmp_path: Path) -> AsyncIterator[MakeLeaf]:
    """Return a coroutine function: make_leaf(directory, *full peers)."""
    async with AsyncExitStack() as stack:

        async def make(directory: str, *peers: Peer) -> Leaf:
            config = Config(data=tmp_path / directory, allow_networks=("127.0.0.0/8",), limits=QUICK)
            leaf = await stack.enter_async_context(Leaf(config))
            await leaf.join([peer.contact.address for peer in peers])
            return leaf

        yield make


@pytest.mark.parametrize("balance", ["off", "level"])
async def test_a_leaf_fetches_a_good_part_of_a_crawl_by_url(
    balance: str, make_peer: MakePeer, make_leaf: MakeLeaf, lines: Callable[[], dict[str, LoggedPage]]
) -> None:
    async with Web(HOSTS) as site:
        urls = [site.url(f"/{page}", site=page % HOSTS) for page in range(PAGES)]
        site.fallback = lambda request: html(*urls)
        first = await make_peer("a", partition="url", delay_s=DELAY_S, balance=balance)
        second = await make_peer("b", join=first)
        leaf = await make_leaf("leaf", first, second)
        await first.crawl([urls[0]])
        await finish([first, second])
        await leaf.wait_done()
        assert set(urls) == set(lines())
        assert {1} == set(site.fetched.values())
        assert PAGES == leaf.counters.pages + first.counters.pages + second.counters.pages
        assert leaf.counters.pages > PAGES // 10
        for host in range(HOSTS):
            seconds = [second for second, url in site.requests if url.startswith(site.url("/", site=host))]
            assert min(later - earlier for earlier, later in pairwise(seconds)) >= SPACED_S
