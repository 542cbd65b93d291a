"""A fetcher whose answers are given, for tests of the parts above it."""

import asyncio
from collections.abc import Callable, Sequence
from datetime import UTC, datetime

from kadcrawl.crawl.fetch.memory_slots import MemorySlots
from kadcrawl.crawl.fetch.result import FetchError, FetchResult


def given(url: str, error: FetchError | None = None, body: bytes = b"hello") -> FetchResult:
    """Return an answer with this body, or the failure."""
    return FetchResult(
        url=url,
        status=None if error else 200,
        error=error,
        detail="",
        request_head=b"",
        http_version="1.1",
        reason="OK",
        headers=((b"Content-Type", b"text/html"),),
        body=b"" if error else body,
        content=b"",
        content_type="text/html",
        mime="text/html",
        retry_after_s=None,
        address="192.0.2.9",
        started_at=datetime(2026, 1, 1, tzinfo=UTC),
        seconds=0.1,
        first_byte_at=0.0,
    )


class GivenAnswers:
    """A `Fetching` with one answer for all URLs."""

    def __init__(self) -> None:
        self.error: FetchError | None = None
        self.body = b"hello"
        self.asked: list[tuple[str, list[tuple[str, str]]]] = []
        """The URL and the headers of each request."""
        self.open = asyncio.Event()
        """Requests wait until it is set."""
        self.open.set()

    async def fetch(
        self,
        url: str,
        extra_headers: Sequence[tuple[str, str]] = (),
        may_send: Callable[[], bool] = lambda: True,
        *,
        memory_slots: MemorySlots | None = None,
        form: bytes = b"",
    ) -> FetchResult:
        await self.open.wait()
        if self.error is None and not may_send():
            return given(url, FetchError.NOT_SENT)
        self.asked.append((url, list(extra_headers)))
        return given(url, self.error, self.body)


class Connector:
    """A `Fetching` that only connects, to hosts that are up or down. No request may go out."""

    def __init__(self) -> None:
        self.up: set[str] = set()
        """URLs whose hosts are up."""
        self.connected: list[str] = []
        """The URLs of all tries."""

    async def start(self) -> None:
        """Do nothing."""

    async def fetch(
        self,
        url: str,
        extra_headers: Sequence[tuple[str, str]] = (),
        may_send: Callable[[], bool] = lambda: True,
        *,
        memory_slots: MemorySlots | None = None,
    ) -> FetchResult:
        await asyncio.sleep(0)
        assert not may_send(), "a test sends no request"
        self.connected.append(url)
        return given(url, FetchError.NOT_SENT if url in self.up else FetchError.CONNECT)
