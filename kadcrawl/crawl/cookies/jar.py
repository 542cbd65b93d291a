"""The cookies of one site (RFC 6265): which are kept, and which go with a request. A decision: no I/O, no clock.

A jar belongs to one site, so it is bounded by what a site may cost: `COOKIES_MAX` cookies with `COOKIE_CHARS_MAX`
characters each and `JAR_CHARS_MAX` in all. The oldest cookies go first. A cookie that is not ASCII, or for a public
suffix or another host, is not kept. Secure cookies, and names that begin with __Secure- or __Host-, are treated as the
update of the RFC (6265bis) says. Times are wall-clock seconds.
"""

from collections.abc import Iterable
from email.utils import mktime_tz, parsedate_tz
from typing import Annotated

import msgspec
from msgspec import Meta, Struct

from kadcrawl.link.wire.messages import JAR_BYTES_MAX
from kadcrawl.urls import host_of, path_of, site_of

COOKIES_MAX = 50
"""Cookies of one site. RFC 6265 6.1 asks for 50 of each domain."""
COOKIE_CHARS_MAX = 4096
"""Characters of the name and the value of one cookie together (RFC 6265 6.1)."""
PLACE_CHARS_MAX = 1024
"""Characters of the domain or the path of a cookie."""
JAR_CHARS_MAX = 8 * 1024
"""Characters of the names and values of one site. Most servers refuse longer headers."""
LIFE_MAX_S = 400 * 86_400.0
"""Longest life of a cookie (6265bis)."""


