"""`PartialAnswer` is the part of an answer that has arrived so far, from a site or from a peer that asked the site.

Tests: tests/crawl/fetch/test_fetcher.py
"""

from dataclasses import dataclass, field
from itertools import chain

import aiohttp
from multidict import CIMultiDict, MultiMapping

from kadcrawl.crawl.fetch.direct_request import DirectResponse
from kadcrawl.crawl.fetch.errors import Broken
from kadcrawl.crawl.fetch.result import FetchError, RelayedAnswer


@dataclass(slots=True)
class PartialAnswer:
    """The part of an answer that has arrived so far."""

    request_head: bytes = b""
    status: int | None = None
    http_version: str = ""
    reason: str = ""
    headers: tuple[tuple[bytes, bytes], ...] = ()
    content_type: str = ""
    content_encoding: str = ""
    retry_after: str = ""
    address: str = ""
    head_at: float | None = None
    malformed: bool = False
    is_large: bool = False
    """True once the answer has a slot for a large body."""
    chunks: list[bytes] = field(default_factory=list)

    def take_head(
        self, response: aiohttp.ClientResponse | DirectResponse, address: str, now: float, header_bytes_max: int
    ) -> None:
        """Take the head of a response from this IP address. Raises Broken for a head that is none."""
        headers = response.raw_headers
        header_bytes = sum(map(len, chain.from_iterable(headers))) + 4 * len(headers)
        if header_bytes > header_bytes_max:
            raise Broken(FetchError.HEADERS_TOO_LARGE, f"{header_bytes} bytes of headers")
        if response.status < 200:
            # aiohttp passes over interim answers, but for 101, and takes 000 for a status.
            what = "switched to a protocol nobody asked for" if response.status == 101 else "no status of HTTP"
            raise Broken(FetchError.PROTOCOL, f"{response.status:03}: {what}")
        assert response.version is not None, "a parsed head has a version"
        self.http_version = f"{response.version.major}.{response.version.minor}"
        self.status = response.status
        self.reason = response.reason or ""
        self.headers = headers
        self.address = address
        self.head_at = now
        fields = response.headers
        self._take_fields(fields)

    def take_relayed(self, answer: RelayedAnswer, header_bytes_max: int) -> None:
        """Take the head of an answer that another peer has received. Raises Broken for headers beyond the limit."""
        header_bytes = sum(len(name) + len(value) + 4 for name, value in answer.headers)
        if header_bytes > header_bytes_max:
            raise Broken(FetchError.HEADERS_TOO_LARGE, f"{header_bytes} bytes of headers")
        self.status, self.http_version, self.reason = answer.status, answer.http_version, answer.reason
        self.headers, self.address = answer.headers, answer.address
        self._take_fields(
            CIMultiDict(
                (name.decode("utf-8", "replace"), value.decode("utf-8", "replace")) for name, value in answer.headers
            )
        )

    def _take_fields(self, fields: MultiMapping[str]) -> None:
        self.content_type = clean(fields.getall("Content-Type", [""])[-1])  # As browsers do: the last one counts.
        self.content_encoding = clean(",".join(fields.getall("Content-Encoding", ())))
        self.retry_after = fields.get("Retry-After", "")


def clean(text: str) -> str:
    """Return the text without surrogates: aiohttp keeps bytes that are not UTF-8 as such, and no JSON takes them."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()
