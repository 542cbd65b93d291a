"""The link extractor finds the links of an HTML page, as canonical URLs, and the page's wishes to crawlers.

Two steps. First, a regular expression walks the page as HTML tokenizes it (13.2.5: comments, raw text, quoted values)
and picks the start tags that can carry a link. Then selectolax's lexbor parser reads only these tags, with their
entities and odd quoting. No tree of the page is built, as trees are where hostile pages hurt: 36 kB of unclosed ``<b
id=...>`` and ``<p>`` grow to a gigabyte in any HTML5 tree builder, and 100,000 nested ``<div>`` take lexbor 14 s. The
walk is linear in the page, and the picked tags cannot nest. The walk is also faster. The content of noscript, noframes
and iframe counts as markup, as it is written for clients without these features.

A tag that is met again in the same directory means the same, so the meaning of tags is remembered (bounded), unless it
depends on the page itself. Most pages of a site repeat most of their tags, and for these only the walk is left. The
base of a page defines its directory, and may name another site. So each tag is parsed by itself: if walk and parser
ever differed on the end of a tag in a batch, the next tag would mean what its neighbor says, on that site's pages too.

The walk (`html_walk`), plain tags and the memory of tags also exist as a native module (`native_links`), which reads
pages of ordinary size. It returns the same, or leaves a tag or a page to the code here, which is the reference.

A hostile page can take seconds, so a long page is read in turns with the peer's other work: `reading` is a generator. A
page of ordinary size is read in one turn. No I/O, no clock.
"""

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, islice
from typing import Any, NamedTuple, cast

from kadcrawl.crawl.content.charset import encoding_of
from kadcrawl.crawl.content.html_walk import WHITE, link_tags, markup_of
from kadcrawl.crawl.content.legacy_query import query_in
from kadcrawl.crawl.content.native_links import NATIVE, NativeLinks
from kadcrawl.crawl.content.refresh import refresh_target
from kadcrawl.crawl.content.robots_directives import directives
from kadcrawl.crawl.content.tag_parser import SHORT_BYTES, parsed
from kadcrawl.settings.limits import Limits
from kadcrawl.settings.request_headers import TOKEN_DEFAULT
from kadcrawl.system.cooperative import CooperativeWork, run_to_end
from kadcrawl.urls import URL_CHARS_MAX, canonical

HTML_BYTES_MAX = 16 * 1024 * 1024
"""Bytes of a page that are searched for links. The rest of a longer page is not searched."""
TAGS_MAX = 120_000
"""Tags of one page that are read, however few links they make: 2.5 s of work at most."""
BASE_CHARS_MAX = 64 * 1024 * 1024
"""The length of the base times the tags that are read, as each link is made of the whole base. With up to 559
characters, far beyond any honest base, that allows `TAGS_MAX`. With the longest base it allows 0.3 s of work."""
LINKS_CHARS_MAX = 4 * 1024 * 1024
"""Characters of all links of one page: 20,000 of 209 each. A base of 2 kB makes ten times that of a page of 50 kB."""
BATCH_TAGS = 2_000
"""Tags read at a time. After each batch the extractor checks whether the page has had its share of links."""
TURN_BYTES = 128 * 1024
"""Bytes of tags read in one turn: 20 ms of work. A shorter page yields no turn at its start."""
TURN_BASE_CHARS = 4 * 1024 * 1024
"""The length of the base, counted for each tag, that goes with them: another 20 ms."""
BASES_MAX = 100
"""Base elements without href that are skipped in the search for the base that counts."""
NATIVE_URL_CHARS_MAX = 1024
"""A page at a longer URL is left to Python, with its limits on what its links may cost."""
NATIVE_BYTES_MAX = 1024 * 1024
"""A longer page is left to Python, as even native code takes some milliseconds for it."""
NATIVE_TAGS_MAX = 8_000
"""A page with more tags is left to Python: native code reads so many in 10 ms at most."""


