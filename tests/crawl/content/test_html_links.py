"""Test the links that a page has, and the instructions of a page to crawlers."""

from collections.abc import Callable, Iterator
from unittest.mock import Mock, patch

import pytest
from hypothesis import given, strategies as st
from selectolax.lexbor import LexborHTMLParser

from kadcrawl.crawl.content import html_links, tag_parser
from kadcrawl.crawl.content.charset import PIECE_BYTES
from kadcrawl.crawl.content.html_links import Extracted, LinkExtractor
from kadcrawl.crawl.content.html_walk import link_tags
from kadcrawl.crawl.content.native_links import NativeLinks
from kadcrawl.settings.limits import Limits
from kadcrawl.system.cooperative import run_to_end
from kadcrawl.urls import canonical
from tests.support.cases import cases
from tests.support.native import ENGINES, engine

PAGE = "http://h/d/p?q"


@pytest.fixture(scope="module", params=ENGINES, autouse=True)
def native(request: pytest.FixtureRequest) -> Iterator[NativeLinks | None]:
    """Every test here runs with Python code only, and once more with the native module."""
    defaults = LinkExtractor.__init__.__kwdefaults__
    assert defaults is not None
    before, defaults["native"] = defaults["native"], engine(request.param)
    yield defaults["native"]
    defaults["native"] = before


def extracted(
    body: str | bytes, content_type: str = "text/html; charset=utf-8", url: str = PAGE, robots: str = ""
) -> Extracted:
    return LinkExtractor(Limits()).extract(
        body if isinstance(body, bytes) else body.encode(), content_type, url, robots
    )


