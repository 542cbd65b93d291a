"""Certificates of authorities that a job trusts beside those of each machine, as PEM text.

They travel with the job, so that all peers trust the same sites. Private keys in the same file are left out.
"""

import re
import ssl
from pathlib import Path

from kadcrawl.errors import ConfigError
from kadcrawl.settings.limits import require

PEM_CHARS_MAX = 64 * 1024
"""Limit on the characters of the certificates of a job, and of a site rule: about thirty of them."""
PEM_FILE_BYTES_MAX = 1024 * 1024
"""Limit on the size of a file with certificates."""

_CERTIFICATE = re.compile(r"-----BEGIN CERTIFICATE-----[A-Za-z0-9+/=\s]+-----END CERTIFICATE-----")


def read_authorities(path: Path) -> str:
    """Return the certificates in a PEM file. Raises ConfigError if there are none, or too many."""
    try:
        with path.open("rb") as file:
            text = file.read(PEM_FILE_BYTES_MAX).decode("ascii", "replace")
    except OSError as error:
        raise ConfigError(f"cannot read the certificates in {path}: {error.strerror}") from None
    found = [re.sub(r"\s*\n\s*", "\n", block) for block in _CERTIFICATE.findall(text)]
    require(bool(found), f"{path} has no certificates of authorities: give a PEM file")
    pem = "\n".join(found) + "\n"
    check_authorities(pem)
    return pem


def check_authorities(pem: str) -> None:
    """Raise ConfigError unless this is empty, or the PEM text of certificates and nothing else."""
    if not pem:
        return
    require(len(pem) <= PEM_CHARS_MAX, f"the certificates of ca-file have at most {PEM_CHARS_MAX} characters")
    require(not _CERTIFICATE.sub("", pem).strip(), "ca-file must have certificates, and nothing else")
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(cadata=pem)
    except (ssl.SSLError, ValueError) as error:
        raise ConfigError(f"a certificate of ca-file is damaged: {error}") from None


def shown(pem: str) -> str:
    """Return a description of these certificates."""
    count = len(_CERTIFICATE.findall(pem))
    return f"{count} certificate{'' if count == 1 else 's'}" if count else ""
