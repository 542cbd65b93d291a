"""Step 5 of a URL's life ends where step 1 begins: the links in what was fetched.

Decides what a final answer leads to: the target of a redirect, the links of a page, or nothing, and whether the URL
counts as failed. A fault of ours in reading a page costs that page's links, never the crawl. No await, no clock.
"""

import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from kadcrawl.crawl.extract import LinkExtractor
from kadcrawl.crawl.fetched import Fetched
from kadcrawl.crawl.scope import Scope
from kadcrawl.history.entry import Entry
from kadcrawl.link.messages import Link
from kadcrawl.urls import canonical

HTML = frozenset({"text/html", "application/xhtml+xml", ""})
"""Media types whose links are followed; a page without a type is looked at."""

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Found:
    """What a final answer leads to."""

    links: tuple[str, ...]
    """Every distinct canonical URL on the page."""
    onward: list[Link]
    """Those of them in scope that their owners may not know yet, or the target of a redirect if it is such."""
    failed: str | None
    """Why the URL counts as failed, if it does."""


class Finder:
    """Finds where answers lead, for one crawler."""

    def __init__(
        self,
        extractor: LinkExtractor,
        scope: Scope,
        fresh: Callable[[Iterable[str], int], list[str]],
        redirects_max: int,
    ) -> None:
        """`fresh` returns those of the URLs, met at this depth, whose owners may not know them yet."""
        self._extractor = extractor
        self._scope = scope
        self._fresh = fresh
        self._redirects_max = redirects_max

    def found(self, entry: Entry, fetched: Fetched) -> Found:
        """Return what a final answer leads to; `entry` is what was asked for."""
        failed = fetched.why_failed
        if fetched.location is not None:
            target = canonical(fetched.location, entry.url)
            if target is None:
                return Found((), [], "bad_redirect")
            if entry.hops >= self._redirects_max:
                return Found((target,), [], "redirect_limit")
            return Found((target,), self._onward((target,), entry.depth, entry.hops + 1), failed)
        if failed is not None or fetched.mime not in HTML or not fetched.content:
            return Found((), [], failed)
        try:
            extracted = self._extractor.extract(
                fetched.content, fetched.content_type, entry.url, fetched.header(b"x-robots-tag") or ""
            )
        except Exception:
            # A fault of ours must not cost more than this page's links in a crawl of months.
            log.exception("crawl.bug url=%s", entry.url)
            return Found((), [], "internal_error")
        return Found(tuple(extracted.links), self._onward(extracted.links, entry.depth + 1, 0), None)

    def _onward(self, urls: Iterable[str], depth: int, hops: int) -> list[Link]:
        # In this order: most links of a site have been forwarded before, and then were in scope.
        allows = self._scope.allows
        return [Link(url, depth, hops) for url in self._fresh(urls, depth) if allows(url, depth)]