@cases(
    ("body", "links"),
    [
        ("<a href=x>", ["http://h/d/x"]),
        ('<a href="x">', ["http://h/d/x"]),
        ("<a href='x'>", ["http://h/d/x"]),
        ("<A HREF=x>", ["http://h/d/x"]),
        ("<a\nclass=c\n\thref\n=\n'x'\n>", ["http://h/d/x"]),
        ("<a/href=x/>", ["http://h/d/x/"]),
        ("<a href = x >", ["http://h/d/x"]),
        ('<a href="  x y \n">', ["http://h/d/x%20y"]),
        ('<a href="x\ny\tz">', ["http://h/d/xyz"]),
        ('<a href="?a=1&amp;b=2">', ["http://h/d/p?a=1&b=2"]),
        ('<a href="?a=1&copy=2&amp=3">', ["http://h/d/p?a=1&copy=2&amp=3"]),
        ('<a href="&#x78;">', ["http://h/d/x"]),
        ('<a href="x" href="y">', ["http://h/d/x"]),
        ('<a title=">" href=x>', ["http://h/d/x"]),
        ("<a title='\"' href=x>", ["http://h/d/x"]),
        ("<a href=it's.html>1</a><a href=x>'", ["http://h/d/it's.html", "http://h/d/x"]),
        ('<p class=odd"><a href=x>"', ["http://h/d/x"]),
        ('<a data-href="y" href="x">', ["http://h/d/x"]),
        ('<a hreflang=y href="x">', ["http://h/d/x"]),
        ("<a href=x#f><a href=x#g><a href='x'><a href='http://h/d/x'>", ["http://h/d/x"]),
        (
            "<a href=/b><a href=../a><a href=//g><a href=https://s>",
            ["http://h/b", "http://h/a", "http://g/", "https://s/"],
        ),
        ("<a href='?b'>", ["http://h/d/p?b"]),
        ("<area href=x>", ["http://h/d/x"]),
        ("<iframe src=x><a href=y></iframe><iframe src=''>", ["http://h/d/x", "http://h/d/y"]),
        ("<noframes><a href=x></noframes>", ["http://h/d/x"]),
        ("<frameset><frame src=x><FRAME SRC=y></frameset>", ["http://h/d/x", "http://h/d/y"]),
        ("<link rel=next href=x>", ["http://h/d/x"]),
        ("<link rel='shortlink Canonical' href=x>", ["http://h/d/x"]),
        ("<link rel='&#110;ext' href=x>", ["http://h/d/x"]),
        ("<meta http-equiv='refres&#104;' content='0; url=x'>", ["http://h/d/x"]),
        ("<link rel=alternate type=application/rss+xml href=x>", ["http://h/d/x"]),
        ("<link rel='alternate stylesheet' href=x><link rel=stylesheet href=y><link href=z>", []),
        ("<meta http-equiv=refresh content='0; url=x'>", ["http://h/d/x"]),
        ("<META HTTP-EQUIV=Refresh CONTENT=\"5;URL='x'\">", ["http://h/d/x"]),
        ("<meta http-equiv=refresh content='.5 , x'>", ["http://h/d/x"]),
        ("<meta http-equiv=refresh content=5>", []),
        ("<meta http-equiv=refresh content='url=x'>", []),
        ("<meta name=refresh content='0; url=x'>", []),
        ("<a href=''><a href=#f><a href=p?q><a>", []),
        ("<a href='javascript:x'><a href='mailto:a@b'><a href='data:,x'><a href='tel:1'><a href='ftp://h/'>", []),
        ("<abbr href=x><article href=y><b href=z><img src=i>", []),
        ("<!-- <a href=x> --><a href=y>", ["http://h/d/y"]),
        ("<!--><a href=x><!---><a href=y>", ["http://h/d/x", "http://h/d/y"]),
        ("<!-- --!><a href=x><!-- never ends <a href=y>", ["http://h/d/x"]),
        ("<script>'<a href=x>'</script><a href=y>", ["http://h/d/y"]),
        ("<script src='>'>'<a href=x>'</SCRIPT\n><a href=y>", ["http://h/d/y"]),
        ("<script></scripts><a href=x></script><a href=y>", ["http://h/d/y"]),
        (
            "<title><a href=x></title><style><a href=x></style><textarea><a href=x></textarea><a href=y>",
            ["http://h/d/y"],
        ),
        ("<!doctype html><?php <a href=x ?><a href=y>", ["http://h/d/y"]),
        ("<div title='<a href=x>'><a href=y></div>", ["http://h/d/y"]),
        ("a < b <a href=x> c > d </a href=y>", ["http://h/d/x"]),
        ("</<a href=x></><a href=y></b c='<a href=z>'>", ["http://h/d/y"]),
        ("<noscript><a href=x></noscript>", ["http://h/d/x"]),
        ("<a href=x><a href='y", ["http://h/d/x"]),
        ("\x00<a href=x\x00>\x00", ["http://h/d/x%EF%BF%BD"]),
        ("", []),
    ],
)
def test_links(body: str, links: list[str]) -> None:
    assert extracted(body).links == links


@pytest.mark.parametrize(
    ("base", "link"),
    [
        ("<base href=/e/>", "http://h/e/x"),
        ("<BASE HREF='http://g/'>", "http://g/x"),
        ("<base target=_top><base href=/e/><base href=/f/>", "http://h/e/x"),
        ("<base href=e>", "http://h/d/x"),
        ("<base href=javascript:x>", "http://h/d/x"),
        ("<base href=file:///>", "http://h/d/x"),
        ("<!-- <base href=/e/> -->", "http://h/d/x"),
    ],
)
def test_first_base_decides(base: str, link: str) -> None:
    assert extracted(base + "<a href=x>").links == [link]
    assert extracted("<a href=x>" + base).links == [link]


def test_base_elsewhere_makes_a_link_of_a_mere_fragment() -> None:
    assert extracted("<base href=/e/?b><a href=#f>").links == ["http://h/e/?b"]


