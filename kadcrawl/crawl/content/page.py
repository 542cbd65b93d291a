"""A fetched page as an embedding application sees it, and a hook that takes records out of it.

Tests: tests/crawl/content/test_record_rules.py, tests/crawl/content/test_record_extractor.py
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from kadcrawl.crawl.content.charset import decode, encoding_of
from kadcrawl.crawl.fetch.result import FetchResult
from kadcrawl.store.frontier_entry import FrontierEntry

if TYPE_CHECKING:
    from parsel import Selector


@dataclass(frozen=True)
class Page:
    """One fetched URL with its content, from `Peer.pages` or for a hook."""

    url: str
    """The canonical URL."""
    status: int | None
    """HTTP status, None when there was no answer."""
    failure: str | None
    """The reason that the page counts as failed, or None when it was fetched."""
    headers: Mapping[str, str]
    """Response headers, with names in lower case. The last value of a repeated header counts."""
    content: bytes
    """Body after decompression."""
    content_type: str
    """Value of the Content-Type header, or empty."""
    depth: int
    """Number of links from the nearest seed."""
    links: tuple[str, ...]
    """Canonical URLs found on it, in document order, in scope or not."""
    fetched_at: str
    """Time at which the request began: RFC 3339, UTC."""
    role: str | None = None
    """`next_link` or `detail_request`, if the job says so of its URL."""

    @property
    def mime(self) -> str:
        """The media type in lower case, e.g. ``text/html``, or empty."""
        return self.content_type.partition(";")[0].strip().lower()

    @property
    def charset(self) -> str:
        """The WHATWG name of its encoding."""
        return encoding_of(self.content, self.content_type)

    @cached_property
    def selector(self) -> "Selector":
        """The page as a tree for ``.css()`` and ``.xpath()``, as in Scrapy. The tree takes some 25 times the page's
        bytes."""
        from parsel import Selector  # Not at the top: nothing else in a peer needs lxml.

        return Selector(text=self.text, type="html", base_url=self.url)

    @property
    def text(self) -> str:
        """The body decoded by its own charset (BOM, header, meta, then detection)."""
        return decode(self.content, self.content_type)[0]

    @classmethod
    def of(
        cls, entry: FrontierEntry, result: FetchResult, links: tuple[str, ...], failed: str | None, role: str | None
    ) -> "Page":
        """Return the page of a final answer."""
        return cls(
            url=entry.url,
            status=result.status,
            failure=failed,
            headers={name.decode("latin-1").lower(): value.decode("latin-1") for name, value in result.headers},
            content=result.content,
            content_type=result.content_type,
            depth=entry.depth,
            links=links,
            fetched_at=result.started_at.isoformat(),
            role=role,
        )
