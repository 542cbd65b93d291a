"""Mutated pages and hrefs, in each of which the native link extractor must see what the Python code sees.

Pages of real sites are cut, spliced and sown with the bits of markup on which a walk over HTML goes wrong. Both
extractors live on from page to page, so what they remember is compared as well. The same seed gives the same pages.

Tests: tests/crawl/content/test_native_links.py
"""

from collections.abc import Sequence
from random import Random
from typing import Final, NamedTuple

from kadcrawl.crawl.content.html_links import Extracted, LinkExtractor
from kadcrawl.crawl.content.html_walk import link_tags
from kadcrawl.crawl.content.native_links import NativeLinks
from kadcrawl.settings.limits import Limits
from kadcrawl.system.cooperative import run_to_end
from kadcrawl.urls import canonical

SLICE_BYTES: Final = 400
BITS: Final = (
    *(b"<!--", b"-->", b"--!>", b"<!-->", b"<!--->", b"<!", b"<?", b"--", b"<", b">", b"</", b"/", b"=", b"'", b'"'),
    *(b" ", b"\n", b"\t", b"\r", b"\x0b", b"\x0c", b"\0", b"\x80", "é".encode(), b"#", b"?", b"&", b"&amp;", b"%7e"),
    *(b"<script>", b"</script>", b"</SCRIPT ", b"<style x='>'>", b"</style/", b"<title", b"</title>", b"<textarea>"),
    *(
        b"<xmp>",
        b"</xmp>",
        b"<a ",
        b"<A",
        b"<a href=",
        b'<a href="x">',
        b"<a href='/y#f' >",
        b'<a class="c" href="../z">',
    ),
    *(b"<a/href=x/>", b'<a href="?q">', b'<a href="#f">', b'<a href="" rel="nofollow">', b'<a rel=nofollow href="n">'),
    *(b'<a rel="nofollow" href="o">', b'<a href="m" rel="nofollow">', b'<a href="p" hreflang="q">', b"<A href='r'>"),
    *(b"<area href=x>", b"<iframe src='f'>", b"<FRAME src=g>", b'<link rel="next" href="n">', b"<link rel=stylesheet "),
    *(
        b"<link rel=canonical href='c'>",
        b"<meta name=robots content=noindex>",
        b'<meta name="description" content="d">',
    ),
    *(
        b'<a href="q?a=1&amp;b=2&c=3#f">',
        b"<a href='i?&#64;a&#58;&#x41;' title=\"&\">",
        b'<area alt="a&b" href="x?&copy=1&lt">',
        b'<A REL="Nofollow ugc" HREF=u />',
        b'<a rel="no&#102;ollow" href="v">',
        b'<link href="w" rel="canonical next"/>',
        b'<link rel="alternate stylesheet" href="s">',
        b'<link rel="alternate" href="file:///f" rel=canonical>',
        b'<a href="#top"',
        b"&amp;",
        b"&#38;",
        b"&copy",
        b"javascript:",
        b"h+t.1-p:",
        b"HTTPS:",
        b"<base href='/b/'>",
        b"<base>",
        b"<b id=1>",
        b"</p x=",
        b"</a",
        b"href",
        b" href=",
        b' rel="x"',
        b"src",
        b"content",
    ),
    *(
        b"http://h/",
        b"https://h:80/x",
        b"//g/",
        b"http:",
        b"mailto:m@x",
        b"a.html",
        b"./",
        b"../",
        b"..",
        b"%2E",
        b"%C3%A9",
    ),
)
PATHS: Final = (
    "http://h/",
    "http://h/d/p",
    "https://h.example:8/a/b/c?d=/e",
    "http://127.0.0.1:80/%7Eu/",
    "http://h/x//y",
)
SEGMENTS: Final = (
    *(
        "a",
        "b.html",
        "..",
        ".",
        "...",
        "",
        "x-y_z",
        "~u",
        "A(b)",
        "c;d=e",
        "f,g",
        "h&i",
        "%7e",
        "%7E",
        "%2E",
        "%2e%2E",
        "%",
        "%4",
    ),
    *(
        "q?x",
        "?",
        "?y=/../z",
        "h:1",
        "w@v",
        "$",
        "!*'",
        "a+b",
        "\\",
        "|",
        "^",
        "`",
        "{}",
        "[",
        "é",
        " ",
        "\t",
        "<",
        '"',
        "#f",
    ),
)
LABELS: Final = (
    *(
        "a",
        "g2",
        "2g",
        "a-b",
        "localhost",
        "example",
        "xn--a",
        "xn--bcher-kva",
        "ab--c",
        "-a",
        "a-",
        "a_b",
        "A",
        "",
        "*",
    ),
    *("1", "127", "0x7f", "0xg", "08", "x0", "%61", "a%2Eb", "a:80", "u@a", "é", "[::1]", "ß", "a\\b", "a b"),
    *("b" * 63, "b" * 64, "c" * 60),
)
"""Labels of hosts: usual ones, numbers, and such as a parser of URLs changes or refuses."""


