"""`RequestGuard` decides which requests to the dashboard a page of another site may have made, and refuses them.

A request must name this machine as its host, so that no name of somebody else leads here (DNS rebinding). A request
that changes something must come from a page of the dashboard itself, by its Origin. What has data is asked by pages of
the dashboard alone, as far as the browser tells (Sec-Fetch-Site). A decision.
"""

from collections.abc import Collection
from http import HTTPStatus
from typing import NamedTuple

from kadcrawl.system.host_header import is_safe, named_host

OWN_REQUESTS = frozenset({"same-origin", "none"})
"""Values of Sec-Fetch-Site of a request that no page of another site has made."""


class GuardRefusal(NamedTuple):
    """The reason for which a request is refused."""

    status: HTTPStatus
    why: str


class AskedBy(NamedTuple):
    """The headers that tell where a request comes from."""

    host: str | None
    origin: str | None = None
    fetch_site: str | None = None


class RequestGuard:
    """The rules for requests to one dashboard."""

    def __init__(self, names: Collection[str] = ()) -> None:
        """`names` are the names of this machine by which others may reach it."""
        self._names = {name.lower() for name in names}

    def why_refused(self, method: str, asked_by: AskedBy, *, has_data: bool) -> GuardRefusal | None:
        """Return why a request is refused, or None if it is not. `has_data` says that the answer tells of the crawl."""
        host = asked_by.host
        if host is None or not (is_safe(host) or named_host(host) in self._names):
            return GuardRefusal(
                HTTPStatus.FORBIDDEN,
                "the dashboard answers requests to an IP address, localhost or the name of its machine, not to other "
                "names",
            )
        if method not in ("GET", "HEAD", "POST"):
            return GuardRefusal(HTTPStatus.METHOD_NOT_ALLOWED, "only GET and POST are answered here")
        if method == "POST" and asked_by.origin != f"http://{host}":
            return GuardRefusal(HTTPStatus.FORBIDDEN, "only the pages of the dashboard itself may ask this")
        if has_data and asked_by.fetch_site is not None and asked_by.fetch_site not in OWN_REQUESTS:
            return GuardRefusal(HTTPStatus.FORBIDDEN, "a page of another site has asked this")
        return None