@pytest.mark.parametrize(
    ("body", "content_type", "link"),
    [
        ("<a href='x?a=é'>한글</a>".encode(), "text/html; charset=utf-8", "http://h/d/x?a=%C3%A9"),
        ("<a href='x?a=é'>한글</a>".encode("utf-8-sig"), "text/html", "http://h/d/x?a=%C3%A9"),
        ("<a href='é?a=é&b=c#é'>".encode("latin-1"), "text/html; charset=iso-8859-1", "http://h/d/%C3%A9?a=%E9&b=c"),
        ("<meta charset=windows-1252><a href='x?a=€'>".encode("cp1252"), "text/html", "http://h/d/x?a=%80"),
        (
            "<a href='글?a=글&amp;b= '>한글</a>".encode("euc-kr"),
            "text/html; charset=euc-kr",
            "http://h/d/%EA%B8%80?a=%B1%DB&b=",
        ),
        ("<a href='x?a=€'>".encode("cp1252") + b"<p>", "text/html; charset=windows-1252", "http://h/d/x?a=%80"),
        (b"<a href='x?a=&#44544;'>", "text/html; charset=iso-8859-1", "http://h/d/x?a=%26%2344544%3B"),
        (b"<a href='x?a=%41&#233;'>", "text/html; charset=iso-8859-1", "http://h/d/x?a=%41%E9"),
        ("<a href='x?a=é'>".encode("utf-16"), "text/html", "http://h/d/x?a=%C3%A9"),
        (b"<a href='x\xe9'>", "text/html; charset=utf-8", "http://h/d/x%EF%BF%BD"),
    ],
)
def test_links_in_every_encoding(body: bytes, content_type: str, link: str) -> None:
    """The query is in the page's encoding, the path in UTF-8, as browsers have it."""
    assert extracted(body, content_type).links == [link]


@pytest.mark.parametrize("rel", ["nofollow", "NoFollow", "noopener nofollow", "nofollow\nugc"])
def test_links_with_nofollow_are_counted_and_left_out(rel: str) -> None:
    page = extracted(f"<a href=x rel='{rel}'><a rel='{rel}' href=\"y\"><a href=z rel='ugc sponsored'>")
    assert page.links == ["http://h/d/z"]
    assert page.nofollow == ["http://h/d/x", "http://h/d/y"]
    assert not page.nofollow_page


@pytest.mark.parametrize(
    "tag",
    [
        '<a rel="nofollow" href="x">',
        '<a href="x" rel="nofollow">',
        '<a class="c" rel="nofollow" href="x" title="t">',
        '<a href="x" class="c" rel="noopener nofollow">',
    ],
)
def test_an_orderly_tag_with_nofollow_is_left_out(tag: str) -> None:
    page = extracted(tag)
    assert ([], ["http://h/d/x"]) == (page.links, page.nofollow)


def test_a_link_met_with_and_without_nofollow_is_followed() -> None:
    page = extracted("<a href=x rel=nofollow><a href=x><a href=p?q rel=nofollow><a href=y rel=nofollow>")
    assert (["http://h/d/x"], ["http://h/d/y"]) == (page.links, page.nofollow)


def test_nofollow_is_no_matter_to_an_extractor_that_ignores_it() -> None:
    page = LinkExtractor(Limits(), obeys_nofollow=False).extract(
        b"<meta name=robots content='noindex,nofollow'><a href=x rel=nofollow><a href=y>", "", PAGE, "none"
    )
    assert (["http://h/d/x", "http://h/d/y"], []) == (page.links, page.nofollow)
    assert (True, False) == (page.noindex, page.nofollow_page)


def test_many_links_with_nofollow_are_counted_and_keep_no_other_link_out() -> None:
    spam = b"".join(b"<a rel=nofollow href=%d>" % number for number in range(2_000))
    with patch.object(html_links, "LINKS_CHARS_MAX", 1_000):
        page = LinkExtractor(Limits(links_per_page_max=10)).extract(spam + b"<a href=x>", UTF8, PAGE)
    assert ["http://h/d/x"] == page.links
    assert 2_000 == len(page.nofollow) + page.cut
    assert len(page.nofollow) < 100


