"""The mentions of a page or style sheet: every place that names a URL, whether or not a crawler follows it.

The reader is the standard library's, and shares no line with kadcrawl: what both agree on was worked out twice.
Tests: tests/scripts/test_compare_links.py
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser
from typing import Final
from urllib.parse import urljoin

from scripts.truth import canonical

LINK_RELATIONS: Final = frozenset({"next", "alternate", "canonical"})
_REFRESH: Final = re.compile(r"""[\d.\s]*[;,]\s*(?:url\s*=)?\s*["']?(?P<url>[^"']+)""", re.IGNORECASE)
_CSS_URL: Final = re.compile(r"""url\(\s*["']?([^"')]+)["']?\s*\)|@import\s+["']([^"']+)["']""", re.IGNORECASE)
_EMBEDDED: Final = {
    "img": ("src", "longdesc"),
    "script": ("src",),
    "source": ("src",),
    "input": ("src",),
    "embed": ("src",),
    "audio": ("src",),
    "video": ("src", "poster"),
    "track": ("src",),
    "object": ("data",),
    "body": ("background",),
    "table": ("background",),
    "td": ("background",),
    "th": ("background",),
}
_RAW_TEXT: Final = re.compile(
    r"<!--.*?-->|(<(textarea|title|xmp|noembed|script|style)\b[^>]*>)(.*?)</\2\s*>", re.DOTALL | re.IGNORECASE
)
"""A comment, or an element whose content has no markup: its start tag, name and content."""
_HREF: Final = re.compile(r"""href\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s"'>]+))""", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Mention:
    """A place that names a URL."""

    kind: str
    """link, late link, nofollow, link element, head link, frame, refresh, embedded, srcset, style, or raw text.

    A late link stands after the end of the document. A head link is a link element that kadcrawl does not follow."""
    text: str
    """The URL as it stands there."""
    url: str
    """The URL in the form of scripts.truth, or "" if it has none."""


@dataclass(slots=True)
class Mentions:
    """The mentions of a page, and what the page says of all its links."""

    listed: list[Mention] = field(default_factory=list)
    nofollow_page: bool = False

    def kinds(self, url: str) -> set[str]:
        """Return the kinds of the mentions of a URL in the form of scripts.truth."""
        return {mention.kind for mention in self.listed if mention.url == url}

    def first(self, url: str) -> Mention | None:
        """Return the first mention of a URL."""
        return next((mention for mention in self.listed if mention.url == url), None)


def of_page(text: str, url: str) -> Mentions:
    """Return the mentions of a page."""
    reader = _Reader()
    reader.feed(_RAW_TEXT.sub(lambda raw: f"{raw[1]}</{raw[2]}>" if raw[1] else "", text))
    reader.close()
    base = urljoin(url, reader.base) if reader.base else url
    found = [*reader.found, *_in_raw_text(text)]
    return Mentions([_mention(kind, named, base) for kind, named in found], reader.nofollow_page)


def of_style_sheet(text: str, url: str) -> Mentions:
    """Return the mentions of a style sheet."""
    return Mentions([_mention("style", named, url) for named in _styled(text)])


def _mention(kind: str, text: str, base: str) -> Mention:
    try:
        return Mention(kind, text, canonical(text, base))
    except ValueError:
        return Mention(kind, text, "")


def _styled(text: str) -> Iterator[str]:
    for found in _CSS_URL.finditer(text):
        yield found[1] or found[2]


def _in_raw_text(text: str) -> Iterator[tuple[str, str]]:
    """Yield what a style sheet in the page names, and what looks like a link in text that is no markup."""
    for raw in _RAW_TEXT.finditer(text):
        if (raw[2] or "").lower() == "style":
            yield from (("style", named) for named in _styled(raw[3]))
        for href in _HREF.finditer(raw[3] or raw[0]):
            yield "raw text", href[1] or href[2] or href[3] or ""


class _Reader(HTMLParser):
    """A parser that collects the mentions of a page, as written."""

    def __init__(self) -> None:
        super().__init__()
        self.base: str | None = None
        self.found: list[tuple[str, str]] = []
        self.nofollow_page = False
        self._ended = False

    def handle_endtag(self, tag: str) -> None:
        self._ended |= tag == "html"

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in reversed(attributes)}
        relations = set(values.get("rel", "").lower().split())
        match tag:
            case "a" | "area":
                kind = "late link" if self._ended else "link"
                self._add("nofollow" if "nofollow" in relations else kind, values.get("href"))
            case "link":
                self._add(_kind_of_link(relations), values.get("href"))
            case "frame" | "iframe":
                self._add("frame", values.get("src"))
            case "base" if self.base is None:
                self.base = values.get("href")
            case "meta":
                self._meta(values)
        for name in _EMBEDDED.get(tag, ()):
            self._add("embedded", values.get(name))
        for candidate in values.get("srcset", "").split(","):
            self._add("srcset", candidate.split()[0] if candidate.split() else None)
        for named in _styled(values.get("style", "")):
            self._add("style", named)

    def _meta(self, values: dict[str, str]) -> None:
        content = values.get("content", "")
        if values.get("http-equiv", "").strip().lower() == "refresh":
            found = _REFRESH.match(content)
            self._add("refresh", found["url"] if found else None)
        if values.get("name", "").strip().lower() == "robots":
            self.nofollow_page |= bool(re.search(r"\b(nofollow|none)\b", content.lower()))

    def _add(self, kind: str, named: str | None) -> None:
        if named is not None:
            self.found.append((kind, named))


def _kind_of_link(relations: set[str]) -> str:
    if "stylesheet" in relations or not relations & LINK_RELATIONS:
        return "head link"
    return "link element"
