"""The web of a user's test: pages given as a dict or as a function, answered as a server would answer them."""

import html
from collections.abc import Callable, Mapping, Sequence
from typing import Final, TypeAlias

from kadcrawl.errors import ConfigError
from kadcrawl.urls import host_of, seed

from .synthetic_web import SyntheticResponse

Content: TypeAlias = str | bytes | Sequence[str] | int | SyntheticResponse | None
"""The resource at a URL: HTML, a list of linked URLs, a status without a page, a response, or None (404)."""
Pages: TypeAlias = Mapping[str, Content] | Callable[[str], Content]
"""The pages of a web, by URL."""

_HTML: Final = (("Content-Type", "text/html; charset=utf-8"),)
_TEXT: Final = (("Content-Type", "text/plain; charset=utf-8"),)


class UserWeb:
    """Pages served over http from the IP `address`. A robots.txt that is not given is 404: all is allowed."""

    def __init__(self, pages: Pages, address: str) -> None:
        """Raises ValueError for pages at URLs that are not served here."""
        self.broken: Exception | None = None
        """The first exception of the user's function. Its page was answered with 500."""
        self._ip = address
        self._hosts: frozenset[str] | None = None
        if callable(pages):
            self._content = pages
        else:
            by_url = {served(url): content for url, content in pages.items()}
            self._hosts = frozenset(map(host_of, by_url))
            self._content = by_url.get

    def address(self, host: str) -> str | None:
        """Return the IP address of a host that has pages. A function may have pages of any host."""
        return self._ip if self._hosts is None or host in self._hosts else None

    def answer(self, host: str, target: str, asked: int) -> SyntheticResponse:
        """Return the answer to a GET of `target`. Earlier requests change nothing."""
        url = f"http://{host}{target}"
        try:
            return _answer(self._content(url), url)
        except Exception as error:
            self.broken = self.broken or error
            return SyntheticResponse(500, _HTML)


def served(url: str) -> str:
    """Return a URL in its canonical form. Raises ValueError if a simulated web cannot have it."""
    try:
        canonical = seed(url)
    except ConfigError as error:
        raise ValueError(str(error)) from None
    host = host_of(canonical)
    if canonical.split("/", 3)[:3] != ["http:", "", host]:
        raise ValueError(f"{url} is not served: simulated pages have http URLs without a port; write http://{host}/...")
    return canonical


def _answer(content: Content, url: str) -> SyntheticResponse:
    kind = _TEXT if url.endswith(("/robots.txt", ".txt")) else _HTML
    match content:
        case None:
            return SyntheticResponse(404, _HTML)
        case SyntheticResponse():
            return content
        case int():
            return SyntheticResponse(content, _HTML)
        case bytes():
            return SyntheticResponse(200, kind, content)
        case str():
            return SyntheticResponse(200, kind, content.encode())
    anchors = "".join(f'<a href="{html.escape(link)}">{html.escape(link)}</a>\n' for link in content)
    return SyntheticResponse(200, _HTML, f"<!doctype html><title>{html.escape(url)}</title>\n{anchors}".encode())
