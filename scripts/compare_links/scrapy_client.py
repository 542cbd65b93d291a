"""Scrapy as a crawler with a default LinkExtractor, in an environment of its own that has nothing of this project.

``python scripts/compare_links/scrapy_client.py crawl URL...`` crawls the hosts of the URLs. ``... extract`` reads a
JSON list of ``[URL, Content-Type, file]`` from standard input and prints a JSON object: URL -> links, in their order.
Settings are those of a new project, but for its delay. Tests: none, as Scrapy is no dependency.
"""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import scrapy  # type: ignore[import-not-found, unused-ignore]
from scrapy.crawler import CrawlerProcess  # type: ignore[import-not-found, unused-ignore]
from scrapy.http import HtmlResponse  # type: ignore[import-not-found, unused-ignore]
from scrapy.linkextractors import LinkExtractor  # type: ignore[import-not-found, unused-ignore]

SETTINGS: dict[str, Any] = {
    "ROBOTSTXT_OBEY": True,
    "DOWNLOAD_DELAY": 0,
    "CONCURRENT_REQUESTS_PER_DOMAIN": 8,
    "TELNETCONSOLE_ENABLED": False,
    "LOG_ENABLED": False,
}


def crawl(seeds: list[str]) -> None:
    """Follow all links of a default LinkExtractor on the hosts of the seeds."""

    class LinkSpider(scrapy.Spider):  # type: ignore[misc, unused-ignore]
        name = "links"
        start_urls = seeds
        allowed_domains = [urlsplit(seed).hostname for seed in seeds]  # noqa: RUF012

        def parse(self, response: Any) -> Iterator[Any]:
            if isinstance(response, HtmlResponse):
                for link in LinkExtractor().extract_links(response):
                    yield response.follow(link)

    process = CrawlerProcess(SETTINGS)
    process.crawl(LinkSpider)
    process.start()
    print(json.dumps({"version": scrapy.__version__}))


def extract(pages: list[list[str]]) -> dict[str, list[str]]:
    """Return the links of each page."""
    links = {}
    for url, content_type, file in pages:
        headers = {"Content-Type": content_type}
        response = HtmlResponse(url, headers=headers, body=Path(file).read_bytes())
        links[url] = [link.url for link in LinkExtractor().extract_links(response)]
    return links


def main() -> None:
    """Do as the first argument says."""
    if sys.argv[1] == "crawl":
        crawl(sys.argv[2:])
    else:
        json.dump(extract(json.load(sys.stdin)), sys.stdout)


if __name__ == "__main__":
    main()
