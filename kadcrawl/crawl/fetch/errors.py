"""Exceptions of a fetch are translated into `FetchError`. Only this module reads aiohttp's exceptions.

`Fetcher` calls this module with the exception that ended a fetch. An unforeseen exception is logged and counts as the
server's fault.

Tests: tests/crawl/fetch/test_fetcher.py
"""

import errno
import logging
import socket
from typing import Final

import aiohttp
from aiohttp.http_exceptions import LineTooLong

from kadcrawl.crawl.fetch.address_guard import AddressRefused
from kadcrawl.crawl.fetch.result import FetchError

DETAIL_CHARS_MAX: Final = 200
"""Limit on the characters about an error in a page line."""
NO_SOCKET_ERRNOS: Final = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})
"""Error numbers of a system that has no socket to give."""

_BY_VERIFY_CODE: Final = {
    **dict.fromkeys((9, 10), FetchError.TLS_EXPIRED),
    18: FetchError.TLS_SELF_SIGNED,
    **dict.fromkeys((2, 19, 20, 21), FetchError.TLS_UNKNOWN_CA),
    **dict.fromkeys((62, 64), FetchError.TLS_NAME),
}
"""The failure by the code of OpenSSL (x509_vfy.h): not yet valid, expired; self-signed; no issuer found, a root that is
not trusted; another host name, another IP address."""

_log = logging.getLogger(__name__)


class Broken(Exception):
    """The answer is over for a reason found by us."""

    def __init__(self, error: FetchError, detail: str) -> None:
        super().__init__(detail)
        self.error = error


def classified(error: Exception, url: str) -> tuple[FetchError, str]:
    """Return the failure an exception stands for, and a few words on it."""
    detail = str(error)
    match error:
        case Broken():
            failure = error.error
        case aiohttp.ClientConnectorError() if isinstance(error.os_error, AddressRefused):
            failure, detail = FetchError.ADDRESS_REFUSED, f"{error.os_error.address} is not a public address"
        case aiohttp.ClientConnectorError() if _without_socket(error.os_error):
            failure = FetchError.NO_SOCKET
        case aiohttp.ClientConnectorDNSError():
            failure = FetchError.BAD_URL if _is_misformed(error.os_error.__cause__) else FetchError.DNS
        case aiohttp.ClientConnectorCertificateError():
            failure = _BY_VERIFY_CODE.get(getattr(error.certificate_error, "verify_code", 0), FetchError.TLS)
        case aiohttp.ClientSSLError():
            failure = FetchError.TLS
        case aiohttp.ClientConnectorError() | aiohttp.ConnectionTimeoutError():
            failure = FetchError.CONNECT
        case aiohttp.ClientResponseError():
            failure, detail = _malformed(error), error.message
        case aiohttp.ClientPayloadError():
            failure = FetchError.TRUNCATED
        case aiohttp.ClientConnectionError():
            failure = FetchError.DISCONNECTED
        case ValueError() | aiohttp.NonHttpUrlClientError():
            failure = FetchError.BAD_URL
        case _:
            _log.warning("fetch.unforeseen url=%s error=%r", url, error)
            failure = FetchError.PROTOCOL
    return failure, " ".join(detail[:DETAIL_CHARS_MAX].split())


def _is_misformed(cause: BaseException | None) -> bool:
    """Say whether the resolver refused a name as none."""
    from aiodns.error import ARES_EBADNAME, DNSError  # Not at the top: loaded with the first name (late_resolver.py).

    return isinstance(cause, DNSError) and cause.args[0] == ARES_EBADNAME


def _without_socket(error: OSError) -> bool:
    """Say whether a connection failed because this machine had no socket to give.

    Without a number it stands for several causes, or for c-ares, which only says that it reaches no name server.
    """
    if error.errno is not None:
        return error.errno in NO_SOCKET_ERRNOS
    try:
        socket.socket(type=socket.SOCK_DGRAM).close()
    except OSError:
        return True
    return False


def _malformed(error: BaseException) -> FetchError:
    """Return the error for a malformed head, and tell a head that is too large from a broken head.

    aiohttp keeps the parser's own words as the cause.
    """
    cause = error.__cause__
    while cause is not None:
        if isinstance(cause, LineTooLong) or "Too many headers" in str(cause):
            return FetchError.HEADERS_TOO_LARGE
        cause = cause.__cause__
    return FetchError.PROTOCOL
