"""A fetched page as an embedding application sees it."""

from collections.abc import Mapping
from dataclasses import dataclass

from kadcrawl.crawl.charset import decode
from kadcrawl.crawl.fetched import Fetched
from kadcrawl.history.entry import Entry


@dataclass(frozen=True, slots=True)
class Page:
    """One finished URL with its content, from `Peer.pages`."""

    url: str
    status: int | None
    """HTTP status, None when there was no answer."""
    failure: str | None
    """Why it counts as failed, None when it was fetched."""
    headers: Mapping[str, str]
    """Response headers, names in lower case; of repeated ones the last."""
    content: bytes
    """Body after decompression."""
    content_type: str
    depth: int
    links: tuple[str, ...]
    """Canonical URLs found on it, in document order, in scope or not."""
    fetched_at: str
    """RFC 3339, UTC."""

    @property
    def text(self) -> str:
        """The body decoded by its own charset (BOM, header, meta, then detection)."""
        return decode(self.content, self.content_type)[0]

    @classmethod
    def of(cls, entry: Entry, fetched: Fetched, links: tuple[str, ...], failed: str | None) -> "Page":
        """Return the page of a final answer."""
        return cls(
            url=entry.url,
            status=fetched.status,
            failure=failed,
            headers={name.decode("latin-1").lower(): value.decode("latin-1") for name, value in fetched.headers},
            content=fetched.content,
            content_type=fetched.content_type,
            depth=entry.depth,
            links=links,
            fetched_at=fetched.started_at.isoformat(),
        )