@dataclass(slots=True)
class Extracted:
    """The links of a page and its wishes to crawlers."""

    links: list[str]
    """Canonical URLs of other pages, distinct, in the order of the page."""
    cut: int
    """Tags left unread because the page had its share of links before, and links beyond that share."""
    nofollow: list[str]
    """Canonical URLs of other pages that are no links here, because the tag or the page says nofollow. Distinct."""
    noindex: bool
    nofollow_page: bool
    """The page says nofollow, and the job obeys that."""
    canonical: str | None
    """The URL that the page names as its canonical URL. Also among the links."""

    def with_link(self, url: str) -> "Extracted":
        """Return the same with one more link of the page, before the others."""
        if self.nofollow_page:
            return replace(self, nofollow=list(dict.fromkeys([url, *self.nofollow])))
        return replace(self, links=list(dict.fromkeys([url, *self.links])))


class _Special(NamedTuple):
    """The meaning of a tag that is no mere link, or no link."""

    url: str | None = None
    follow: bool = True
    is_canonical: bool = False
    robots: str = ""


_Meaning = str | _Special
"""The meaning of one tag. A text is a URL to follow."""
_NOTHING = _Special()
_ONLY_URLS = {str}
"""The types of meanings among which none is special."""


class _PageLinks:
    """The links that the tags of one page make, in the order of the page."""

    def __init__(self, url: str, *, obeys_nofollow: bool) -> None:
        self.links: dict[str, None] = {url: None}
        self.unfollowed: dict[str, None] = {}
        self.robots = ""
        self.hint: str | None = None
        self.cut = 0
        self._unfollowed_chars = 0
        self._obeys_nofollow = obeys_nofollow

    def add(self, meanings: Sequence[_Meaning]) -> None:
        """Add what these tags mean."""
        links = self.links
        if set(map(type, meanings)) == _ONLY_URLS:
            links.update(dict.fromkeys(cast("list[str]", meanings)))  # As nearly always, without a turn for each.
            return
        for meaning in meanings:
            if isinstance(meaning, str):
                links[meaning] = None
                continue
            target, follow, is_canonical, says = meaning
            if target is None:
                self.robots += says
            elif not follow and self._obeys_nofollow:
                self._leave_out(target)
            else:
                links[target] = None
                if is_canonical and self.hint is None:
                    self.hint = target

    def add_mixed(self, meanings: list[Any], odd: list[int]) -> None:
        """Add what these tags mean, given the places of the meanings that are no URLs to follow."""
        if len(odd) > len(meanings) // 4:
            self.add(meanings)
            return
        begin = 0
        for place in odd:
            self.links.update(dict.fromkeys(meanings[begin:place]))
            self.add(meanings[place : place + 1])
            begin = place + 1
        self.links.update(dict.fromkeys(meanings[begin:]))

    def _leave_out(self, target: str) -> None:
        if self._unfollowed_chars > LINKS_CHARS_MAX:
            self.cut += 1
        elif target not in self.unfollowed:
            self.unfollowed[target] = None
            self._unfollowed_chars += len(target)


