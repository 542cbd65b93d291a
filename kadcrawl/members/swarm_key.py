"""The key of a swarm: 32 random bytes that every member has and nobody else. Only keys derived from it are used.

As text it is 64 hexadecimal digits. It is read from a file or the environment, never from a command line, which every
user of a machine can see.

Tests: tests/members/test_keys.py
"""

import secrets
from functools import cached_property

from kadcrawl.errors import ConfigError

KEY_BYTES = 32
LABEL_BYTES = 4
_SALT = b"kadcrawl-1"


class SwarmKey:
    """The key of one swarm."""

    def __init__(self, secret: bytes, source: str = "") -> None:
        """The name `source` says where the key was read, for errors. Raises ConfigError if `secret` is not 32 bytes."""
        if len(secret) != KEY_BYTES:
            raise ConfigError(f"a swarm's key has {KEY_BYTES} bytes, not {len(secret)}: kadcrawl keygen makes one")
        self._secret = secret
        self.source = source

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SwarmKey) and secrets.compare_digest(self._secret, other._secret)

    def __hash__(self) -> int:
        return hash(self.label)

    def __repr__(self) -> str:
        return f"<SwarmKey {self.name}>"

    @classmethod
    def generate(cls) -> "SwarmKey":
        """Draw a new key from the system's entropy."""
        return cls(secrets.token_bytes(KEY_BYTES))

    @classmethod
    def from_text(cls, text: str, source: str = "") -> "SwarmKey":
        """Return the key in a text of 64 hexadecimal digits.

        Raises ConfigError for any other text, without repeating it.
        """
        digits = text.strip()
        try:
            if len(digits) != 2 * KEY_BYTES or not digits.isascii():
                raise ValueError
            return cls(bytes.fromhex(digits), source)
        except ValueError:
            raise ConfigError(
                f"that is no swarm's key, which is {2 * KEY_BYTES} hexadecimal digits: kadcrawl keygen makes one"
            ) from None

    @property
    def description(self) -> str:
        """A description for a person who may have several keys."""
        return f"the key in {self.source}" if self.source else f"the key {self.name}"

    @property
    def text(self) -> str:
        """The key as 64 hexadecimal digits, which must never be shown."""
        return self._secret.hex()

    def derive(self, purpose: bytes, length: int = 32) -> bytes:
        """Return `length` bytes for one purpose, which reveal nothing of the key or of other purposes (RFC 5869)."""
        # Imported here, as most commands only pass a key on.
        from cryptography.hazmat.primitives.hashes import SHA256
        from cryptography.hazmat.primitives.kdf.hkdf import HKDF

        return HKDF(SHA256(), length, _SALT, purpose).derive(self._secret)

    @cached_property
    def label(self) -> bytes:
        """The first bytes of each datagram of the swarm. They are no secret: they reject strays cheaply, and tell two
        keys apart.
        """
        return self.derive(b"label", LABEL_BYTES)

    @cached_property
    def name(self) -> str:
        """The public name of the key, for connections (the server name of TLS) and for logs."""
        return "k" + self.derive(b"name", 8).hex()
