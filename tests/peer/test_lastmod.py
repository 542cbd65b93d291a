"""Test that a page which a sitemap calls changed is visited early, and no other page.

The owner of the page does not matter.
"""

from datetime import UTC, datetime

import pytest
from aiohttp import web

from kadcrawl.peer import Peer
from tests.support.sites.web import Web, html
from tests.support.swarm.peers import MakePeer, swarm
from tests.support.waiting import until

LEAST_S = 1.0
PAGES = 16


class Mapped:
    """A site with a sitemap of pages, and an index that lists the sitemap."""

    def __init__(self, site: Web) -> None:
        self._site = site
        self.lastmod = {site.url(f"/{number}"): "2024-05-01" for number in range(PAGES)}
        self.map = site.url("/sitemap.xml")
        self.index = site.url("/sitemap-index.xml")
        self._modified = ""
        """The last-modified date of the sitemap."""
        site.fallback = lambda request: html()
        site.pages["/sitemap.xml"] = lambda request: self._answer("urlset", "url", self.lastmod)
        site.pages["/sitemap-index.xml"] = lambda request: self._answer(
            "sitemapindex", "sitemap", {self.map: self._modified}
        )

    def _answer(self, root: str, entry: str, lastmod: dict[str, str]) -> web.Response:
        listed = "".join(f"<{entry}><loc>{url}</loc><lastmod>{at}</lastmod></{entry}>" for url, at in lastmod.items())
        return web.Response(text=f"<{root}>{listed}</{root}>", content_type="application/xml")

    def modify(self, *numbers: int, at: float) -> set[str]:
        """Say of these pages that they were modified at a second of the peers' clocks, which may run ahead."""
        urls = {self._site.url(f"/{number}") for number in numbers}
        self._modified = datetime.fromtimestamp(at, UTC).isoformat()
        self.lastmod |= dict.fromkeys(urls, self._modified)
        return urls


async def resting(peers: list[Peer]) -> None:
    await until(lambda: all(peer.state == "resting" for peer in peers))


@pytest.mark.parametrize("partition", ["url", "host"])
async def test_a_page_that_its_sitemap_says_was_modified_comes_before_its_time(
    make_peer: MakePeer, partition: str
) -> None:
    async with Web() as site:
        mapped = Mapped(site)
        peers = await swarm(
            make_peer,
            "abc" if partition == "url" else "a",
            partition=partition,
            sitemaps=True,
            recrawl_after_s=3600.0,
            recrawl_adaptive=True,
            recrawl_least_s=LEAST_S,
        )
        await peers[0].crawl([site.url()])
        await resting(peers)
        once = {site.url(), mapped.map, *mapped.lastmod}
        assert dict.fromkeys(once, 1) == dict(site.fetched)
        modified = mapped.modify(1, 3, 5, 7, 9, 11, at=peers[0].clock.now())
        await peers[-1].crawl([mapped.index])  # It says that the sitemap has changed, and the sitemap which pages have.
        await until(lambda: all(site.fetched[url] == 2 for url in modified))
        await resting(peers)
        assert {mapped.index: 1} | dict.fromkeys(once, 1) | dict.fromkeys({mapped.map, *modified}, 2) == dict(
            site.fetched
        )
        times = [at for at, url in site.requests if url == mapped.map]
        assert times[1] - times[0] >= 0.9 * LEAST_S
        assert {1 + len(modified)} == {sum(peer.counters.revisits for peer in peers)}
