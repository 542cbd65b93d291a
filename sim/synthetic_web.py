"""A web of any size as a function: the answers of each URL, and the results of a correct crawler. No I/O.

A page is computed from (seed, URL) for each request, so a million pages need no memory. Only the sites
(`sim/synthetic_sites.py`) are kept as rows, and they are fewer. The answers of some URLs depend on the number of
earlier requests: `Answer.counted` marks them, and the server keeps the count.

Within a site, page n hangs below page ``(n - 1) // fanout``, so all pages are reachable and `Truth` needs no walk.
Random links are added to this tree: log-normally many per page, popular targets more often, one in eight to another
site. The first `Site.inner` pages carry the tree and end in HTML. Only the leaves may be something else. A *trail* is a
chain of pages from site to site, each linked only from the page before. One lost link loses the rest of the trail.

Every fault ends in the same way after any number of crashed and repeated requests: a busy page answers at the second
request, a refusing page at the second or third, a missing page never, three redirects lead to a page, and robots.txt
forbids the only endless part, the maze. Shares no code with kadcrawl.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from enum import Enum, auto
from typing import Final, NamedTuple

from .annex import HOME as ANNEX_HOME, SITEMAP, SITEMAP_USUAL, Annex
from .judge import Expected
from .site_treatment import SiteTreatment
from .synthetic_sites import Mix, Robots, SyntheticSite, cumulated, draws, lognormal, make_sites

RETRIES: Final = 3
"""Further tries a polite crawler makes of a page that keeps failing (`Job.retries`)."""
ROBOTS_TRIES_MAX: Final = 3
"""Requests for a robots.txt that keeps failing (`Limits.robots_tries_max`)."""
LINKS_MAX: Final = 100
"""Random links of one page at most."""
SLOW_S: Final = 3.0
"""A slow page thinks this long, or up to twice that, before it answers."""
OFTEN_BROKEN: Final = 0.6
"""Share of the leaves that always answer 500, on a site with a number of retries of its own."""
OFTEN_SLOW: Final = 0.8
"""Share of the pages that are slow, on a site with a number of connections of its own."""
SLOW_BYTES_S: Final = 1_000
"""Bytes per second of a slow page: slow, but not so slow that a crawler gives up."""

_DOORS: Final = tuple(f"/door/{number}" for number in range(1, 6))
"""Pages of a site that refuses every request, which the largest site links to."""
_REDIRECTS: Final = (301, 302, 303, 307, 308)
_SPECIAL: Final = re.compile(r"/(page|old|calendar|maze|trail)/([1-9][0-9]{0,8})")
_HTML: Final = (("Content-Type", "text/html; charset=utf-8"),)
_DECOY: Final = b'<a href="/not/a/link">%%EOF</a>\n'
"""The content of bodies from which no crawler takes links."""
_FILLER: Final = b"amber basin cedar delta ember fjord grove harbor island juniper kelp lagoon meadow north " * 48
_DEGREES: Final = tuple(map(int, lognormal(6, 1.0, LINKS_MAX)))
_FILLER_BYTES: Final = tuple(map(int, lognormal(200, 1.2, len(_FILLER))))
_GOLDEN: Final = 0x9E3779B1
"""2**32 over the golden ratio: its multiples are spread evenly modulo 2**32."""


class SyntheticResponse(NamedTuple):
    """One HTTP response."""

    status: int
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes = b""
    latency_s: float = 0.0
    """Seconds from the request to the first byte."""
    bytes_per_s: float = float("inf")
    counted: bool = False
    """Another request for this URL may be answered otherwise."""


class PageKind(Enum):
    """The kind of a URL's resource."""

    PAGE = auto()
    BUSY = auto()
    REFUSING = auto()
    SLOW = auto()
    MISSING = auto()
    BROKEN = auto()
    FILE = auto()
    ELSEWHERE = auto()
    OLD = auto()
    CALENDAR = auto()
    MAZE = auto()
    TRAIL = auto()
    ANNEX = auto()
    ROBOTS = auto()
    NOTHING = auto()


