"""The key of one peer: an Ed25519 pair. The hash of its public half is the peer's node ID.

So nobody can take another peer's ID. An ID in a chosen part of the key space takes as many tries as that part is small.
The same pair serves X25519, by the map between the two curves (RFC 7748, 4.1), as with libsodium.

Tests: tests/members/test_keys.py
"""

from functools import cached_property
from hashlib import sha256, sha512
from secrets import token_bytes

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey

from kadcrawl.errors import ConfigError
from kadcrawl.keys import ID_BYTES, NodeId

SEED_BYTES = 32
PUBLIC_BYTES = 32
_PRIME = 2**255 - 19


class PeerKey:
    """The key pair of one peer."""

    def __init__(self, seed: bytes) -> None:
        """Raises ConfigError if `seed`, the private half as stored, is not 32 bytes."""
        if len(seed) != SEED_BYTES:
            raise ConfigError(f"a peer's key has {SEED_BYTES} bytes, not {len(seed)}")
        self.seed = seed
        self.signing = Ed25519PrivateKey.from_private_bytes(seed)
        self.public = self.signing.public_key().public_bytes_raw()
        self.id = id_of(self.public)

    def __repr__(self) -> str:
        return f"<PeerKey of {self.id.hex()[:8]}>"

    @classmethod
    def generate(cls) -> "PeerKey":
        """Draw a new key from the system's entropy."""
        return cls(token_bytes(SEED_BYTES))

    @property
    def node_id(self) -> NodeId:
        return NodeId(int.from_bytes(self.id, "big"))

    def shared_with(self, public: bytes) -> bytes:
        """Return the 32 bytes that only this peer and the holder of `public` can compute.

        Raises ValueError if `public` is no key such a secret can be shared with.
        """
        return self._agreement.exchange(X25519PublicKey.from_public_bytes(_for_agreement(public)))

    @cached_property
    def _agreement(self) -> X25519PrivateKey:
        return X25519PrivateKey.from_private_bytes(sha512(self.seed).digest()[:32])


def id_of(public: bytes) -> bytes:
    """Return the node ID of the peer with this public key."""
    return sha256(public).digest()[:ID_BYTES]


def _for_agreement(public: bytes) -> bytes:
    """Return the Montgomery u of an Edwards y. Raises ValueError for the one point without a u."""
    y = int.from_bytes(public, "little") & ((1 << 255) - 1)
    return ((1 + y) * pow(1 - y, -1, _PRIME) % _PRIME).to_bytes(32, "little")
