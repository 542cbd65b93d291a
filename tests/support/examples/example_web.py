"""The web of the examples: the answers of https://example.org and its neighbors, the same in each run.

A crawl of https://example.org/ finds 31 URLs and ends. Folders that no page links to show one trouble of the real web
each, and are crawled by naming them: `/calendar/` never ends, `/shop/` has filters in any combination, `/article/` has
copies and canonical links, `/trap/` repeats its path, `/session/` has session IDs, `/api/` is JSON, `/live/` changes at
each request, `/broken` always answers 500, `/ring/` has a redirect loop and a cookie wall, `/leaving` redirects to
another host. `/archive/2024` is in the sitemap only.
"""

import hashlib
import random
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

NAMES: Final = {
    "example.org": "93.184.215.14",
    "example.net": "93.184.215.15",
    "shop.example.org": "93.184.215.16",
    "blog.example.org": "93.184.215.16",
}
"""Host name -> public address, as a name server would say."""
MODIFIED: Final = "Sun, 01 Nov 2026 12:00:00 GMT"
LASTMOD: Final = "2026-11-01"
DOCS: Final = (
    *("install", "first-crawl", "seeds", "scope", "limits", "delay", "robots", "sitemaps", "redirects", "retries"),
    *("peers", "keys", "records", "sinks", "warc", "history", "proxies", "recrawl", "questions"),
)
ITEMS: Final = {1: "12.50", 2: "8.00", 3: "19.90", 4: "3.20", 5: "45.00"}
COLORS: Final = ("red", "green", "blue", "white")
SIZES: Final = ("7", "8", "9")
SORTS: Final = ("name", "price", "new")
WORDS: Final = (
    *("river", "stone", "paper", "garden", "window", "letter", "summer", "market", "harbor", "copper", "violin"),
    *("winter", "basket", "candle", "meadow", "thunder", "lantern", "orchard", "pepper", "saddle", "timber"),
    *("valley", "walnut", "anchor", "bridge", "cellar", "desert", "engine", "forest", "glacier"),
)


@dataclass(frozen=True, slots=True)
class Response:
    """An answer of the web."""

    body: str = ""
    status: int = 200
    mime: str = "text/html"
    headers: Mapping[str, str] = field(default_factory=dict)


class ExampleWeb:
    """Answers requests. Its one memory is how often `/live/` was asked for."""

    def __init__(self) -> None:
        self._live = 0

    def answer(self, host: str, path: str, query: Mapping[str, str], headers: Mapping[str, str]) -> Response:
        """Return the answer to a GET, 304 if the condition in the headers says that nothing has changed."""
        found = self._page(host, path, query)
        if found.status != 200:
            return found
        tag = f'"{hashlib.sha256(found.body.encode()).hexdigest()[:12]}"'
        validators = {"ETag": tag}
        if path != "/live/":
            validators["Last-Modified"] = MODIFIED
        if headers.get("If-None-Match") == tag:
            return Response(status=304, headers=validators)
        return Response(found.body, mime=found.mime, headers=validators)

    def _page(self, host: str, path: str, query: Mapping[str, str]) -> Response:
        if host == "example.net":
            return _example_net(path)
        if host in ("shop.example.org", "blog.example.org"):
            return _shop_window(path)
        if path == "/live/":
            self._live += 1
            return _html("Live", [], f"<p>Asked {self._live} times.</p>")
        return _example_org(path, query)


def _example_org(path: str, query: Mapping[str, str]) -> Response:
    folder, _, last = path.strip("/").partition("/")
    fixed = _FIXED.get(path)
    if fixed is not None:
        return fixed
    if folder == "docs" and last in DOCS:
        place = DOCS.index(last)
        nearby = [f"/docs/{name}" for name in DOCS[max(0, place - 1) : place + 2] if name != last]
        return _html(f"Docs: {last.replace('-', ' ')}", ["/docs/", *nearby])
    if folder == "item" and last.isdigit() and int(last) in ITEMS:
        price = f"<p>Price: <span class='price'>{ITEMS[int(last)]}</span></p>"
        tag = "even" if int(last) % 2 == 0 else "odd"
        return _html(f"Item {last}", ["/list/"], f"{price}<a class='tag' href='/list/'>{tag}</a>")
    if folder == "api" and (name := last.removesuffix(".json")).isdigit() and int(name) in ITEMS:
        return Response(f'{{"title": "Item {name}", "price": {ITEMS[int(name)]}}}', mime="application/json")
    return _endless(folder, path, last, query)