class SyntheticWeb:
    """`pages` pages on `sites` sites, all from `seed`. A crawl begins at the first `seeds` sites.

    `zipf` is the exponent of the law of sizes: 0 makes all sites alike, 1 makes the second half as large as the first.
    From each home page of the first `trails` sites a trail of `trail_pages` additional pages begins. Hosts are served
    from the IP `addresses` in turn, on port 80. Raises ValueError for impossible parameters.
    """

    def __init__(
        self,
        seed: int,
        *,
        sites: int,
        pages: int,
        seeds: int = 1,
        zipf: float = 1.0,
        mix: Mix | None = None,
        trails: int = 0,
        trail_pages: int = 0,
        addresses: tuple[str, ...] = ("10.255.0.1",),
        treatments: Sequence[SiteTreatment] = (),
        annex: Annex | None = None,
        domains: int = 0,
    ) -> None:
        """`treatments` are those of all sites, the largest first, or none for no rules. `annex` is that of one site.

        With `domains` the sites are hosts of so many registered domains, else each site has its own.
        """
        if not 1 <= seeds <= sites <= pages:
            raise ValueError("a web has at least as many pages as sites, as many sites as seeds, and one seed")
        if not 0 <= trails <= seeds or trail_pages < 0:
            raise ValueError("a web has no more trails than seeds, and none of less than no pages")
        if not addresses:
            raise ValueError("a web is served from at least one address")
        self._mix = mix or Mix()
        self._moved_below = int(self._mix.moved * 2**32)
        busy = [
            (PageKind.BUSY, self._mix.busy),
            (PageKind.SLOW, self._mix.slow),
            (PageKind.REFUSING, self._mix.refusing),
        ]
        leaf = [
            *busy,
            (PageKind.MISSING, self._mix.missing),
            (PageKind.BROKEN, self._mix.broken),
            (PageKind.FILE, self._mix.file),
            (PageKind.ELSEWHERE, self._mix.elsewhere),
        ]
        self._inner_kinds, self._leaf_kinds = cumulated(busy), cumulated(leaf)
        self._tried_kinds = cumulated([(PageKind.BROKEN, OFTEN_BROKEN)])
        self._crowded_kinds = cumulated([(PageKind.SLOW, OFTEN_SLOW)])
        self.addresses = addresses
        self.sites: tuple[SyntheticSite, ...] = tuple(
            make_sites(seed, sites, pages, seeds, zipf, self._mix, treatments, domains)
        )
        """The largest first."""
        self.seeds: tuple[str, ...] = tuple(f"{site.origin}/" for site in self.sites[:seeds])
        """The URLs a crawl starts from."""
        self._trails, self._trail_pages = trails, trail_pages
        self._open = [site for site in self.sites if site.open and site.treatment.pages_max is None]
        self._annex = annex
        home = self.sites[annex.site % sites] if annex is not None else None
        self._annex_host = home.host if home is not None and home.treatment.pages_max is None else ""
        self._by_host = {site.host: number for number, site in enumerate(self.sites)}

    def address(self, host: str) -> str | None:
        """Return the IP address that serves `host`, or None if there is no such host."""
        number = self._by_host.get(host)
        return None if number is None else self.addresses[number % len(self.addresses)]

    def answer(self, host: str, target: str, asked: int = 0) -> SyntheticResponse:
        """Return the answer to a GET of `target` (path and query) that was asked for `asked` times before.

        Never raises: what there is not is 404, and a host that is not of this web 421.
        """
        number = self._by_host.get(host)
        if number is None:
            return SyntheticResponse(421)
        site = self.sites[number]
        answer = self._answer(site, target, asked)
        return answer._replace(
            latency_s=answer.latency_s + site.latency_s, bytes_per_s=min(answer.bytes_per_s, site.bytes_per_s)
        )

    def truth(self, retries: int = RETRIES) -> "Truth":
        """Return the result of a crawl of scope "any" without limits, computed on demand, without robots.txt (see
        `Truth`)."""
        return Truth(self, retries)

    def robots(self, robots_tries_max: int = ROBOTS_TRIES_MAX) -> dict[str, Expected]:
        """Return the robots.txt of each site and how often a correct crawl fetches it, each site having one owner."""
        outcomes = {
            Robots.OPEN: Expected(200, 1, 1),
            Robots.MISSING: Expected(404, 1, 1),
            Robots.FLAKY: Expected(200, 2, 2),
            Robots.CLOSED: Expected(200, 1, 1),
            Robots.DEAD: Expected(503, 1, robots_tries_max),
        }
        asked = [site for site in self.sites if not (site.treatment.off or site.treatment.ignores_robots)]
        return {f"{site.origin}/robots.txt": outcomes[site.robots] for site in asked}

    def disallowed(self) -> frozenset[str]:
        """Return the URLs that allowed pages link to and that robots.txt or a rule of the job forbids.

        A crawl meets no URL behind them.
        """
        urls = [f"{site.origin}/maze/1" for site in self.sites if site.maze and not site.treatment.refuses]
        shut = [site for site in self.sites if not site.allowed]
        # A crawl that follows sitemaps takes that of a site for a link, though the site forbids everything.
        maps = [site for site in shut if self._follows_sitemaps(site) and site.robots is Robots.CLOSED]
        urls += [f"{site.origin}{SITEMAP_USUAL}" for site in maps if not site.treatment.off]
        return frozenset(urls + [f"{site.origin}/" for site in shut])

    def optional(self, retries: int = RETRIES) -> "Truth":
        """Return the result of each URL of the sites of which a crawl fetches only some. It decides which."""
        return Truth(self, retries, is_optional=True)

    def refused(self) -> tuple[str, ...]:
        """Return the URLs that allowed pages link to and whose sites refuse every request.

        A crawl asks for some of them, and gives all of them up.
        """
        refusing = [site for site in self.sites if site.allowed and site.treatment.refuses]
        return tuple(f"{site.origin}{path}" for site in refusing for path in ("/", *_DOORS))

    def delays(self, delay_s: float) -> dict[str, float]:
        """Return the seconds between two requests to each origin, for a crawl with a job's delay of `delay_s`."""
        return {site.origin: site.delay_s(delay_s) for site in self.sites}

    @property
    def origins(self) -> list[str]:
        """``http://host`` of each site, the largest first."""
        return [site.origin for site in self.sites]

    @property
    def trails(self) -> list[list[str]]:
        """The URLs of each trail in a row, from the home page on which it begins."""
        pages = range(1, self._trail_pages + 1) if self._trail_pages else ()
        return [
            [f"{site.origin}/", *(self._trail(number * self._trail_pages + page) for page in pages)]
            for number, site in enumerate(self.sites[: self._trails])
        ]

    # --- what a URL is -------------------------------------------------------------------------------------------

    def kind(self, site: SyntheticSite, target: str) -> tuple[PageKind, int]:
        """Return the kind of the resource at `target`, and its number within this kind."""
        if target == "/":
            return self._page_kind(site, 0), 0
        if target == "/robots.txt":
            return PageKind.ROBOTS, 0
        if target == SITEMAP_USUAL or target.startswith(ANNEX_HOME):
            return self._annex_kind(site, target), 0
        match = _SPECIAL.fullmatch(target)
        if match is None:
            return PageKind.NOTHING, 0
        number = int(match[2])
        match match[1]:
            case "page" if number < site.pages:
                return self._page_kind(site, number), number
            case "old" if number < site.pages and self._moved(site, number):
                return PageKind.OLD, number
            case "calendar" if number <= site.calendar:
                return PageKind.CALENDAR, number
            case "trail" if number <= self._trails * self._trail_pages and self._trail_site(number) is site:
                return PageKind.TRAIL, number
            case "maze" if site.maze:
                return PageKind.MAZE, number
        return PageKind.NOTHING, number

    def status(self, site: SyntheticSite, kind: PageKind, number: int) -> int:
        """Return the status of the last answer of a resource found by `kind`."""
        match kind:
            case PageKind.OLD:
                return _REDIRECTS[number % 5]
            case PageKind.ELSEWHERE:
                return _REDIRECTS[_words(site, number, 1)[0] % 5]
            case PageKind.MISSING | PageKind.NOTHING:
                return 404
            case PageKind.BROKEN:
                return 500
        return 200

    def refusals(self, site: SyntheticSite, number: int) -> int:
        """Return how many requests for a refusing page get 429."""
        return 1 + (_words(site, number, 1)[0] >> 18 & 1)

    def paths(self, site: SyntheticSite) -> Iterator[str]:
        """Yield every path of an open site that a correct crawl fetches, but for robots.txt."""
        yield "/"
        for number in range(1, site.pages):
            yield f"/page/{number}"
            if self._moved(site, number):
                yield f"/old/{number}"
        for number in range(1, site.calendar + 1):
            yield f"/calendar/{number}"
        for number in range(1, self._trails * self._trail_pages + 1):
            if self._trail_site(number) is site:
                yield f"/trail/{number}"
        yield from self._annex_paths(site)

    def site(self, host: str) -> SyntheticSite | None:
        """Return the site at `host`, or None."""
        number = self._by_host.get(host)
        return None if number is None else self.sites[number]

    def _page_kind(self, site: SyntheticSite, number: int) -> PageKind:
        chance = (_words(site, number, 1)[0] >> 32) / 2**32
        for kind, below in self._kinds(site, is_leaf=number >= site.inner):
            if chance < below:
                return kind
        return PageKind.PAGE

    def _kinds(self, site: SyntheticSite, *, is_leaf: bool) -> list[tuple[PageKind, float]]:
        """Return the kinds of pages with the bounds of their chances.

        A page that fails at first would stay failed on a site with fewer retries, so there are none there.
        """
        if site.treatment.retries is not None:
            return self._tried_kinds if is_leaf else []
        if site.treatment.connections is not None:
            return self._crowded_kinds
        return self._leaf_kinds if is_leaf else self._inner_kinds

    def _moved(self, site: SyntheticSite, number: int) -> bool:
        # Asked about every link of every page, so it costs no hash.
        return (number * _GOLDEN + site.phase) & 0xFFFFFFFF < self._moved_below and number > 0

    def _annex_paths(self, site: SyntheticSite) -> Iterator[str]:
        """Yield the paths of a site's annex, and of its sitemap, that a correct crawl fetches."""
        follows, names_sitemap = self._follows_sitemaps(site), self._names_sitemap(site)
        if follows and not names_sitemap:
            yield SITEMAP_USUAL
        if self._annex is not None and site.host == self._annex_host:
            yield from self._annex.paths(follows_sitemaps=follows, names_sitemap=names_sitemap)

    def _annex_kind(self, site: SyntheticSite, target: str) -> PageKind:
        if target not in self._annex_paths(site):
            return PageKind.NOTHING
        return PageKind.MISSING if target == SITEMAP_USUAL else PageKind.ANNEX

    def _follows_sitemaps(self, site: SyntheticSite) -> bool:
        job = self._annex is not None and self._annex.sitemaps
        return job if site.treatment.sitemaps is None else site.treatment.sitemaps

    def _names_sitemap(self, site: SyntheticSite) -> bool:
        """Return whether a crawl reads a robots.txt that names the sitemap of the annex."""
        speaks = site.robots in (Robots.OPEN, Robots.FLAKY) and not site.treatment.ignores_robots
        return speaks and site.host == self._annex_host

    def _trail_site(self, number: int) -> SyntheticSite:
        return self._open[number % len(self._open)]

    def _trail(self, number: int) -> str:
        """Return the URL of a trail page. All pages of all trails are numbered consecutively."""
        return f"{self._trail_site(number).origin}/trail/{number}"

    # --- what it answers -----------------------------------------------------------------------------------------

    def _answer(self, site: SyntheticSite, target: str, asked: int) -> SyntheticResponse:
        if self._annex is not None and site.host == self._annex_host and target.startswith(ANNEX_HOME):
            headers, body = self._annex.answer(target, site.origin, is_atom=bool(site.phase & 1))
            return SyntheticResponse(200, headers, body)
        if site.treatment.refuses and target != "/robots.txt":
            return SyntheticResponse(429, body=b"too many requests")
        kind, number = self.kind(site, target)
        match kind:
            case PageKind.ROBOTS:
                return _robots(site, asked, SITEMAP if self._names_sitemap(site) else "")
            case PageKind.BUSY if asked == 0:
                return SyntheticResponse(503, (("Retry-After", "1"),), b"one moment", counted=True)
            case PageKind.REFUSING if asked < self.refusals(site, number):
                return SyntheticResponse(429, body=b"too many requests", counted=True)
            case PageKind.OLD:
                return SyntheticResponse(self.status(site, kind, number), (("Location", f"/page/{number}"),))
            case PageKind.ELSEWHERE:
                chance = _words(site, number, 2)[1]
                return SyntheticResponse(
                    self.status(site, kind, number), (("Location", self._abroad(chance, inner=True)),)
                )
            case PageKind.FILE:
                return SyntheticResponse(200, (("Content-Type", "application/pdf"),), b"%PDF-1.4\n" + _DECOY)
            case PageKind.MISSING | PageKind.NOTHING | PageKind.BROKEN:
                return SyntheticResponse(self.status(site, kind, number), _HTML, _DECOY)
            case PageKind.CALENDAR:
                onward = [f"/calendar/{number + 1}"] if number < site.calendar else []
                return SyntheticResponse(200, _HTML, _document(["/", *onward], 0))
            case PageKind.TRAIL:
                onward = [self._trail(number + 1)] if number % self._trail_pages else []
                return SyntheticResponse(200, _HTML, _document(onward, 0))
            case PageKind.MAZE:
                return SyntheticResponse(200, _HTML, _document([f"/maze/{2 * number}", f"/maze/{2 * number + 1}"], 0))
        chance = _words(site, number, 1)[0]
        body = _document(self._links(site, number, _DEGREES[chance & 63]), _FILLER_BYTES[chance >> 6 & 63])
        if kind is PageKind.SLOW:
            return SyntheticResponse(200, _HTML, body, SLOW_S * (1 + (chance >> 12 & 63) / 63), SLOW_BYTES_S)
        return SyntheticResponse(200, _HTML, body, counted=kind in (PageKind.BUSY, PageKind.REFUSING))

    def _links(self, site: SyntheticSite, number: int, degree: int) -> list[str]:
        """Return the hrefs of an HTML page: its part of the trees, then `degree` of chance."""
        pages, first = site.pages, number * site.fanout + 1
        links = [self._path(site, child) for child in range(first, min(first + site.fanout, pages))]
        links += [f"{origin}/" for origin in site.exits.get(number, ())]
        if number == 0 and site.calendar:
            links.append("/calendar/1")
        if number == 0 and site is self.sites[0]:
            links += [url for url in self.refused() if not url.endswith("/")]
        if number == 0 and site.host == self._annex_host:
            links.append(ANNEX_HOME)
        if number == 0 and site in self.sites[: self._trails] and self._trail_pages:
            links.append(self._trail(self._by_host[site.host] * self._trail_pages + 1))
        if site.maze and number % 16 == 0:
            links.append("/maze/1")
        for chance in _words(site, number, 2 + degree)[2:]:
            if chance & 7 == 0:
                links.append(self._abroad(chance, inner=False))
            else:
                # Squared, low numbers come up most: a few pages are linked from nearly everywhere.
                path = self._path(site, (chance >> 32) ** 2 * pages >> 64)
                links.append(f"{path}#part" if chance & 56 == 0 else path)
        return links

    def _path(self, site: SyntheticSite, number: int) -> str:
        """Return the path by which links lead to a page."""
        if self._moved(site, number):
            return f"/old/{number}"
        return f"/page/{number}" if number else "/"

    def _abroad(self, chance: int, *, inner: bool) -> str:
        """Return the URL of a page of another site. With `inner` the URL is never a redirect."""
        site = self.sites[(chance >> 32) ** 2 * len(self.sites) >> 64]
        pages = site.inner if inner else site.pages
        # Of what may not be fetched only the home page is ever linked to.
        return site.origin + (self._path(site, (chance >> 6 & 0xFFFFFF) ** 2 * pages >> 48) if site.open else "/")


