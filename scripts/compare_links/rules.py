"""The rules that name the class of each difference, by the mentions of the URL on pages that both crawlers have.

A rule needs evidence on the page: a link that kadcrawl loses has none, so no rule explains it.
Tests: tests/scripts/test_compare_links.py
"""

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Final
from urllib.parse import parse_qsl, unquote, urlsplit

from scripts.compare_links.mentions import Mentions
from scripts.truth import canonical

UNEXPLAINED: Final = "unexplained"
IGNORED_EXTENSIONS: Final = frozenset(
    (  # noqa: SIM905 -- as a list it has 91 lines
        "7z 7zip bz2 rar tar tar.gz xz zip mng pct bmp gif jpg jpeg png pst psp tif tiff ai drw dxf eps ps svg cdr ico "
        "webp mp3 wma ogg wav ra aac mid au aiff 3gp asf asx avi mov mp4 mpg qt rm swf wmv m4a m4v flv webm xls xlsm "
        "xlsx xltm xltx potm potx ppt pptm pptx pps doc docb docm docx dotm dotx odt ods odg odp css pdf exe bin rss "
        "dmg iso apk jar sh rb js hta bat cpl msi msp py"
    ).split()
)
"""IGNORED_EXTENSIONS of Scrapy 2.19."""
_SCHEME: Final = re.compile(r"(?!https?:)[a-z][a-z0-9+.-]*:", re.IGNORECASE)
_SLASHES: Final = re.compile("(?<!:)//+")
_ODD: Final = re.compile(r"\\|%5C|(?<!:)//", re.IGNORECASE)
"""Matches a URL that urljoin and wget may spell in their own way."""
LINK_KINDS: Final = {
    "link element": "link elements",
    "frame": "frames",
    "refresh": "meta refresh",
    "late link": "after the end",
}
"""Kinds of mentions that kadcrawl follows and LinkExtractor does not."""
WGET_KINDS: Final = {
    "head link": "other link elements",
    "embedded": "embedded",
    "srcset": "srcset",
    "style": "style",
    "raw text": "raw text",
}
"""Kinds of mentions that wget follows and kadcrawl does not."""


@dataclass(frozen=True, slots=True)
class Difference:
    """A URL that only one of two crawlers has, and the name of its class."""

    url: str
    only: str
    """The crawler that has it."""
    why: str
    where: str = ""
    """The page that names it."""
    text: str = ""
    """The URL as the page has it."""


def plain(url: str) -> str:
    """Return the form of scripts.truth of a URL, or the URL if it has none."""
    try:
        return canonical(url, "")
    except ValueError:
        return url


def decoded(url: str) -> tuple[str, str, tuple[tuple[str, str], ...]]:
    """Return what remains of a URL if escapes are decoded and parameters are sorted, as Scrapy compares URLs."""
    parts = urlsplit(url)
    return parts.netloc.lower(), unquote(parts.path), tuple(sorted(parse_qsl(parts.query, keep_blank_values=True)))


def has_ignored_extension(url: str) -> bool:
    """Return whether LinkExtractor leaves a URL out for its name."""
    path = urlsplit(url).path.lower()
    return any(path.endswith(f".{extension}") for extension in IGNORED_EXTENSIONS)


def respelled(url: str, other: str) -> bool:
    """Return whether two URLs differ in what urljoin and wget make of a backslash or of an empty segment."""
    backslashes = [each.replace("%5C", "\\").replace("%5c", "\\") for each in (url, other)]
    one, two = (_SLASHES.sub("/", plain(each)) for each in backslashes)
    return one == two


def link_differences(page: str, ours: Collection[str], theirs: Iterable[str], mentions: Mentions) -> list[Difference]:
    """Return the differences between kadcrawl's links of a page and those of LinkExtractor, each with its class."""
    listed = {url.partition("#")[0] for url in theirs}
    forms = {plain(url) for url in listed}
    found = []
    for url in ours:
        if url not in forms:
            why = _why_only_ours(url, mentions)
            if why == UNEXPLAINED and _is_respelled(url, listed):
                why = "canonical form"
            found.append(Difference(url, "kadcrawl", why, page, _text(url, mentions)))
    for url in listed:
        if url not in ours:
            why = "canonical form" if plain(url) in ours else _why_only_theirs(url, page, mentions)
            if why == UNEXPLAINED and _is_respelled(url, ours):
                why = "canonical form"
            found.append(Difference(url, "scrapy", why, page, _text(plain(url), mentions)))
    return found