class Difference(NamedTuple):
    """Input that the two extractors see differently."""

    data: bytes
    python: object
    native: object


class Comparison:
    """The Python code and the native code read the same mutated pages."""

    def __init__(self, native: NativeLinks, pages: Sequence[bytes], seed: int) -> None:
        self.compared = 0
        self.joined = 0
        """Joins that the native code did not leave to Python."""
        self._native = native
        self._pages = pages
        self._random = Random(seed)
        limits = Limits(links_per_page_max=20)
        self._extractors = (LinkExtractor(limits, native=None), LinkExtractor(limits, native=native))

    def one_page(self) -> Difference | None:
        """Compare the tags and the links of one more mutated page."""
        self.compared += 1
        return self.differs(self._mutated(), canonical(self._random.choice(PATHS)) or "")

    def differs(self, page: bytes, url: str) -> Difference | None:
        """Return the difference in the reading of a page, or None."""
        python, native = run_to_end(link_tags(page)), run_to_end(link_tags(page, self._native))
        if python != native:
            return Difference(page, python, native)
        found: list[Extracted] = [one.extract(page, "text/html; charset=utf-8", url) for one in self._extractors]
        return Difference(page, *found) if found[0] != found[1] else None

    def one_join(self) -> Difference | None:
        """Compare one join of a URL and an href."""
        random = self._random
        base = canonical(random.choice(PATHS) + "/".join(random.choices(SEGMENTS, k=random.randrange(3))))
        before = random.choice(
            ("", "", "/", "../", "../../", "./", "//", "http://h/", "https://h.example:8/", "http://", None)
        )
        if before is None:
            host = ".".join(random.choices(LABELS, k=random.randrange(1, 6)))
            before = random.choice(("http://", "https://")) + host + random.choice(("", "/", "/", "?", "#"))
        href = before + "/".join(random.choices(SEGMENTS, k=random.randrange(1, 5)))
        assert base is not None
        native = self._native.join(base, href.encode())
        if native is None:
            return None
        self.joined += 1
        python = canonical(href, base)
        return Difference(f"{base} {href}".encode(), python, native) if python != native else None

    def _mutated(self) -> bytes:
        random = self._random
        kind = random.random()
        page = random.choice(self._pages)
        if kind < 0.4:
            page = b"".join(random.choices(BITS, k=random.randrange(1, 30)))
        elif kind < 0.7:
            page = self._slice(page) + self._slice(random.choice(self._pages))
        else:
            page = self._slice(page)
        mutated = bytearray(page)
        for _ in range(random.randrange(5)):
            at = random.randrange(len(mutated) + 1)
            mutated[at : at + random.randrange(3)] = random.choice(BITS)
        return bytes(mutated)

    def _slice(self, page: bytes) -> bytes:
        start = self._random.randrange(max(1, len(page)))
        return page[start : start + SLICE_BYTES]
