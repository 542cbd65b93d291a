"""Scrapy as a client of the odd servers, in an environment of its own that has nothing of this project.

``python scripts/odd_servers/scrapy_client.py`` reads a JSON list of ``[name, URL, what to show]`` from standard input
and prints a JSON object of outcomes by name, and the version. Settings are Scrapy's own but for robots.txt, retries
and the time-out. Tests: none, as Scrapy is no dependency.
"""

import json
import sys
from collections.abc import Iterator
from typing import Any

import scrapy  # type: ignore[import-not-found, unused-ignore]
from scrapy.crawler import CrawlerProcess  # type: ignore[import-not-found, unused-ignore]
from scrapy.linkextractors import LinkExtractor  # type: ignore[import-not-found, unused-ignore]

PATIENCE_S = 3
BODY_CHARS_SHOWN = 20
SETTINGS: dict[str, Any] = {
    "ROBOTSTXT_OBEY": False,
    "RETRY_ENABLED": False,
    "DOWNLOAD_TIMEOUT": PATIENCE_S,
    "TELNETCONSOLE_ENABLED": False,
    "LOG_ENABLED": False,
    "CONCURRENT_REQUESTS": 4,
}


def shown(response: Any, what: str, url: str) -> str:
    """Return the words for an answer."""
    if what == "links":
        if not isinstance(response, scrapy.http.HtmlResponse):
            return f"{response.status}, no links"
        links = [link.url.removeprefix(url) for link in LinkExtractor().extract_links(response)]
        return f"{response.status}, " + (f"links: {', '.join(f'`{link}`' for link in links)}" if links else "no links")
    if what == "target":
        return f"follows to {response.status}"
    text = response.body.decode("utf-8", "replace")
    if len(text) > BODY_CHARS_SHOWN:
        return f"{response.status}, {len(response.body)} bytes"
    return f"{response.status}, `{text}`" if text else f"{response.status}, empty"


def failure_words(failure: Any) -> str:
    """Return the words for a failure: the exception, and the exceptions below it."""
    error = failure.value
    name = type(error).__name__
    if "Timeout" in name:
        return "waits"
    cause = error.__cause__ or error
    causes = [type(reason.value).__name__ for reason in getattr(cause, "reasons", None) or ()]
    named = [one for one in dict.fromkeys(causes or [type(cause).__name__]) if one != name]
    return f"fails: `{name}` ({', '.join(f'`{one}`' for one in named)})" if named else f"fails: `{name}`"


def spider(rows: list[list[str]], outcomes: dict[str, str]) -> type[Any]:
    """Make the spider that asks for each row and notes its outcome."""

    class OddSpider(scrapy.Spider):  # type: ignore[misc, unused-ignore]
        name = "odd"
        handle_httpstatus_all = True

        async def start(self) -> Any:
            for row in rows:
                meta = {"row": row} if row[2] == "target" else {"row": row, "handle_httpstatus_all": True}
                yield scrapy.Request(row[1], meta=meta, errback=self.failed, dont_filter=True)

        def parse(self, response: Any) -> Iterator[Any]:
            name, url, what = response.meta["row"]
            outcomes[name] = shown(response, what, url)
            yield from ()

        def failed(self, failure: Any) -> None:
            outcomes[failure.request.meta["row"][0]] = failure_words(failure)

    return OddSpider


def main() -> None:
    """Ask for all rows."""
    rows: list[list[str]] = json.load(sys.stdin)
    outcomes: dict[str, str] = {}
    process = CrawlerProcess(SETTINGS)
    process.crawl(spider(rows, outcomes))
    process.start()
    missing = {name: "gives up without a word" for name, _, _ in rows if name not in outcomes}
    json.dump({"version": scrapy.__version__, "outcomes": outcomes | missing}, sys.stdout)


if __name__ == "__main__":
    main()
