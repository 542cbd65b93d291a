"""The link finder decides which links of an answer are followed: step 5 of a URL's life ends where step 1 begins.

A final answer leads to the target of a redirect, to the canonical URL of a page (canonical_link.py), to the links of a
page unless its role says that they are not followed, to the URLs of a sitemap, or to nothing. The finder also decides
whether the URL counts as failed. If the job follows sitemaps, each answer leads to the sitemaps of its site as well: so
they are offered before the site's first page is finished, whichever peer has fetched its robots.txt and when, and are
as safe from a crash as any link. If pages are fetched again, links of a sitemap carry the dates that it gives, and go
again when these are later.

With `Job.twins` the links of a page with nearly the text of an earlier page are left to that page (near_duplicates.py),
unless somebody asked for this page: a seed, the target of a seed's redirect, or a page that by its role leads on.

Session IDs and named parameters are taken out of links here, where URLs enter the crawl, so that no later step sees
them. Links that a limit keeps out are counted here, as no other step meets them. A bug in reading a page costs that
page's links, never the crawl. Long work is done in turns (system/cooperative.py). No await, no clock.
"""

import logging
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from kadcrawl.crawl.content.canonical_link import may_replace, named_by_header
from kadcrawl.crawl.content.html_links import Extracted, LinkExtractor
from kadcrawl.crawl.content.near_duplicates import NearDuplicates
from kadcrawl.crawl.content.redirects import (
    LOCATION_CHARS_MAX,
    SEED_LEFT_SCOPE,
    longer_trail,
    loop_of,
    why_seed_left,
)
from kadcrawl.crawl.content.refresh import refresh_target
from kadcrawl.crawl.content.robots_directives import directives
from kadcrawl.crawl.fetch.content_encoding import GZIP_MAGIC, inner_bytes_max
from kadcrawl.crawl.fetch.result import HTML, FetchResult
from kadcrawl.crawl.links.recent_links import RecentlySent
from kadcrawl.crawl.robots.rules import Rules
from kadcrawl.crawl.scope.scope import LIMITS, Reason, Scope
from kadcrawl.crawl.scope.sitemap_urls import of_origin
from kadcrawl.link.wire.messages import SMALL_MAX, DatedLink, Link
from kadcrawl.settings.limits import Limits
from kadcrawl.settings.page_rules import PageRules
from kadcrawl.store.frontier_entry import FrontierEntry
from kadcrawl.system.cooperative import CooperativeWork, run_to_end
from kadcrawl.urls import canonical, origin_of, site_of, without_password

if TYPE_CHECKING:
    from kadcrawl.crawl.content.sitemap import Sitemap

TURN_CHARS = 128 * 1024
"""Characters of URLs judged in one turn: few pages have more, and the slowest take 0.1 s."""
LEFT_OUT_PART = 20
"""The links remembered as left out are this part of those remembered as sent: 10,000 by default."""
NO_DATES: Mapping[str, float] = {}
log = logging.getLogger(__name__)


@dataclass(slots=True)
class FoundLinks:
    """The links that a final answer leads to."""

    links: tuple[str, ...]
    """Every distinct canonical URL on the page."""
    outlinks: list[Link]
    """The links in scope that their owners may not know yet, or the target of a redirect."""
    failed: str | None
    """The reason that the URL counts as failed, or None."""
    left_out: Mapping[str, int] = field(default_factory=dict)
    """The number of links that each limit kept out, by limit.

    ``session_id`` counts links that go on without their session ID, ``parameters`` links that go on without parameters
    that the job names, ``canonical`` links left to the canonical page, ``twins`` links left to the near duplicate, and
    ``nofollow`` links in scope that say nofollow."""
    canonical: str | None = None
    """The canonical URL of the page, if it is honored."""
    near_duplicate: str | None = None
    """The page to which its links were left, as its text is nearly the same."""
    noindex: bool = False
    """The page asks search engines not to show it."""
    location: str | None = None
    """The target of a redirect: a canonical URL if it is one, else as sent."""
    detail: str = ""
    """A few words about the failure, for a person."""


