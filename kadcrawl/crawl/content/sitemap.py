"""The URLs a sitemap lists (sitemaps.org 0.9): a urlset, an index of sitemaps, or lines of text, packed by gzip or not.

A feed lists the newest pages of a site, so it is read as a sitemap is: the items of RSS (0.91 to 2.0), with their
pubDate, and the entries of Atom (RFC 4287), with the date of their update.

A sitemap is a page like any other: it is offered to its owner, fetched at its site's pace, and the URLs it lists are
its links; which of them are followed the scope says, not the protocol. Here is only how they are read. What it says
beside ``loc`` and ``lastmod`` (changefreq, priority, images, translations) is passed over.

Nothing in it is trusted. The XML is read by expat piece by piece, without a tree. Declarations in the document, and so
all entities, end the reading, as do nesting, tokens and elements beyond any honest number; what was read before a
fault counts. A full sitemap takes half a second, so it is read in turns with whatever else the peer does: `read` is a
generator. Pure: no I/O, no clock.
"""

from collections.abc import Generator, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from encodings.aliases import aliases
from io import BytesIO
from typing import Final, NamedTuple
from xml.parsers import expat

import webencodings

from kadcrawl.crawl.fetch.content_encoding import GZIP_MAGIC, BodyError, decoding
from kadcrawl.crawl.scope.sitemap_urls import AHEAD_S
from kadcrawl.urls import URL_CHARS_MAX, canonical

XML = frozenset({"text/xml", "application/xml", "application/rss+xml", "application/atom+xml", "application/rdf+xml"})
"""Media types that may be a sitemap or a feed under any name."""
URLS_CHARS_MAX = 16 * 1024 * 1024
"""Characters of all URLs kept of one sitemap: 50,000 of 335 each, where the longest would take 400 MB."""
ELEMENTS_MAX = 1_000_000
"""Elements, or lines of text, that are read: about 2 s of work. A full sitemap with ten translations has 750,000."""
NESTING_MAX = 64
"""The depth of nested elements, as expat remembers them all. An honest sitemap has five, and a feed may hold pages."""
TOKEN_BYTES_MAX = 1024 * 1024
"""Bytes of one tag or comment. expat begins an unended token anew with each piece."""
NAMES_CHARS_MAX = 64 * 1024
"""Characters of all distinct names of elements and attributes, which expat and Python remember. Honest sitemaps have
some hundred."""
PIECE_BYTES = 64 * 1024
"""Handed to expat, or read of lines, at a time: some 5 ms of work."""
LINE_BYTES = 64
"""Bytes that a line of text counts beside its own, as an empty line is work as well."""

_BEFORE_XML = b"\xef\xbb\xbf\xfe\xff\0 \t\r\n"
"""Byte-order marks, blanks, and the zeros of UTF-16."""
_CODECS = frozenset({*aliases, *aliases.values()})
"""Names of Python's encodings, in Python's spelling. Some are known only by their names on the web."""


class _Form(NamedTuple):
    """The elements of one form of a sitemap or feed that count."""

    entry: str
    location: str
    date: str
    depth: int = 2
    """The nesting of an entry: 2 below the root."""
    permalink: str = ""
    """The element that has the location if its text is an absolute URL, and the entry has no other."""
    is_mixed: bool = False
    """The elements that count are of several namespaces."""


_FORMS: Final = {
    "urlset": _Form("url", "loc", "lastmod"),
    "sitemapindex": _Form("sitemap", "loc", "lastmod"),
    "rss": _Form("item", "link", "pubDate", depth=3, permalink="guid"),
    "RDF": _Form("item", "link", "date", is_mixed=True),
    "feed": _Form("entry", "link", "updated"),
}
"""The form by the name of the root: sitemaps, RSS 0.91 to 2.0, RSS 1.0, Atom."""
_NAMES = frozenset(name for form in _FORMS.values() for name in (*form[:3], form.permalink or form.entry))
"""Names of elements that count, if they stand in their place."""
_TEXT_CHARS_MAX = 2 * URL_CHARS_MAX
"""Characters of a loc or lastmod, with the blanks around it. A longer value counts as empty."""


@dataclass(slots=True)
class Sitemap:
    """The URLs of a sitemap."""

    locations: dict[str, float | None] = field(default_factory=dict)
    """Canonical URLs of pages or of further sitemaps, each with the wall-clock second of its last change.

    None stands for a missing or impossible date. A date without a time means the beginning of its day, perhaps a day
    still to come.
    """
    cut: int = 0
    """URLs left out because there are too many."""
    faulty: bool = False
    """True if the sitemap could not be read to its end."""


