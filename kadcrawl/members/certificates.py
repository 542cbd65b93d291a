"""TLS 1.3 (RFC 8446) between members: both sides have certificates that only a holder of the swarm key can make.

The authority that signs them is derived from the swarm's key, so every member has it. A certificate says only that this
public key is a member's. The ID of the member follows from the key itself, by its hash. The dialer names its swarm key
(as the server name of TLS). Without a known name it gets no answer, not even a certificate.
"""

import os
import ssl
import sys
from base64 import encodebytes
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from kadcrawl.members import der
from kadcrawl.members.peer_key import PeerKey, id_of
from kadcrawl.members.swarm_key import SwarmKey

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
        public = der.public_key_in(certificate)
    except der.DerError:
        return None
    return None if public is None else id_of(public)


def _context(protocol: int, swarm_key: SwarmKey, peer_key: PeerKey, directory: Path | None) -> ssl.SSLContext:
    authority = Ed25519PrivateKey.from_private_bytes(swarm_key.derive(b"authority"))
    signs = authority.public_key().public_bytes_raw()
    its_own = der.certificate(_AUTHORITY, signs, _AUTHORITY, authority, serial=1, signs=True)
    serial = int.from_bytes(peer_key.id[:8], "big") >> 1 | 2
    ours = der.certificate(peer_key.id.hex(), peer_key.public, _AUTHORITY, authority, serial=serial, signs=False)
    context = ssl.SSLContext(protocol)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.check_hostname = False  # The name is that of the swarm's key. The certificate's key gives the ID.
    context.verify_mode = ssl.CERT_REQUIRED
    context.load_verify_locations(cadata=its_own)
    private = ("PRIVATE KEY", der.private_key(peer_key.signing))
    chain_text = "".join(_pem(label, content) for label, content in (private, ("CERTIFICATE", ours)))
    with _as_file(chain_text.encode(), directory) as chain:
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


def _pem(label: str, content: bytes) -> str:
    """Return DER as PEM (RFC 7468)."""
    text = encodebytes(content).decode()
    return f"-----BEGIN {label}-----\n{text}-----END {label}-----\n"
