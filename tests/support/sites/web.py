"""A small web for tests: sites on loopback whose pages are Python functions, and a log of every request."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import Self

from aiohttp import web

Answer = web.StreamResponse | Awaitable[web.StreamResponse]
Page = Callable[[web.BaseRequest], Answer]


def html(*links: str, status: int = 200, **headers: str) -> web.Response:
    """Return a page with these links."""
    text = "".join(f'<a href="{link}">x</a>' for link in links)
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return web.Response(text=text, content_type="text/html", status=status, headers=named)


class Web:
    """Async context manager: `sites` sites at 127.0.0.2 and up on one port; `pages` maps a path to its page."""

    def __init__(self, sites: int = 1) -> None:
        self.pages: dict[str, Page] = {"/robots.txt": lambda request: web.Response(status=404)}
        self.fallback: Page = lambda request: web.Response(status=404)
        self.requests: list[tuple[float, str]] = []
        """(loop time, URL) of every request, in order of arrival."""
        self._sites = sites

    def url(self, path: str = "/", site: int = 0) -> str:
        return f"http://127.0.0.{site + 2}:{self.port}{path}"

    @property
    def fetched(self) -> Counter[str]:
        """Return the number of requests for each URL, robots.txt aside."""
        return Counter(url for _, url in self.requests if not url.endswith("/robots.txt"))

    @property
    def repeated(self) -> set[str]:
        """The URLs that were asked for more than once, robots.txt aside."""
        return {url for url, count in self.fetched.items() if count > 1}

    def numbered(self, pages: int) -> set[str]:
        """Return the URLs of pages `/0`, `/1` and so on, on the sites in turn."""
        return {self.url(f"/{number}", number % self._sites) for number in range(pages)}

    async def __aenter__(self) -> Self:
        # aiohttp takes 0 for no limit, and would wait for a connection on which nobody ever asks.
        self._runner = web.ServerRunner(web.Server(self._respond, access_log=None), shutdown_timeout=0.1)
        await self._runner.setup()
        self.port = 0
        for number in range(self._sites):
            await web.TCPSite(self._runner, f"127.0.0.{number + 2}", self.port).start()
            self.port = self._runner.addresses[0][1]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self._runner.cleanup()

    async def _respond(self, request: web.BaseRequest) -> web.StreamResponse:
        self.requests.append((asyncio.get_running_loop().time(), f"http://{request.host}{request.path_qs}"))
        answer = self.pages.get(request.path, self.fallback)(request)
        return answer if isinstance(answer, web.StreamResponse) else await answer


def slow(page: Page, seconds: float) -> Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]:
    """Return the page answered so much later."""

    async def later(request: web.BaseRequest) -> web.StreamResponse:
        await asyncio.sleep(seconds)
        answer = page(request)
        return answer if isinstance(answer, web.StreamResponse) else await answer

    return later


def slow_while(
    page: Page, seconds: float, lacks: Callable[[], object]
) -> Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]:
    """Return the page answered so much later to each request that comes while somebody still lacks something."""

    async def later(request: web.BaseRequest) -> web.StreamResponse:
        if lacks():
            await asyncio.sleep(seconds)
        answer = page(request)
        return answer if isinstance(answer, web.StreamResponse) else await answer

    return later


def tree(size: int, sites: int = 1) -> Callable[["Web"], Page]:
    """Return a fallback page maker: page n links to 2n+1 and 2n+2 below `size`, on each of the web's sites in turn."""

    def of(web_: "Web") -> Page:
        def page(request: web.BaseRequest) -> web.StreamResponse:
            number = int(request.path.strip("/") or 0)
            onward = [child for child in (2 * number + 1, 2 * number + 2) if child < size]
            return html(*(web_.url(f"/{child}", site=child % sites) for child in onward))

        return page

    return of
