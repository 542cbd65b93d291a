"""The TLS settings of the requests to some hosts, by their site rule."""

import ssl
from collections.abc import Mapping

from kadcrawl.errors import ConfigError
from kadcrawl.settings.site_rules import SiteRule


def tls_of(rule: SiteRule | None, authorities: str, secrets: Mapping[str, str]) -> ssl.SSLContext | bool:
    """Return the TLS settings for the hosts of a rule, or True for those of every request.

    `authorities` are the certificates that the job trusts for all hosts. Raises ConfigError for a client certificate
    that cannot be read.
    """
    trusted = rule.ca_pem if rule is not None and rule.ca_pem else authorities
    unverified = rule is not None and rule.verify is False
    name = "" if rule is None else rule.client_certificate
    if not (trusted or unverified or name):
        return True
    context = ssl.create_default_context()
    if trusted:
        context.load_verify_locations(cadata=trusted)
    if unverified:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if name:
        try:
            # Without a password, OpenSSL would ask a person at the terminal.
            context.load_cert_chain(secrets[name], password="")
        except (OSError, ValueError) as error:
            why = getattr(error, "reason", None) or getattr(error, "strerror", None) or "not readable"
            raise ConfigError(
                f"secret {name} must be the path of a PEM file with a certificate and its key, not encrypted: {why}"
            ) from None
    return context