class Truth(Mapping[str, Expected]):
    """URL -> result in a correct crawl, computed on demand. Counting takes as long as iterating."""

    def __init__(self, web: SyntheticWeb, retries: int, *, is_optional: bool = False) -> None:
        """With `is_optional` the URLs are those of the sites of which only some are fetched, otherwise all others."""
        self._web = web
        self._retries = retries
        self._is_optional = is_optional

    def __getitem__(self, url: str) -> Expected:
        host, slash, path = url.removeprefix("http://").partition("/")
        site = self._web.site(host)
        if site is None or not self._has(site) or not slash or not url.startswith("http://"):
            raise KeyError(url)
        return self._expected(site, f"/{path}", url)

    def __iter__(self) -> Iterator[str]:
        for site in self._web.sites:
            if self._has(site):
                yield from (site.origin + path for path in self._web.paths(site))

    def _has(self, site: SyntheticSite) -> bool:
        return site.open and (site.treatment.pages_max is not None) is self._is_optional

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def _expected(self, site: SyntheticSite, path: str, url: str) -> Expected:
        kind, number = self._web.kind(site, path)
        if kind in (PageKind.NOTHING, PageKind.ROBOTS, PageKind.MAZE):
            raise KeyError(url)
        page = self._page(site, kind, number)
        # Any page may be the first that the site is asked for, before it has given a cookie.
        return page._replace(fetches_max=page.fetches_max + 1) if site.treatment.cookies else page

    def _page(self, site: SyntheticSite, kind: PageKind, number: int) -> Expected:
        status = self._web.status(site, kind, number)
        match kind:
            case PageKind.BUSY:
                return Expected(status, 2, 2)
            case PageKind.REFUSING:
                fetches = 1 + self._web.refusals(site, number)
                return Expected(status, fetches, fetches)
            case PageKind.BROKEN:
                # A try may fail before it reaches the server, so no more than one request is certain.
                retries = self._retries if site.treatment.retries is None else site.treatment.retries
                return Expected(status, 1, 1 + retries)
        return Expected(status, 1, 1)


