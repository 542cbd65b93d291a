"""Sealed datagrams: only members can read them, and only members can have sent them. No socket, no clock.

    label 4 | kind 1 | sender's public key 32 | number 8 | check 16 | plaintext, encrypted | tag 16

The *label* and the *check*, a keyed hash of all before it, reject non-members for less than a microsecond. The
plaintext is encrypted with ChaCha20-Poly1305 (RFC 8439) under a key derived from the swarm's key and the secret that
sender and receiver share by their own keys (RFC 7748), so it proves its sender. With a peer of unknown public key no
secret can be shared: a *first-contact* datagram is encrypted under a key of all members, and proves only that a member
sent it, not which. Its answer proves its sender. Numbers of a sender never repeat, so no nonce does; a receiver accepts
each number once.
"""

from hashlib import blake2s
from hmac import compare_digest
from typing import Final

import msgspec
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305

from kadcrawl.keys import ID_BYTES
from kadcrawl.members.peer_key import PUBLIC_BYTES, PeerKey, id_of
from kadcrawl.members.replay_window import ReplayWindow
from kadcrawl.members.swarm_key import LABEL_BYTES, SwarmKey

PAIRED: Final = 1
FIRST_CONTACT: Final = 2
"""The kind under the key of all members, to a peer whose ID is known."""
GREETING: Final = 3
"""The kind under the key of all members, to any peer at an address."""
ANYBODY = bytes(ID_BYTES)
_PAIRED, _FIRST_CONTACT, _GREETING = (bytes((kind,)) for kind in (PAIRED, FIRST_CONTACT, GREETING))
_TO_ALL = b"\0\0\0\2"
"""The first bytes of the nonces of first-contact datagrams."""
PUBLIC_AT = LABEL_BYTES + 1
NUMBER_AT = PUBLIC_AT + PUBLIC_BYTES
HEADER_BYTES = NUMBER_AT + 8
CHECK_BYTES = 16
BODY_AT = HEADER_BYTES + CHECK_BYTES
SEAL_BYTES = BODY_AT + 16
"""Bytes that sealing adds to a plaintext."""
CORRESPONDENTS_MAX = 20_000
"""Peers with kept keys. The keys of further peers are computed again, which takes a fifth of a millisecond."""
UNPROVEN_MAX = 5_000
"""Keys kept in addition for senders without any valid datagram: an attacker that repeats headers makes one of each."""
NUMBERS_PER_SECOND = 2**32
"""Numbers of a peer begin by the time, or above those of its last run if that is more. So they exceed all earlier
runs'.
"""


class _DerivedKeys:
    """The keys derived from one swarm's key."""

    def __init__(self, swarm_key: SwarmKey) -> None:
        self.label = swarm_key.label
        self.check = blake2s(key=swarm_key.derive(b"check"), digest_size=CHECK_BYTES)
        """A keyed hash, copied for each datagram."""
        self.group = swarm_key.derive(b"introductions")
        self.pair = swarm_key.derive(b"pairs")


class _Correspondent:
    """The keys and replay windows of one other peer."""

    __slots__ = (
        "ciphers",
        "first_contact",
        "first_contact_ciphers",
        "heard_by",
        "id",
        "paired",
        "public",
        "to",
        "whence",
    )

    def __init__(self, public: bytes, me: bytes) -> None:
        self.public = public
        self.id = id_of(public)
        below = public < me
        self.whence = b"\0\0\0\0" if below else b"\0\0\0\1"
        """The first bytes of its nonces. Those of ours differ, so that nonces never collide."""
        self.to = b"\0\0\0\1" if below else b"\0\0\0\0"
        self.ciphers: dict[bytes, ChaCha20Poly1305] = {}
        """The ciphers of the pair, by label."""
        self.first_contact_ciphers: dict[bytes, ChaCha20Poly1305] = {}
        """The ciphers of its first-contact datagrams, by label."""
        self.paired = ReplayWindow()
        self.first_contact = ReplayWindow()
        """A window of its own, as any member can send first-contact datagrams in the name of another."""
        self.heard_by: bytes | None = None
        """The label of the swarm key that it last used."""


class OpenedDatagram(msgspec.Struct, gc=False):
    """A datagram that a member has sent."""

    plaintext: bytes
    sender: bytes
    """The ID of the sender, only claimed by a first-contact datagram."""
    proven: bool
    """The datagram proves that `sender` sent it."""


