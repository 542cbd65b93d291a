"""A web for real peers: pages of real documentation, dealt out on many small sites so that every peer owns some.

The pages are those of the PostgreSQL manual where `scripts.sites` has fetched it, breadth first from its index, and
made up otherwise. A page's site follows from its path; links between the pages are rewritten to lead there, all others
lead nowhere. So the sites are small, of about one size, and linked to each other as closely as a book's chapters.
Each lives on an address of its own. The access log is the server's; shares no code with kadcrawl.
"""

import asyncio
import posixpath
import re
import socket
import threading
from collections import Counter, deque
from collections.abc import Iterator, Mapping
from contextlib import AsyncExitStack
from hashlib import blake2b
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from aiohttp import web

from scripts.chaos.machines import Loopback, PeerHosts
from scripts.sites import PACKAGES, cache_directory, sites
from scripts.truth import crawl
from sim.judge import Access

PAGE_BYTES_MAX: Final = 40_000
"""Larger pages are left out, as the peers' processor time is not the subject."""
DOCUMENTATION: Final = next(package for package in PACKAGES if package.name == "postgresql-doc-15")

_LINK: Final = re.compile(r'\b(?:href|src)="([^"]*)"')


def documentation(count: int) -> dict[str, str]:
    """Return up to `count` pages of the PostgreSQL manual, path -> text, or none if the manual has not been fetched."""
    if not (cache_directory() / DOCUMENTATION.name).is_dir():
        return {}
    root = sites((DOCUMENTATION,))[0].root
    pages: dict[str, str] = {}
    waiting = deque(["index.html"])
    while waiting and len(pages) < count:
        path = waiting.popleft()
        if path not in pages and (text := _read(root / path)) is not None:
            pages[path] = text
            waiting.extend(target for target in _targets(path, text) if target.endswith(".html"))
    return pages


def made_up(count: int) -> dict[str, str]:
    """Return `count` pages, path -> text: page n leads to 3n+1 .. 3n+3, so that all are reachable, and back."""
    pages = {}
    for number in range(count):
        links = [*range(3 * number + 1, min(3 * number + 4, count)), (number - 1) // 3, 0]
        text = "".join(f'<p><a href="{other}.html">page {other}</a>' for other in links)
        pages[f"{number}.html"] = f"<!doctype html><title>{number}</title>{text}"
    return pages


class DealtWeb:
    """Async context manager: these pages, path -> text, on so many sites, served while it is open."""

    def __init__(self, pages: Mapping[str, str], site_count: int, machines: PeerHosts | None = None) -> None:
        self.machines = machines or Loopback()
        """The hosts of the sites, and of the peers that crawl them."""
        self.access_log: list[Access] = []
        """Every request since the crawl under judgment began, in the order of arrival."""
        self.origins: tuple[str, ...] = ()
        self.truth: dict[str, int] = {}
        """URL -> status of all that is reachable, as a walk of another make finds it."""
        self._pages = pages
        self._site_count = site_count
        self._bodies: dict[str, bytes] = {}
        self._resources = AsyncExitStack()

    async def __aenter__(self) -> Self:
        async with AsyncExitStack() as stack:
            with self.machines.web():
                listeners = [stack.enter_context(_bound(self.machines.site(n))) for n in range(self._site_count)]
            self.origins = tuple("http://{}:{}".format(*listener.getsockname()) for listener in listeners)
            self._bodies = {self._url(path): self._rewritten(path) for path in self._pages}
            for origin, listener in zip(self.origins, listeners, strict=True):
                await self._serve(stack, origin, listener)
            called_off = threading.Event()
            stack.callback(called_off.set)  # A thread cannot be cancelled, and the process would wait for it.
            self.truth = await asyncio.to_thread(self._walk, called_off)
            self._resources = stack.pop_all()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._resources.aclose()

    @property
    def seeds(self) -> list[str]:
        """One page of each site that has any."""
        firsts: dict[str, str] = {}
        for path in self._pages:
            firsts.setdefault(self._origin(path), self._url(path))
        return list(firsts.values())

    @property
    def fetched(self) -> Counter[str]:
        """The number of requests for each URL, without robots.txt."""
        return Counter(access.url for access in self.access_log if access.path != "/robots.txt")

    def _walk(self, called_off: threading.Event) -> dict[str, int]:
        with self.machines.web():
            return crawl(self.seeds, lambda url: not called_off.is_set())

    def _origin(self, path: str) -> str:
        dealt = int.from_bytes(blake2b(path.encode(), digest_size=8).digest(), "big")
        return self.origins[dealt % self._site_count]

    def _url(self, path: str) -> str:
        return f"{self._origin(path)}/{path}"

    def _rewritten(self, path: str) -> bytes:
        def rewrite(link: re.Match[str]) -> str:
            target = next(_targets(path, link[0]), "")
            return f'href="{self._url(target)}"' if target in self._pages else ""

        return _LINK.sub(rewrite, self._pages[path]).encode()

    async def _serve(self, stack: AsyncExitStack, origin: str, listener: socket.socket) -> None:
        clock = asyncio.get_running_loop().time

        async def answer(request: web.BaseRequest) -> web.Response:
            body = self._bodies.get(origin + request.raw_path)
            status = 404 if body is None else 200
            agent = request.headers.get("User-Agent", "")
            self.access_log.append(Access(clock(), origin, request.raw_path, status, agent, request.remote or ""))
            return web.Response(status=status, body=body or b"", content_type="text/html", charset="utf-8")

        runner = web.ServerRunner(web.Server(answer, access_log=None), shutdown_timeout=1)
        await runner.setup()
        stack.push_async_callback(runner.cleanup)
        await web.SockSite(runner, listener).start()


def _read(file: Path) -> str | None:
    """Return a page's text, or None for a file that is no page or too large."""
    try:
        body = file.read_bytes()
    except OSError:
        return None
    return body.decode(errors="replace") if len(body) <= PAGE_BYTES_MAX else None


def _targets(path: str, text: str) -> Iterator[str]:
    """Yield the paths the links in `text`, which is of the page `path`, lead to."""
    for link in _LINK.finditer(text):
        target = link[1].partition("#")[0].partition("?")[0]
        if target and ":" not in target:
            yield posixpath.normpath(posixpath.join(posixpath.dirname(path), target))


def _bound(address: str) -> socket.socket:
    listener = socket.socket()
    try:
        listener.bind((address, 0))
    except OSError:
        listener.close()
        raise
    return listener