class LinkExtractor:
    """A link extractor remembers the meaning of tags. For one thread at a time."""

    def __init__(
        self,
        limits: Limits,
        *,
        obeys_nofollow: bool = True,
        agent: str = TOKEN_DEFAULT,
        native: NativeLinks | None = NATIVE,
    ) -> None:
        """`obeys_nofollow` is False if links that say nofollow are links like all others. `agent` is the name by which
        a page speaks to this crawl. Without `native` the code here does everything."""
        self.agent = agent.lower()
        self._native = native
        # Without these words a meta element is no refresh, and no demand. Python takes the sign of Kelvin for a k.
        words = rb"robots|refresh|&|\xe2\x84\xaa|" + re.escape(self.agent.encode())
        self._meta_says = re.compile(words, re.IGNORECASE)
        self._obeys_nofollow = obeys_nofollow
        self._links_max = limits.links_per_page_max
        self._url_chars_max = limits.url_chars_max
        self._tags_max = limits.remembered_tags_max
        self._chars_max = limits.remembered_chars_max
        # By base directory and encoding; then by tag, which ends in ">", or plain href, which contains none.
        self._remembered: dict[tuple[str, str], dict[bytes, _Meaning]] = {}
        self._remembered_count = 0
        self._remembered_chars = 0

    def extract(self, body: bytes, content_type: str, url: str, x_robots_tag: str = "") -> Extracted:
        """Return the links of the HTML page `body`, found at the canonical URL `url`. Never raises.

        `content_type` and `x_robots_tag` are the values of these header fields, several lines joined by commas.

        Links are: ``href`` of a and area; ``src`` of frame and iframe; ``href`` of link if its rel says next,
        canonical or alternate (feeds too, but no stylesheets); the target of a meta refresh. They are relative to
        the first ``<base href>`` that is http(s), else to the page. A tag with rel=nofollow is left out (ugc
        and sponsored say who wrote a link, not what to do); so are all links of a page that says nofollow.
        """
        return run_to_end(self.reading(body, content_type, url, x_robots_tag))

    def reading(self, body: bytes, content_type: str, url: str, x_robots_tag: str = "") -> CooperativeWork[Extracted]:
        """Return the result of `extract`, in turns. Yields before it makes anything large of the page. Never raises."""
        is_large = len(body) > TURN_BYTES
        if is_large:
            yield
        if len(body) > HTML_BYTES_MAX:
            # Not within a character, which would look like another encoding.
            body = body[: body.rfind(b">", 0, HTML_BYTES_MAX) + 1]
        encoding = encoding_of(body, content_type)
        markup = yield from markup_of(body, encoding)
        page = self._page_at_once(markup, url, encoding)
        if page is None:
            page = _PageLinks(url, obeys_nofollow=self._obeys_nofollow)
            tags = yield from link_tags(markup, self._native)
            base = yield from _base(tags, url)
            yield from self._add_in_turns(page, tags, base, encoding, is_large=is_large)
        noindex, nofollow_page = directives(x_robots_tag, page.robots, self.agent)
        nofollow_page = nofollow_page and self._obeys_nofollow
        links = page.links
        nofollow = [target for target in page.unfollowed if target not in links]
        del links[url]
        kept = self._share(links)
        cut = page.cut + len(links) - len(kept)
        if nofollow_page:
            kept, nofollow = [], kept + nofollow
        return Extracted(kept, cut, nofollow, noindex, nofollow_page, page.hint)

    def _page_at_once(self, markup: bytes, url: str, encoding: str) -> _PageLinks | None:
        """Return the links of an ordinary page, read by native code. Return None if the page is left to Python."""
        if self._native is None or len(url) > min(NATIVE_URL_CHARS_MAX, self._url_chars_max):
            return None
        if len(markup) > NATIVE_BYTES_MAX:
            return None
        place = (_directory(url), encoding)
        known = self._remembered.get(place, {})
        tags_max = min(NATIVE_TAGS_MAX, TAGS_MAX, LINKS_CHARS_MAX // (len(url) + SHORT_BYTES))
        read = self._native.meanings(markup, known, _NOTHING, url, tags_max, self.agent)
        if read is None:
            return None
        found, unknown, fresh, odd = read
        if len(unknown) > BATCH_TAGS or _chars(unknown) > TURN_BYTES:
            return None
        if fresh:
            self._learn(place, known, fresh, url)
        if unknown:
            meanings = dict(zip(unknown, self._meanings(unknown, url, encoding), strict=True))
            for at in odd:
                if isinstance(tag := found[at], bytes):
                    found[at] = meanings[tag]
        page = _PageLinks(url, obeys_nofollow=self._obeys_nofollow)
        page.add_mixed(found, odd)
        return None if self._may_be_cut(page, markup) else page

    def _may_be_cut(self, page: _PageLinks, markup: bytes) -> bool:
        """Return whether Python may leave tags of this page unread, because the tags before make enough links."""
        links = page.links
        if len(links) <= min(self._links_max, LINKS_CHARS_MAX // URL_CHARS_MAX):
            return False
        if len(links) <= self._links_max and _chars(links) <= LINKS_CHARS_MAX:
            return False
        return markup.count(b"<") > BATCH_TAGS

    def _add_in_turns(
        self, page: _PageLinks, tags: list[bytes], base: str, encoding: str, *, is_large: bool
    ) -> CooperativeWork[None]:
        """Add the links of these tags, until the page has had its share. The rest of the tags is cut."""
        tags_max = min(TAGS_MAX, BASE_CHARS_MAX // len(base))
        links = page.links
        links_chars = 0
        counted = 1  # The page itself.
        unread = iter(tags[:tags_max])
        is_first = True
        while (
            len(links) <= self._links_max
            and links_chars <= LINKS_CHARS_MAX
            and (batch := list(islice(unread, BATCH_TAGS)))
        ):
            for turn in _turns(batch, base) if is_large or len(base) > TURN_BASE_CHARS // BATCH_TAGS else (batch,):
                if not is_first:
                    yield
                is_first = False
                page.add(self._meanings(turn, base, encoding, self._native))
            if len(links) > LINKS_CHARS_MAX // URL_CHARS_MAX:
                links_chars += _chars(islice(links, counted, None))
                counted = len(links)
        page.cut += sum(1 for _ in unread) + len(tags[tags_max:])

    def _share(self, found: Iterable[str]) -> list[str]:
        """Return the first of these links, as many as one page may have."""
        kept = list(islice(found, self._links_max))
        if len(kept) <= LINKS_CHARS_MAX // URL_CHARS_MAX:
            return kept
        return kept[: bisect_right(list(accumulate(map(len, kept))), LINKS_CHARS_MAX)]

    def _meanings(
        self, tags: list[bytes], base: str, encoding: str, native: NativeLinks | None = None
    ) -> list[_Meaning]:
        """Return the meaning of each tag on a page with this base and encoding. Unknown tags are read."""
        place = (_directory(base), encoding)
        known = self._remembered.get(place, {})
        fresh: dict[bytes, _Meaning] = {}
        odd: list[bytes] = []
        once: dict[bytes, _Meaning] = {}
        unknown = list(dict.fromkeys([tag for tag in tags if tag not in known]))
        if native is not None and len(base) <= NATIVE_URL_CHARS_MAX:
            fresh, unknown = native.plain(unknown, base, self.agent)
        for tag in unknown:
            if len(tag) <= SHORT_BYTES and (plain := _PLAIN.fullmatch(tag)):
                if href := plain[2]:
                    meaning = known.get(href) or fresh.get(href)
                    fresh[href] = fresh[tag] = meaning or canonical(href.decode("ascii"), base) or _NOTHING
                else:
                    once[tag] = base
            elif self._may_say(tag):
                odd.append(tag)
        for tag in odd:
            meaning, lasting = _read(tag, base, encoding, self.agent, self._native)
            (fresh if lasting and len(tag) <= SHORT_BYTES else once)[tag] = meaning
        if fresh and len(base) > self._url_chars_max:
            once.update(fresh)  # What is relative to it is never in scope.
        elif fresh:
            self._learn(place, known, fresh, base)
        return [known.get(tag) or once.get(tag, _NOTHING) for tag in tags]

    def _may_say(self, tag: bytes) -> bool:
        """Return whether a tag has to be parsed: most meta and link elements are about something else."""
        first = tag[:1]
        if first in b"mM" and self._meta_says.search(tag) is None:
            return False
        if first in b"lL" and _LINK_SAYS.search(tag) is None:
            return False
        return _SAYS_SOMETHING.search(tag) is not None

    def _learn(
        self, place: tuple[str, str], known: dict[bytes, _Meaning], fresh: dict[bytes, _Meaning], base: str
    ) -> None:
        known.update(fresh)
        self._remembered_count += len(fresh)
        # As often as not a tag and its URL are no longer than this; a URL in escapes may be.
        self._remembered_chars += (len(fresh) + 1) * len(base) + 2 * _chars(fresh)
        if self._remembered_count > self._tags_max or self._remembered_chars > self._chars_max:
            self._remembered.clear()
            self._remembered_count = self._remembered_chars = 0
        else:
            self._remembered[place] = known


def _turns(tags: list[bytes], base: str) -> Iterator[list[bytes]]:
    """Yield these tags in parts that others can wait for."""
    tags_max = max(1, TURN_BASE_CHARS // len(base))
    if len(tags) <= tags_max and _chars(tags) <= TURN_BYTES:
        yield tags
        return
    start = size = 0
    for end, tag in enumerate(tags):
        if end > start and (size + len(tag) > TURN_BYTES or end - start >= tags_max):
            yield tags[start:end]
            start, size = end, 0
        size += len(tag)
    yield tags[start:]


def _chars(texts: Iterable[str | bytes]) -> int:
    return sum(map(len, texts))


# --- what a tag says -------------------------------------------------------------------------------------------

_PLAIN_VALUE = rb"[^\"'&:#>\x00-\x20\x7f-\xff]"
_OTHERS = rb"(?:(?>[%b]++(?!href|rel)[a-z-]++=\"[^\"]*+\"))*+" % WHITE
_PLAIN = re.compile(
    rb"a%b[%b]++href=([\"'])((?>(?:https?://)?)(?!\?)%b++)?(?:#[^\"']*+)?\1%b[%b]*+>"
    % (_OTHERS, WHITE, _PLAIN_VALUE, _OTHERS, WHITE)
)
"""Most tags: their href, short of the fragment, needs no parser, and means the same all over the directory."""
_SAYS_SOMETHING = re.compile(rb"href|src|content", re.IGNORECASE)
_LINK_SAYS = re.compile(rb"next|canonical|alternate|&", re.IGNORECASE)
"""A link element without these words is a stylesheet or the like. A reference may hide such a word."""
_BASE = re.compile(rb"base[%b/]" % WHITE, re.IGNORECASE)
_PAGE_DEPENDENT = re.compile(r"^[\x00-\x20]*+(?:[?#]|$|https?:(?!//))|[\t\n\r]", re.IGNORECASE)
"""Matches an href with line breaks, or with another meaning on the next page of the directory. Both are rare."""


def _base(tags: list[bytes], url: str) -> CooperativeWork[str]:
    """Return the URL that the links of this page are relative to."""
    if b"base" in b"".join(tags).lower():
        bases = [tag for tag in tags if tag[0] in b"bB" and _BASE.match(tag)][:BASES_MAX]
        for tag in bases:
            if len(tag) > TURN_BYTES // BASES_MAX:
                yield
            if (href := parsed(tag)[1].get("href")) is not None:
                return canonical(href, url) or url
    return url


def _read(tag: bytes, base: str, encoding: str, agent: str, native: NativeLinks | None) -> tuple[_Meaning, bool]:
    """Return the meaning of a tag, and whether the meaning is the same on all pages of the base's directory."""
    name, attributes = parsed(tag)
    rel = (attributes.get("rel") or "").lower().split()
    if name == "meta":
        href, robots = _meta(attributes, agent)
    else:
        href, robots = attributes.get("src" if name == "embed" else "href"), ""
    if name == "link" and ("stylesheet" in rel or not {"next", "canonical", "alternate"}.intersection(rel)):
        href = None
    if href is None or name == "base" or (not href and name in ("link", "embed")):
        return _Special(robots=robots) if robots else _NOTHING, True
    if encoding != "utf-8" and not href.isascii():
        href = query_in(encoding, href)
    lasting = _PAGE_DEPENDENT.search(href) is None
    follow = name == "link" or "nofollow" not in rel
    is_native = native is not None and href.isascii() and len(href) <= NATIVE_URL_CHARS_MAX
    url = native.join(base, href.encode()) if native is not None and is_native else None
    if url is None and (url := canonical(href, base)) is None:
        return _NOTHING, lasting
    is_hint = name == "link" and "canonical" in rel
    return _Special(url, follow, is_hint) if is_hint or not follow else url, lasting


def _meta(attributes: dict[str, str | None], agent: str) -> tuple[str | None, str]:
    """Return the target of a meta element's refresh, or None, and its demands on robots, with a comma before."""
    content = attributes.get("content") or ""
    if (attributes.get("name") or "").strip().lower() in ("robots", agent):
        return None, "," + content
    if (attributes.get("http-equiv") or "").strip().lower() == "refresh":
        return refresh_target(content), ""
    return None, ""


def _directory(url: str) -> str:
    return url.partition("?")[0].rpartition("/")[0]