class Cookie(Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """One cookie."""

    name: Annotated[str, Meta(max_length=COOKIE_CHARS_MAX)]
    value: Annotated[str, Meta(max_length=COOKIE_CHARS_MAX)]
    domain: Annotated[str, Meta(max_length=PLACE_CHARS_MAX)]
    path: Annotated[str, Meta(max_length=PLACE_CHARS_MAX)]
    host_only: bool
    secure: bool
    expires: float | None
    """Second from which it is not sent, or None for a cookie of the session."""

    @property
    def place(self) -> tuple[str, str, str]:
        """The name, domain and path, by which one cookie replaces another."""
        return self.name, self.domain, self.path

    @property
    def chars(self) -> int:
        return len(self.name) + len(self.value)


class _Encoded(Struct, array_like=True, forbid_unknown_fields=True):
    """A jar as it is stored and sent."""

    cookies: Annotated[list[Cookie], Meta(max_length=COOKIES_MAX)] = []
    is_logged_in: bool = False


_DECODER = msgspec.msgpack.Decoder(_Encoded)


class Jar:
    """The cookies of one site, the oldest first."""

    def __init__(self, cookies: Iterable[Cookie] = (), *, is_logged_in: bool = False) -> None:
        """With `is_logged_in` the cookies are those of a session that a login form has begun."""
        self.is_logged_in = is_logged_in
        self._cookies = {cookie.place: cookie for cookie in cookies}
        self._bound()

    @classmethod
    def from_bytes(cls, encoded: bytes) -> "Jar":
        """Return the jar of its encoded form. Bytes that are none, as from a lying member, make an empty jar."""
        try:
            found = _DECODER.decode(encoded) if encoded else _Encoded()
        except msgspec.MsgspecError:
            return cls()
        cookies = (cookie for cookie in found.cookies if _is_plain(cookie.name) and _is_plain(cookie.value))
        return cls(cookies, is_logged_in=found.is_logged_in)

    def to_bytes(self) -> bytes:
        return msgspec.msgpack.encode(_Encoded(list(self._cookies.values()), self.is_logged_in))

    def with_login(self, *, is_logged_in: bool) -> "Jar":
        """Return this jar after a session has begun or is over."""
        return Jar(self._cookies.values(), is_logged_in=is_logged_in)

    def __len__(self) -> int:
        return len(self._cookies)

    def learn(self, url: str, values: Iterable[str], now: float) -> bool:
        """Take the Set-Cookie values of an answer from this canonical URL. Return whether the jar has changed."""
        before = self.to_bytes()
        for value in values:
            cookie = parse(url, value, now)
            if cookie is None:
                continue
            self._cookies.pop(cookie.place, None)
            if cookie.expires is None or cookie.expires > now:
                self._cookies[cookie.place] = cookie
        self._cookies = {
            place: cookie for place, cookie in self._cookies.items() if cookie.expires is None or cookie.expires > now
        }
        self._bound()
        return before != self.to_bytes()

    def header(self, url: str, now: float) -> str:
        """Return the value of the Cookie header of a request for this canonical URL, or an empty text."""
        host, path, is_secure = _host(url), path_of(url).partition("?")[0], url.startswith("https:")
        sent = [
            cookie
            for cookie in self._cookies.values()
            if (cookie.expires is None or cookie.expires > now)
            and (host == cookie.domain if cookie.host_only else _domain_matches(host, cookie.domain))
            and _path_matches(path, cookie.path)
            and (is_secure or not cookie.secure)
        ]
        sent.sort(key=lambda cookie: -len(cookie.path))
        return "; ".join(f"{cookie.name}={cookie.value}" for cookie in sent)

    def _bound(self) -> None:
        """Drop the oldest cookies beyond the limits."""
        while (
            len(self._cookies) > COOKIES_MAX or sum(cookie.chars for cookie in self._cookies.values()) > JAR_CHARS_MAX
        ):
            del self._cookies[next(iter(self._cookies))]
        while len(self.to_bytes()) > JAR_BYTES_MAX:
            del self._cookies[next(iter(self._cookies))]


def parse(url: str, value: str, now: float) -> Cookie | None:
    """Return the cookie of a Set-Cookie value from this canonical URL, or None if it must not be kept.

    A cookie to be removed has a time of expiry that is over.
    """
    pair, *attributes = value.split(";")
    name, equals, content = (part.strip() for part in pair.partition("="))
    if not equals or not name or len(name) + len(content) > COOKIE_CHARS_MAX:
        return None
    if not (_is_plain(name) and _is_plain(content)):
        return None
    said: dict[str, str] = {}
    for attribute in attributes:
        key, _, text = attribute.partition("=")
        said[key.strip().lower()] = text.strip()
    host, is_https = _host(url), url.startswith("https:")
    domain = said.get("domain", "").lower().removeprefix(".")
    path = said.get("path", "")
    path = path if path.startswith("/") else _default_path(url)
    if max(len(domain), len(path)) > PLACE_CHARS_MAX or not (_is_plain(path) and _is_plain(domain)):
        return None
    if domain and domain != host and not (_domain_matches(host, domain) and _is_registered(domain)):
        return None
    secure = "secure" in said
    host_only = not domain or (domain == host and not _is_registered(domain))
    lowered = name.lower()
    if (secure or lowered.startswith(("__secure-", "__host-"))) and not (secure and is_https):
        return None
    if lowered.startswith("__host-") and (domain or path != "/"):
        return None
    return Cookie(name, content, domain or host, path, host_only, secure, _expires(said, now))


def _expires(said: dict[str, str], now: float) -> float | None:
    age = said.get("max-age", "")
    if age.removeprefix("-").isdecimal() and age.isascii():
        return now + min(float(age[:12]), LIFE_MAX_S) if not age.startswith("-") and age.strip("0") else 0.0
    try:
        date = parsedate_tz(said["expires"][:64])
        return None if date is None else min(float(mktime_tz(date)), now + LIFE_MAX_S)
    except (KeyError, ValueError, TypeError, IndexError, OverflowError):
        return None


def _host(url: str) -> str:
    return host_of(url).removesuffix(".")


def _is_plain(text: str) -> bool:
    """Return whether a text can stand in a header as it is."""
    return text.isascii() and text.isprintable() and ";" not in text


def _domain_matches(host: str, domain: str) -> bool:
    return host == domain or (host.endswith(f".{domain}") and not _is_address(host))


def _is_address(host: str) -> bool:
    return host.startswith("[") or host.rpartition(".")[2].isdecimal()


def _is_registered(domain: str) -> bool:
    """Return whether a domain is a registered domain, or below one: no public suffix, and no address."""
    if _is_address(domain) or "." not in domain:
        return False
    registered = site_of(f"http://{domain}/", "domain")
    # A public suffix stands for itself, and a host below it is a registered domain.
    return registered != domain or site_of(f"http://x.{domain}/", "domain") == domain


def _default_path(url: str) -> str:
    path = path_of(url).partition("?")[0]
    return path[: path.rindex("/")] or "/"


def _path_matches(path: str, wanted: str) -> bool:
    return path == wanted or (path.startswith(wanted) and (wanted.endswith("/") or path[len(wanted)] == "/"))