def _is_respelled(url: str, others: Collection[str]) -> bool:
    """Return whether another crawler has the URL in a spelling of its own."""
    return any(respelled(url, other) for other in others if _ODD.search(url) or _ODD.search(other))


def _text(url: str, mentions: Mentions) -> str:
    mention = mentions.first(url)
    return mention.text if mention else ""


def _why_only_ours(url: str, mentions: Mentions) -> str:
    kinds = mentions.kinds(url)
    if "link" in kinds:
        if has_ignored_extension(url):
            return "file name extensions"
        return UNEXPLAINED
    return _named(kinds, LINK_KINDS)


def _why_only_theirs(url: str, page: str, mentions: Mentions) -> str:
    form = plain(url)
    kinds = mentions.kinds(form)
    if _SCHEME.match(url):
        return "other schemes"
    if form == page:
        return "the page itself"
    if mentions.nofollow_page and kinds & {"link", "nofollow"}:
        return "nofollow of the page"
    if "nofollow" in kinds and "link" not in kinds:
        return "rel=nofollow"
    return "raw text" if kinds == {"raw text"} else UNEXPLAINED


def _named(kinds: Collection[str], names: Mapping[str, str]) -> str:
    """Return the class of the first kind that has a name."""
    return next((name for kind, name in names.items() if kind in kinds), UNEXPLAINED)


class RequestRules:
    """The rules for URLs that only one of two crawlers has asked for."""

    def __init__(self, ours: Collection[str], theirs: Collection[str], other: str, mentions: Mapping[str, Mentions]):
        """`mentions` are those of every page and style sheet, by URL in the form of scripts.truth."""
        self._ours = ours
        self._theirs = theirs
        self._other = other
        self._mentions = mentions
        self._our_forms = {plain(url) for url in ours}
        self._their_forms = {plain(url) for url in theirs}
        self._naming: dict[str, dict[str, set[str]]] = {}
        for page, of_page in mentions.items():
            for mention in of_page.listed:
                self._naming.setdefault(mention.url, {}).setdefault(page, set()).add(mention.kind)

    def differences(self) -> list[Difference]:
        """Return the URLs that only one of the two has asked for, each with its class."""
        only_ours = [url for url in self._ours if url not in self._theirs]
        only_theirs = [url for url in self._theirs if url not in self._ours]
        return [
            *(self._difference(url, "kadcrawl", self._their_forms, self._why_only_ours) for url in only_ours),
            *(self._difference(url, self._other, self._our_forms, self._why_only_theirs) for url in only_theirs),
        ]

    def _difference(
        self, url: str, only: str, others: Collection[str], rule: Callable[[str, set[str], bool], str]
    ) -> Difference:
        form = plain(url)
        shared, alone = self._pages_naming(form, self._our_forms if only == "kadcrawl" else self._their_forms)
        if form in others:
            why = "canonical form"
        else:
            kinds = {kind for page in shared for kind in self._naming[form][page]}
            nofollow = any(self._mentions[page].nofollow_page for page in shared)
            why = rule(url, kinds, nofollow)
            if why == UNEXPLAINED and _is_respelled(url, self._theirs if only == "kadcrawl" else self._ours):
                why = "canonical form"
            if why == UNEXPLAINED and not shared and alone:
                why = "only from such a page"
        where = next(iter([*shared, *alone]), "")
        return Difference(url, only, why, where, _text(form, self._mentions[where]) if where else "")

    def _pages_naming(self, form: str, asked: Collection[str]) -> tuple[list[str], list[str]]:
        """Return the pages that name the URL: those that both crawlers have, and those that only its crawler has."""
        naming = [page for page, kinds in self._naming.get(form, {}).items() if page in asked and kinds]
        both = self._our_forms & self._their_forms
        return [page for page in naming if page in both], [page for page in naming if page not in both]

    def _why_only_ours(self, url: str, kinds: set[str], nofollow: bool) -> str:
        if decoded(url) in {decoded(other) for other in self._theirs}:
            return "equal after decoding"
        if self._other != "scrapy":
            return UNEXPLAINED
        if "link" not in kinds:
            return _named(kinds, LINK_KINDS)
        return "file name extensions" if has_ignored_extension(url) else UNEXPLAINED

    def _why_only_theirs(self, url: str, kinds: set[str], nofollow: bool) -> str:
        if "link" in kinds and not nofollow:
            return UNEXPLAINED
        if nofollow and kinds & {"link", "nofollow"}:
            return "nofollow of the page"
        if "nofollow" in kinds:
            return "rel=nofollow"
        return _named(kinds, WGET_KINDS) if self._other == "wget" else _named(kinds, {"raw text": "raw text"})
