"""One-time tokens: a command that may read the peer's directory makes one, and a browser buys a session with it.

The command and the peer share a secret, in a file of the directory that its owner alone can read. A token has a random
number, the end of its life, and an HMAC over both. The peer takes each once. A decision: times and chance are given.
"""

import hmac
from base64 import urlsafe_b64decode, urlsafe_b64encode
from binascii import Error as Base64Error

TOKEN_S = 300
"""Life of a token."""
CLOCKS_APART_S = 60
"""Seconds that the clocks of the command and of the peer may differ."""
NONCE_BYTES = 16
SECRET_BYTES = 32
TOKEN_CHARS_MAX = 200
"""Characters of a token. Those of the dashboard are shorter."""
_TIME_BYTES = 8
_MAC_BYTES = 32


def make_token(secret: bytes, now: float, nonce: bytes) -> str:
    """Return a token for this secret. `nonce` has `NONCE_BYTES` random bytes."""
    stated = nonce + (int(now) + TOKEN_S).to_bytes(_TIME_BYTES, "big")
    return urlsafe_b64encode(stated + _mac(secret, stated)).decode()


class OneTimeTokens:
    """The tokens that one peer takes."""

    def __init__(self, secret: bytes) -> None:
        self._secret = secret
        self._spent: dict[bytes, int] = {}
        """The tokens that were taken and would still be good -> the end of their life."""

    def spend(self, token: str, now: float) -> bool:
        """Return whether a token is good, and take it, so that it is good no more."""
        self._spent = {nonce: end for nonce, end in self._spent.items() if end > now}
        if len(token) > TOKEN_CHARS_MAX or not token.isascii():
            return False
        try:
            packed = urlsafe_b64decode(token)
        except (Base64Error, ValueError):
            return False
        stated, mac = packed[:-_MAC_BYTES], packed[-_MAC_BYTES:]
        if len(stated) != NONCE_BYTES + _TIME_BYTES or not hmac.compare_digest(mac, _mac(self._secret, stated)):
            return False
        nonce, end = stated[:NONCE_BYTES], int.from_bytes(stated[NONCE_BYTES:], "big")
        if not now < end <= now + TOKEN_S + CLOCKS_APART_S or nonce in self._spent:
            return False
        self._spent[nonce] = end
        return True


def _mac(secret: bytes, stated: bytes) -> bytes:
    return hmac.digest(secret, b"kadcrawl dashboard token" + stated, "sha256")