class Sealing:
    """Seals and opens the datagrams of one peer."""

    def __init__(self, peer_key: PeerKey, keys: tuple[SwarmKey, ...], first_number: int) -> None:
        """The number `first_number` is above all that this peer ever used. All of `keys` are valid, the first is
        preferred.
        """
        self.peer_key = peer_key
        self._paired_as = _PAIRED + peer_key.public
        self.number = first_number
        """The number of the last datagram."""
        self._by_label: dict[bytes, _DerivedKeys] = {}
        self._labels: tuple[bytes, ...] = ()
        self._correspondents: dict[bytes, _Correspondent] = {}
        self._by_id: dict[bytes, _Correspondent] = {}
        self._unproven: dict[bytes, _Correspondent] = {}
        self.use_keys(keys)

    def use_keys(self, keys: tuple[SwarmKey, ...]) -> None:
        """Use these swarm keys from now on."""
        if tuple(key.label for key in keys) != self._labels:
            self._by_label = {key.label: self._by_label.get(key.label) or _DerivedKeys(key) for key in keys}
            self._labels = tuple(self._by_label)
            self._unproven.clear()
            for correspondent in self._correspondents.values():
                for ciphers in (correspondent.ciphers, correspondent.first_contact_ciphers):
                    for label in ciphers.keys() - self._by_label.keys():
                        del ciphers[label]

    @property
    def labels(self) -> tuple[bytes, ...]:
        """The labels of datagrams that may be for this peer."""
        return self._labels

    def knows(self, peer: bytes) -> bool:
        """Return whether a datagram to `peer` can prove its sender."""
        return peer in self._by_id

    def seal(self, said: bytes, to: bytes | None, *, again: bool = False, proven: bool = False) -> bytes | None:
        """Return a datagram with plaintext `said` for the peer of ID `to`, or for any peer if `to` is None.

        `again`: the same was sent before without an answer, so the other of two keys is used. Returns None if `proven`
        is wanted and the datagram cannot prove its sender.
        """
        correspondent = self._by_id.get(to) if to is not None else None
        label = self._labels[0] if len(self._labels) == 1 else self._label_for(correspondent, again)
        self.number += 1
        number = self.number.to_bytes(8, "big")
        if correspondent is not None:
            header = label + self._paired_as + number
            cipher = correspondent.ciphers.get(label) or self._pair(correspondent, label)
            sealed = cipher.encrypt(correspondent.to + number, said, header)
        elif proven:
            return None
        else:
            header = label + (_GREETING if to is None else _FIRST_CONTACT) + self.peer_key.public + number
            cipher = ChaCha20Poly1305(_first_contact_key(self._by_label[label], self.peer_key.public))
            sealed = cipher.encrypt(_TO_ALL + number, said, header + (to or ANYBODY))
        check = self._by_label[label].check.copy()
        check.update(header)
        return header + check.digest() + sealed

    def open(self, datagram: bytes) -> OpenedDatagram | None:
        """Return the content of a member's new datagram for this peer, or None for any other bytes."""
        keys = self._by_label.get(datagram[:LABEL_BYTES])
        if keys is None or len(datagram) < SEAL_BYTES:
            return None
        header = datagram[:HEADER_BYTES]
        check = keys.check.copy()
        check.update(header)
        if not compare_digest(check.digest(), datagram[HEADER_BYTES:BODY_AT]):
            return None
        kind, public, number = header[LABEL_BYTES], header[PUBLIC_AT:NUMBER_AT], header[NUMBER_AT:]
        known = self._correspondents.get(public)
        correspondent = known or self._unproven.get(public) or self._unknown(public)
        window = correspondent.paired if kind == PAIRED else correspondent.first_contact
        count = int.from_bytes(number, "big")
        if not window.is_new(count):  # Before decryption, as replays come at any rate.
            return None
        try:
            if kind == PAIRED:
                cipher = correspondent.ciphers.get(keys.label) or self._pair(correspondent, keys.label)
                said = cipher.decrypt(correspondent.whence + number, datagram[BODY_AT:], header)
            elif kind in (FIRST_CONTACT, GREETING):
                to = self.peer_key.id if kind == FIRST_CONTACT else ANYBODY
                said = self._first_contact_cipher(correspondent, keys).decrypt(
                    _TO_ALL + number, datagram[BODY_AT:], header + to
                )
                if keys.label not in correspondent.ciphers:
                    self._pair(correspondent, keys.label)  # An answer needs it, and some keys allow none.
            else:
                return None
        except (InvalidTag, ValueError):  # Not from a member, or by an impossible public key.
            return None
        window.add(count)
        if known is None:
            if public == self.peer_key.public:
                return None
            del self._unproven[public]
            self._keep(correspondent)
        correspondent.heard_by = keys.label
        return OpenedDatagram(said, correspondent.id, kind == PAIRED)

    def _label_for(self, correspondent: _Correspondent | None, again: bool) -> bytes:
        first = self._labels[0]
        if correspondent is not None and correspondent.heard_by in self._by_label:
            first = correspondent.heard_by
        return next(label for label in self._labels if label != first) if again else first

    def _pair(self, correspondent: _Correspondent, label: bytes) -> ChaCha20Poly1305:
        me, other = self.peer_key.public, correspondent.public
        named = self.peer_key.shared_with(other) + min(me, other) + max(me, other)
        key = blake2s(named, key=self._by_label[label].pair, digest_size=32).digest()
        cipher = correspondent.ciphers[label] = ChaCha20Poly1305(key)
        return cipher

    def _first_contact_cipher(self, correspondent: _Correspondent, keys: _DerivedKeys) -> ChaCha20Poly1305:
        cipher = correspondent.first_contact_ciphers.get(keys.label)
        if cipher is None:
            cipher = ChaCha20Poly1305(_first_contact_key(keys, correspondent.public))
            correspondent.first_contact_ciphers[keys.label] = cipher
        return cipher

    def _unknown(self, public: bytes) -> _Correspondent:
        if len(self._unproven) >= UNPROVEN_MAX:
            del self._unproven[next(iter(self._unproven))]
        correspondent = self._unproven[public] = _Correspondent(public, self.peer_key.public)
        return correspondent

    def _keep(self, correspondent: _Correspondent) -> None:
        if len(self._correspondents) >= CORRESPONDENTS_MAX:
            oldest = self._correspondents.pop(next(iter(self._correspondents)))
            del self._by_id[oldest.id]
        self._correspondents[correspondent.public] = correspondent
        self._by_id[correspondent.id] = correspondent


def _first_contact_key(keys: _DerivedKeys, public: bytes) -> bytes:
    """Return the first-contact key of one sender. Each sender has its own, so that no two numbers collide."""
    return blake2s(public, key=keys.group, digest_size=32).digest()
