"""Test the entries of a sitemap in every form and compression, and the limits on the cost of its content."""

import codecs
import gc
import gzip
import tracemalloc
from collections.abc import Callable, Generator
from xml.parsers import expat

import pytest

from kadcrawl.crawl.content import sitemap
from kadcrawl.crawl.content.sitemap import Sitemap, changed_at, read
from kadcrawl.crawl.scope.sitemap_urls import named_like_one, of_origin
from kadcrawl.urls import URL_CHARS_MAX

URL = "http://a.test/map/sitemap.xml"
NOW = 1_800_000_000.0
SPACE = 'xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"'


def returned(reading: Generator[None, None, Sitemap | None]) -> Sitemap | None:
    """Return the sitemap that was read when all turns were taken."""
    while True:
        try:
            next(reading)
        except StopIteration as over:
            sitemap: Sitemap | None = over.value
            return sitemap


def urlset(*locs: str, space: str = SPACE) -> str:
    return f"<urlset {space}>{''.join(f'<url><loc>{loc}</loc></url>' for loc in locs)}</urlset>"


def listed(
    content: str | bytes, mime: str = "application/xml", *, expected: bool = True, urls_max: int = 100
) -> Sitemap | None:
    content = content.encode() if isinstance(content, str) else content
    return returned(read(content, mime, URL, expected=expected, now=NOW, urls_max=urls_max, bytes_max=1_000_000))


def urls(content: str | bytes, mime: str = "application/xml", *, expected: bool = True) -> list[str] | None:
    found = listed(content, mime, expected=expected)
    assert found is None or not found.faulty
    return None if found is None else list(found.locations)


