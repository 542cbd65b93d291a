"""A web of many hosts on one loopback port, in a process of its own, which counts how often each page was asked for.

    python -m scripts.overload_web --hosts 100 --pages 200

prints its port, and serves until SIGTERM. The first page of each host links to the first page of the next host. The
pages of a host are a tree. `/count` on any host tells the requests so far.

Tests: tests/scripts/test_bench_overload.py
"""

import argparse
import asyncio
import json
import signal
from collections import Counter
from typing import Final

from aiohttp import web

FIRST_ADDRESS: Final = 2
"""Hosts live on 127.0.1.2, 127.0.1.3, ..."""
CHILDREN: Final = 8
"""Pages below each page."""
TEXT: Final = "<p>" + "words between the links " * 20


class TreeWeb:
    """The pages of all hosts, made when asked for."""

    def __init__(self, hosts: int, pages: int) -> None:
        """`pages`: of each host."""
        self.hosts = hosts
        self.pages = pages
        self.port = 0
        self.asked: Counter[tuple[str, str]] = Counter()
        """(host, path) -> requests for that page."""

    def seed(self) -> str:
        """Return the URL from which all pages are found."""
        return self._root(0)

    def count(self) -> dict[str, int]:
        """Return the requests for pages, and the pages asked for at least once."""
        return {"fetched": sum(self.asked.values()), "pages": len(self.asked)}

    async def answer(self, request: web.BaseRequest) -> web.Response:
        """Answer one request."""
        if request.path == "/count":
            return web.json_response(self.count())
        host = request.host.partition(":")[0]
        number = _number(request.path)
        if number is None or number >= self.pages:
            return web.Response(status=404)
        self.asked[host, request.path] += 1
        children = range(CHILDREN * number + 1, min(CHILDREN * number + CHILDREN + 1, self.pages))
        links = ["/", *(f"/{child}" for child in children)]
        if number == 0:
            host_number = int(host.rpartition(".")[2]) - FIRST_ADDRESS
            links += [
                self._root(child) for child in range(2 * host_number + 1, 2 * host_number + 3) if child < self.hosts
            ]
        anchors = "".join(f'<a href="{link}">{link}</a> ' for link in links)
        return web.Response(
            text=f"<title>{request.path}</title>{TEXT}{host}{request.path}{anchors}", content_type="text/html"
        )

    def _root(self, host: int) -> str:
        return f"http://127.0.1.{FIRST_ADDRESS + host}:{self.port}/"


def _number(path: str) -> int | None:
    if path == "/":
        return 0
    return int(path[1:]) if path[1:].isdecimal() and path[1] != "0" else None


async def serve(pages: TreeWeb) -> None:
    """Serve until SIGTERM. Print the port as JSON first."""
    ended = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, ended.set)
    runner = web.ServerRunner(web.Server(pages.answer, access_log=None), shutdown_timeout=1)
    await runner.setup()
    try:
        site = web.TCPSite(runner, "0.0.0.0", 0)
        await site.start()
        pages.port = runner.addresses[0][1]
        print(json.dumps({"port": pages.port, "seed": pages.seed()}), flush=True)
        await ended.wait()
    finally:
        await runner.cleanup()


def main() -> None:
    parser = argparse.ArgumentParser(description="Serve a web of many hosts on loopback.")
    parser.add_argument("--hosts", type=int, default=100)
    parser.add_argument("--pages", type=int, default=200, help="of each host")
    options = parser.parse_args()
    asyncio.run(serve(TreeWeb(options.hosts, options.pages)))


if __name__ == "__main__":
    main()
