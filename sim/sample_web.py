"""The sample web on the wire: serves `sim/sample_pages.py` over HTTP on loopback, and logs all requests.

Each site has its own address, 127.0.0.2 and up, on a port the system chooses. `SampleWeb` keeps the access log. From
the generator it derives the URLs that a correct crawler fetches and the result of each (`SampleWeb.truth`), so that
`sim/judge.py` can judge a crawl. It shares no code with kadcrawl.

``python -m sim.sample_web`` serves it by hand.
"""

import argparse
import asyncio
import socket
from collections import Counter
from collections.abc import Callable
from contextlib import AsyncExitStack
from functools import partial
from types import TracebackType
from typing import Final, Self

from aiohttp import web

from . import sample_traps
from .judge import Access, Expected, Verdict, judge
from .sample_pages import NOT_FOUND, SITES, Resource, SamplePages

FIRST_ADDRESS: Final = 2
"""The last byte of the first site's address. Sites use 127.0.0.2 and up: 127.0.0.1 is left to other programs."""


class SampleWeb:
    """Async context manager: the sample web of `seed`, served while it is open.

    With `dead_ends` there are two things more that cost a crawler its patience: a seed where nothing
    listens, and a site whose robots.txt is out of order when it is first asked for. With `traps` there is a
    site more, without end: what a crawler with these bounds fetches of it is part of the truth.
    """

    def __init__(self, seed: int = 1, *, dead_ends: bool = False, traps: sample_traps.Bounds | None = None) -> None:
        self.access_log: list[Access] = []
        """Every request, in the order of arrival."""
        self.origins: tuple[str, ...] = ()
        """``http://host:port`` of each of `SITES`."""
        self.dead_seed: str | None = None
        """The URL that refuses the connection, or None without `dead_ends`."""
        self.trap_origin: str | None = None
        """``http://host:port`` of the endless site, or None without `traps`."""
        self._seed = seed
        self._dead_ends = dead_ends
        self._traps = traps
        self._answers_given: Counter[tuple[str, str]] = Counter()
        self._resources = AsyncExitStack()

    async def __aenter__(self) -> Self:
        async with AsyncExitStack() as stack:
            listeners = [stack.enter_context(_bound(number)) for number in range(len(SITES) + 1)]
            *origins, outside = (_origin(listener) for listener in listeners)
            self.origins = tuple(origins)
            self._pages = SamplePages(self._seed, self.origins, outside, flaky_robots=self._dead_ends)
            if self._dead_ends:
                # Bound but not listening: the port is ours, and it refuses.
                self.dead_seed = _origin(stack.enter_context(_bound(len(listeners)))) + "/"
            for number, listener in enumerate(listeners[:-1]):
                await self._serve(stack, listener, partial(self._pages.resource, number))
            # The world outside has nothing, and should not be asked.
            await self._serve(stack, listeners[-1], lambda path: None)
            if self._traps is not None:
                listener = stack.enter_context(_bound(len(listeners) + 1))
                self.trap_origin = _origin(listener)
                await self._serve(stack, listener, sample_traps.resource)
            self._resources = stack.pop_all()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._resources.aclose()

    @property
    def seeds(self) -> tuple[str, ...]:
        """The URLs a crawl of the whole web starts from: each site's home page."""
        origins = (*self.origins, self.trap_origin)
        homes = tuple(f"{origin}/" for origin in origins if origin is not None)
        return homes if self.dead_seed is None else (*homes, self.dead_seed)

    def truth(self) -> dict[str, Expected]:
        """Return the result of a correct crawl of the seeds: URL -> expected result, with robots.txt.

        A seed that refuses the connection is left out, because no server ever sees a request for it.
        """
        found = {}
        for number, origin in enumerate(self.origins):
            for path in self._pages.paths(number):
                resource = self._pages.resource(number, path)
                assert resource is not None, "the generator knows its own paths"
                if resource.fetches_max:
                    status = resource.answers[-1].status
                    found[origin + path] = Expected(status, resource.fetches_min, resource.fetches_max)
        if self._traps is not None:
            for path in sample_traps.paths(self._traps):
                found[f"{self.trap_origin}{path}"] = Expected(404 if path == "/robots.txt" else 200, 1, 1)
        return found

    def disallowed(self) -> frozenset[str]:
        """Return the URLs that are linked and that robots.txt forbids."""
        return frozenset(
            origin + path
            for number, origin in enumerate(self.origins)
            for path in self._pages.paths(number)
            if (resource := self._pages.resource(number, path)) is not None and resource.disallowed
        )

    def judge(self, delay_s: float) -> Verdict:
        """Return the verdict on a crawl with `delay_s` between requests to one site."""
        delays = {origin: max(delay_s, site.crawl_delay_s) for origin, site in zip(self.origins, SITES, strict=True)}
        if self.trap_origin is not None:
            delays[self.trap_origin] = delay_s
        return judge(self.access_log, self.truth(), self.disallowed(), delays)

    async def _serve(
        self, stack: AsyncExitStack, listener: socket.socket, resource_at: Callable[[str], Resource | None]
    ) -> None:
        site = _origin(listener)

        async def answer(request: web.BaseRequest) -> web.Response:
            arrived = asyncio.get_running_loop().time()
            path = request.raw_path
            resource = resource_at(path)
            chosen = NOT_FOUND
            if resource is not None:
                given = self._answers_given[site, path]
                chosen = resource.answers[min(given, len(resource.answers) - 1)]
                self._answers_given[site, path] += 1
            agent = request.headers.get("User-Agent", "")
            self.access_log.append(Access(arrived, site, path, chosen.status, agent))
            await asyncio.sleep(chosen.wait_s)
            headers = {"Content-Type": chosen.content_type, **dict(chosen.headers)}
            return web.Response(status=chosen.status, body=chosen.body, headers=headers)

        runner = web.ServerRunner(web.Server(answer), shutdown_timeout=1)
        await runner.setup()
        stack.push_async_callback(runner.cleanup)
        await web.SockSite(runner, listener).start()


def _bound(number: int) -> socket.socket:
    listener = socket.socket()
    try:
        listener.bind((f"127.0.0.{FIRST_ADDRESS + number}", 0))
    except OSError:
        listener.close()
        raise
    return listener


def _origin(listener: socket.socket) -> str:
    host, port = listener.getsockname()
    return f"http://{host}:{port}"


async def _serve_by_hand(seed: int, dead_ends: bool, traps: bool) -> None:
    async with SampleWeb(seed, dead_ends=dead_ends, traps=sample_traps.Bounds() if traps else None) as sample:
        print(*sample.seeds, sep="\n", flush=True)
        try:
            await asyncio.Event().wait()
        finally:
            print(f"{len(sample.access_log)} requests answered")


def main() -> None:
    """Serve the sample web until interrupted, and print the seeds."""
    parser = argparse.ArgumentParser(description="Serve the sample web and print the URLs to start from.")
    parser.add_argument("--seed", type=int, default=1, help="seed of the web (default 1)")
    parser.add_argument(
        "--dead-ends", action="store_true", help="add a seed that refuses connections and a flaky robots.txt"
    )
    parser.add_argument(
        "--traps", action="store_true", help="add an endless site (try --max-site-pages and --max-path-queries)"
    )
    options = parser.parse_args()
    try:
        asyncio.run(_serve_by_hand(options.seed, options.dead_ends, options.traps))
    except KeyboardInterrupt:
        pass


if __name__ == "__main__":
    main()
