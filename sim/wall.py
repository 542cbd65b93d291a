"""Sites that show their pages only to a visitor who brings a cookie of theirs, in the simulated web. No I/O.

A wall gives a cookie to a visitor without one and sends the visitor back to the same page, or sends the visitor to a
form that gives the cookie to whoever knows the password. Each cookie names its host, and no two are the same. Shares no
code with kadcrawl.
"""

from .synthetic_web import SyntheticResponse

LOGIN_PATH = "/login"
FORM = b"user=crawler&password=opens"
"""The body that the form of each site takes."""
COOKIE = "sim-session"


class Wall:
    """The wall around one host."""

    def __init__(self, host: str, *, has_form: bool) -> None:
        self._host = host
        self._has_form = has_form
        self._given = 0
        """Cookies given so far."""

    def answer(self, target: str, cookie: str) -> SyntheticResponse | None:
        """Return the answer to a GET with this header Cookie, or None if the visitor may pass."""
        if target == "/robots.txt" or self._knows(cookie):
            return None
        if self._has_form:
            return SyntheticResponse(302, (("Location", LOGIN_PATH),))
        return self._give(302, target)

    def log_in(self, form: bytes) -> SyntheticResponse:
        """Return the answer to the form."""
        return self._give(303, "/") if self._has_form and form == FORM else SyntheticResponse(403)

    def _knows(self, cookie: str) -> bool:
        name, _, value = cookie.partition("=")
        host, _, number = value.rpartition("/")
        return (name, host) == (COOKIE, self._host) and number.isdecimal() and 0 < int(number) <= self._given

    def _give(self, status: int, location: str) -> SyntheticResponse:
        self._given += 1
        cookie = f"{COOKIE}={self._host}/{self._given}"
        return SyntheticResponse(status, (("Location", location), ("Set-Cookie", f"{cookie}; Path=/")))
