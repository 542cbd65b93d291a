"""`FetchResult` is the result of one fetch, for outputs, retries, politeness and link extraction.

Each request makes exactly one `FetchResult`, with at most one `FetchError`. A plain value: no I/O, no clock. `Fetcher`
makes it, `WarcWriter` stores it as received, and nothing changes it.
"""

from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from enum import StrEnum
from random import Random
from string import punctuation
from urllib.parse import quote

from kadcrawl.settings.limits import Limits


class FetchError(StrEnum):
    """The reason of a fetch without a whole answer. Users read the values in ``urls_failed``."""

    BAD_URL = "bad_url"
    """No request can be made of this URL, e.g. a host label of more than 63 characters."""
    ADDRESS_REFUSED = "address_refused"
    """The host is at an address that is neither public nor allowed."""
    DNS = "dns"
    CONNECT = "connect"
    """Refused, unreachable, or not connected in time."""
    TLS = "tls"
    """No TLS, or a certificate that is refused for another reason than these."""
    TLS_EXPIRED = "tls_expired"
    """The certificate has expired, or is not valid yet, by this machine's clock."""
    TLS_SELF_SIGNED = "tls_self_signed"
    TLS_NAME = "tls_name"
    """The certificate is for other hosts."""
    TLS_UNKNOWN_CA = "tls_unknown_ca"
    """The issuer of the certificate, or of one above it, is not among the authorities that this machine trusts."""
    DISCONNECTED = "disconnected"
    """Closed or reset before the head of the answer was complete."""
    PROTOCOL = "protocol"
    """Not HTTP, or broken HTTP."""
    HEADERS_TOO_LARGE = "headers_too_large"
    TIMEOUT = "timeout"
    """Not complete after ``fetch_timeout_s``."""
    IDLE = "idle"
    """Silent for ``idle_timeout_s`` in the middle of the answer."""
    TOO_SLOW = "too_slow"
    """Below ``rate_min_bytes_s`` on average after ``rate_grace_s``."""
    TRUNCATED = "truncated"
    """Closed or reset in the middle of the body, or a compressed stream without its end."""
    KEPT_WAITING = "kept_waiting"
    """The same, while the body waited here for a place, or soon after: its server may have given us up."""
    BODY_TOO_LARGE = "body_too_large"
    """Cut off by us at ``body_bytes_max``."""
    BAD_ENCODING = "bad_encoding"
    """The Content-Encoding was not offered, or the bytes are not in that coding."""
    INFLATED_TOO_LARGE = "inflated_too_large"
    """More than ``inflated_bytes_max`` after decompression, or more brotli than is decompressed."""
    NO_MEMORY = "no_memory"
    """Cut off by us at ``held_bytes_max``, as this machine has no room for the rest (--memory)."""
    INFLATED_NO_MEMORY = "inflated_no_memory"
    """More than ``held_bytes_max`` after decompression."""
    NO_SOCKET = "no_socket"
    """This machine is out of file descriptors, socket buffers or memory. Never in ``urls_failed``."""
    NOT_SENT = "not_sent"
    """This peer called the fetch off before the request went out. Never in ``urls_failed``."""
    NO_PROXY = "no_proxy"
    """The job has proxies, and none is alive. Never in ``urls_failed``."""
    VERIFYING = "verifying"
    """This URL failed by all live proxies, and they are being verified. Never in ``urls_failed``."""
    PROXY = "proxy"
    """The proxy itself did not do, and the site was not asked: another is to try. Never in ``urls_failed``."""
    UNSURE = "unsure"
    """A fetch through a proxy failed, perhaps by the site's fault, so another proxy is to try.

    The site may have been asked, so its clock runs. Never in ``urls_failed``.
    """
    NO_OPINION = "no_opinion"
    """This peer cannot connect, and no other peer had time to try. Never in ``urls_failed``."""

    @staticmethod
    def too_large(limits: Limits, bytes_max: int) -> "FetchError":
        """Return the error of a body with more bytes than `bytes_max`, which is a limit of the job or of the memory."""
        return FetchError.NO_MEMORY if 0 < limits.held_bytes_max <= bytes_max else FetchError.BODY_TOO_LARGE

    @staticmethod
    def inflated(limits: Limits) -> "FetchError":
        """Return the error of a body that is too large after decompression, by a limit of the job or of the memory."""
        by_memory = 0 < limits.held_bytes_max <= limits.inflated_bytes_max
        return FetchError.INFLATED_NO_MEMORY if by_memory else FetchError.INFLATED_TOO_LARGE

    @property
    def is_cut_off(self) -> bool:
        """True if the first part of the body is there."""
        return self in (FetchError.BODY_TOO_LARGE, FetchError.NO_MEMORY)


