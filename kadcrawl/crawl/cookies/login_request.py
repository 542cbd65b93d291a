"""The page that a login hook reads, and the request that it returns, with their bounds. A decision: nothing is called.

A hook is a function of the person who runs the machine, so it is trusted with secrets, but its result depends on a page
of the site. So the request goes only where the secrets of the rule may go.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Final, Literal
from urllib.parse import urlencode

import msgspec
from msgspec import Meta, Struct

from kadcrawl.crawl.content.charset import decode
from kadcrawl.crawl.fetch.result import FetchResult
from kadcrawl.errors import ConfigError
from kadcrawl.settings.request_headers import check_headers, normal_header, pairs
from kadcrawl.settings.site_login import SiteLogin
from kadcrawl.settings.site_settings import SiteSettings
from kadcrawl.urls import canonical, site_of

PAGE_BYTES_MAX: Final = 1024 * 1024
"""Limit on the page of a form, in bytes. The rest of a longer page is not shown to the hook."""
REPLY_BYTES_MAX: Final = 256 * 1024
"""Limit on the result of a hook, in bytes of JSON."""
FIELDS_MAX: Final = 200
"""Limit on the fields of a request, hidden fields of the page among them."""
COOKIES_MAX: Final = 50
"""Limit on the cookies that a hook sets, which is that of a site."""


class LoginHookError(Exception):
    """A login hook made no request. The text names no value, as values may be secrets."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoginPage:
    """The page of a login form, for a hook."""

    url: str
    """The URL of the page, from `login`."""
    status: int
    """HTTP status."""
    text: str
    """The page, decoded by its own charset."""
    cookies: Mapping[str, str]
    """The cookies that the crawl sends to the page, by name."""
    fields: Mapping[str, str]
    """The fields of `login`."""
    secrets: Mapping[str, str]
    """The values of the secrets of `login`, by field."""


class LoginAnswer(Struct, frozen=True, forbid_unknown_fields=True):
    """The result of a hook: a dict with these keys, each of which may be left out."""

    url: str = ""
    """The URL of the request, relative to that of the page."""
    method: Literal["GET", "POST"] = "POST"
    fields: Annotated[dict[str, str], Meta(max_length=FIELDS_MAX)] = {}
    """The fields of the form, or of the query of a GET."""
    headers: dict[str, str] = {}
    cookies: Annotated[dict[str, str], Meta(max_length=COOKIES_MAX)] = {}
    """Cookies to set before the request, for all paths of the host of the page."""


@dataclass(frozen=True, slots=True)
class LoginRequest:
    """A request of a login, which must not be shown."""

    url: str
    headers: tuple[tuple[str, str], ...] = ()
    form: bytes = b""
    """The body of a POST, or nothing for a GET."""


def page_of(login: SiteLogin, result: FetchResult, cookies: str, secrets: Mapping[str, str]) -> LoginPage:
    """Return the page of a form. `cookies` is the value of the Cookie header for its URL."""
    assert result.status is not None, "an answer came"
    pairs_of_cookies = (part.partition("=") for part in cookies.split("; ") if part)
    return LoginPage(
        url=login.url,
        status=result.status,
        text=decode(result.content[:PAGE_BYTES_MAX], result.content_type)[0],
        cookies={name: value for name, _, value in pairs_of_cookies},
        fields=dict(login.fields),
        secrets=login.values(secrets),
    )


def read_answer(reply: bytes) -> LoginAnswer:
    """Return the result of a hook from its JSON. Raises LoginHookError."""
    try:
        return msgspec.json.decode(reply, type=LoginAnswer)
    except msgspec.DecodeError as error:  # The text has the place and the types, and no value.
        raise LoginHookError(f"the hook must return a dict with url, fields, headers or cookies: {error}") from None


def request_of(answer: LoginAnswer, login: SiteLogin, settings: SiteSettings) -> LoginRequest | None:
    """Return the request that a hook asks for, or None if it only sets cookies. Raises LoginHookError."""
    if not (answer.url or answer.fields or answer.headers):
        if not answer.cookies:
            raise LoginHookError("the hook returned neither a request nor cookies")
        return None
    query = urlencode(answer.fields)
    url = canonical(answer.url, login.url)
    if url is not None and answer.method == "GET" and query:
        url = canonical(f"{url}{'&' if '?' in url else '?'}{query}")
    if url is None:
        raise LoginHookError("the url of the hook is no URL, or too long")
    if site_of(url, "host") != site_of(login.url, "host") or not settings.sends_secrets(url):
        raise LoginHookError(f"the url of the hook must go to {site_of(login.url, 'host')}, by https as login does")
    if answer.method == "POST" and not query:
        raise LoginHookError("the POST of the hook has no fields; a request without fields is a GET")
    try:
        headers = [normal_header(f"{name}: {value}") for name, value in answer.headers.items()]
        check_headers(headers)
    except ConfigError:
        raise LoginHookError("the hook returned a header that HTTP or kadcrawl does not allow") from None
    return LoginRequest(url, tuple(pairs(headers)), query.encode("ascii") if answer.method == "POST" else b"")


def set_cookie_values(answer: LoginAnswer, login: SiteLogin) -> list[str]:
    """Return the cookies of a hook as Set-Cookie values for the host of the page."""
    secure = "; Secure" if login.url.startswith("https:") else ""
    return [f"{name}={value}; Path=/{secure}" for name, value in answer.cookies.items()]
