"""A web of empty pages that answers each client at a rate of the client's own: peers of unequal speed (P1 Table 2)."""

from collections.abc import Mapping

from ..synthetic_web import SyntheticResponse
from ..trial import WEB_ADDRESS
from ..web_server import Head, WebServer
from .alike_web import HTML

ROBOTS_PATH = "/robots.txt"
BUSY_S = 0.25
"""A client that asks so soon after its last answer had work all the time: two round trips, and a new connection."""


class EmptyWeb:
    """Any host of .test has any page, without links."""

    def address(self, host: str) -> str | None:
        """Return the IP of a host name."""
        return WEB_ADDRESS if host.endswith(".test") else None

    def answer(self, host: str, target: str, asked: int) -> SyntheticResponse:
        """Return the answer to a GET of `target`."""
        return SyntheticResponse(404) if target == ROBOTS_PATH else SyntheticResponse(200, HTML, b"<p>")


class PacedServer(WebServer):
    """Answers a client that makes one request at a time as often as the client's rate allows.

    The time between an answer and the client's next request is part of the page's time. So a client that always has
    work gets exactly `rates` pages a second, whatever its round trips take. A robots.txt costs nothing.
    """

    def __init__(self, web: EmptyWeb, rates: Mapping[str, float]) -> None:
        """`rates` are the pages a second by the client's IP address."""
        super().__init__(web)
        self._rates = rates
        self._answers_at: dict[str, float] = {}
        """IP address -> the instant of the latest answer."""

    def take(self, now: float, head: Head, peer: str, form: bytes = b"") -> SyntheticResponse:
        """Log a request and return the answer to it, with the client's latency."""
        answer = super().take(now, head, peer, form)
        if head.target == ROBOTS_PATH:
            return answer
        last = self._answers_at.get(peer, 0.0)
        at = max(now, (last if now - last <= BUSY_S else now) + 1 / self._rates[peer])
        self._answers_at[peer] = at
        return answer._replace(latency_s=at - now)
