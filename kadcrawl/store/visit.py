"""What is kept of a page beyond its state when it will be fetched again: where it is, when, and what it was like.

A word, not an actor: made by `crawl.recrawl` when a page is finished, kept by the store of every holder of its cell,
and read again when the next round begins.

Tests: tests/store/test_visit_table.py, tests/crawl/recrawl/test_policy.py
"""

from typing import NamedTuple

from kadcrawl.keys import Key


class Visit(NamedTuple):
    """The last visit to a page, and the next."""

    key: Key
    site: str
    url: str
    depth: int
    due: float | None
    """Wall-clock second from which it is to be fetched again; None for never."""
    period_s: float
    """Seconds between two visits, as far as this page has shown what fits it."""
    etag: str
    """Its entity tag as received (RFC 9110 8.8.3), or empty."""
    last_modified: str
    """Its Last-Modified as received, or empty."""
    digest: str
    """Of its body when it was last received whole, as in the WARC; empty if it never was."""
    captured: str
    """WARC-Date of the record that has this body, or empty."""
    gone: int
    """Visits in a row that found it gone: 404 or 410."""
