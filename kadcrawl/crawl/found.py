"""Step 5 of a URL's life ends where step 1 begins: the links in what was fetched.

Decides what a final answer leads to: the target of a redirect, the links of a page, or nothing, and whether the URL
counts as failed. Session IDs are taken out of links here, where URLs enter the crawl, so that nobody after it sees the
twins; and what a limit keeps out is counted here, as it is met nowhere else. A fault of ours in reading a page costs
that page's links, never the crawl. No await, no clock.
"""

import logging
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from kadcrawl.crawl.extract import LinkExtractor
from kadcrawl.crawl.fetched import HTML, Fetched
from kadcrawl.crawl.scope import LIMITS, Scope
from kadcrawl.crawl.traps import without_session
from kadcrawl.history.entry import Entry
from kadcrawl.link.messages import Link
from kadcrawl.urls import canonical

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
    left_out: Mapping[str, int] = field(default_factory=dict)
    """How many links a limit kept out, by limit; with ``session_id`` those that go on without theirs."""


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
            onward, left_out = self._onward((target,), entry.depth, entry.hops + 1, entry.url)
            return Found((target,), onward, failed, left_out)
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
        onward, left_out = self._onward(extracted.links, entry.depth + 1, 0, None)
        if extracted.cut:
            left_out["links_per_page"] += extracted.cut
        return Found(tuple(extracted.links), onward, None, left_out)

    def _onward(
        self, urls: Iterable[str], depth: int, hops: int, redirected: str | None
    ) -> tuple[list[Link], Counter[str]]:
        """Return the links to be forwarded, and how many limits kept out; `redirected` is the URL that led here."""
        onward: list[Link] = []
        left_out: Counter[str] = Counter()
        why_not, strips = self._scope.why_not, self._scope.strips_sessions
        # In this order: most links of a site have been forwarded before, and then were in scope.
        for url in self._fresh(urls, depth):
            plain = without_session(url) if strips else url
            if plain is not url and plain == redirected:
                # Some servers show a page only to who has a session, and send everybody else here to get one.
                plain = url
            why = why_not(plain, depth)
            if why is None:
                onward.append(Link(plain, depth, hops))
                if plain != url:
                    left_out["session_id"] += 1
            elif why in LIMITS:
                left_out[why] += 1
        return onward, left_out
