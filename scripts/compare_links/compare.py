"""The comparison of one site: links of the same bodies, and requests by the server's log.

Tests: tests/scripts/test_compare_links.py
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from kadcrawl.crawl.content.html_links import LinkExtractor
from kadcrawl.settings.limits import Limits
from scripts.compare_links import mentions as reading
from scripts.compare_links.clients import Requests
from scripts.compare_links.mentions import Mention, Mentions
from scripts.compare_links.rules import UNEXPLAINED, Difference, RequestRules, link_differences, plain
from scripts.static_server import StaticDirectory, StaticReply
from scripts.truth import canonical, text_of

OTHERS: Final = ("wget", "scrapy")
EXAMPLE_CHARS_MAX: Final = 120


@dataclass(slots=True)
class SiteComparison:
    """The comparison of one site."""

    name: str
    pages: int
    """HTML pages that any of the crawlers has fetched."""
    links: dict[str, int]
    """Links of all pages together by extractor, and those that both have."""
    requests: dict[str, dict[str, int]]
    """Requests, distinct URLs, and URLs by status, by crawler."""
    differences: dict[str, list[Difference]] = field(default_factory=dict)
    """The differences of "links", and of the requests of each other crawler."""

    def counts(self) -> dict[str, dict[str, dict[str, int]]]:
        """Return the number of differences by comparison, class, and the crawler that has the URL."""
        counted: dict[str, dict[str, dict[str, int]]] = {}
        for what, differences in self.differences.items():
            by_class = Counter((each.why, each.only) for each in differences)
            for (why, only), count in sorted(by_class.items()):
                counted.setdefault(what, {}).setdefault(why, {})[only] = count
        return counted

    def unexplained(self) -> list[Difference]:
        """Return the differences that no rule explains."""
        return [each for differences in self.differences.values() for each in differences if each.why == UNEXPLAINED]

    def figures(self) -> dict[str, Any]:
        """Return the figures as JSON has them."""
        return {
            "name": self.name,
            "pages": self.pages,
            "links": self.links,
            "requests": self.requests,
            "differences": self.counts(),
        }


class ComparedSite:
    """One site on disk with the requests of all crawlers."""

    def __init__(self, name: str, root: Path, origin: str, requests: Mapping[str, Requests]) -> None:
        """`origin` has no slash at its end."""
        self._name = name
        self._directory = StaticDirectory(root)
        self._root = root
        self._origin = origin
        self._requests = requests
        self._replies = {url: self._directory.reply(url.removeprefix(origin)) for url in self._fetched()}

    def _fetched(self) -> Iterable[str]:
        """Return the URLs of all crawlers, in the form of scripts.truth."""
        return sorted({plain(url) for requests in self._requests.values() for url in requests.statuses})

    def pages(self) -> list[tuple[str, str, Path]]:
        """Return URL, Content-Type and file of each HTML page that any crawler has fetched."""
        return [
            (url, reply.headers["Content-Type"], self._file(url))
            for url, reply in self._replies.items()
            if _is(reply, "text/html")
        ]

    def _file(self, url: str) -> Path:
        path = self._directory.file(urlsplit(url).path)
        assert path is not None, url
        return path

    def compare(self, theirs: Mapping[str, list[str]]) -> SiteComparison:
        """Return the comparison. `theirs` are the links of LinkExtractor by page."""
        mentions = {url: read for url, reply in self._replies.items() if (read := _mentions(url, reply)) is not None}
        extractor = LinkExtractor(Limits())
        links: Counter[str] = Counter({"kadcrawl": 0, "scrapy": 0, "both": 0})
        differences: list[Difference] = []
        pages = [url for url, reply in self._replies.items() if _is(reply, "text/html")]
        for url in pages:
            reply = self._replies[url]
            ours = extractor.extract(reply.body, reply.headers["Content-Type"], url).links
            found = link_differences(url, ours, theirs[url], mentions[url])
            only = Counter(each.only for each in found)
            links["kadcrawl"] += len(ours)
            links["scrapy"] += len({each.partition("#")[0] for each in theirs[url]})
            links["both"] += len(ours) - only["kadcrawl"]
            differences += found
        comparison = SiteComparison(self._name, len(pages), dict(links), self._counted())
        comparison.differences["links"] = [self._short(each) for each in differences]
        for other in OTHERS:
            comparison.differences[other] = [self._short(each) for each in self._compare_requests(other, mentions)]
        return comparison

    def _compare_requests(self, other: str, mentions: Mapping[str, Mentions]) -> list[Difference]:
        ours, theirs = self._requests["kadcrawl"].statuses, self._requests[other].statuses
        found = RequestRules(ours, theirs, other, mentions).differences()
        for url in ours.keys() & theirs.keys():
            if ours[url] != theirs[url]:
                found.append(Difference(url, other, UNEXPLAINED, text=f"status {theirs[url]}, not {ours[url]}"))
        return found

    def _counted(self) -> dict[str, dict[str, int]]:
        return {
            name: {
                "requests": requests.count,
                "urls": len(requests.statuses),
                **{str(status): count for status, count in sorted(Counter(requests.statuses.values()).items())},
            }
            for name, requests in self._requests.items()
        }

    def _short(self, each: Difference) -> Difference:
        """Return the difference with paths in place of URLs of the site, as its port is another one each time."""
        url, where = each.url.removeprefix(self._origin), each.where.removeprefix(self._origin)
        return Difference(
            url[:EXAMPLE_CHARS_MAX], each.only, each.why, where[:EXAMPLE_CHARS_MAX], each.text[:EXAMPLE_CHARS_MAX]
        )


def _is(reply: StaticReply, media_type: str) -> bool:
    return reply.status == 200 and reply.headers["Content-Type"] == media_type


def _mentions(url: str, reply: StaticReply) -> Mentions | None:
    """Return the mentions of an answer, or None if it has none."""
    if "Location" in reply.headers:
        location = reply.headers["Location"]
        return Mentions([Mention("link", location, canonical(location, url))])
    if _is(reply, "text/html"):
        return reading.of_page(text_of(reply.body, None), url)
    if _is(reply, "text/css"):
        return reading.of_style_sheet(reply.body.decode(errors="replace"), url)
    return None
