"""TLS 1.3 (RFC 8446) between members: both sides have certificates that only a holder of the swarm key can make.

The authority that signs them is derived from the swarm's key, so every member has it. A certificate says only that this
public key is a member's. The ID of the member follows from the key itself, by its hash. The dialer names its swarm key
(as the server name of TLS). Without a known name it gets no answer, not even a certificate.
"""

import os
import ssl
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)
from cryptography.x509.oid import NameOID

from kadcrawl.members.peer_key import PeerKey, id_of
from kadcrawl.members.swarm_key import SwarmKey

_FROM, _TO = datetime(1970, 1, 1, tzinfo=UTC), datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC)
"""The validity of certificates: for ever, so that no peer's clock decides about membership. A key that is no longer
trusted is changed. The last second is that of certificates without an end (RFC 5280, 4.1.2.5).
"""
_AUTHORITY = "kadcrawl swarm"


def server_context(swarm_key: SwarmKey, peer_key: PeerKey, directory: Path | None) -> ssl.SSLContext:
    """Return the TLS context for the answering end of a member.

    TLS reads the private key from a file: in memory on Linux, elsewhere for a moment in `directory`, or in the system's
    directory for temporary files.
    """
    return _context(ssl.PROTOCOL_TLS_SERVER, swarm_key, peer_key, directory)


def client_context(swarm_key: SwarmKey, peer_key: PeerKey, directory: Path | None) -> ssl.SSLContext:
    """Return the TLS context for the dialing end of a member, with `swarm_key.name` as the server name."""
    return _context(ssl.PROTOCOL_TLS_CLIENT, swarm_key, peer_key, directory)


def peer_id_of(tls: ssl.SSLObject) -> bytes | None:
    """Return the ID of the member at the other end, or None if its certificate has no peer's key."""
    certificate = tls.getpeercert(binary_form=True)
    if certificate is None:
        return None
    try:
        public = x509.load_der_x509_certificate(certificate).public_key()
    except (ValueError, UnsupportedAlgorithm, x509.InvalidVersion):
        return None
    if not isinstance(public, Ed25519PublicKey):
        return None
    return id_of(public.public_bytes(Encoding.Raw, PublicFormat.Raw))


def _context(protocol: int, swarm_key: SwarmKey, peer_key: PeerKey, directory: Path | None) -> ssl.SSLContext:
    authority = Ed25519PrivateKey.from_private_bytes(swarm_key.derive(b"authority"))
    its_own = _certificate(_AUTHORITY, authority.public_key(), authority, serial=1, signs=True)
    ours = _certificate(
        peer_key.id.hex(),
        peer_key.signing.public_key(),
        authority,
        serial=int.from_bytes(peer_key.id[:8], "big") >> 1 | 2,
        signs=False,
    )
    context = ssl.SSLContext(protocol)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.check_hostname = False  # The name is that of the swarm's key. The certificate's key gives the ID.
    context.verify_mode = ssl.CERT_REQUIRED
    context.load_verify_locations(cadata=its_own.public_bytes(Encoding.PEM).decode())
    private = peer_key.signing.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    with _as_file(private + ours.public_bytes(Encoding.PEM), directory) as chain:
        context.load_cert_chain(chain)
    return context


@contextmanager
def _as_file(content: bytes, directory: Path | None) -> Iterator[str]:
    """Yield the name of a file with this content that no other user can read: in memory, where the system can."""
    if sys.platform == "linux":
        with os.fdopen(os.memfd_create("certificate", os.MFD_CLOEXEC), "wb") as file:
            file.write(content)
            file.flush()
            yield f"/proc/self/fd/{file.fileno()}"
    else:
        with TemporaryDirectory(dir=directory, prefix=".certificate-") as place:
            path = Path(place, "chain.pem")
            path.write_bytes(content)
            yield str(path)


def _certificate(
    subject: str, public: Ed25519PublicKey, authority: Ed25519PrivateKey, *, serial: int, signs: bool
) -> x509.Certificate:
    builder = (
        x509.CertificateBuilder()
        .subject_name(_named(subject))
        .issuer_name(_named(_AUTHORITY))
        .public_key(public)
        .serial_number(serial)
        .not_valid_before(_FROM)
        .not_valid_after(_TO)
        .add_extension(x509.BasicConstraints(ca=signs, path_length=0 if signs else None), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(public), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(authority.public_key()), critical=False)
    )
    if signs:
        usage = x509.KeyUsage(
            digital_signature=False,
            content_commitment=False,
            key_encipherment=False,
            data_encipherment=False,
            key_agreement=False,
            key_cert_sign=True,
            crl_sign=True,
            encipher_only=False,
            decipher_only=False,
        )
        builder = builder.add_extension(usage, critical=True)
    return builder.sign(authority, None)


def _named(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