@pytest.mark.parametrize(
    ("name", "content", "noindex", "nofollow"),
    [
        ("robots", "nofollow", False, True),
        ("ROBOTS", "NOINDEX,NOFOLLOW", True, True),
        ("robots", "noindex", True, False),
        ("robots", "none", True, True),
        ("robots", "all", False, False),
        ("robots", "noindex nofollow", True, True),
        ("kadcrawl", "nofollow", False, True),
        ("&#114;obots", "none", True, True),
        ("\u212aadcrawl", "none", True, True),
        ("googlebot", "none", False, False),
        ("description", "nofollow", False, False),
    ],
)
def test_meta_robots(name: str, content: str, noindex: bool, nofollow: bool) -> None:
    page = extracted(f"<a href=x><meta name={name} content='{content}'><link rel=next href=y>")
    assert (page.noindex, page.nofollow_page) == (noindex, nofollow)
    assert page.links == ([] if nofollow else ["http://h/d/x", "http://h/d/y"])
    assert page.nofollow == (["http://h/d/x", "http://h/d/y"] if nofollow else [])


@pytest.mark.parametrize(
    ("header", "noindex", "nofollow"),
    [
        ("nofollow", False, True),
        ("noindex, NoFollow", True, True),
        ("googlebot: none", False, False),
        ("googlebot: noindex, nofollow", False, False),
        ("noindex, googlebot: nofollow", True, False),
        ("googlebot: noindex, KadCrawl: nofollow", False, True),
        ("max-snippet: 5, nofollow", False, True),
        ("unavailable_after: 25 Jun 2030 15:00:00 GMT, noindex", True, False),
    ],
)
def test_x_robots_tag(header: str, noindex: bool, nofollow: bool) -> None:
    page = extracted("<a href=x>", robots=header)
    assert (page.noindex, page.nofollow_page) == (noindex, nofollow)
    assert bool(page.links) is not nofollow


def test_canonical_is_the_first_that_is_a_url() -> None:
    page = extracted("<link rel=canonical href=ftp://h/><link rel=canonical href=x><link rel=canonical href=y>")
    assert page.canonical == "http://h/d/x"
    assert extracted("<link rel=canonical href=''><a href=x>").canonical is None


def test_links_of_one_page_are_bounded() -> None:
    limit = 10
    extractor = LinkExtractor(Limits(links_per_page_max=limit))
    tags = [f"<a href={number}>".encode() for number in range(limit + 1)]
    assert len(extractor.extract(b"".join(tags[:limit]), "", PAGE).links) == limit
    assert extractor.extract(b"".join(tags[:limit]), "", PAGE).cut == 0
    page = extractor.extract(b"".join(tags), "", PAGE)
    assert page.links == [f"http://h/d/{number}" for number in range(limit)]
    assert page.cut == 1


@pytest.mark.parametrize("end", [b"</a<script>", b"</a<a href=y>", b"</p" + b" " * 100 + b"<!-->", b"</p <a href=y>"])
def test_what_stands_in_an_end_tag_is_no_tag(end: bytes) -> None:
    assert extracted(end + b"<a href=x>").links == ["http://h/d/x"]


def test_repeats_do_not_count_against_the_bound() -> None:
    extractor = LinkExtractor(Limits(links_per_page_max=2))
    page = extractor.extract(b"<a href=x>" * 5000 + b"<a href=y>", "", PAGE)
    assert page.links == ["http://h/d/x", "http://h/d/y"]


