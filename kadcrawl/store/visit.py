"""The facts that a store keeps of a page that may be fetched again: its address, its time, and its last answer.

`crawl.recrawl` makes a visit when a page is finished that is due again, that failed, or that was fetched before. The
store of every holder of the page's cell keeps it, and `crawl.recrawl` reads it when the next round begins.

Tests: tests/store/test_visit_table.py, tests/crawl/recrawl/test_policy.py
"""

from typing import NamedTuple

from kadcrawl.keys import Key

PERIOD_S = 1.0
"""Period of a page that is not fetched again by itself. It must be one that a job with a recrawl may have."""


class Visit(NamedTuple):
    """The last visit to a page, and the time of the next."""

    key: Key
    site: str
    url: str
    depth: int
    due: float | None
    """Wall-clock second from which the page is due again, or None for never."""
    period_s: float
    """Seconds between two visits, adapted to the changes of the page so far."""
    etag: str
    """Entity tag as received (RFC 9110, 8.8.3), or empty."""
    last_modified: str
    """Last-Modified field as received, or empty."""
    digest: str
    """Payload digest of the last whole body, as in the WARC, or empty."""
    captured: str
    """WARC-Date of the record with that body, or empty."""
    gone: int
    """Number of consecutive visits that found the page gone: status 404 or 410."""
    failed: str = ""
    """Reason for which the last visit failed, as in the page line, or empty. Empty while the page is pending again."""
    order: int = 0
    """Stamp of the latest order to retry known where the visit began, or of the order that began the next round.

    An order applies to a page once, as only an order with a later stamp than this applies.
    """
    answer: str = ""
    """The last answer 200 with a body of its own, as a text (last_answer.py), or empty."""

    @classmethod
    def first(cls, key: Key, site: str, url: str, depth: int) -> "Visit":
        """Return the description of a page to which no visit is kept."""
        return cls(key, site, url, depth, None, PERIOD_S, "", "", "", "", 0)
