"""The certificates of members are those that the package cryptography writes, and only their form is read."""

from hashlib import sha256

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from kadcrawl.members import der
from tests.support.links.library_certificates import AUTHORITY, library_certificate


def key(number: int) -> Ed25519PrivateKey:
    return Ed25519PrivateKey.from_private_bytes(sha256(b"%d" % number).digest())


def member(number: int = 1) -> bytes:
    """Return the certificate of a member."""
    public = key(number).public_key().public_bytes_raw()
    return der.certificate("member", public, AUTHORITY, key(0), serial=number, signs=False)


def with_bytes(encoded: bytes, at: int, new: bytes) -> bytes:
    return encoded[:at] + new + encoded[at + len(new) :]


@pytest.mark.parametrize("serial", [1, 127, 128, 255, 256, 2**31, 2**62 + 2, 2**63 - 1])
@pytest.mark.parametrize("signs", [False, True])
def test_a_certificate_is_that_of_the_library(serial: int, signs: bool) -> None:
    subject = sha256(b"%d" % serial).hexdigest()[:40]
    public = key(serial).public_key()
    ours = der.certificate(subject, public.public_bytes_raw(), AUTHORITY, key(0), serial=serial, signs=signs)
    library = library_certificate(subject, public, key(0), serial=serial, signs=signs)
    assert library.public_bytes(Encoding.DER) == ours
    assert public.public_bytes_raw() == der.public_key_in(ours)


def test_a_private_key_is_that_of_the_library() -> None:
    library = key(1).private_bytes(Encoding.DER, PrivateFormat.PKCS8, NoEncryption())
    assert library == der.private_key(key(1))


def test_a_key_of_another_kind_is_no_key_of_a_peer() -> None:
    private = ec.generate_private_key(ec.SECP256R1())
    other = library_certificate("x", private.public_key(), key(0), serial=7, signs=False)
    assert der.public_key_in(other.public_bytes(Encoding.DER)) is None


@pytest.mark.parametrize("version", [1, 2, 4])
def test_a_certificate_of_another_version_is_refused(version: int) -> None:
    at = member().index(bytes.fromhex("a003020102"))
    with pytest.raises(der.DerError, match="version 3"):
        der.public_key_in(with_bytes(member(), at + 4, bytes((version - 1,))))


def test_a_certificate_that_is_cut_is_refused() -> None:
    for length in range(len(member())):
        with pytest.raises(der.DerError):
            der.public_key_in(member()[:length])


def test_a_length_that_is_longer_than_it_must_be_is_refused() -> None:
    """Two readers could take such bytes for different certificates."""
    whole = member()
    begin = 4 if whole[1] == 0x82 else 3
    content = whole[begin:]
    for head in (b"\x30\x83\0" + len(content).to_bytes(2, "big"), b"\x30\x80", b"\x30\x84" + bytes(4)):
        with pytest.raises(der.DerError):
            der.public_key_in(head + content)
    short = bytes.fromhex("30817f")
    with pytest.raises(der.DerError):
        der.public_key_in(short + content)


def test_a_flipped_byte_gives_no_other_key_than_the_library_reads() -> None:
    whole = member()
    for at in range(len(whole)):
        changed = with_bytes(whole, at, bytes((whole[at] ^ 1,)))
        try:
            found = der.public_key_in(changed)
        except der.DerError:
            continue
        if found is None:
            continue
        try:
            read = x509.load_der_x509_certificate(changed).public_key()
        except (ValueError, UserWarning):  # It warns of numbers below 1.
            continue
        assert isinstance(read, type(key(0).public_key()))
        assert read.public_bytes_raw() == found, at
