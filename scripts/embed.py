"""A peer inside an aiohttp application: the application answers requests while it crawls, with the pages it has so far.

``python -m scripts.embed URL`` serves http://127.0.0.1:8080/ (``--port``): ``/`` says how far the crawl is,
``/find?q=word`` lists the pages that contain a word. One peer here; ``peer.join([(host, port)])`` would make it one of
many.
"""

import argparse
import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

from aiohttp import web

from kadcrawl import Config, Job, Peer

PAGES = web.AppKey("pages", dict[str, str])
PEER = web.AppKey("peer", Peer)


def application(url: str, config: Config, job: Job) -> web.Application:
    """Return an application that crawls `url` while it runs."""
    app = web.Application()
    app[PAGES] = {}
    app.add_routes([web.get("/", progress), web.get("/find", find)])

    async def crawling(app: web.Application) -> AsyncIterator[None]:
        async with Peer(config, job) as peer:
            app[PEER] = peer
            reader = asyncio.create_task(crawl(peer, url, app[PAGES]), name="crawl")
            yield
            reader.cancel()
            await asyncio.gather(reader, return_exceptions=True)
            await peer.drain()

    app.cleanup_ctx.append(crawling)
    return app


async def crawl(peer: Peer, url: str, pages: dict[str, str]) -> None:
    """Keep the text of every page, as it comes."""
    await peer.crawl([url])
    async for page in peer.pages():
        if page.failure is None:
            pages[page.url] = page.text
    await peer.wait_done()


async def progress(request: web.Request) -> web.Response:
    return web.json_response({"pages": len(request.app[PAGES]), "state": request.app[PEER].state})


async def find(request: web.Request) -> web.Response:
    word = request.query.get("q", "")
    return web.json_response([url for url, text in request.app[PAGES].items() if word in text])


def main() -> None:
    """Serve until interrupted."""
    parser = argparse.ArgumentParser(description="Crawl a site inside a web application that searches its pages.")
    parser.add_argument("url")
    parser.add_argument("--port", type=int, default=8080)
    parser.add_argument("--data", type=Path, default=Path("crawl-data"))
    parser.add_argument("--delay", type=float, default=1.0, metavar="S")
    parser.add_argument("--contact", default="", help="goes into the User-Agent")
    parser.add_argument("--allow-network", action="append", default=[], metavar="CIDR")
    options = parser.parse_args()
    config = Config(data=options.data, port=0, allow_networks=tuple(options.allow_network))
    job = Job(delay_s=options.delay, contact=options.contact)
    web.run_app(application(options.url, config, job), host="127.0.0.1", port=options.port)


if __name__ == "__main__":
    main()
