"""The canonical form of URLs, and the parts of a URL that decide about ownership and manners.

Every URL that is stored, hashed or sent is *canonical*: the result of a WHATWG parser (ada), with four more rules. The
standard leaves these to the reader, because they never name another page to a server:

- the scheme is http or https, and a text with another scheme is no URL here;
- the fragment is removed, and so are credentials and an empty query (``/a?`` is ``/a``);
- percent-escapes are in upper case (RFC 3986, 6.2.2.1), but never decoded: ``%7E`` and ``~`` remain two URLs;
- it has at most `URL_CHARS_MAX` characters.

The parser itself handles lower-case IDNA hosts, default ports, dot segments, backslashes and empty paths. So a
canonical URL is ASCII, has a ``/`` after its authority, and is its own canonical form. The functions after `seed` take
only canonical URLs and rely on that. No I/O. Every link goes through this module.
"""

import re
from functools import cache, lru_cache
from typing import Literal

import ada_url
from publicsuffixlist import PublicSuffixList

from kadcrawl.errors import ConfigError

Partition = Literal["host", "domain", "url"]

URL_CHARS_MAX = 8192
"""Limit on the characters of a URL or an href with a canonical form. RFC 9110, 4.1 recommends support of 8,000."""

_LOWER_ESCAPE = re.compile(r"%(?:[0-9A-F][a-f]|[a-f][0-9A-Fa-f])")
SITE_CHARS_CACHED = 300
"""Limit on the characters of a cached site. A host with port has at most 259, but a member may send more."""

_STAYS = r"A-Za-z0-9._~!$()*+,;=@&-"
_SIMPLE = re.compile(
    rf"(https?://[a-z0-9.:-]{{1,{SITE_CHARS_CACHED}}})"
    rf"(?=/)(?:/(?!\.{{1,2}}(?:[/?]|\Z))[{_STAYS}]+)*/?(?:\?[/?{_STAYS}]+)?"
)
"""URLs with a host of plain characters, without escapes, dot segments and empty segments. Most are like this."""

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):(?!\d)")
_USERINFO = re.compile(r"(?P<before>^(?:[A-Za-z][A-Za-z0-9+.-]*:)?[/\\]{2,}|^)(?:[^@]*:.*@|[^/@?#\\]*@)")
"""The user and the password at the begin of a URL, up to the last @ if there is a password, as it may have any
characters."""
_LOCAL = re.compile(r"localhost\b|[\d.]+(?:[:/]|$)|\[")


def canonical(href: str, base: str | None = None) -> str | None:
    """Return the canonical form of `href`, relative to the URL `base`, or None if it is no http(s) URL."""
    if len(href) > URL_CHARS_MAX:
        return None
    try:
        url = ada_url.normalize_url(href) if base is None else ada_url.join_url(base, href)
    except ValueError:
        return None
    if not url.startswith(("http://", "https://")):
        return None
    if "#" in url:
        url = url[: url.index("#")]
    if "@" in url:
        url = _without_credentials(url)
    if "%" in url:
        url = _LOWER_ESCAPE.sub(lambda escape: escape[0].upper(), url)
    if url[-1] == "?" and url.index("?") == len(url) - 1:
        url = url[:-1]
    return url if len(url) <= URL_CHARS_MAX else None


def is_canonical(url: str) -> bool:
    """Return whether a URL from another peer is canonical."""
    if (simple := _SIMPLE.fullmatch(url)) and len(url) <= URL_CHARS_MAX:
        return _is_origin(simple[1])  # The parser leaves such a path and such a query as they are.
    return url.isascii() and _LOWER_ESCAPE.search(url) is None and canonical(url) == url


@lru_cache(maxsize=256)
def _is_origin(origin: str) -> bool:
    """Return whether an origin is that of canonical URLs."""
    return canonical(f"{origin}/") == f"{origin}/"


def seed(text: str) -> str:
    """Return the canonical URL of a text that a person typed. Raises ConfigError with a valid example."""
    text = text.strip()
    shown = without_password(text)
    scheme = _SCHEME.match(text)
    if scheme is None and (guess := canonical(("http://" if _LOCAL.match(text) else "https://") + text)):
        raise ConfigError(f"{shown!r} has no scheme: did you mean {guess}?")
    if scheme is not None and scheme[1].lower() not in ("http", "https"):
        raise ConfigError(f"{shown!r} cannot be crawled: only http and https URLs can, not {scheme[1]}")
    if len(text) > URL_CHARS_MAX:
        raise ConfigError(f"{shown[:40]!r}... is too long: a URL may have {URL_CHARS_MAX} characters")
    url = canonical(text)
    if url is None:
        raise ConfigError(f"{shown!r} is not a URL; one looks like https://example.org/")
    if has_credentials(text):
        raise ConfigError(
            f"{shown!r} has a user or a password, which would be dropped: leave them out of the URL, and give "
            f"{host_of(url)} an auth in a [[sites]] table of the job file"
        )
    return url


def has_credentials(text: str) -> bool:
    """Return whether a text that has a canonical form names a user or a password."""
    if "@" not in text:
        return False
    url = ada_url.URL(text)
    return bool(url.username or url.password)


def without_password(text: str) -> str:
    """Return a text for a person, without what may be the user and the password of a URL in it."""
    if "@" not in text or (canonical(text) is not None and not has_credentials(text)):
        return text
    return _USERINFO.sub(r"\g<before>***@", text)


def site_of(url: str, partition: Partition) -> str:
    """Return the site of a canonical URL, the unit of ownership and of politeness.

    ``host``: host[:port], the same for http and https on their default ports, and with or without the root dot;
    ``domain``: the registered domain, whatever the port; an IP address or a public suffix stands for itself;
    ``url``: the URL.
    """
    if partition == "url":
        return url
    authority = url[7 if url[4] == ":" else 8 : url.index("/", 8)]
    if partition == "domain":
        return _registered_domain(authority) if len(authority) <= SITE_CHARS_CACHED else _domain_of(authority)
    return _rootless(authority) if authority[-1] == "." or ".:" in authority else authority


def host_of(url: str) -> str:
    """Return the host of a canonical URL, without port. An IPv6 address keeps its brackets."""
    return _host(url[7 if url[4] == ":" else 8 : url.index("/", 8)])


def origin_of(url: str) -> str:
    """Return scheme://host[:port] of a canonical URL, the scope of one robots.txt (RFC 9309, 2.3)."""
    return url[: url.index("/", 8)]


def path_of(url: str) -> str:
    """Return path and query of a canonical URL, the request target."""
    return url[url.index("/", 8) :]


def _without_credentials(url: str) -> str:
    start = url.index("//") + 2
    at = url.find("@", start, url.index("/", start))
    return url if at < 0 else url[:start] + url[at + 1 :]


def _host(authority: str) -> str:
    host, colon, port = authority.rpartition(":")
    return host if colon and port.isdecimal() else authority


def _rootless(authority: str) -> str:
    host = _host(authority)
    return (host.removesuffix(".") or host) + authority[len(host) :]


@cache
def _suffixes() -> PublicSuffixList:
    # Loaded on first use, as it takes longer than all of the settings and URLs together.
    return PublicSuffixList()


def _domain_of(authority: str) -> str:
    host = _host(_rootless(authority))
    if host.startswith("[") or host.rpartition(".")[2].isdecimal():
        return host
    return _suffixes().privatesuffix(host) or host


_registered_domain = lru_cache(16_384)(_domain_of)