class LinkFinder:
    """Finds where answers lead, for one crawler."""

    def __init__(
        self,
        extractor: LinkExtractor,
        scope: Scope,
        not_recently_sent: Callable[[Iterable[str], int], list[str]],
        limits: Limits,
        page_rules: PageRules | None = None,
        near_duplicates: NearDuplicates | None = None,
        newer_lastmod: Callable[[Mapping[str, float]], list[str]] | None = None,
    ) -> None:
        """`fresh` returns those of the URLs, met at this depth, whose owners may not know them yet.

        `twins` if the links of near-identical pages are not followed. `news` returns those whose owners may not know
        that their pages changed so lately; without it, when pages changed matters to nobody, as each is fetched once.
        """
        self._extractor = extractor
        self._scope = scope
        self._not_recently_sent = not_recently_sent
        self._limits = limits
        self._newer_lastmod = newer_lastmod
        self._page_rules = page_rules or PageRules()
        self._near_duplicates = near_duplicates
        self._left_out: RecentlySent[Reason] = RecentlySent(
            limits.recent_links_max // LEFT_OUT_PART, limits.recent_chars_max // LEFT_OUT_PART
        )
        """The reasons against URLs that were left out lately, as most pages of a site repeat the same links."""
        self._left_out_version: tuple[int, ...] = ()
        """The version of the scope that gave these reasons."""

    @property
    def looks_for_near_duplicates(self) -> bool:
        """True if the finder needs the SimHash of each page."""
        return self._near_duplicates is not None

    def follows_sitemaps(self, entry: FrontierEntry) -> bool:
        """Return whether the sitemaps of an entry's host are followed."""
        return self._scope.site_settings.follows_sitemaps(entry.url)

    def find_links(
        self,
        entry: FrontierEntry,
        result: FetchResult,
        rules: Rules,
        listed: "Sitemap | None" = None,
        simhash: int | None = None,
    ) -> CooperativeWork[FoundLinks]:
        """Return the links that a final answer leads to. `entry` is the request, `rules` are the robots rules of its
        origin.

        `listed` is the result of `read_sitemap` for the answer. `simhash` is the SimHash of its text, if
        `looks_for_near_duplicates`. Yields when other work should have its turn.
        """
        robots_tag = _x_robots_tag(result)
        if listed is None:
            found = yield from self._find_links(entry, result, rules, simhash, robots_tag)
        else:
            found = yield from self._listed(entry, result, listed)
        if robots_tag and result.why_failed is None and directives(robots_tag, agent=self._extractor.agent).noindex:
            found = replace(found, noindex=True)  # Also of a file that is no page.
        if not self._scope.site_settings.follows_sitemaps(entry.url):
            return found
        onward, left_out = self.sitemaps(entry, rules)
        return replace(found, outlinks=found.outlinks + onward, left_out=Counter(found.left_out) + Counter(left_out))

    def sitemaps(self, entry: FrontierEntry, rules: Rules) -> tuple[list[Link], dict[str, int]]:
        """Return the sitemaps of an entry's origin as links of its page, and how many of them limits kept out."""
        settings = self._scope.site_settings
        if not settings.follows_sitemaps(entry.url):
            return [], {}
        named = settings.sitemap_urls(entry.url) or rules.sitemaps
        return run_to_end(self._outlinks(of_origin(entry.url, named), deeper(entry), 0, None))

    def read_sitemap(
        self, entry: FrontierEntry, result: FetchResult, rules: Rules
    ) -> "CooperativeWork[Sitemap | None]":
        """Return the sitemap in an answer, even if the answer was cut off here, or None without a followed sitemap.

        Yields when other work should have its turn.
        """
        is_cut_off = result.error is not None and result.error.is_cut_off and result.status == 200
        settings = self._scope.site_settings
        if not settings.follows_sitemaps(entry.url) or result.location is not None or not result.content:
            return None
        if result.why_failed is not None and not is_cut_off:
            return None
        from kadcrawl.crawl.content.sitemap import Sitemap, read  # Not at the top: many crawls follow no sitemaps.

        expected = self._scope.is_sitemap(entry.url) or entry.url in rules.sitemaps
        is_packed = expected and result.content.startswith(GZIP_MAGIC)
        if is_packed and len(result.content) > inner_bytes_max(len(result.body)):
            return Sitemap(faulty=True)  # Made to take long: 64 kB can be 64 MB of blocks that hold nothing.
        return (
            yield from read(
                result.content,
                result.mime,
                entry.url,
                expected=expected,
                now=result.started_at.timestamp(),
                urls_max=self._limits.sitemap_urls_max,
                bytes_max=self._limits.inflated_bytes_max,
            )
        )

    def _find_links(
        self, entry: FrontierEntry, result: FetchResult, rules: Rules, simhash: int | None, robots_tag: str
    ) -> CooperativeWork[FoundLinks]:
        if result.location is not None:
            return self._redirected(entry, result, result.location)
        try:
            content = result.content if result.mime in HTML else b""
            target = _refreshed(entry, result) if result.why_failed is None else None
            if result.why_failed is not None or not (content or target):
                return FoundLinks((), [], result.why_failed)
            extracted = yield from self._extractor.reading(content, result.content_type, entry.url, robots_tag)
            if target is not None:
                extracted = extracted.with_link(target)
            found = yield from self._outlinks_of_page(entry, result, extracted, rules, simhash)
            return replace(found, noindex=True) if extracted.noindex else found
        except Exception:
            # A fault of ours must not cost more than this page's links in a crawl of months.
            log.exception("crawl.bug url=%s", entry.url)
            return FoundLinks((), [], "internal_error")

    def _redirected(self, entry: FrontierEntry, result: FetchResult, location: str) -> FoundLinks:
        target = canonical(location, entry.url)
        if target is None:
            return FoundLinks((), [], "bad_redirect", location=without_password(location)[:LOCATION_CHARS_MAX])
        failed: str | None = loop_of(entry, target, result)
        if failed is None and entry.hops >= self._limits.redirects_max:
            return FoundLinks((target,), [], "redirect_limit", location=target)
        onward, left_out = run_to_end(
            self._outlinks((target,), entry.depth, entry.hops + 1, entry.url, trail=longer_trail(entry))
        )
        if target == entry.url:
            onward = []
        detail = None if failed else why_seed_left(entry, target, self._scope)
        if detail is not None:
            failed = SEED_LEFT_SCOPE
            log.warning("crawl.seed_left_scope url=%s why=%s", entry.url, detail)
        return FoundLinks(
            (target,), onward, failed or result.why_failed, left_out, location=target, detail=detail or ""
        )

    def _outlinks_of_page(
        self, entry: FrontierEntry, result: FetchResult, extracted: Extracted, rules: Rules, simhash: int | None
    ) -> CooperativeWork[FoundLinks]:
        links = extracted.links
        if (named := self._named_instead(entry, result, extracted, rules)) is not None:
            onward, left_out = run_to_end(self._outlinks((named,), entry.depth, entry.hops + 1, None))
            left_out["canonical"] += sum(link not in (named, extracted.canonical) for link in links) + extracted.cut
            return FoundLinks(tuple(links), onward, None, left_out, named)
        if not self._page_rules.follows(entry.url):
            return FoundLinks(tuple(links), [], None)
        if (first := self._first(entry, extracted, simhash)) is not None:
            count = len(links) + extracted.cut
            return FoundLinks(tuple(links), [], None, {"twins": count} if count else {}, near_duplicate=first)
        onward, left_out = yield from self._outlinks(links, deeper(entry), 0, None)
        if extracted.cut:
            left_out["links_per_page"] += extracted.cut
        if nofollow := (yield from self._count_in_scope(extracted.nofollow, deeper(entry))):
            left_out["nofollow"] += nofollow
        return FoundLinks(tuple(links), onward, None, left_out)

    def _count_in_scope(self, urls: Iterable[str], depth: int) -> CooperativeWork[int]:
        """Return how many of these URLs would be followed if they were links."""
        count = turn_chars = 0
        for url in urls:
            turn_chars += len(url)
            if turn_chars > TURN_CHARS:
                turn_chars = 0
                yield
            count += self._scope.allows(self._scope.url_rules.plain(url), depth)
        return count

    def _listed(self, entry: FrontierEntry, result: FetchResult, listed: "Sitemap") -> CooperativeWork[FoundLinks]:
        dates = _own_dates(entry.url, listed) if self._newer_lastmod is not None else {}
        onward, left_out = yield from self._outlinks(listed.locations, deeper(entry), 0, None, dates)
        if listed.cut:
            left_out["links_per_page"] += listed.cut
        failed = result.why_failed or ("bad_sitemap" if listed.faulty else None)
        return FoundLinks(tuple(listed.locations), onward, failed, left_out)

    def _named_instead(
        self, entry: FrontierEntry, result: FetchResult, extracted: Extracted, rules: Rules
    ) -> str | None:
        """Return the one other URL the page names as canonical, if the job honors that and it can be fetched."""
        scope = self._scope
        if not scope.honors_canonical or extracted.nofollow_page or entry.hops:
            return None
        if scope.is_seed(entry.url, entry.depth, entry.hops):
            return None
        names = named_by_header(result.header(b"link") or "", entry.url)
        named = [name for name in {*names, extracted.canonical} if name is not None]
        if len(named) != 1:
            return None
        url = named[0]
        url = scope.url_rules.plain(url)
        forbidden = origin_of(url) == origin_of(entry.url) and not rules.allowed(url)
        if forbidden or not may_replace(url, entry.url) or scope.why_not(url, entry.depth) is not None:
            return None
        return url

    def _first(self, entry: FrontierEntry, extracted: Extracted, simhash: int | None) -> str | None:
        """Return the near duplicate of this page whose links stand for its own, or else remember the page."""
        if self._near_duplicates is None or simhash is None:
            return None
        # What a rule says of a page whose links are not followed was seen to before.
        leads_on = self._page_rules.role(entry.url) is not None
        wanted = leads_on or entry.depth == 0 or self._scope.is_seed(entry.url)
        first = None if wanted else self._near_duplicates.first(entry.site, entry.url, simhash)
        if first is None and extracted.links:
            self._near_duplicates.remember(entry.site, entry.url, simhash)
        return first

    def _outlinks(
        self,
        urls: Iterable[str],
        depth: int,
        hops: int,
        redirected: str | None,
        dates: Mapping[str, float] = NO_DATES,
        trail: bytes = b"",
    ) -> CooperativeWork[tuple[list[Link], dict[str, int]]]:
        """Return the links to forward, and how many links each limit kept out. `redirected` is the URL that led here.

        `dates` are the wall-clock seconds in which some of the URLs changed last. `trail` is the trail of a redirect.
        """
        onward: list[Link] = []
        left_out: dict[str, int] = defaultdict(int)
        why_not, plain_form = self._scope.why_not, self._scope.url_rules.plain
        # In this order: most links of a site have been forwarded before, and then were in scope.
        wanted: Iterable[str] = self._not_recently_sent(urls, depth)
        if dates and self._newer_lastmod is not None:
            wanted = dict.fromkeys([*wanted, *self._newer_lastmod(dates)])
        known = self._known_reasons() if redirected is None else None
        turn_chars = 0
        for url in wanted:
            turn_chars += len(url)
            if turn_chars > TURN_CHARS:
                turn_chars = 0
                yield
                known = self._known_reasons() if redirected is None else None  # Seeds may have come meanwhile.
            if known and (why := known.get(url)) is not None:
                if why in LIMITS:
                    left_out[why] += 1
                continue
            plain = plain_form(url)
            if plain is not url and plain == redirected:
                # Some servers show a page only to who has a session or a parameter, and send everybody else here to
                # get one.
                plain = url
            why = why_not(plain, depth)
            if why is None:
                date = dates.get(url)
                link = Link(plain, depth, hops, trail)
                onward.append(link if date is None else DatedLink(plain, depth, hops, modified=date))
                if plain != url and (cause := self._scope.url_rules.cause(url)) is not None:
                    left_out[cause] += 1
                continue
            if why in LIMITS:
                left_out[why] += 1
            if known is not None:
                known.keep(url, why)
        return onward, left_out

    def _known_reasons(self) -> "RecentlySent[Reason] | None":
        """Return the reasons that hold for links at any depth, or None if the depth of a link counts."""
        if self._scope.max_depth is not None:
            return None
        if self._left_out_version != (version := self._scope.version):
            self._left_out.clear()
            self._left_out_version = version
        return self._left_out


def deeper(entry: FrontierEntry) -> int:
    """Return the depth of a page's links. The peer that offered the page may have sent the largest depth there is."""
    return min(entry.depth + 1, SMALL_MAX)


def _refreshed(entry: FrontierEntry, result: FetchResult) -> str | None:
    """Return the canonical URL of another page that the header field Refresh names, or None."""
    target = refresh_target(result.header(b"refresh") or "")
    url = None if target is None else canonical(target, entry.url)
    return None if url == entry.url else url


def _x_robots_tag(result: FetchResult) -> str:
    return result.header(b"x-robots-tag") or ""


def _own_dates(url: str, listed: "Sitemap") -> dict[str, float]:
    """Return when the pages a sitemap lists changed last, of those of its own registered domain.

    The links of a sitemap are those of any page, wherever they lead. But what it says of their dates makes us ask for
    them sooner, and nobody is to hurry us to somebody else's site.
    """
    domain = site_of(url, "domain")
    return {
        page: date for page, date in listed.locations.items() if date is not None and site_of(page, "domain") == domain
    }
