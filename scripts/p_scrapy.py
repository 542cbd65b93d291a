"""The benchmark's opponent: Scrapy, tuned by someone who wants it to win.

A plain spider takes links with raw lxml, and the middlewares it can do without are switched off. It asks for HTML
pages on the seeds' hosts only, without robots.txt, retries, cookies or output: fetch and links. The same pattern
of URLs is given to kadcrawl. Runs in an environment of its own, with scrapy and uvloop, and imports nothing of
this project.

``python scripts/p_scrapy.py URL...`` prints a JSON object: pages.
"""

import argparse
import json
import re
from collections import Counter
from collections.abc import Iterator
from typing import Any
from urllib.parse import urljoin, urlsplit

import lxml.html  # type: ignore[import-not-found, import-untyped, unused-ignore]
import scrapy  # type: ignore[import-not-found, unused-ignore]
from scrapy.crawler import CrawlerProcess  # type: ignore[import-not-found, unused-ignore]

NOT_NEEDED = (
    "offsite.OffsiteMiddleware",
    "httpauth.HttpAuthMiddleware",
    "retry.RetryMiddleware",
    "redirect.MetaRefreshMiddleware",
    "redirect.RedirectMiddleware",
    "cookies.CookiesMiddleware",
    "httpproxy.HttpProxyMiddleware",
    "stats.DownloaderStats",
)
SETTINGS: dict[str, Any] = {
    "CONCURRENT_REQUESTS": 64,
    "CONCURRENT_REQUESTS_PER_DOMAIN": 64,
    "DOWNLOAD_DELAY": 0,
    "RANDOMIZE_DOWNLOAD_DELAY": False,
    "AUTOTHROTTLE_ENABLED": False,
    "ROBOTSTXT_OBEY": False,
    "COOKIES_ENABLED": False,
    "RETRY_ENABLED": False,
    "TELNETCONSOLE_ENABLED": False,
    "LOG_ENABLED": False,
    "URLLENGTH_LIMIT": 0,
    "TWISTED_REACTOR": "twisted.internet.asyncioreactor.AsyncioSelectorReactor",
    "ASYNCIO_EVENT_LOOP": "uvloop.Loop",
    "SPIDER_MIDDLEWARES_BASE": {},
    "REFERER_ENABLED": False,
    "DOWNLOADER_MIDDLEWARES": {f"scrapy.downloadermiddlewares.{name}": None for name in NOT_NEEDED},
}


def page_pattern(seeds: list[str]) -> str:
    """Return the pattern of the URLs to follow: HTML pages, by their names, on the seeds' hosts."""
    hosts = "|".join(re.escape(urlsplit(seed).hostname or "") for seed in seeds)
    return rf"^http://(?:{hosts})(?::\d+)?/(?:[^?#]*(?:/|\.html?))?$"


def lean_spider(seeds: list[str], done: Counter[str]) -> type[Any]:
    """Make the spider of least work, which counts its pages in `done`."""
    wanted = re.compile(page_pattern(seeds)).match

    class Lean(scrapy.Spider):  # type: ignore[misc, unused-ignore]
        name = "lean"
        start_urls = seeds

        def parse(self, response: Any) -> Iterator[Any]:
            done["pages"] += 1
            if not response.headers.get("Content-Type", b"").startswith(b"text/html"):
                return
            try:
                document = lxml.html.document_fromstring(response.body)
            except (lxml.etree.ParserError, ValueError):
                return
            bases = document.xpath("//base/@href")
            base = urljoin(response.url, bases[0]) if bases else response.url
            met = set()
            for href in document.xpath("//a/@href|//area/@href"):
                target = href.split("#")[0].strip()
                if not target or target in met:
                    continue
                met.add(target)
                try:
                    url = urljoin(base, target)
                except ValueError:
                    continue
                if wanted(url):
                    yield scrapy.Request(url)

    return Lean


def main() -> None:
    """Crawl to the end and print the figures."""
    parser = argparse.ArgumentParser(description="Crawl URL... with Scrapy.")
    parser.add_argument("seeds", nargs="+", metavar="URL")
    seeds = parser.parse_args().seeds
    done: Counter[str] = Counter()
    process = CrawlerProcess(SETTINGS)
    process.crawl(lean_spider(seeds, done))
    process.start()
    print(json.dumps({"pages": done["pages"]}))


if __name__ == "__main__":
    main()