def read(
    content: bytes, mime: str, url: str, *, expected: bool, now: float, urls_max: int, bytes_max: int
) -> Generator[None, None, Sitemap | None]:
    """Return the sitemap in the page at this canonical URL, or None. Yields after each piece read.

    `expected` is true if its name or a robots.txt says that the page is a sitemap. Other pages are read only if their
    type is XML. `now` is the wall-clock second of the fetch. `bytes_max` limits the unpacked content.
    """
    if not expected and mime not in XML:
        return None
    sitemap = Sitemap()
    shelf = _Shelf(sitemap, urls_max)
    if expected and content.startswith(GZIP_MAGIC):
        try:
            content = yield from decoding(content, "gzip", bytes_max)
        except BodyError:
            return Sitemap(faulty=True)
    if content[:PIECE_BYTES].lstrip(_BEFORE_XML).startswith(b"<"):
        is_one = yield from _SitemapReader(sitemap, shelf, url, now).read(content)
        return sitemap if is_one else None
    if expected:
        yield from _read_lines(content, sitemap, shelf)
    return sitemap if sitemap.locations else None


def changed_at(lastmod: str, now: float) -> float | None:
    """Return a W3C datetime (a profile of ISO 8601) in wall-clock seconds, or None if malformed or too far ahead.

    A missing part means its beginning, and a missing time zone means UTC.
    """
    text = lastmod.strip()
    try:
        at = datetime.fromisoformat(text + {4: "-01-01", 7: "-01"}.get(len(text), ""))
        seconds = (at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        return None
    return seconds if 0 <= seconds <= now + AHEAD_S else None


def published_at(date: str, now: float) -> float | None:
    """Return the date of an entry in wall-clock seconds: a W3C datetime, or a date of RFC 822 as RSS has it."""
    if (seconds := changed_at(date, now)) is not None:
        return seconds
    try:
        at = parsedate_to_datetime(date.strip()[:_DATE_CHARS_MAX])
        seconds = (at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp()
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
    return seconds if 0 <= seconds <= now + AHEAD_S else None


_DATE_CHARS_MAX = 64


class _Shelf:
    """A shelf collects URLs until there are as many as allowed."""

    def __init__(self, sitemap: Sitemap, urls_max: int) -> None:
        self._sitemap = sitemap
        self._urls_max = urls_max
        self._chars_left = URLS_CHARS_MAX

    def put(self, text: str, base: str | None, lastmod: str | None = None, now: float = 0.0) -> None:
        """Put a URL on the shelf unless it is there already. `text` is relative to `base`. Text that is no URL is
        ignored."""
        sitemap = self._sitemap
        if len(sitemap.locations) >= self._urls_max or self._chars_left <= 0:
            sitemap.cut += 1
        elif (url := canonical(text.strip(), base)) is not None and url not in sitemap.locations:
            sitemap.locations[url] = published_at(lastmod, now) if lastmod else None
            self._chars_left -= len(url)


def _read_lines(content: bytes, sitemap: Sitemap, shelf: _Shelf) -> Iterator[None]:
    """Read a sitemap with a URL per line, and yield now and then."""
    piece = 0
    for number, line in enumerate(BytesIO(content.removeprefix(b"\xef\xbb\xbf"))):
        if number >= ELEMENTS_MAX:
            sitemap.faulty = True
            return
        piece += len(line) + LINE_BYTES
        if piece >= PIECE_BYTES:
            piece = 0
            yield
        if len(line) <= URL_CHARS_MAX:
            shelf.put(line.decode("utf-8", "replace"), None)


class _Stop(Exception):
    """Nothing more is to be read."""


class _SitemapReader:
    """A reader of one XML sitemap or feed: the entries of its form, in any namespace.

    The reader looks namespaces up itself, for the few elements that count. expat would put the namespace before each
    name, so that a namespace of a megabyte, in a page of a kilobyte, would cost gigabytes.
    """

    def __init__(self, sitemap: Sitemap, shelf: _Shelf, url: str, now: float) -> None:
        self._sitemap = sitemap
        self._shelf = shelf
        self._url = url
        self._now = now
        self._names: dict[str, str] = {}
        """Names met so far, which the parser shares. None is among them if a document type leaves out a part."""
        self._parser = parser = expat.ParserCreate(intern=self._names)
        parser.buffer_text = True
        parser.XmlDeclHandler = _refuse_unknown_encodings
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.StartDoctypeDeclHandler = _refuse_declarations
        self._elements = self._depth = 0
        self._form: _Form | None = None
        self._entry_depth = 2
        self._namespace = ""
        """The namespace of all that counts. The root sets it, and the form."""
        self._in_entry = False
        self._of_root: dict[str, str] = {}
        self._of_entry: dict[str, str] = {}
        """The attributes of the element that counts."""
        self._plain: dict[str, str] = {}
        """Tag -> `_name` of an element that has no attributes, nor has its entry."""
        self._field = ""
        """Name of the element of the entry that is being read, if it counts."""
        self._said: dict[str, str] = {}
        """Element of the entry -> its text."""
        self._text: list[str] = []
        self._text_chars = 0

    def read(self, content: bytes) -> Generator[None, None, bool]:
        """Read until the end or the first fault, and return whether this is a sitemap at all. Yields after each
        piece."""
        parser = self._parser
        try:
            for start in range(0, len(content), PIECE_BYTES):
                end = min(start + PIECE_BYTES, len(content))
                parser.Parse(content[start:end], end == len(content))
                is_long = parser.CurrentByteIndex < end - TOKEN_BYTES_MAX
                if is_long or sum(len(name or "") for name in self._names) > NAMES_CHARS_MAX:
                    raise _Stop
                yield
        except (expat.ExpatError, _Stop, LookupError, ValueError, MemoryError):
            # LookupError and ValueError are what Python says of an encoding that it cannot give to expat.
            self._sitemap.faulty = True
        finally:
            del self._parser  # It has the handlers, and they have it: some megabytes would wait for the collector.
        return self._form is not None

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        self._elements += 1
        self._depth += 1
        form = self._form
        if form is None:
            self._take_root(tag, attributes)
        elif self._depth == self._entry_depth + 1 and self._in_entry:
            name = self._name(tag, attributes)
            if name == "link" and form.entry == "entry":
                self._take_href(attributes)
            elif name in form[1:3] or (name and name == form.permalink and _is_permalink(attributes)):
                self._field, self._text, self._text_chars = name, [], 0
                self._parser.CharacterDataHandler = self._take_text
        elif self._depth == self._entry_depth:
            self._of_entry = {}
            self._in_entry = self._name(tag, attributes) == form.entry
            self._of_entry = attributes
        if self._elements > ELEMENTS_MAX or self._depth > NESTING_MAX:
            raise _Stop

    def _end(self, tag: str) -> None:
        if self._depth == self._entry_depth + 1 and self._field:
            self._parser.CharacterDataHandler = None
            self._said.setdefault(self._field, "".join(self._text) if self._text_chars <= _TEXT_CHARS_MAX else "")
            self._field = ""
        elif self._depth == self._entry_depth and self._said and (form := self._form) is not None:
            permalink = self._said.get(form.permalink, "").strip()
            if loc := self._said.get(form.location) or (permalink if "://" in permalink else ""):
                self._shelf.put(loc, self._url, self._said.get(form.date), self._now)
            self._said = {}
        self._depth -= 1

    def _take_href(self, attributes: dict[str, str]) -> None:
        """Take the location of an entry of Atom: its first link to a page of its own."""
        href = attributes.get("href", "")
        if attributes.get("rel", "alternate") == "alternate" and 0 < len(href) <= _TEXT_CHARS_MAX:
            self._said.setdefault("link", href)

    def _take_root(self, tag: str, attributes: dict[str, str]) -> None:
        form = _FORMS.get(tag.rpartition(":")[2])
        if form is None:
            raise _Stop
        self._form, self._entry_depth = form, form.depth
        self._namespace, self._of_root = self._namespace_of(tag, attributes), attributes

    def _name(self, tag: str, attributes: dict[str, str]) -> str:
        """Return an element's name without its prefix, or nothing if the element does not count or has another
        namespace."""
        is_plain = not attributes and not self._of_entry
        if is_plain and (known := self._plain.get(tag)) is not None:
            return known
        name = tag.rpartition(":")[2]
        if name not in _NAMES or not self._is_of_form(tag, attributes):
            name = ""
        if is_plain:
            self._plain[tag] = name
        return name

    def _is_of_form(self, tag: str, attributes: dict[str, str]) -> bool:
        """Say whether an element has the namespace of all that counts, if its form has one."""
        is_mixed = self._form is not None and self._form.is_mixed
        return is_mixed or self._namespace_of(tag, attributes) == self._namespace

    def _namespace_of(self, tag: str, attributes: dict[str, str]) -> str:
        """Return an element's namespace, or its prefix if no element around it defines the prefix."""
        prefix, colon, _ = tag.rpartition(":")
        declaration = "xmlns" + colon + prefix
        for declared in (attributes, self._of_entry, self._of_root):
            if declaration in declared:
                return declared[declaration]
        return prefix

    def _take_text(self, text: str) -> None:
        self._text_chars += len(text)
        if self._text_chars <= _TEXT_CHARS_MAX:
            self._text.append(text)


def _is_permalink(attributes: dict[str, str]) -> bool:
    """Say whether a guid of RSS with these attributes is a URL."""
    return attributes.get("isPermaLink", "true").strip().lower() != "false"


def _refuse_unknown_encodings(version: str, encoding: str | None, standalone: int) -> None:
    """Python is asked for no encoding that it cannot know: it would look for a module, and keep each name for ever."""
    if encoding and encoding.lower().replace("-", "_") not in _CODECS and webencodings.lookup(encoding) is None:
        raise _Stop


def _refuse_declarations(name: str, system_id: str | None, public_id: str | None, has_declarations: bool) -> None:
    """Refuse a document type with declarations of its own, which may define entities. An external document type is
    never fetched."""
    if has_declarations:
        raise _Stop
