"""The rules for a request to the metrics: its method, and the host that it names.

A page in a browser may not read the metrics of a machine by a name of its own that leads to 127.0.0.1 (DNS rebinding).
So on a loopback address a request must name an IP address or `localhost`.
"""

import ipaddress
from http import HTTPStatus
from typing import NamedTuple


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
    if is_loopback and host is not None and not _is_safe(host):
        return RequestRefusal(
            HTTPStatus.FORBIDDEN, "this address answers requests to an IP address or localhost, not to other names"
        )
    return None


def is_loopback(host: str) -> bool:
    """Return whether only this machine reaches a listener at an IP address."""
    return ipaddress.ip_address(host).is_loopback


def _is_safe(host: str) -> bool:
    """Return whether a Host header names an IP address or this machine."""
    name = host.strip()
    name = name[1:].partition("]")[0] if name.startswith("[") else name.partition(":")[0]
    if name.lower().rstrip(".") == "localhost":
        return True
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
