"""A web without an end until a test has seen enough: no crawl of it is over before that, however busy the machine."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from aiohttp import web

from tests.support.sites.web import Web, html
from tests.support.swarm.command import SITES

WIDE = 40
"""Pages that are linked and not yet answered, or hardly more: as many are left when it ends."""


class EndlessWeb:
    """Serve pages that each link to new pages, on the sites in turn."""

    def __init__(self, site: Web, seconds: float) -> None:
        self.site = site
        self.seed = site.url("/0")
        self.linked = {self.seed}
        """All pages there are so far."""
        self._seconds = seconds
        self._answered = 0
        self._ends = False
        site.fallback = self._page

    def end(self) -> None:
        """Answer at once and without links from now on."""
        self._ends = True

    async def _page(self, _: web.BaseRequest) -> web.StreamResponse:
        await asyncio.sleep(0.0 if self._ends else self._seconds)
        self._answered += 1
        count = 0 if self._ends else 1 + (len(self.linked) - self._answered < WIDE)
        numbers = range(len(self.linked), len(self.linked) + count)
        links = [self.site.url(f"/{number}", site=number % SITES) for number in numbers]
        self.linked.update(links)
        return html(*links)


@asynccontextmanager
async def endless_web(seconds: float = 0.2) -> AsyncIterator[EndlessWeb]:
    """Give a web whose pages take this many seconds until the test ends it."""
    async with Web(SITES) as site:
        yield EndlessWeb(site, seconds)
