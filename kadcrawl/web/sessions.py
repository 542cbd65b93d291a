"""Sessions of viewers: a cookie that nobody without the swarm's key can make, and a header that orders carry.

A session is a random number and the time of its begin, with an HMAC by a key that comes from the swarm's key. So the
peer keeps no list of sessions, and another key of the swarm ends all of them at once. In a swarm without a key the key
of the sessions is of this process. A page of another site cannot read the header, so it cannot give orders, even if a
browser sent the cookie along. A decision: times and chance are given.
"""

import hmac
from collections.abc import Callable

SESSION_S = 12 * 3600
"""Life of a session."""
NONCE_BYTES = 16
COOKIE_CHARS_MAX = 200
"""Characters of a cookie. Those of the dashboard are shorter."""
_TIME_BYTES = 8


class Sessions:
    """The sessions that one peer takes."""

    def __init__(self, key: Callable[[], bytes]) -> None:
        """`key` returns the key of the sessions at this moment."""
        self._key = key

    def begin(self, now: float, nonce: bytes) -> str:
        """Return the cookie of a new session. `nonce` has `NONCE_BYTES` random bytes."""
        stated = nonce + int(now).to_bytes(_TIME_BYTES, "big")
        return f"{stated.hex()}.{self._mac(b'session', stated)}"

    def is_good(self, cookie: str | None, now: float) -> bool:
        """Return whether a cookie is that of a session."""
        if cookie is None or len(cookie) > COOKIE_CHARS_MAX or not cookie.isascii():
            return False
        said, _, mac = cookie.partition(".")
        try:
            stated = bytes.fromhex(said)
        except ValueError:
            return False
        if len(stated) != NONCE_BYTES + _TIME_BYTES or not hmac.compare_digest(mac, self._mac(b"session", stated)):
            return False
        begun = int.from_bytes(stated[NONCE_BYTES:], "big")
        return begun - 1 <= now < begun + SESSION_S

    def header(self, cookie: str) -> str:
        """Return the text that each order of this session carries in a header."""
        return self._mac(b"header", cookie.encode())

    def is_header(self, cookie: str, header: str | None) -> bool:
        """Return whether a header is that of this session."""
        return header is not None and header.isascii() and hmac.compare_digest(header, self.header(cookie))

    def _mac(self, purpose: bytes, stated: bytes) -> str:
        return hmac.new(self._key(), purpose + b"\0" + stated, "sha256").hexdigest()