PASSING = frozenset(
    {
        FetchError.DNS,
        FetchError.CONNECT,
        FetchError.DISCONNECTED,
        FetchError.TIMEOUT,
        FetchError.IDLE,
        FetchError.TOO_SLOW,
        FetchError.TRUNCATED,
        FetchError.KEPT_WAITING,
    }
)
"""Failures that may be gone at the next try."""
TLS_ERRORS = frozenset(
    {
        FetchError.TLS,
        FetchError.TLS_EXPIRED,
        FetchError.TLS_SELF_SIGNED,
        FetchError.TLS_NAME,
        FetchError.TLS_UNKNOWN_CA,
    }
)
"""Failures of TLS. What holds for one of them holds for all."""
UNREACHED = TLS_ERRORS | {
    FetchError.ADDRESS_REFUSED,
    FetchError.DNS,
    FetchError.CONNECT,
    FetchError.DISCONNECTED,
    FetchError.TIMEOUT,
    FetchError.IDLE,
}
"""Failures that, without a status, may be those of this machine or its network alone."""
BY_PEER = TLS_ERRORS | {FetchError.ADDRESS_REFUSED, FetchError.DNS, FetchError.CONNECT}
"""Failures to connect, which may lie with this peer. No request has gone out, so another peer may make it at once."""
UNASKED = frozenset(
    {
        FetchError.NO_SOCKET,
        FetchError.NOT_SENT,
        FetchError.NO_PROXY,
        FetchError.VERIFYING,
        FetchError.PROXY,
        FetchError.NO_OPINION,
    }
)
"""Failures that say nothing about the site, which was not asked: the URL is crawled later as if nothing had been."""
SLOW = frozenset({FetchError.TIMEOUT, FetchError.IDLE, FetchError.TOO_SLOW})
"""Failures for which a request is waited for long."""
HTML = frozenset({"text/html", "application/xhtml+xml", ""})
"""Media types whose links are followed. A page without a type is parsed."""
REFUSALS = frozenset({429, 503})
"""Statuses by which a site says that it has too many requests: Too Many Requests and Service Unavailable."""
REDIRECTS = frozenset({301, 302, 303, 307, 308})


@dataclass(frozen=True, slots=True, kw_only=True)
class RelayedAnswer:
    """An answer, or a failure, that another peer had to a request for this peer."""

    status: int | None
    error: FetchError | None
    detail: str
    http_version: str
    reason: str
    headers: tuple[tuple[bytes, bytes], ...]
    body: bytes
    address: str
    via: str
    """The first 16 hex digits of that peer's ID."""
    proven: bool = False
    """The peer could not connect, although its network works."""


