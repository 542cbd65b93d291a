"""The URLs that a correct crawl fetches, found breadth-first by the simplest means.

One request after the other, the standard library alone, and not a line of kadcrawl: a result on which both agree was
worked out twice. Meant for loopback servers: this script keeps no delay and trusts the pages that it reads.

``python -m scripts.truth URL...`` prints a JSON object: URL -> status.
"""

import argparse
import gzip
import json
import re
import string
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from html.parser import HTMLParser
from http.client import HTTPConnection, HTTPResponse
from typing import Final
from urllib.parse import quote, urljoin, urlsplit, urlunsplit
from urllib.robotparser import RobotFileParser

TRIES_MAX: Final = 4
"""Requests for a URL that answers 5xx. The last answer counts."""

_META_CHARSET = re.compile(rb"""<meta[^>]+charset\s*=\s*["']?\s*([\w-]+)""", re.IGNORECASE)
_REFRESH_URL = re.compile(r"""[\d.\s]*[;,]\s*(?:url\s*=)?\s*["']?(?P<url>[^"']+)""", re.IGNORECASE)
_ESCAPE = re.compile("%[0-9a-fA-F]{2}")
_PATH = re.compile("[^?#]*")
_SAFE = string.punctuation.translate(str.maketrans("", "", '"<>`{}'))
"""Characters of a URL that stay as they are, "%" among them. Others are sent as escaped UTF-8."""


def crawl(seeds: Sequence[str], wanted: Callable[[str], bool] = lambda url: True) -> dict[str, int]:
    """Return URL -> status of all that is reachable from `seeds` on their hosts, robots.txt itself left out.

    Obeys robots.txt, as far as it has no wildcards; of the rest it fetches what is `wanted`, by default all.
    """
    web = _Web()
    hosts = {urlsplit(seed).netloc for seed in seeds}
    robots = _Robots(web)
    found: dict[str, int] = {}
    waiting = deque(canonical(seed, "") for seed in seeds)
    while waiting:
        url = waiting.popleft()
        if url in found or urlsplit(url).netloc not in hosts or not (wanted(url) and robots.allow(url)):
            continue
        found[url], links = web.visit(url)
        waiting.extend(links)
    web.close()
    return found


def canonical(link: str, base: str) -> str:
    """Return `link`, as it stands on the page `base`, in the one form that stands for all its spellings.

    Raises ValueError when it is no URL.
    """
    link = re.sub(r"[\t\n\r]", "", link.strip())
    # Browsers read a backslash as a slash, but not in a query or fragment.
    parts = urlsplit(urljoin(base, _PATH.sub(lambda m: m[0].replace("\\", "/"), link, count=1)))
    netloc = parts.netloc.lower().removesuffix(":80")
    # Joined once more to a root, as urljoin leaves the dots of an absolute URL alone; "/." keeps "//" a path.
    path = urlsplit(urljoin("http://root/", f"/.{parts.path or '/'}")).path
    path, query = (_ESCAPE.sub(lambda m: m[0].upper(), quote(part, safe=_SAFE)) for part in (path, parts.query))
    return urlunsplit((parts.scheme.lower(), netloc, path, query, ""))


class _Web:
    """HTTP/1.1 with one connection per host."""

    def __init__(self) -> None:
        self._connections: dict[str, HTTPConnection] = {}

    def get(self, url: str) -> tuple[HTTPResponse, bytes]:
        parts = urlsplit(url)
        connection = self._connections.get(parts.netloc)
        if connection is None:
            connection = self._connections[parts.netloc] = HTTPConnection(parts.netloc, timeout=30)
        connection.request("GET", urlunsplit(("", "", parts.path, parts.query, "")))
        response = connection.getresponse()
        body = response.read()
        return response, gzip.decompress(body) if response.headers["Content-Encoding"] == "gzip" else body

    def visit(self, url: str) -> tuple[int, list[str]]:
        """Return the status of `url` and the URLs it leads to."""
        for _ in range(TRIES_MAX):
            response, body = self.get(url)
            if response.status < 500:
                break
        if 300 <= response.status < 400 and response.headers["Location"]:
            return response.status, [canonical(response.headers["Location"], url)]
        if response.status != 200 or response.headers.get_content_type() not in _HTML:
            return response.status, []
        return 200, list(_links(text_of(body, response.headers.get_content_charset()), url))

    def close(self) -> None:
        for connection in self._connections.values():
            connection.close()


_HTML = frozenset({"text/html", "application/xhtml+xml"})


class _Robots:
    """robots.txt of each host, asked for once."""

    def __init__(self, web: _Web) -> None:
        self._web = web
        self._parsers: dict[str, RobotFileParser] = {}

    def allow(self, url: str) -> bool:
        origin = urljoin(url, "/")
        if origin not in self._parsers:
            response, body = self._web.get(f"{origin}robots.txt")
            parser = self._parsers[origin] = RobotFileParser()
            parser.parse(body.decode(errors="replace").splitlines() if response.status == 200 else [])
        return self._parsers[origin].can_fetch("kadcrawl", url)


def text_of(body: bytes, declared: str | None) -> str:
    """Decode a page by byte order mark, header, meta, or as UTF-8, in this order."""
    if body.startswith(b"\xef\xbb\xbf"):
        return body.decode("utf-8-sig", errors="replace")
    meta = _META_CHARSET.search(body, 0, 1024)
    charset = declared or (meta[1].decode() if meta else "utf-8")
    try:
        return body.decode(charset, errors="replace")
    except LookupError:
        return body.decode(errors="replace")


def _links(text: str, url: str) -> Iterator[str]:
    page = _Page()
    page.feed(text)
    page.close()
    base = urljoin(url, page.base) if page.base else url
    for link in dict.fromkeys(page.links):
        try:
            target = canonical(link, base)
        except ValueError:
            continue
        if target.startswith("http://"):
            yield target


class _Page(HTMLParser):
    """A parser that collects the links of a page, as written."""

    def __init__(self) -> None:
        super().__init__()
        self.base: str | None = None
        self._links: list[str] = []
        self._follow = True

    @property
    def links(self) -> list[str]:
        return self._links if self._follow else []

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        # The first of two attributes of one name counts.
        values = {name: value or "" for name, value in reversed(attributes)}
        relations = values.get("rel", "").lower().split()
        match tag:
            case "a" | "area" if "nofollow" not in relations:
                self._add(values.get("href"))
            case "frame" | "iframe":
                self._add(values.get("src"))
            case "link" if {"next", "alternate", "canonical"} & set(relations):
                self._add(values.get("href"))
            case "base" if self.base is None:
                self.base = values.get("href")
            case "meta" if values.get("http-equiv", "").lower() == "refresh":
                refresh = _REFRESH_URL.match(values.get("content", ""))
                self._add(refresh["url"] if refresh else None)
            case "meta" if values.get("name", "").lower() == "robots":
                self._follow = not re.search(r"\b(nofollow|none)\b", values.get("content", "").lower())

    def _add(self, link: str | None) -> None:
        if link is not None:
            self._links.append(link)


def main() -> None:
    """Print the truth about the seeds named on the command line."""
    parser = argparse.ArgumentParser(description="Crawl the hosts of URL... one request at a time.")
    parser.add_argument("seeds", nargs="+", metavar="URL")
    print(json.dumps(crawl(parser.parse_args().seeds), indent=1))


if __name__ == "__main__":
    main()