def _document(links: list[str], filler_bytes: int) -> bytes:
    anchors = "\n".join([f'<a href="{link}">x</a>' for link in links])
    return b"<!doctype html><title>page</title>\n%s\n<p>%s</p>\n" % (anchors.encode(), _FILLER[:filler_bytes])


def _robots(site: SyntheticSite, asked: int, sitemap: str) -> SyntheticResponse:
    if site.robots is Robots.MISSING:
        return SyntheticResponse(404)
    if site.robots is Robots.DEAD or (site.robots is Robots.FLAKY and asked == 0):
        return SyntheticResponse(503, (("Retry-After", "1"),), b"out of order", counted=site.robots is Robots.FLAKY)
    forbidden = "/" if site.robots is Robots.CLOSED else "/maze/" if site.maze else ""
    lines = ["User-agent: *", f"Disallow: {forbidden}"]
    if site.crawl_delay_s:
        lines.append(f"Crawl-delay: {site.crawl_delay_s:g}")
    if sitemap:
        lines.append(f"Sitemap: {site.origin}{sitemap}")
    body = "\n".join([*lines, ""]).encode()
    return SyntheticResponse(200, (("Content-Type", "text/plain"),), body, counted=site.robots is Robots.FLAKY)


def _words(site: SyntheticSite, number: int, count: int) -> tuple[int, ...]:
    """Return a page's random words: word 0 decides its kind, word 1 its redirect, and the others its links."""
    return draws(f"{site.name}/{number}", count)
