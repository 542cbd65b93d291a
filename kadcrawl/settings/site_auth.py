"""How requests to a site prove who asks: the scheme of a rule, and the name of the secret that it takes.

``basic:NAME`` is HTTP basic authentication (RFC 7617), whose secret is ``user:password``. ``bearer:NAME`` is a token
(RFC 6750). ``HEADER:NAME`` is a header of the site's own, such as ``X-Api-Key:wiki-key``, whose value is the secret.
"""

import base64
from typing import NamedTuple

from kadcrawl.errors import ConfigError
from kadcrawl.settings.limits import require
from kadcrawl.settings.request_headers import normal_header
from kadcrawl.settings.secrets import check_name

AUTH_CHARS_MAX = 200
"""Limit on the characters of an `auth` setting."""


class SiteAuth(NamedTuple):
    """The scheme and the secret's name of one rule."""

    scheme: str
    """`basic`, `bearer`, or the name of a header."""
    secret: str


def parse_auth(text: str) -> SiteAuth:
    """Return the meaning of an `auth` setting. Raises ConfigError for any other text."""
    scheme, colon, name = text.partition(":")
    require(
        bool(colon) and len(text) <= AUTH_CHARS_MAX,
        "auth must be basic:NAME, bearer:NAME or HEADER:NAME, with the name of a secret",
    )
    check_name(name)
    if scheme not in ("basic", "bearer"):
        try:
            require(normal_header(f"{scheme}: x") == f"{scheme}: x", "it has spaces")
        except ConfigError as error:
            raise ConfigError(
                f"auth {scheme!r:.60} is neither basic nor bearer, and no header for it: {error}"
            ) from None
    return SiteAuth(scheme, name)


def auth_header(auth: SiteAuth, secret: str) -> tuple[str, str]:
    """Return the (name, value) of the header that carries a secret. Raises ConfigError if the secret does not fit."""
    if auth.scheme == "basic":
        require(":" in secret, f"secret {auth.secret} must be user:password, as it is for basic authentication")
        return "Authorization", "Basic " + base64.b64encode(secret.encode()).decode()
    require(secret.isascii(), f"secret {auth.secret} must be ASCII, as it is a part of a header")
    return ("Authorization", f"Bearer {secret}") if auth.scheme == "bearer" else (auth.scheme, secret)
