"""A metered connection stops reading when an answer takes more bytes than any honest answer.

aiohttp does not count these bytes. The sizes of headers and body are bounded where they are read. But a server can also
send interim answers (1xx) and empty lines without end before the answer, chunk extensions and one-byte chunks around a
body, and answers without a request, which would stay in memory for the next request. One count of the bytes since the
request bounds all of these. Until the answer is there, the bytes go through the head filter (head_filter.py).
"""

from asyncio import AbstractEventLoop
from functools import partial
from typing import Any, Final, cast

import aiohttp
from aiohttp.client_proto import ResponseHandler
from aiohttp.http_exceptions import HttpProcessingError

from kadcrawl.crawl.fetch.errors import Broken
from kadcrawl.crawl.fetch.head_filter import HeadFilter
from kadcrawl.crawl.fetch.result import FetchError
from kadcrawl.settings.limits import Limits

FRAMING_MAX: Final = 2
"""Bytes that may come for each byte that a body may have: twice the largest body is enough for any small one, however
it is chunked."""


class MeteredConnection(ResponseHandler):
    """A connection that reads one answer per request, as aiohttp does, and breaks off an answer beyond `Limits`."""

    def __init__(self, loop: AbstractEventLoop, limits: Limits) -> None:
        super().__init__(loop)
        self._limits = limits
        self._received = 0
        """Bytes since the request, with the bytes that follow the end of the answer in the same piece."""
        self._answered = False
        """The head of the answer has come."""
        self._head_filter = HeadFilter()
        self.has_broken_framing = False
        """The body ends where its framing is broken."""

    @property
    def lengths(self) -> list[tuple[bytes, bytes]]:
        """The Content-Lengths of the answer as received, if the parser was given fewer."""
        return self._head_filter.lengths

    def set_response_params(self, **options: Any) -> None:
        """Begin to read the answer to another request."""
        self._received, self._answered = 0, False
        self._head_filter = HeadFilter()
        super().set_response_params(**options)

    def data_received(self, data: bytes) -> None:
        # What came before this piece was not enough; whether this one is cannot be known yet.
        if not self._answered and self._received > self._limits.header_bytes_max:
            self._break_off(FetchError.HEADERS_TOO_LARGE, f"no answer in {self._received} bytes")
        elif self._received > self._limits.header_bytes_max + FRAMING_MAX * self._limits.body_bytes_max:
            self._break_off(FetchError.PROTOCOL, f"more framing than content in {self._received} bytes")
        else:
            self._received += len(data)
            if not data:
                super().data_received(data)  # After a pause: the parser goes on with what it has.
            while data and not self._answered and self.exception() is None:
                piece, data = self._head_filter.next(data)
                if piece:
                    super().data_received(piece)
            if data:
                super().data_received(data)

    def feed_data(self, data: Any, size: int = 0) -> None:
        """Take the head of an answer, unless an answer is there already: nothing would ever read the second."""
        if self._answered:
            self.force_close()
            if self.transport is not None:
                self.transport.close()
            return
        self._answered = not 100 <= data[0].code < 200
        super().feed_data(data, size)

    def set_exception(self, exc: BaseException, *cause: BaseException) -> None:
        """End the answer by an exception. aiohttp would let the reader of a body with broken framing wait."""
        super().set_exception(exc, *cause)
        if isinstance(exc, HttpProcessingError) and self._payload is not None and not self._payload.is_eof():
            self.has_broken_framing = True
            self._payload.feed_eof()  # The reader still gets what came before.

    def _break_off(self, fetch_error: FetchError, detail: str) -> None:
        error = Broken(fetch_error, detail)
        if self._payload is not None:
            self._payload.set_exception(error)
        self.set_exception(error)
        # Closing would find the body incomplete, which is another failure.
        self._parser = self._payload = None
        if self.transport is not None:
            self.transport.abort()


def meter(connector: aiohttp.TCPConnector, limits: Limits) -> None:
    """Let a connector that has made no connection yet make only metered connections."""
    connector._factory = cast(partial[ResponseHandler], partial(MeteredConnection, loop=connector._loop, limits=limits))