@pytest.mark.parametrize(
    ("content", "found"),
    [
        (urlset("http://a.test/1", "HTTP://A.test/%7e2#x", "http://a.test/1"), ["http://a.test/1", "http://a.test/%7E2"]),
        (urlset("http://a.test/?a=1&amp;b=2", "<![CDATA[http://a.test/?a=1&b=2&c]]>"),
         ["http://a.test/?a=1&b=2", "http://a.test/?a=1&b=2&c"]),
        (urlset("\n  http://a.test/1\n", "/2", "", "ftp://a.test/", "mailto:a@b.c", "http://"),
         ["http://a.test/1", "http://a.test/2"]),
        (urlset("http://a.test/1", space=""), ["http://a.test/1"]),
        (urlset("http://a.test/1", space='xmlns="http://www.google.com/schemas/sitemap/0.84"'), ["http://a.test/1"]),
        (f"<s:urlset {SPACE.replace('xmlns', 'xmlns:s')}><s:url><s:loc>/1</s:loc></s:url></s:urlset>", ["http://a.test/1"]),
        (f"<sitemapindex {SPACE}><sitemap><loc>/1.xml.gz</loc></sitemap><url><loc>/2</loc></url></sitemapindex>",
         ["http://a.test/1.xml.gz"]),
        (f'<urlset {SPACE} xmlns:i="image"><url><i:image><i:loc>/no</i:loc></i:image><loc>/1</loc><i:loc>/no</i:loc>'
         "<changefreq>daily</changefreq><priority>1</priority></url><loc>/no</loc></urlset>", ["http://a.test/1"]),
        ('<s:urlset xmlns:s="A" xmlns="A"><url><t:loc xmlns:t="A">/1</t:loc></url><url xmlns="B"><loc>/no</loc></url>'
         '<s:url xmlns:s="B"><s:loc>/no</s:loc><loc xmlns="A">/no</loc></s:url><url xmlns:s="B"><s:loc>/no</s:loc>'
         '<loc>/2</loc></url><url xmlns=""><loc>/no</loc></url></s:urlset>', ["http://a.test/1", "http://a.test/2"]),
        ('<urlset xmlns="A"><url><image:image><image:loc>/no</image:loc></image:image><image:loc>/no</image:loc>'
         "<loc>/1</loc></url></urlset>", ["http://a.test/1"]),
        ("<s:urlset><s:url><loc>/no</loc><s:loc>/1</s:loc></s:url><url><loc>/no</loc></url></s:urlset>", ["http://a.test/1"]),
        ("\ufeff \n<!-- by hand --><?xml-stylesheet href='a'?>" + urlset("/1"), ["http://a.test/1"]),
        ('<!DOCTYPE urlset SYSTEM "http://evil.test/x.dtd">' + urlset("/1"), ["http://a.test/1"]),
        (('<?xml version="1.0" encoding="utf-16"?>' + urlset("/1")).encode("utf-16"), ["http://a.test/1"]),
        (('<?xml version="1.0" encoding="KOI8-U"?>' + urlset("/\u0457")).encode("koi8-u"), ["http://a.test/%D1%97"]),
        (('<?xml version="1.0" encoding="latin-1"?>' + urlset("/\xe9")).encode("latin-1"), ["http://a.test/%C3%A9"]),
        (('<?xml version="1.0" encoding="cp437"?>' + urlset("/\xe9")).encode("cp437"), ["http://a.test/%C3%A9"]),
        (('<?xml version="1.0" encoding="iso-8859-2"?>' + urlset("/\u0159")).encode("iso-8859-2"), ["http://a.test/%C5%99"]),
        (gzip.compress(urlset("/1").encode(), mtime=0), ["http://a.test/1"]),
        (gzip.compress(b"<urlset><url><loc>/1</loc></url>", mtime=0) + gzip.compress(b"</urlset>", mtime=0), ["http://a.test/1"]),
        (urlset(), []),
        ("http://a.test/1\r\nhttp://a.test/2#x\n\n/3\nnot a URL\n", ["http://a.test/1", "http://a.test/2"]),
        (b"\xef\xbb\xbfhttp://a.test/1\nhttp://a.test/" + b"x" * 9_000, ["http://a.test/1"]),
        (gzip.compress(b"http://a.test/1", mtime=0), ["http://a.test/1"]),
        ("<html><body><a href='/1'>http://a.test/1</a></body></html>", None),
        ("<!doctype html><p>http://a.test/1", None),
        ("<rss><channel><link>/no</link><item><link> http://a.test/1\n</link><title>T</title></item></channel></rss>",
         ["http://a.test/1"]),
        ('<rss xmlns:atom="A"><channel><atom:link href="/no"/><item><atom:link>/no</atom:link>'
         "<link/><guid>http://a.test/g</guid></item><item><guid isPermaLink='false'>http://a.test/no</guid></item>"
         "<item><guid>no-url</guid></item><item><link>/2</link><guid>http://a.test/no</guid></item></channel></rss>",
         ["http://a.test/g", "http://a.test/2"]),
        ('<rdf:RDF xmlns:rdf="R" xmlns="http://purl.org/rss/1.0/"><channel><link>/no</link></channel>'
         "<item rdf:about='/x'><title>T</title><link>/1</link></item></rdf:RDF>", ["http://a.test/1"]),
        ('<feed xmlns="A"><link href="/no"/><link rel="self" href="/no"/><entry><link rel="edit" href="/no"/>'
         '<link rel="alternate" href="/1"/><link href="/no"/><content><div><link href="/no"/></div></content></entry>'
         '<entry><link href="http://a.test/2?a&amp;b"/></entry><entry><link/><link href=""/></entry></feed>',
         ["http://a.test/1", "http://a.test/2?a&b"]),
        ('<a:feed xmlns:a="A"><a:entry><a:link href="/1"/><link href="/no"/></a:entry></a:feed>', ["http://a.test/1"]),
        ("<html><body/></html>", None),
        ("nothing to be found here", None),
        ("", None),
        (b"\x89PNG\r\n", None),
    ],
)  # fmt: skip
def test_what_is_listed(content: str | bytes, found: list[str] | None) -> None:
    assert found == urls(content)


