"""The rules for a request to the metrics: its method, and the host that it names (system/host_header.py)."""

from http import HTTPStatus
from typing import NamedTuple

from kadcrawl.system.host_header import is_safe


class RequestRefusal(NamedTuple):
    """The reason for which a request gets no answer."""

    status: HTTPStatus
    why: str


def refusal(method: str, host: str | None, *, is_loopback: bool) -> RequestRefusal | None:
    """Return why a request with this method and Host header is refused, or None if it is not.

    `is_loopback` says that only this machine reaches the listener.
    """
    if method not in ("GET", "HEAD"):
        return RequestRefusal(HTTPStatus.METHOD_NOT_ALLOWED, "only GET and HEAD are answered here")
    if is_loopback and host is not None and not is_safe(host):
        return RequestRefusal(
            HTTPStatus.FORBIDDEN, "this address answers requests to an IP address or localhost, not to other names"
        )
    return None