def _endless(folder: str, path: str, last: str, query: Mapping[str, str]) -> Response:
    """Return a page of the folders that most crawls leave out."""
    if folder == "calendar" and (not last or last.isdigit()):
        day = int(last or 0)
        return _html(f"Calendar: day {day}", [f"/calendar/{day + step}" for step in (1, 2, 7)])
    if folder == "shop":
        chosen = [(name, query[name]) for name in ("color", "size", "sort") if name in query]
        filters = [("color", color) for color in COLORS] + [("size", size) for size in SIZES]
        filters += [("sort", sort) for sort in SORTS]
        others = [[pair for pair in chosen if pair[0] != name] + [(name, value)] for name, value in filters]
        links = ["/shop/?" + "&".join(f"{name}={value}" for name, value in pairs) for pairs in others]
        return _html("Shop", links, "".join(f"<p>{name}: {value}</p>" for name, value in chosen))
    if folder == "trap":
        return _html("Trap", ["trap/"])
    if folder == "session" and (not last or last[0] in "abc"):
        return _html(f"Session {last[:1]}", [f"/session/{page};jsessionid=1A2B3C{page}" for page in "abc"])
    if folder == "article" and last in ("1", "1/print", "notes"):
        body = _text("article 1", 120) if last != "notes" else ""
        if last == "1/print":
            return _html("Article 1", ["/article/notes"], body, words=0)
        head = "<link rel='canonical' href='https://example.org/article/1'>" if last == "1" else ""
        return _html("Article 1" if last == "1" else "Notes", ["/article/1/print"], body, head, words=0)
    return Response("<h1>Not found</h1>", 404)


def _example_net(path: str) -> Response:
    news = {f"/news/{number}": _html(f"News {number}", ["/news/"]) for number in (1, 2, 3)}
    pages = {
        "/": _html("Example news", ["/news/"]),
        "/news/": _html("News", list(news)),
        "/robots.txt": Response("User-agent: *\nCrawl-delay: 5\n", mime="text/plain"),
        **news,
    }
    return pages.get(path, Response("<h1>Not found</h1>", 404))


def _shop_window(path: str) -> Response:
    pages = {
        "/": _html("Example, the shop window", ["/about", "/team"]),
        "/about": _html("About", ["/"]),
        "/team": _html("Team", ["/", "https://example.org/"]),
    }
    return pages.get(path, Response("<h1>Not found</h1>", 404))


def _html(title: str, links: list[str], body: str = "", head: str = "", words: int = 40) -> Response:
    anchors = "".join(f"<li><a href='{link.replace('&', '&amp;')}'>{_label(link)}</a>\n" for link in links)
    return Response(
        f"<!doctype html>\n<html lang='en'><head><meta charset='utf-8'><title>{title}</title>{head}</head>\n"
        f"<body><h1>{title}</h1>\n{body}\n<p>{_text(title, words)}</p>\n<ul>\n{anchors}</ul>\n</body></html>\n"
    )


def _label(link: str) -> str:
    return link.rstrip("/").rpartition("/")[2] or "home"


def _text(title: str, words: int) -> str:
    """Return text of its own for each title."""
    return " ".join(random.Random(title).choices(WORDS, k=words))


def _sitemap() -> str:
    paths = ["/", "/docs/", *(f"/docs/{name}" for name in DOCS), "/list/", *(f"/item/{number}" for number in ITEMS)]
    urls = "".join(
        f"<url><loc>https://example.org{path}</loc><lastmod>{LASTMOD}</lastmod></url>\n"
        for path in [*paths, "/archive/2024"]
    )
    return f"<urlset xmlns='http://www.sitemaps.org/schemas/sitemap/0.9'>\n{urls}</urlset>\n"


def _teasers() -> str:
    return "".join(
        f"<div class='teaser'><a href='/item/{number}'>Item {number}</a> {price}</div>\n"
        for number, price in ITEMS.items()
    )


_FIXED: Final = {
    "/": _html(
        "Example", ["/docs/", "/list/", "/old/", "/private/", "https://shop.example.org/", "https://example.net/"]
    ),
    "/docs/": _html("Docs", [f"/docs/{name}" for name in DOCS]),
    "/list/": _html("List", [], _teasers()),
    "/old/": _html("Old pages", ["/old/gone", "/old/moved"]),
    "/old/gone": Response("<h1>Gone</h1>", 404),
    "/old/moved": Response(status=301, headers={"Location": "/docs/"}),
    "/ring/": _html("Ring", ["/ring/a", "/ring/wall"]),
    "/ring/a": Response(status=302, headers={"Location": "/ring/b"}),
    "/ring/b": Response(status=302, headers={"Location": "/ring/a"}),
    "/ring/wall": Response(status=302, headers={"Location": "/ring/wall", "Set-Cookie": "seen=1"}),
    "/leaving": Response(status=301, headers={"Location": "https://shop.example.org/about"}),
    "/private/": _html("Private", []),
    "/archive/2024": _html("Archive 2024", ["/"]),
    "/api/": _html("API", [f"/api/{number}.json" for number in ITEMS]),
    "/article/": _html("Articles", ["/article/1", "/article/1?from=home", "/article/1/print"]),
    "/broken": Response("<h1>Something went wrong</h1>", 500),
    "/robots.txt": Response(
        "User-agent: *\nDisallow: /private/\nSitemap: https://example.org/sitemap.xml\n", mime="text/plain"
    ),
    "/sitemap.xml": Response(_sitemap(), mime="application/xml"),
}