@pytest.mark.parametrize(
    ("mime", "expected", "is_read"),
    [
        ("application/xml", False, True),
        ("text/xml", False, True),
        ("text/html", False, False),
        ("", False, False),
        ("application/octet-stream", False, False),
        ("text/html", True, True),
        ("application/x-gzip", True, True),
        ("", True, True),
    ],
)
def test_a_sitemap_is_named_so_or_is_xml_by_type(mime: str, expected: bool, is_read: bool) -> None:
    assert (["http://a.test/1"] if is_read else None) == urls(urlset("/1"), mime, expected=expected)


def test_lines_and_packed_content_are_a_sitemap_only_where_one_is_expected() -> None:
    assert listed("http://a.test/1", "text/xml", expected=False) is None
    assert listed(gzip.compress(urlset("/1").encode(), mtime=0), "text/xml", expected=False) is None


ENTITY = '<!DOCTYPE urlset [<!ENTITY a "/1"><!ENTITY b SYSTEM "file:///etc/hostname">]>'


@pytest.mark.parametrize(
    ("content", "found"),
    [
        ("<urlset><url><loc>/1</loc></url><url><loc>/2?a&b</loc></url></urlset>", ["http://a.test/1"]),
        ("<urlset><url><loc>/1</loc></url><url><loc>/2</loc>", ["http://a.test/1"]),
        ("<urlset><url><loc>/1</loc></url></urlset><p>", ["http://a.test/1"]),
        ("<urlset><url><loc>/1</loc></url>" + "<a>" * 20, ["http://a.test/1"]),
        ("<urlset><url><loc>/1</loc></url>\0</urlset>", ["http://a.test/1"]),
        ("<urlset><url><loc>&undefined;</loc></url></urlset>", []),
        (gzip.compress(urlset("/1").encode(), mtime=0)[:-9], []),
        (gzip.compress(b" " * 1_000_001, mtime=0), []),
    ],
)
def test_what_was_read_before_a_fault_counts(content: str | bytes, found: list[str]) -> None:
    sitemap = listed(content)
    assert sitemap is not None
    assert (found, True) == (list(sitemap.locations), sitemap.faulty)


@pytest.mark.parametrize("loc", ["&a;", "&b;", "/plain"])
def test_declarations_are_refused_and_with_them_entities(loc: str) -> None:
    assert listed(ENTITY + f"<urlset><url><loc>{loc}</loc></url></urlset>") is None


@pytest.mark.parametrize("encoding", ["utf-9", "utf-7", "shift_jis", "rot13", "base64", "idna"])
def test_an_encoding_that_cannot_be_read_is_a_fault_of_the_sitemap(encoding: str) -> None:
    content = f'<?xml version="1.0" encoding="{encoding}"?>{urlset("/1")}'
    found = listed(content)
    assert found is None or found.faulty or ["http://a.test/1"] == list(found.locations)


