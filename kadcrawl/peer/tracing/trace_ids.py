"""The IDs of the trace of a URL. A decision: all peers derive the same IDs from the key, and so need no message for it.

Tests: tests/peer/tracing/test_trace_ids.py
"""

from dataclasses import dataclass
from hashlib import blake2b

from kadcrawl.keys import Key

_LOW = (1 << 64) - 1


@dataclass(frozen=True, slots=True)
class TraceIds:
    """The IDs of the trace of one URL in one crawl, as OpenTelemetry has them."""

    trace: int
    """128 bits, never 0."""
    root: int
    """64 bits, never 0: the span in which the owner accepts the URL, and the parent of all others."""


class TraceIdentifier:
    """Derives the IDs of traces in the crawl of one name, and chooses the URLs to show."""

    def __init__(self, crawl: str, share: float) -> None:
        """`share` is the part of the URLs to show, from 0 to 1."""
        self._crawl = blake2b(crawl.encode(), digest_size=32, person=b"kadcrawl trace").digest()
        self._below = int(share * (1 << 64))

    def ids(self, key: Key) -> TraceIds | None:
        """Return the IDs of the trace of a key, or None if its URL is not among those to show.

        The choice is by the low 64 bits of the trace ID, as in TraceIdRatioBased of OpenTelemetry, so a larger share
        has all the URLs of a smaller share.
        """
        digest = blake2b(key, digest_size=24, key=self._crawl).digest()
        trace, root = int.from_bytes(digest[:16], "big"), int.from_bytes(digest[16:], "big")
        return TraceIds(trace or 1, root or 1) if trace & _LOW < self._below else None