@pytest.mark.parametrize(
    "hostile",
    [
        b"<div>" * 100_000,
        b"<b id=1><font color=2>" * 50_000,
        b"<p>" + b"".join(b"<b id=%d>" % number for number in range(10_000)) + b"<p>x" * 10_000,
        b"<table><tr><td>" * 50_000,
        b"<a " + b" ".join(b"a%d" % number for number in range(100_000)) + b">",
        (b"<a " + b" ".join(b"a%d" % number for number in range(8_000)) + b" href=y>") * 20,
        b"<base>" * 100_000,
        b'<a x="' * 10_000,
        b'<a b="' + b"<a x=y " * 100_000 + b'">',
        b"<a =" * 10_000,
        b"<!--" * 100_000 + b"-->",
        b"<script>" + b"</scrip" * 100_000 + b"</script>",
        b"</scrip" * 400_000 + b">",
        b"</a b" * 400_000 + b"=>",
    ],
)
def test_hostile_markup_never_reaches_the_parser(hostile: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of these costs a tree builder seconds, minutes or gigabytes, or a careless expression forever."""
    given_to_parser: list[str] = []

    def parser(source: str) -> LexborHTMLParser:
        given_to_parser.append(source)
        return LexborHTMLParser(source)

    monkeypatch.setattr("selectolax.lexbor.LexborHTMLParser", parser)
    page = extracted(hostile + b"<a href=x id=&>")
    assert page.links[-1:] == ["http://h/d/x"]
    for source in given_to_parser:
        for tag in source.split("<")[1:]:
            assert tag.startswith(("a ", "base>"))
            assert len(tag) <= 256
        assert source.count("<") <= html_links.BATCH_TAGS


def test_a_long_tag_keeps_its_first_link_up_to_the_limit() -> None:
    def tag(size: int) -> bytes:
        return (b"a data-x='href=no> ' HREF = 'y\">' href=z rel=\"x\" " + b"on=1 " * size)[: size - 1] + b">"

    limit = tag_parser.TAG_BYTES_MAX
    assert extracted(b"<" + tag(limit)).links == ["http://h/d/y%22%3E"]
    assert extracted(b"<" + tag(limit + 1)).links == []
    assert extracted(b"<a " + b"on=1 " * 100 + b"rel='x nofollow' href=y>").nofollow == ["http://h/d/y"]


def test_bytes_behind_the_limit_are_not_looked_at() -> None:
    tags = b"<a href=x>"
    page = tags.rjust(html_links.HTML_BYTES_MAX) + b"<a href=y>"
    assert extracted(page).links == ["http://h/d/x"]
    assert extracted(b" " + page).links == []


def test_tags_behind_the_limit_are_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(html_links, "TAGS_MAX", 2)
    page = extracted("<a href=x><a href=x><a href=y>")
    assert (page.links, page.cut) == (["http://h/d/x"], 1)


def test_a_million_links_end_with_the_bound() -> None:
    page = extracted(b"".join(b"<a href=/%d>" % number for number in range(1_000_000)))
    assert len(page.links) == Limits().links_per_page_max
    assert page.cut > 900_000


def test_what_is_remembered_depends_on_directory_and_encoding() -> None:
    extractor = LinkExtractor(Limits())
    tags = "<a href=x?é><a href='y'><a href=?z><a href=http:?z><a href='#f'>".encode()
    utf8, latin = "text/html; charset=utf-8", "text/html; charset=latin1"
    for _ in range(2):
        for url, other in (("http://h/d/p", "http://h/d/r"), ("http://h/e/p", "http://h/e/r")):
            directory = url[:-1]
            for page in (url, other):
                links = extractor.extract(tags, utf8, page).links
                assert links == [f"{directory}x?%C3%A9", f"{directory}y", f"{page}?z"]
        assert extractor.extract(b"<a href=x?\xe9>", latin, "http://h/d/p").links == ["http://h/d/x?%E9"]
        assert extractor.extract(b"<a href=y>", utf8, "https://h/d/p").links == ["https://h/d/y"]


def test_forgetting_changes_no_answer() -> None:
    extractor = LinkExtractor(Limits(remembered_tags_max=20))
    for first in range(20):
        body = "".join(f'<a href="{number}"><a href={number}a>' for number in range(first, first + 4))
        assert extractor.extract(body.encode(), "", PAGE).links == [
            f"http://h/d/{name}" for number in range(first, first + 4) for name in (number, f"{number}a")
        ]
        assert sum(map(len, extractor._remembered.values())) <= 20


def test_long_tags_are_not_remembered() -> None:
    extractor = LinkExtractor(Limits())
    title = "t" * 300
    body = f'<a title="{title}" href="x"><a title=\'{title}\' href=y>'
    assert extractor.extract(body.encode(), "", PAGE).links == ["http://h/d/x", "http://h/d/y"]
    assert not extractor._remembered


MARKUP = """\
<a href=x>|<a href="y#f" class="c">|<A rel='nofollow' HREF='z'>|</a>|<a href|<a href=|<a title='|<a title="|
<a\thref=4/>|<a =href=5>|<a href = '6'7>|<a href=8'>|<area href=1>|<AREA/HREF=2/>|<link rel=next href=3>|
<meta name=robots content=all>|<b id=1>|</b>|<p class="a>b">|<div>|<!--|-->|--!>|<!-->|<script>|</script>|
<style>|</style >|<title>|</title/>|<textarea>|</textarea>|<!doctype html>|<?x|=|'|"|>|<|</|/| |-|!|é|&amp;|&|\x00|
<a href=y b="" =c="|<a href="y"=c="|<a/ =c='|<a b="x"href="|<a c='x'rel=|<a b\v="|<i="|<p =|
</p =c="|</p="|=x|x=|="|='|\v|\f|\r"""
PIECES = st.sampled_from(MARKUP.split("|"))


@pytest.mark.parametrize("short_bytes", [0, 256])
@given(body=st.lists(PIECES, max_size=25).map("".join))
def test_walk_and_parser_agree_where_each_tag_ends(body: str, short_bytes: int) -> None:
    """The result is the same with and without the tags that the crawler does not need."""
    tags = run_to_end(link_tags(body.encode()))
    with patch.object(tag_parser, "SHORT_BYTES", short_bytes):
        apart = [tag_parser.parsed(tag) for tag in tags]
    nodes = LexborHTMLParser("<" + "<".join(tag.decode() for tag in tags)).css("a,area,base,link,meta") if tags else []

    def wanted(attributes: dict[str, str | None]) -> dict[str, str | None]:
        return {name: value for name, value in attributes.items() if name.encode() in tag_parser.WANTED}

    assert [(node.tag, wanted(node.attributes)) for node in nodes] == [(name, wanted(found)) for name, found in apart]


@pytest.mark.parametrize(
    "begin", ["<a b='href' =c=", "<a b='href'=c=", "<a href =c==d=", "<a =href=", "<a href/=c=", "<a href\v="]
)
def test_no_page_says_what_the_tags_of_another_site_mean(begin: str) -> None:
    """The quote is the beginning of a value only by HTML's own rules: ours once took three tags where it sees two."""
    extractor = LinkExtractor(Limits())
    tag = "<a href='/good'  x=1>"
    base = "<base href=http://good/>"
    more = "<a e='' href=http://evil/1 x=2><a href=http://evil/2 x=3><a href=http://evil/3 x=4>"
    for quote in "'", '"':
        extractor.extract((base + begin + quote + "d x>" + tag + more).encode(), "", "http://evil/")
        extractor.extract((base + begin + quote + "d x>" + tag + more.replace("'", '"')).encode(), "", "http://evil/")
    assert extractor.extract(f"<p>{tag}".encode(), "", "http://good/").links == ["http://good/good"]


@pytest.mark.parametrize("tag", [b"a href='2>", b"a href=3><a href=4>", b"a href=3><i>", b"5>"])
def test_a_tag_the_parser_sees_otherwise_means_nothing(tag: bytes) -> None:
    assert tag_parser.parsed(tag) == ("", {})


@given(st.lists(PIECES, max_size=25).map("".join))
def test_tags_are_found_where_a_tree_builder_finds_them(body: str) -> None:
    tree = LexborHTMLParser(body)
    expected: dict[str, None] = {}
    for node in tree.css("a,area,link[rel=next]"):
        href = node.attributes.get("href")
        if href is not None and node.attributes.get("rel") != "nofollow" and (url := canonical(href, PAGE)):
            expected[url] = None
    expected.pop(PAGE, None)
    assert set(extracted(body).links) == set(expected)


@given(
    st.binary(max_size=300),
    st.sampled_from(["", "text/html; charset=utf-8", "text/html; charset=euc-jp", "x; charset=utf-16"]),
)
def test_no_bytes_raise(body: bytes, content_type: str) -> None:
    for link in extracted(b"<a href='" + body + b"'>" + body, content_type).links:
        assert canonical(link) == link


# --- what a page may cost ----------------------------------------------------------------------------------------

UTF8 = "text/html; charset=utf-8"


def in_turns(body: bytes, content_type: str, work: Callable[[], int]) -> tuple[Extracted, list[int]]:
    """Return the links of a page, and how far `work` went in each turn."""
    reading = LinkExtractor(Limits()).reading(body, content_type, PAGE)
    turns: list[int] = []
    before = work()
    while True:
        try:
            next(reading)
        except StopIteration as over:
            page: Extracted = over.value
            return page, [*turns, work() - before]
        turns.append(work() - before)
        before = work()


@pytest.mark.parametrize("content_type", [UTF8, "text/html; charset=windows-1251", "text/html; charset=gbk"])
def test_a_page_of_ordinary_size_is_read_at_once(content_type: str) -> None:
    body = b"".join(b"<p>text<a class=c href=/section/%d>text</a>" % number for number in range(1_500))
    page, turns = in_turns(body, content_type, lambda: 0)
    assert (1_500, 1) == (len(page.links), len(turns))


@pytest.mark.parametrize("dots", [1, 35])
def test_a_long_base_is_read_in_turns_and_no_more_often_than_it_may(dots: int) -> None:
    base = b"b/" * 4_050
    tags = b"".join(b"<a href='%s' d%d>" % (b"../" * dots, number) for number in range(30_000))
    with patch.object(html_links, "canonical", Mock(wraps=canonical)) as counted:
        page, turns = in_turns(b"<base href='/%s'>" % base + tags, UTF8, lambda: counted.call_count)
    assert html_links.TURN_BASE_CHARS >= max(turns) * len(base)
    assert html_links.BASE_CHARS_MAX >= sum(turns[1:]) * len(base)
    assert page.cut > 20_000
    assert 1 == len(page.links)


def test_an_honest_base_costs_no_tag() -> None:
    base = "http://h/" + "b" * 500 + "/"
    assert html_links.TAGS_MAX * len(base) <= html_links.BASE_CHARS_MAX


def test_long_tags_are_read_in_turns() -> None:
    body = b"".join(b"<a href=/x a%d %s>" % (number, b"b " * 5_000) for number in range(100))
    with patch.object(html_links, "parsed", Mock(wraps=tag_parser.parsed)) as parsed:
        page, turns = in_turns(body, UTF8, lambda: sum(len(call.args[0]) for call in parsed.call_args_list))
    assert ["http://h/x"] == page.links
    assert len(body) * 0.9 < sum(turns)
    assert html_links.TURN_BYTES >= max(turns)


@pytest.mark.parametrize(("passed_over", "link"), [(-1, "http://else/x"), (0, "http://h/d/x")])
def test_only_so_many_bases_without_href_are_passed_over(passed_over: int, link: str) -> None:
    bases = b"<base target=_top>" * (html_links.BASES_MAX + passed_over)
    assert [link] == extracted(bases + b"<base href='http://else/'><a href=x>").links


@pytest.mark.parametrize(("links_max", "chars_max"), [(10, html_links.LINKS_CHARS_MAX), (1_000_000, 10)])
def test_a_page_that_has_had_its_share_of_links_is_read_no_further(links_max: int, chars_max: int) -> None:
    # No native code reads a reference in a value without quotes.
    tags = b"".join(b"<a href=%d&amp;>" % number for number in range(10 * html_links.BATCH_TAGS))
    with (
        patch.object(html_links, "LINKS_CHARS_MAX", chars_max),
        patch.object(html_links, "_read", Mock(wraps=html_links._read)) as counted,
    ):
        page = LinkExtractor(Limits(links_per_page_max=links_max)).extract(tags, UTF8, PAGE)
    assert html_links.BATCH_TAGS == counted.call_count
    assert 10 * html_links.BATCH_TAGS == len(page.links) + page.cut


def test_bases_without_href_are_passed_over_in_turns() -> None:
    tags = b"".join(b"<base a%d %s>" % (number, b"b " * 5_000) for number in range(50))
    page, turns = in_turns(tags + b"<a href=x>", UTF8, lambda: 0)
    assert ["http://h/d/x"] == page.links
    assert 50 < len(turns)


@pytest.mark.parametrize("content_type", ["text/html; charset=utf-16le", "text/html; charset=iso-8859-6"])
def test_nonsense_is_decoded_in_turns(content_type: str) -> None:
    count = 20
    page, turns = in_turns(b"\x00\xd8" * (count * PIECE_BYTES // 2), content_type, lambda: 0)
    assert count <= len(turns)
    assert [] == page.links


def test_pages_read_in_turns_between_each_other_have_the_links_they_have() -> None:
    """A page that is read between the turns of another page does not change its links."""
    bodies = [
        b"<base href='/%d/%s/'>" % (page, b"b" * 1_000) + b"".join(b"<a href=%d>" % number for number in range(9_000))
        for page in range(4)
    ]
    alone = [LinkExtractor(Limits()).extract(body, UTF8, PAGE) for body in bodies]
    extractor = LinkExtractor(Limits(remembered_tags_max=5_000))
    readings = [extractor.reading(body, UTF8, PAGE) for body in bodies]
    together: dict[int, Extracted] = {}
    while len(together) < len(bodies):
        for number, reading in enumerate(readings):
            if number not in together:
                try:
                    next(reading)
                except StopIteration as over:
                    together[number] = over.value
    assert alone == [together[number] for number in range(len(bodies))]


@pytest.mark.parametrize(("chars", "kept"), [(1_001, 10), (1_000, 10), (999, 9), (99, 0)])
def test_characters_of_the_links_of_one_page_are_bounded(chars: int, kept: int) -> None:
    base = "http://h/" + "b" * 89 + "/"
    tags = b"".join(b"<a href=%d>" % number for number in range(10))
    with patch.object(html_links, "LINKS_CHARS_MAX", chars):
        page = LinkExtractor(Limits()).extract(tags, UTF8, base)
    assert ([f"{base}{number}" for number in range(kept)], 10 - kept) == (page.links, page.cut)


def test_a_page_of_50_kb_is_no_40_mb_of_links() -> None:
    tags = b"".join(b'<a href="%d">' % number for number in range(20_000))
    page = LinkExtractor(Limits()).extract(b"<base href='/%s/'>" % (b"b" * 2_000) + tags, UTF8, PAGE)
    assert html_links.LINKS_CHARS_MAX - 3_000 < sum(map(len, page.links)) <= html_links.LINKS_CHARS_MAX
    assert 20_000 == len(page.links) + page.cut


def remembered_chars(extractor: LinkExtractor) -> int:
    return sum(
        len(place)
        + sum(
            len(tag) + len(meaning if isinstance(meaning, str) else meaning.url or "") for tag, meaning in known.items()
        )
        for (place, _), known in extractor._remembered.items()
    )


@pytest.mark.parametrize("links", [1, 60])
def test_characters_of_what_is_remembered_are_bounded(links: int) -> None:
    extractor = LinkExtractor(Limits(remembered_chars_max=1_000_000))
    most = 0
    for number in range(5_000 // links):
        tags = b"".join(b'<a href="%d">' % link for link in range(links))
        extractor.extract(b"<base href='/%s%d/'>" % (b"b" * 1_900, number) + tags, UTF8, PAGE)
        most = max(most, remembered_chars(extractor))
    assert 300_000 < most <= 1_000_000


def test_links_that_are_too_long_for_the_crawl_are_not_remembered() -> None:
    limits = Limits()
    extractor = LinkExtractor(limits)
    for more, known in ((1, 0), (0, 2)):
        base = "http://h/".ljust(limits.url_chars_max - 1 + more, "b") + "/"
        for _ in range(2):
            assert [f"{base}x"] == extractor.extract(b"<a href='x'>", UTF8, base).links
        assert known == sum(map(len, extractor._remembered.values()))