@pytest.mark.parametrize("codec", ["utf-8", "utf-16"])
def test_python_is_asked_for_no_encoding_it_cannot_know(codec: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Python keeps each unknown name of an encoding, up to a megabyte, and looks for such a module."""
    asked: list[str] = []

    def note(name: str) -> codecs.CodecInfo | None:
        asked.append(name)
        return None

    codecs.register(note)
    try:
        for name in ("x" * 100_000, "no-such-encoding-1", "no-such-encoding-2"):
            assert listed(f"<?xml version='1.0' encoding='{name}'?>{urlset('/1')}".encode(codec)) is None
    finally:
        codecs.unregister(note)
    assert [] == asked


def test_urls_beyond_the_share_are_counted() -> None:
    for content in (urlset(*(f"/{number}" for number in range(7))), "\n".join(f"http://a.test/{n}" for n in range(7))):
        for most, cut in ((6, 1), (7, 0)):
            found = listed(content, urls_max=most)
            assert found is not None
            assert (most, cut, False) == (len(found.locations), cut, found.faulty)


def test_the_characters_of_all_urls_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sitemap, "URLS_CHARS_MAX", 2 * len("http://a.test/1"))
    found = listed(urlset("/1", "/2", "/3"))
    assert found is not None
    assert (2, 1) == (len(found.locations), found.cut)


@pytest.mark.parametrize(("blanks", "found"), [(9_000, ["http://a.test/1"]), (20_000, [])])
def test_a_text_too_long_is_no_part_of_itself(blanks: int, found: list[str]) -> None:
    assert found == urls(urlset(" " * blanks + "/1"))
    assert [] == urls(urlset("/" + "x" * blanks))


def test_of_a_text_too_long_not_even_the_beginning_counts() -> None:
    assert [] == urls(urlset("/1\n" + " " * 20_000))
    assert ["http://a.test/2"] == urls(f"http://a.test/1{' ' * URL_CHARS_MAX}\nhttp://a.test/2")


def test_a_text_too_long_is_not_kept_until_its_end() -> None:
    content = urlset("/" + "x" * 4_000_000).encode()
    tracemalloc.start()
    returned(read(content, "text/xml", URL, expected=True, now=NOW, urls_max=50, bytes_max=1))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1_000_000


def test_lines_are_read_up_to_a_number_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sitemap, "ELEMENTS_MAX", 3)
    found = listed("\n".join(f"http://a.test/{n}" for n in (1, 1, 2, 3)))
    assert found is not None
    assert ["http://a.test/1", "http://a.test/2"] == list(found.locations)
    assert found.faulty
    assert ["http://a.test/1"] == urls("http://a.test/1\n" * 3)


@pytest.mark.parametrize(
    "content",
    [
        "<urlset>" + "<a/>" * 900,
        "<urlset>" + "<a>" * (sitemap.NESTING_MAX + 1),
        "<urlset><a b='" + "x" * 90_000,
        "<urlset><!--" + "x" * 90_000,
    ],
    ids=["elements", "nesting", "attribute", "comment"],
)
def test_no_content_costs_more_than_it_may(content: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sitemap, "ELEMENTS_MAX", 800)
    monkeypatch.setattr(sitemap, "TOKEN_BYTES_MAX", 50_000)
    monkeypatch.setattr(sitemap, "PIECE_BYTES", 10_000)
    # What follows is wrong, and would be found wrong at once by who read on.
    reads: list[bytes] = []
    create = expat.ParserCreate

    class Parser:
        def __init__(self, intern: dict[str, str]) -> None:
            object.__setattr__(self, "parser", create(intern=intern))

        def __getattr__(self, name: str) -> object:
            return getattr(self.parser, name)

        def __setattr__(self, name: str, value: object) -> None:
            setattr(self.parser, name, value)

        def Parse(self, piece: bytes, end: bool) -> None:
            reads.append(piece)
            self.parser.Parse(piece, end)  # type: ignore[attr-defined]

    monkeypatch.setattr(expat, "ParserCreate", Parser)
    found = listed(content + " " * 100_000)
    assert found is not None
    assert found.faulty
    assert len(b"".join(reads)) <= 70_000


def distinct(form: str, count: int) -> str:
    """Return markup of this form in which a number differs. % stands for the value of an attribute."""
    return "".join(form.replace("%", "''").format(number) for number in range(count))


LONG = "u" * 500_000


@pytest.mark.parametrize(
    ("content", "most_bytes"),
    [
        (lambda: f"<urlset xmlns='{LONG}'>" + distinct("<a{}/>", 2_000), 3_000_000),
        (lambda: f"<urlset xmlns:a='{LONG}'><url {distinct(' a:x{}=%', 2_000)}/>", 3_000_000),
        (lambda: f"<urlset xmlns='{LONG}'>" + "<url><loc>/1</loc></url>" * 2_000, 3_000_000),
        (lambda: "<urlset><url" + distinct(" x{}=%", 80_000) + "/>", 30_000_000),
        (lambda: "<urlset>" + distinct("<a{}/>", 300_000), 5_000_000),
        (lambda: "<urlset>" + distinct("<a x{}=%/>", 200_000), 5_000_000),
        (lambda: "<urlset>" + distinct(f"<a{LONG}{{}}/>", 20), 5_000_000),
    ],
    ids=[
        "names in a namespace",
        "attributes in a namespace",
        "entries in a namespace",
        "attributes of a tag",
        "names",
        "attributes",
        "long names",
    ],
)
def test_names_cost_a_few_times_the_bytes_they_are_written_in(content: Callable[[], str], most_bytes: int) -> None:
    reading = read(content().encode(), "text/xml", URL, expected=True, now=NOW, urls_max=50, bytes_max=1)
    tracemalloc.start()
    returned(reading)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < most_bytes


def test_what_a_parser_took_is_given_back_at_once() -> None:
    """The memory is free at once.

    Without this the garbage collector would free it, and that runs seldom where few objects are made.
    """
    content = ("<urlset><a b='" + "x" * 1_000_000 + "'/></urlset>").encode()
    gc.collect()
    gc.disable()
    tracemalloc.start()
    try:
        for _ in range(20):
            returned(read(content, "text/xml", URL, expected=True, now=NOW, urls_max=50, bytes_max=1))
        assert tracemalloc.get_traced_memory()[0] < 100_000
    finally:
        tracemalloc.stop()
        gc.enable()


@pytest.mark.parametrize(("chars", "faulty"), [(1_000, False), (1_001, True)])
def test_distinct_names_are_bounded(chars: int, faulty: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sitemap, "NAMES_CHARS_MAX", 1_000)
    name = "x" * (chars - len("urlseturlloc"))
    found = listed(f"<urlset>{'<url><loc>/1</loc></url>' * 200}<{name}/></urlset>")
    assert found is not None
    assert (1, faulty) == (len(found.locations), found.faulty)


def test_no_room_for_what_a_sitemap_says_is_a_fault_of_the_sitemap(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(name: str) -> None:
        raise MemoryError

    monkeypatch.setattr(sitemap, "canonical", lambda text, base: fail(text) if text == "/2" else f"http://a.test{text}")
    found = listed(urlset("/1", "/2", "/3"))
    assert found is not None
    assert (["http://a.test/1"], True) == (list(found.locations), found.faulty)


@pytest.mark.parametrize(
    "content",
    [urlset(*map(str, range(20_000))), "\n".join(f"http://a.test/{n}" for n in range(20_000)), "\n" * 20_000],
    ids=["xml", "lines", "empty lines"],
)
def test_others_have_their_turn_while_a_large_sitemap_is_read(content: str) -> None:
    reading = read(content.encode(), "text/xml", URL, expected=True, now=NOW, urls_max=20_000, bytes_max=1)
    assert 8 < sum(1 for _ in reading) < 40


def test_a_large_sitemap_is_read_without_a_tree() -> None:
    content = urlset(*(f"/{number}" for number in range(20_000))).encode()
    tracemalloc.start()
    found = returned(read(content, "text/xml", URL, expected=True, now=NOW, urls_max=50, bytes_max=1))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert found is not None
    assert (50, 19_950) == (len(found.locations), found.cut)
    assert peak < 1_000_000


FEEDS = {
    "rss": "<rss><channel><item><link>{url}</link><pubDate>{date}</pubDate></item></channel></rss>",
    "atom": "<feed><entry><updated>{date}</updated><link href='{url}'/><published>1970</published></entry></feed>",
    "rdf": "<r:RDF xmlns:r='R' xmlns:dc='D'><item><link>{url}</link><dc:date>{date}</dc:date></item></r:RDF>",
}


@pytest.mark.parametrize("form", FEEDS)
@pytest.mark.parametrize(
    ("date", "second"),
    [
        ("1970-01-02T01:00:30+01:00", 86_430.0),
        (" Fri, 02 Jan 1970 00:00:30 GMT\n", 86_430.0),
        ("02 Jan 1970 01:00:30 +0100", 86_430.0),
        ("Fri, 02 Jan 70 00:00:30 -0000", 86_430.0),
        ("Fri, 02 Jan 2970 00:00:30 GMT", None),
        ("Mon, 32 Foo 1970", None),
        ("1" * 4_000, None),
        ("", None),
    ],
)
def test_entries_of_feeds_have_dates(form: str, date: str, second: float | None) -> None:
    found = listed(FEEDS[form].format(url="/1", date=date), "text/xml", expected=False)
    assert found is not None
    assert ({"http://a.test/1": second}, False) == (found.locations, found.faulty)


@pytest.mark.parametrize("mime", ["application/rss+xml", "application/atom+xml", "application/rdf+xml"])
def test_feeds_have_types_of_their_own(mime: str) -> None:
    assert ["http://a.test/1"] == urls(FEEDS["rss"].format(url="/1", date=""), mime, expected=False)


def test_a_broken_feed_is_read_to_its_fault() -> None:
    found = listed("<rss><channel><item><link>/1</link></item><item><title>a &nbsp; b</title></item></channel></rss>")
    assert found is not None
    assert (["http://a.test/1"], True) == (list(found.locations), found.faulty)


@pytest.mark.parametrize(
    ("text", "second"),
    [
        ("1970", 0.0),
        ("1970-02", 31 * 86_400.0),
        ("1970-01-02", 86_400.0),
        (" 1970-01-02\n", 86_400.0),
        ("1970-01-02T01:00Z", 90_000.0),
        ("1970-01-02T01:00:30+01:00", 86_430.0),
        ("1970-01-01T00:00:01.5-00:30", 1_801.5),
        ("1970-01-02T01:00:00", 90_000.0),
        ("2027-01-15T08:00:00Z", NOW),
        ("2027-01-16T08:00:00Z", NOW + 86_400),
        ("2027-01-16T08:00:01Z", None),
        ("1969-12-31", None),
        ("0001-01-01T00:00+14:00", None),
        ("1970-13-01", None),
        ("yesterday", None),
        ("", None),
        ("19\u0667\u0660", None),
        ("9" * 10_000, None),
    ],
)
def test_when_a_page_changed(text: str, second: float | None) -> None:
    assert second == changed_at(text, NOW)
    found = listed(f"<urlset><url><lastmod>{text}</lastmod><loc>/1</loc></url><url><loc>/2</loc></url></urlset>")
    assert found is not None
    assert {"http://a.test/1": second, "http://a.test/2": None} == found.locations


@pytest.mark.parametrize(
    ("path", "is_one"),
    [
        ("/sitemap.xml", True),
        ("/Sitemap_Index.XML?page=2", True),
        ("/sitemaps/posts-1.txt", True),
        ("/part-7.xml.gz", True),
        ("/wp-sitemap-posts-1.xml", True),
        ("/sitemap.html", False),
        ("/sitemap", False),
        ("/feed.xml", False),
        ("/?sitemap.xml", False),
        ("/a.gz", False),
    ],
)
def test_what_is_named_like_a_sitemap(path: str, is_one: bool) -> None:
    assert is_one is named_like_one(f"http://sitemap.xml.test{path}")


def test_a_sites_sitemap_is_in_its_usual_place_if_robots_txt_names_none() -> None:
    assert ("http://a.test:81/sitemap.xml",) == of_origin("http://a.test:81/x?y", ())
    assert ("http://b.test/1",) == of_origin("http://a.test/x", ("http://b.test/1",))
