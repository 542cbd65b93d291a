"""The sample web as a function: the answers of each URL, and the requests of a correct crawler. No I/O.

A page is computed from (seed, site, path) for each request. The same seed gives the same web wherever it is served.
Every site is a tree of ordinary pages (page n hangs below page ``(n - 1) // FANOUT``, so all are reachable) with
further random links: popular pages more often, some on other sites, a few outside the crawl. The special resources at
the end of this file are added to it. Each is the only way to another URL, or a wrong way, so a crawler that misreads it
leaves out a URL or fetches one too many. A `Resource` holds answers and expectations side by side: `sim/sample_web.py`
serves the answers, `sim/judge.py` compares the log with the expectations.
"""

import gzip
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from html import escape
from random import Random
from typing import Final

FANOUT: Final = 3
"""Children of an ordinary page in its site's tree: 40 pages are then four links deep."""
RETRIES_MAX: Final = 3
"""Further tries a polite crawler may spend on a URL that keeps failing."""

_ORDINARY = re.compile(r"/(?:topic-\d+/page-(\d+)\.html)?")
_WORDS: Final = re.findall(
    r"\w+",
    "amber basin cedar delta ember fjord grove harbor island juniper kelp lagoon meadow north orchard "
    "prairie quarry river summit tundra upland valley willow yarrow zephyr between under across with from",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleResponse:
    """One HTTP response."""

    status: int = 200
    content_type: str = "text/html; charset=utf-8"
    body: bytes = b""
    headers: tuple[tuple[str, str], ...] = ()
    wait_s: float = 0
    """Seconds the server thinks before it answers."""


NOT_FOUND: Final = SampleResponse(status=404, body=b"<h1>Nothing here</h1>")


@dataclass(frozen=True, slots=True, kw_only=True)
class Resource:
    """The answers of a URL in order, with the last repeated, and the number of requests of a correct crawler.

    Both counts are 0 for a URL that is linked but must not be fetched.
    """

    answers: tuple[SampleResponse, ...]
    fetches_min: int = 1
    fetches_max: int = 1
    disallowed: bool = False
    """True if robots.txt forbids the URL."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleSite:
    """One host of the sample web."""

    name: str
    pages: int
    """Ordinary pages, the home page among them."""
    crawl_delay_s: float = 0
    """Seconds that robots.txt asks for between two requests, or 0."""
    entrances: tuple[str, ...] = ()
    """Special paths that the home page links to. No other page links to the URLs behind them."""


SITES: Final = (
    SampleSite(
        name="gazette",
        pages=36,
        entrances=(
            "/private/",
            "/old/1",
            "/loop/a",
            "/moved",
            "/moved-outside",
            "/moved-to-private",
            "/gone.html",
        ),
    ),
    SampleSite(name="museum", pages=36, entrances=("/slow.html", "/busy.html", "/broken.html")),
    SampleSite(name="sinmun", pages=30, entrances=("/euc-kr.html", "/latin1.html", "/bom.html")),
    SampleSite(name="archive", pages=6, crawl_delay_s=1),
    SampleSite(
        name="workshop",
        pages=36,
        entrances=(
            *("/draft.tmp", "/based.html", "/refresh.html", "/gzipped.html", "/nofollow.html"),
            *("/nofollow-all.html", "/frames.html", "/sloppy.html", "/report.pdf", "/table.csv"),
        ),
    ),
    SampleSite(name="almanac", pages=40),
    # Plain ones, so that there are sites enough for every peer to own some.
    *(
        SampleSite(name=name, pages=15)
        for name in ("bakery", "cinema", "dairy", "ferry", "garden", "harbor", "inn", "jetty")
    ),
)
"""The sites a crawl of the sample web starts from, in the order of their seeds."""


class SamplePages:
    """The sample web of `seed` at the given origins (``http://host:port``), one origin for each of `SITES`.

    `outside` is the origin of a server that no crawl may touch. With `flaky_robots` the archive's robots.txt is out of
    order at first.
    """

    def __init__(self, seed: int, origins: tuple[str, ...], outside: str, *, flaky_robots: bool = False) -> None:
        assert len(origins) == len(SITES), "each site needs an origin"
        self._seed = seed
        self._origins = origins
        self._outside = outside
        self._flaky_robots = flaky_robots

    def resource(self, site: int, path: str) -> Resource | None:
        """Return the resource at `path` (with its query) of the site numbered `site`, or None."""
        special = self._specials[site].get(path)
        if special is not None:
            return special
        match = _ORDINARY.fullmatch(path)
        number = int(match[1] or 0) if match else SITES[site].pages
        if number >= SITES[site].pages or page_path(number) != path:
            return None
        return Resource(answers=(SampleResponse(body=self._ordinary(site, number)),))

    def paths(self, site: int) -> Iterator[str]:
        """Yield every path of a site that `resource` knows, robots.txt among them."""
        yield from map(page_path, range(SITES[site].pages))
        yield from self._specials[site]

    @cached_property
    def _specials(self) -> tuple[dict[str, Resource], ...]:
        """Path -> resource of everything that is not an ordinary page, site by site."""
        _, museum, _, _, workshop, almanac, *plain = self._origins
        return (
            _gazette(museum, self._outside),
            _museum(almanac),
            _sinmun(),
            _archive(self._flaky_robots),
            _workshop(workshop),
            _almanac(almanac),
            *({"/robots.txt": Resource(answers=(NOT_FOUND,))} for _ in plain),
        )

    def _ordinary(self, site: int, number: int) -> bytes:
        """Write an ordinary page: a heading and paragraphs, each with a link."""
        chance = Random(f"{self._seed}/{SITES[site].name}/{number}")
        targets = list(self._links_from(site, number, chance))
        chance.shuffle(targets)
        paragraphs = []
        for target in targets:
            before, after = (" ".join(chance.choices(_WORDS, k=chance.randint(8, 40))) for _ in range(2))
            paragraphs.append(f'<p>{before} <a href="{escape(target)}">{chance.choice(_WORDS)}</a> {after}.</p>')
        return document("", f"{SITES[site].name} {number}", "\n".join(paragraphs)).encode()

    def _links_from(self, site: int, number: int, chance: Random) -> Iterator[str]:
        pages = SITES[site].pages
        yield "/"
        for child in range(number * FANOUT + 1, min(number * FANOUT + FANOUT + 1, pages)):
            yield page_path(child)
        for _ in range(chance.randint(4, 12)):
            # Squared, low numbers come up most: a few pages of a site are linked from nearly everywhere.
            yield page_path(int(chance.random() ** 2 * pages)) + chance.choice(("", "", "#section"))
        for _ in range(chance.choice((0, 0, 1, 2))):
            other = chance.randrange(len(SITES))
            yield self._origins[other] + page_path(int(chance.random() ** 2 * SITES[other].pages))
        if chance.random() < 0.2:
            yield f"{self._outside}/{number}"
        if number == 0:
            yield from SITES[site].entrances


def page_path(number: int) -> str:
    """Return the path of a site's ordinary page `number`. Page 0 is the home page."""
    return f"/topic-{number % 7}/page-{number}.html" if number else "/"


# --- the special resources, one function a site ---------------------------------------------------


def _gazette(museum: str, outside: str) -> dict[str, Resource]:
    """Redirects, and a robots.txt whose group for kadcrawl counts and whose group for the others does not."""
    return {
        "/robots.txt": _robots("User-agent: *\nDisallow: /\n\nUser-agent: kadcrawl\nDisallow: /private/\n"),
        "/private/": _disallowed("/private/deeper.html"),
        "/private/deeper.html": _disallowed(),
        "/old/1": _redirect(301, "/old/2"),
        "/old/2": _redirect(302, "3"),
        "/old/3": _redirect(308, "/chain-end.html"),
        "/chain-end.html": _page("End of the chain"),
        "/loop/a": _redirect(302, "/loop/b"),
        "/loop/b": _redirect(302, "/loop/a"),
        "/moved": _redirect(301, f"{museum}/landing.html"),
        "/moved-outside": _redirect(301, f"{outside}/from-redirect"),
        "/moved-to-private": _redirect(307, "/private/"),
        "/gone.html": Resource(answers=(NOT_FOUND,)),
    }


def _museum(almanac: str) -> dict[str, Resource]:
    """A site without robots.txt: one page is slow, one is busy at first, and one always fails."""
    busy = SampleResponse(status=503, headers=(("Retry-After", "1"),), body=b"one moment")
    after_busy = SampleResponse(body=_linking("/after-busy.html"))
    broken = SampleResponse(status=500, body=b"<h1>Out of order</h1>")
    return {
        "/robots.txt": Resource(answers=(NOT_FOUND,)),
        "/landing.html": _page("Landed", _anchors(f"{almanac}/only-from-landing.html")),
        "/slow.html": Resource(answers=(SampleResponse(body=_linking("/after-slow.html"), wait_s=1.5),)),
        "/after-slow.html": _page("After the slow page"),
        "/busy.html": Resource(answers=(busy, after_busy), fetches_min=2, fetches_max=2),
        "/after-busy.html": _page("After the busy page"),
        "/broken.html": Resource(answers=(broken,), fetches_max=1 + RETRIES_MAX),
    }


def _sinmun() -> dict[str, Resource]:
    """Charsets: each page read in any other charset gives a link to somewhere else."""
    return {
        "/robots.txt": _robots("# Everything is open.\nUser-agent: *\nDisallow:\n"),
        "/euc-kr.html": _encoded("text/html", "euc-kr", "/기사.html", head='<meta charset="euc-kr">'),
        "/%EA%B8%B0%EC%82%AC.html": _page("기사"),
        "/latin1.html": _encoded("text/html; charset=ISO-8859-1", "latin-1", "/été.html"),
        "/%C3%A9t%C3%A9.html": _page("été"),
        "/bom.html": _encoded("text/html; charset=euc-kr", "utf-8-sig", "/끝.html"),
        "/%EB%81%9D.html": _page("끝"),
    }


def _archive(flaky_robots: bool) -> dict[str, Resource]:
    """A small site that wants to be asked slowly."""
    robots = _robots("User-agent: *\nCrawl-delay: 1\n")
    if flaky_robots:
        busy = SampleResponse(status=503, headers=(("Retry-After", "1"),))
        robots = Resource(answers=(busy, *robots.answers), fetches_min=2, fetches_max=2)
    return {"/robots.txt": robots}


def _workshop(workshop: str) -> dict[str, Resource]:
    """Markup: base, meta refresh, nofollow, frames, sloppy hrefs; gzip, and files that are no pages."""
    unpacked = _linking("/from-gzip.html")
    gzipped = SampleResponse(headers=(("Content-Encoding", "gzip"),), body=gzip.compress(unpacked, mtime=0))
    pdf = SampleResponse(
        content_type="application/pdf", body=b'%PDF-1.4\n% <a href="/unwanted.html">no page</a>\n%%EOF\n'
    )
    csv = SampleResponse(content_type="text/csv", body=b'name,link\nx,"<a href=""/unwanted.html"">no page</a>"\n')
    # Linked, but never by a link that a crawler may follow.
    unwanted = Resource(answers=(SampleResponse(),), fetches_min=0, fetches_max=0)
    return {
        "/robots.txt": _robots("User-agent: *\nDisallow: /*.tmp$\n"),
        "/draft.tmp": _disallowed(),
        "/based.html": _page("Base", '<a href="leaf.html">leaf</a>', head='<base href="/deep/down/">'),
        "/deep/down/leaf.html": _page("Leaf below the base"),
        "/refresh.html": _page("Moving", head='<meta http-equiv="refresh" content="5; url=/refreshed.html">'),
        "/refreshed.html": _page("Moved"),
        "/gzipped.html": Resource(answers=(gzipped,)),
        "/from-gzip.html": _page("From inside gzip"),
        "/nofollow.html": _page(
            "Nofollow", '<a rel="external NoFollow" href="/unwanted.html">x</a> <a href="/wanted.html">y</a>'
        ),
        "/nofollow-all.html": _page(
            "Nofollow", _anchors("/unwanted.html"), head='<meta name="robots" content="noarchive, nofollow">'
        ),
        "/unwanted.html": unwanted,
        "/wanted.html": _page("Wanted"),
        "/frames.html": _page(
            "Frames", '<iframe src="/framed.html"></iframe><map><area href="/area.html" alt="a"></map>'
        ),
        "/framed.html": _page("Framed"),
        "/area.html": _page("Area"),
        "/sloppy.html": _page(
            "Sloppy",
            "<A HREF=/unquoted.html>no quotes</A> <a href='\n /two words.html\t'>spaces</a>"
            f"<a href='{workshop.upper()}/x/../spelled.html#one'>shouted</a> <a href='./spelled.html#2'>.</a>"
            "<a href='/caf%c3%a9.html'>small hex</a> <a href='/café.html'>plain</a>"
            "<!-- <a href='/unwanted.html'>comment</a> --><script>'<a href=\"/unwanted.html\">'</script>"
            "<a href='mailto:nobody@example.org'>mail</a> <a href='javascript:void(0)'>script</a>"
            "<a href='http://[broken'>no URL</a>",
        ),
        "/unquoted.html": _page("Unquoted"),
        "/two%20words.html": _page("Two words"),
        "/spelled.html": _page("Spelled in many ways"),
        "/caf%C3%A9.html": _page("Café"),
        "/report.pdf": Resource(answers=(pdf,)),
        "/table.csv": Resource(answers=(csv,)),
    }


def _almanac(almanac: str) -> dict[str, Resource]:
    """A page that only a redirect from another site leads to, and a URL with a query."""
    return {
        "/robots.txt": _robots(f"User-agent: *\nAllow: /\nSitemap: {almanac}/unread-sitemap.xml\n"),
        "/only-from-landing.html": _page("Only one page leads here", _anchors("/search?q=tide&page=2")),
        "/search?q=tide&page=2": _page("Tides"),
    }


def document(head: str, title: str, body: str) -> str:
    """Return a page of HTML."""
    return (
        f"<!doctype html><html><head>{head}<title>{title}</title></head>\n"
        f"<body><h1>{title}</h1>\n{body}\n</body></html>\n"
    )


def _anchors(*targets: str) -> str:
    return " ".join(f'<a href="{escape(target)}">{escape(target)}</a>' for target in targets)


def _linking(*targets: str) -> bytes:
    return document("", "Links", _anchors(*targets)).encode()


def _page(title: str, body: str = "", *, head: str = "") -> Resource:
    return Resource(answers=(SampleResponse(body=document(head, title, body).encode()),))


def _encoded(content_type: str, codec: str, target: str, *, head: str = "") -> Resource:
    body = document(head, "Charset", _anchors(target)).encode(codec)
    return Resource(answers=(SampleResponse(content_type=content_type, body=body),))


def _disallowed(*targets: str) -> Resource:
    return Resource(answers=(SampleResponse(body=_linking(*targets)),), fetches_min=0, fetches_max=0, disallowed=True)


def _redirect(status: int, location: str) -> Resource:
    return Resource(answers=(SampleResponse(status=status, headers=(("Location", location),)),))


def _robots(text: str) -> Resource:
    return Resource(answers=(SampleResponse(content_type="text/plain", body=text.encode()),))