@dataclass(slots=True, kw_only=True)
class FetchResult:
    """The answer to one request, or why there is none.

    Nothing changes a result. It is not frozen, as so many fields of a frozen class take microseconds of each page.
    """

    url: str
    status: int | None
    """The status code, or None without a complete head. Then headers, body and content are empty."""
    error: FetchError | None
    detail: str
    """A few words about the error for the log and the page log, or an empty text."""
    request_head: bytes
    """The request as sent: line, headers, blank line."""
    http_version: str
    """"1.0" or "1.1"."""
    reason: str
    """The reason phrase. Bytes that are not UTF-8 are surrogate escapes."""
    headers: tuple[tuple[bytes, bytes], ...]
    """Headers as received, with their order, case and repeats, but without the space around values."""
    body: bytes
    """The body as received, without chunked framing, as WARC stores it. Incomplete when an error says so."""
    content: bytes
    """The body after Content-Encoding, the same object if there was none. Empty if there is a failure, except
    that an uncompressed body cut off by us is here as far as it came."""
    content_type: str
    """The header's value, or empty."""
    mime: str
    """The media type in lower case, e.g. ``text/html``, or empty."""
    retry_after_s: float | None
    """Seconds that the server asked the client to wait, at most ``retry_after_max_s``, or None."""
    address: str
    """The IP address that answered.

    Empty when there was no answer, when the connection was reset at once, or when a proxy passed the answer on.
    """
    started_at: datetime
    """The begin of the request, UTC."""
    seconds: float
    """Seconds from the begin to the last byte."""
    first_byte_at: float
    """Loop time at which the head of the answer was there: politeness counts from it; else the end."""
    via: str = ""
    """The first 16 hex digits of the ID of the peer that made the request for this peer, or empty."""
    tried_by: int = 1
    """Peers that have tried to connect, this peer included."""
    doubtful: bool = False
    """No peer that tried has reached any site lately, so all their networks may fail."""

    def header(self, name: bytes) -> str | None:
        """Return the values of a header, joined by commas, or None without any. `name` is in lower case."""
        size = len(name)
        values = [value for key, value in self.headers if len(key) == size and key.lower() == name]
        return b", ".join(values).decode("utf-8", "replace") if values else None

    @property
    def location(self) -> str | None:
        """The target of a redirect, as sent, perhaps relative. None for an answer that is no redirect."""
        if self.status not in REDIRECTS:
            return None
        for key, value in self.headers:
            if key.lower() == b"location":
                try:
                    return value.decode()
                except UnicodeDecodeError:
                    return quote(value, safe=punctuation)
        return None

    @property
    def why_failed(self) -> str | None:
        """The reason that the URL counts as failed: the error, or the status from 400 up. None for a success."""
        if self.error is not None:
            return str(self.error)
        return f"http_{self.status}" if self.status is not None and self.status >= 400 else None

    @property
    def answered(self) -> bool | None:
        """True if the site answered in time, with success or not. None if a proxy may be at fault instead."""
        if self.error is FetchError.UNSURE:
            return None
        return self.status is not None and self.error not in SLOW

    @property
    def hold_s(self) -> float:
        """Seconds for which the site asks to be left alone, as it is in trouble."""
        return self.retry_after_s if self.retry_after_s and self.passing else 0.0

    @property
    def refuses(self) -> bool:
        """True if the site refuses requests for now: an answer 429 or 503."""
        return self.status in REFUSALS

    @property
    def accepts(self) -> bool:
        """True for an answer that is neither a refusal nor a failure of the server."""
        return self.status is not None and self.status < 500 and not self.refuses

    @property
    def passing(self) -> bool:
        """True if another try may succeed: after time-outs, resets, 429 and 5xx."""
        return (
            self.error in PASSING
            or self.doubtful
            or (self.status is not None and (self.status == 429 or self.status >= 500))
        )


def not_asked(url: str, error: FetchError, started_at: float, first_byte_at: float) -> FetchResult:
    """Return the result of no request. `started_at` is a second of the world's clock, `first_byte_at` of the loop."""
    return FetchResult(
        url=url,
        status=None,
        error=error,
        detail="",
        request_head=b"",
        http_version="",
        reason="",
        headers=(),
        body=b"",
        content=b"",
        content_type="",
        mime="",
        retry_after_s=None,
        address="",
        started_at=datetime.fromtimestamp(started_at, UTC),
        seconds=0.0,
        first_byte_at=first_byte_at,
    )


def retry_after_s(value: str, now: datetime, most_s: float) -> float | None:
    """Return the seconds of a Retry-After value (RFC 9110 10.2.3), at most `most_s`, or None if it is malformed."""
    if not value:
        return None
    if value.isascii() and value.isdigit():
        return min(float(value[:12]), most_s)
    try:
        until = parsedate_to_datetime(value[:64])
        until = until if until.tzinfo else until.replace(tzinfo=UTC)
        return min(max((until - now).total_seconds(), 0.0), most_s)
    except (ValueError, TypeError, IndexError, OverflowError):
        return None


def retry_wait_s(tries: int, result: FetchResult, limits: Limits, random: Random) -> float:
    """Return the seconds before the next try: exponential backoff with jitter, or the server's Retry-After."""
    backoff_s = min(limits.retry_base_s * 2.0**tries, limits.retry_after_max_s)
    return max(backoff_s * random.uniform(0.75, 1.25), result.retry_after_s or 0.0)
