"""The certificates of members in DER (X.690): written, and read as far as a peer needs.

All certificates of a swarm have one form, in which only the name, the number and the key differ. The package
cryptography can write any certificate, but takes three megabytes in each peer for as long as it runs. So these lines
write the one form, and the tests compare them with that package, byte by byte.

Tests: tests/members/test_der.py
"""

from hashlib import sha1
from typing import Final

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

_BOOLEAN, _INTEGER, _BITS, _OCTETS, _OBJECT, _TEXT = 0x01, 0x02, 0x03, 0x04, 0x06, 0x0C
_TIME_OF_TWO_DIGITS, _TIME, _SEQUENCE, _SET = 0x17, 0x18, 0x30, 0x31
_VERSION, _EXTENSIONS, _KEY_IDENTIFIER = 0xA0, 0xA3, 0x80
_LONG_LENGTH: Final = 0x80
"""The bit of a first length byte that says how many bytes of the length follow."""
_LENGTH_BYTES_MAX: Final = 3
_ED25519 = bytes.fromhex("06032b6570")
"""The object identifier 1.3.101.112 (RFC 8410)."""
_KEY_INFO_HEAD: Final = bytes.fromhex("302a300506032b6570032100")
"""The first bytes of the public key information of each Ed25519 key (RFC 8410, 4)."""
_KEY_INFO_BYTES: Final = len(_KEY_INFO_HEAD) + 32
_PRIVATE_HEAD: Final = bytes.fromhex("302e020100300506032b657004220420")
"""The first bytes of each Ed25519 private key in PKCS 8 (RFC 8410, 7)."""
_COMMON_NAME, _SUBJECT_KEY, _KEY_USAGE = (bytes.fromhex(text) for text in ("550403", "551d0e", "551d0f"))
_VERSION_3 = bytes.fromhex("a003020102")
_BASIC_CONSTRAINTS, _AUTHORITY_KEY = (bytes.fromhex(text) for text in ("551d13", "551d23"))
_SIGNS_ALL: Final = b"\x01\x06"
"""Bits of the key usage: the key signs certificates and revocation lists."""
_TRUE: Final = bytes.fromhex("0101ff")
_FIELDS_BEFORE_KEY: Final = (_VERSION, _INTEGER, _SEQUENCE, _SEQUENCE, _SEQUENCE, _SEQUENCE)
"""The tags of the version, the number, the algorithm, the issuer, the validity and the subject of a certificate."""


class DerError(ValueError):
    """Bytes are not the DER that was expected."""


def certificate(
    subject: str, public: bytes, issuer: str, authority: Ed25519PrivateKey, *, serial: int, signs: bool
) -> bytes:
    """Return a certificate for an Ed25519 key, signed by an authority.

    It is valid for ever, so that no peer's clock decides about membership: a key that is no longer trusted is changed.
    The last second is that of certificates without an end (RFC 5280, 4.1.2.5).

    Args:
        subject: the name of the key's holder.
        public: the 32 bytes of the key.
        issuer: the name of the authority.
        authority: the private key that signs.
        serial: the number of the certificate, at least 1.
        signs: whether the key itself signs certificates.
    """
    constraints = _of(_SEQUENCE, _TRUE + _of(_INTEGER, b"\0") if signs else b"")
    extensions = [
        _extension(_BASIC_CONSTRAINTS, constraints, critical=True),
        _extension(_SUBJECT_KEY, _of(_OCTETS, _identifier(public))),
        _extension(
            _AUTHORITY_KEY,
            _of(_SEQUENCE, _of(_KEY_IDENTIFIER, _identifier(authority.public_key().public_bytes_raw()))),
        ),
    ]
    if signs:
        extensions.append(_extension(_KEY_USAGE, _of(_BITS, _SIGNS_ALL), critical=True))
    algorithm = _of(_SEQUENCE, _ED25519)
    to_sign = _of(
        _SEQUENCE,
        _VERSION_3,
        _of(_INTEGER, serial.to_bytes(serial.bit_length() // 8 + 1, "big")),
        algorithm,
        _name(issuer),
        _of(_SEQUENCE, _of(_TIME_OF_TWO_DIGITS, b"700101000000Z"), _of(_TIME, b"99991231235959Z")),
        _name(subject),
        _KEY_INFO_HEAD + public,
        _of(_EXTENSIONS, _of(_SEQUENCE, *extensions)),
    )
    return _of(_SEQUENCE, to_sign, algorithm, _of(_BITS, b"\0" + authority.sign(to_sign)))


def private_key(private: Ed25519PrivateKey) -> bytes:
    """Return a private key in PKCS 8."""
    return _PRIVATE_HEAD + private.private_bytes_raw()


def public_key_in(encoded: bytes) -> bytes | None:
    """Return the 32 bytes of the Ed25519 key that a certificate is for, or None if it is for another kind of key.

    Raises DerError for bytes of another form. The caller has verified the signature.
    """
    at, _ = _contents(encoded, 0, _SEQUENCE)
    at, _ = _contents(encoded, at, _SEQUENCE)
    if not encoded.startswith(_VERSION_3, at):
        raise DerError("the certificate is not of version 3")
    for tag in _FIELDS_BEFORE_KEY:
        _, at = _contents(encoded, at, tag)
    _, end = _contents(encoded, at, _SEQUENCE)
    info = encoded[at:end]
    return info[len(_KEY_INFO_HEAD) :] if info.startswith(_KEY_INFO_HEAD) and len(info) == _KEY_INFO_BYTES else None


def _contents(encoded: bytes, at: int, tag: int) -> tuple[int, int]:
    """Return where the contents of the element at this place begin and end. Raises DerError."""
    if encoded[at : at + 1] != bytes((tag,)) or at + 1 >= len(encoded):
        raise DerError(f"no element {tag:#x} at byte {at}")
    length, begin = encoded[at + 1], at + 2
    if length & _LONG_LENGTH:
        count = length & ~_LONG_LENGTH
        length, begin = int.from_bytes(encoded[begin : begin + count], "big"), begin + count
        if length < _LONG_LENGTH or count > _LENGTH_BYTES_MAX or length.bit_length() <= 8 * (count - 1):
            raise DerError(f"the length at byte {at} has another form")
    if begin + length > len(encoded):
        raise DerError(f"the element at byte {at} has no end")
    return begin, begin + length


def _of(tag: int, *parts: bytes) -> bytes:
    """Return an element of this tag with these contents."""
    content = b"".join(parts)
    if len(content) < _LONG_LENGTH:
        length = bytes((len(content),))
    else:
        digits = len(content).to_bytes((len(content).bit_length() + 7) // 8, "big")
        length = bytes((_LONG_LENGTH | len(digits),)) + digits
    return bytes((tag,)) + length + content


def _name(common: str) -> bytes:
    """Return a distinguished name that has a common name only."""
    attribute = _of(_SEQUENCE, _of(_OBJECT, _COMMON_NAME), _of(_TEXT, common.encode()))
    return _of(_SEQUENCE, _of(_SET, attribute))


def _extension(kind: bytes, value: bytes, *, critical: bool = False) -> bytes:
    return _of(_SEQUENCE, _of(_OBJECT, kind), _TRUE if critical else b"", _of(_OCTETS, value))


def _identifier(public: bytes) -> bytes:
    """Return the identifier of a key in certificates (RFC 5280, 4.2.1.2), which protects nothing."""
    return sha1(public, usedforsecurity=False).digest()
