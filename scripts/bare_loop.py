"""The yardstick of the benchmark: the least a crawler in Python does, to compare machines and releases by.

aiohttp on uvloop fetches, selectolax finds the links, a set remembers; no robots.txt, no retries, no limits, no
journal, no output. Not a rival but a bound. It imports nothing of kadcrawl.

``python -m scripts.bare_loop [--wanted REGEX] URL...`` prints a JSON object: pages.
"""

import argparse
import asyncio
import json
import re
from collections.abc import Iterator, Sequence
from typing import Final
from urllib.parse import urljoin

import aiohttp
import uvloop
from selectolax.lexbor import LexborHTMLParser
from yarl import URL

FETCHERS: Final = 64
PER_HOST: Final = 8
"""Connections, as many as kadcrawl and Scrapy are given."""


async def crawl(seeds: Sequence[str], wanted: re.Pattern[str]) -> int:
    """Fetch all wanted and reachable pages on the seeds' origins. Return how many URLs answered with 200."""
    origins = tuple(seed[: seed.index("/", len("https://")) + 1] for seed in seeds)
    met = set(seeds)
    queue: asyncio.Queue[str] = asyncio.Queue()
    for seed in met:
        queue.put_nowait(seed)
    pages = 0

    async def fetch_on() -> None:
        nonlocal pages
        while True:
            url = await queue.get()
            async with session.get(URL(url, encoded=True), allow_redirects=False) as response:
                body = await response.read()
                pages += response.status == 200
                targets = {response.headers.get("Location", "")}
                if response.status == 200 and response.content_type == "text/html":
                    targets = set(_hrefs(body))
            for link in (urljoin(url, target) for target in targets):
                if link not in met and link.startswith(origins) and wanted.match(link):
                    met.add(link)
                    queue.put_nowait(link)
            queue.task_done()

    connector = aiohttp.TCPConnector(limit=FETCHERS, limit_per_host=PER_HOST)
    async with (
        aiohttp.ClientSession(connector=connector, cookie_jar=aiohttp.DummyCookieJar()) as session,
        asyncio.TaskGroup() as group,
    ):
        fetchers = [group.create_task(fetch_on(), name=f"fetch {number}") for number in range(FETCHERS)]
        await queue.join()
        for fetcher in fetchers:
            fetcher.cancel()
    return pages


def _hrefs(body: bytes) -> Iterator[str]:
    for node in LexborHTMLParser(body).css("a[href], area[href]"):
        yield (node.attributes["href"] or "").partition("#")[0].strip()


def main() -> None:
    """Crawl to the end and print the figures."""
    parser = argparse.ArgumentParser(description="Crawl URL... with the least that a crawler can do.")
    parser.add_argument("--wanted", default="", metavar="REGEX", help="only URLs that begin like this")
    parser.add_argument("seeds", nargs="+", metavar="URL")
    options = parser.parse_args()
    print(json.dumps({"pages": uvloop.run(crawl(options.seeds, re.compile(options.wanted)))}))


if __name__ == "__main__":
    main()
