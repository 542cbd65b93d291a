"""The check of a contact that a person gives: a URL or an e-mail address, as the owners of sites need it.

The contact of an earlier run, or of a swarm, is not checked again, so that older directories go on.
"""

import ipaddress
import re
from collections.abc import Sequence

from kadcrawl.settings.limits import require
from kadcrawl.urls import canonical, has_credentials, host_of

_EMAIL = re.compile(
    r"[A-Za-z0-9.!#$%&'*+/=?^_`{|}~-]{1,64}@(?:[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?\.)+[A-Za-z][A-Za-z0-9-]*"
)
"""An e-mail address by the rule of HTML for its input fields, with a domain that has a dot."""


def checked_contact(contact: str) -> str:
    """Return the contact without spaces around it. Raises ConfigError unless it is a URL or an e-mail address."""
    contact = contact.strip()
    is_url = re.match(r"(?i)https?://", contact) is not None and canonical(contact) is not None
    require(
        not contact or _EMAIL.fullmatch(contact) is not None or (is_url and not has_credentials(contact)),
        "contact must be a URL such as https://example.org/crawler, or an e-mail address such as you@example.org",
    )
    return contact


def needs_contact(seeds: Sequence[str]) -> bool:
    """Return whether any of these canonical URLs belongs to somebody else."""
    return not all(_is_loopback(host_of(url)) for url in seeds)


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False
