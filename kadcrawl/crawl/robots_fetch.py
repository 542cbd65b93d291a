"""Fetches the robots.txt of an origin: one request at a time, each in a slot of the site that needs the rules.

A redirect is followed in the next slot of the site, so that each request keeps its distance to the request before. A
redirect to another site waits for the clock of that site as well. Every other slot there is left to the URLs of that
site. During a request no other request goes to the waiting site. Large rules that are journaled but no longer in memory
are parsed again in such a slot, without a request. `RobotsCache` keeps the rules and counts the tries. An attempt calls
`advance` before it fetches a URL of an origin without known rules (RFC 9309 2.3).
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager

from kadcrawl.crawl.fetch.poison_pages import KILLED_PEER, PoisonPages
from kadcrawl.crawl.fetch.result import FetchError, FetchResult
from kadcrawl.crawl.frontier.frontier import Frontier
from kadcrawl.crawl.output.outputs import Outputs
from kadcrawl.crawl.robots.cache import RobotsCache, Search
from kadcrawl.crawl.robots.rules import Rules, judging
from kadcrawl.overlay.waves.activity import Activity
from kadcrawl.settings.limits import Limits
from kadcrawl.settings.site_settings import SiteSettings
from kadcrawl.store.frontier_entry import FrontierEntry
from kadcrawl.system.clock import Clock
from kadcrawl.system.cooperative import run_cooperatively
from kadcrawl.urls import canonical, origin_of, site_of

ROBOTS_HOPS_MAX = 5
"""RFC 9309 2.3.1.2: follow at least five redirects of a robots.txt."""
TURNS_MAX = 20
"""Times that a robots.txt redirecting to another site lets the URLs of that site go first."""

log = logging.getLogger(__name__)

Request = Callable[[str], Awaitable[FetchResult | None]]
"""Makes one request for a URL in the slot of an entry. Returns None if this machine could not make the request."""


def delay_by(crawl_delay_s: float | None, url: str, site_settings: SiteSettings, limits: Limits) -> float:
    """Return the seconds between two requests to the site of a canonical URL, with this Crawl-delay of its origin."""
    return max(site_settings.delay_s(url), min(crawl_delay_s or 0.0, limits.crawl_delay_max_s))


class RobotsSearch:
    """Finds the rules of origins for one crawler."""

    def __init__(
        self,
        *,
        limits: Limits,
        site_settings: SiteSettings,
        clock: Clock,
        frontier: Frontier,
        robots: RobotsCache,
        outputs: Outputs,
        activity: Activity,
        poison_pages: PoisonPages,
    ) -> None:
        self._poison_pages = poison_pages
        self._limits = limits
        self._site_settings = site_settings
        self._clock = clock
        self._frontier = frontier
        self._robots = robots
        self._outputs = outputs
        self._activity = activity
        self._led_at: dict[str, float] = {}
        """Site -> second at which a robots.txt of another site led there, the latest last."""
        self._reading = asyncio.Lock()
        """A lock that the robots.txt being parsed holds, so that files take turns."""

    def delay_s(self, url: str, rules: Rules) -> float:
        """Return the seconds between two requests to the site of a canonical URL, with these rules of its origin."""
        return delay_by(rules.crawl_delay_s, url, self._site_settings, self._limits)

    async def advance(self, entry: FrontierEntry, request: Request) -> None:
        """Use the entry's slot for one request on the way to the robots.txt of its origin.

        No request is made before the turn of the search has come. The caller puts the entry back, and the entry comes
        again when its site may be asked the next time.
        """
        now = self._clock.now()
        origin = origin_of(entry.url)
        search = self._robots.search(origin, now)
        if search.waiting is not None and not self._frontier.is_blocked(entry.site):
            # One origin has many sites if each URL is a site (--partition url).
            self._frontier.block(entry.site)
            search.waiting.append(entry.site)
        elif self._frontier.is_blocked(entry.site):
            return
        elif (unread := self._unread(origin, search, now)) is not None:
            await self._read_again(entry, search, *unread)
        elif self._poison_pages.is_poison(search.url):
            # A file that cannot be read may forbid anything.
            self._robots.fail(origin, "robots_unreachable", passing=False, now=now)
            log.info("robots.unreachable origin=%s why=%s", origin, KILLED_PEER)
        elif self._turn_has_come(entry, search, now):
            await self._ask(entry, origin, search, request)

    def _turn_has_come(self, entry: FrontierEntry, search: Search, now: float) -> bool:
        """Return whether the next request may be made now. If not, hold the entry's site until the request may be
        made."""
        elsewhere = self._elsewhere(entry, search.url)
        busy = (self._site_settings.delay_s(name) for name in elsewhere if self._frontier.is_busy(name))
        wait_s = max(*busy, 0.0, max((self._frontier.wait_s(name, now) for name in elsewhere), default=0.0))
        own_s = max((self._own_s(name, now) for name in elsewhere), default=0.0)
        if search.is_promised:
            wait_s = 0.0
        elif own_s > 0:
            wait_s = max(wait_s, own_s)
        elif wait_s > 0 and search.let_go_first() > TURNS_MAX:
            # The next turn belongs to this search. All others wait for a later one: many may have waited as long.
            search.promise(now + wait_s)
            self._lead(elsewhere, search.not_before, now)
        wait_s = max(wait_s, search.not_before - now)
        if wait_s > 0:
            self._frontier.hold(entry.site, now + wait_s, now)
            return False
        known = self._robots.look_up(search.robots_origin, now) if search.hops and search.robots_origin else None
        if isinstance(known, Rules):
            self._learn(entry, origin_of(entry.url), known)
            return False
        search.take_turn()
        self._lead(elsewhere, now, now)
        return True

    def _own_s(self, name: str, now: float) -> float:
        """Return the seconds for which a site is left to its own URLs.

        Without this pause an owner of many host names could keep the site from its own URLs.
        """
        at = self._led_at.get(name)
        if at is None or not self._frontier.is_active(name):
            return 0.0
        return at + 2 * self._site_settings.delay_s(name) - now

    def _lead(self, names: set[str], at: float, now: float) -> None:
        """Note that these sites are asked at `at` on behalf of another site."""
        kept_s = 2 * self._site_settings.delay_max_s
        while self._led_at and self._led_at[first := next(iter(self._led_at))] + kept_s < now:
            del self._led_at[first]
        for name in names:
            self._frontier.hold(name, at + self._site_settings.delay_s(name), now)
            self._led_at.pop(name, None)
            self._led_at[name] = at

    def _elsewhere(self, entry: FrontierEntry, url: str) -> set[str]:
        """Return the clocks, beside the entry's own, on which a request for `url` counts.

        Both the host and the domain count, whichever of the two is a site in this job.
        """
        host = site_of(url, "host")
        if host == site_of(entry.url, "host"):
            return set()
        return {host, site_of(url, "domain")} - {entry.site}

    def _unread(self, origin: str, search: Search, now: float) -> tuple[str, bytes, float] | None:
        """Return (origin, text, second of the fetch) of rules that must be parsed again first: of this origin or of the
        redirect's target.
        """
        for name in (origin, search.robots_origin if search.hops else None):
            if name is not None and (row := self._robots.unread(name, now)) is not None:
                return name, *row
        return None

    async def _read_again(
        self, entry: FrontierEntry, search: Search, name: str, text: bytes, fetched_at: float
    ) -> None:
        now = self._clock.now()
        turn_at = self._robots.turn_at(name, len(text), now)
        if turn_at > now:
            self._frontier.hold(entry.site, turn_at, now)
            return
        with self._alone(entry, search):
            self._robots.read_again(name, await run_cooperatively(Rules.reading(text), self._reading), fetched_at)

    async def _ask(self, entry: FrontierEntry, origin: str, search: Search, request: Request) -> None:
        with self._alone(entry, search):
            fetched = await request(search.url)
            if fetched is None:
                return
            async with self._poison_pages.reading(fetched.url):
                rules = await run_cooperatively(
                    judging(promised_status(fetched), fetched.content, self._site_settings.robots_agent), self._reading
                )
            if rules is not None and fetched.location is None:  # Otherwise the file is requested again soon.
                self._poison_pages.was_read(fetched.url)
        self._answered(entry, origin, search, fetched, rules)

    @contextmanager
    def _alone(self, entry: FrontierEntry, search: Search) -> Generator[None]:
        """Block the entry's site, and keep other entries from going on with the search."""
        self._frontier.block(entry.site)
        search.begin(entry.site)
        try:
            yield
        finally:
            for site in search.end():
                self._frontier.unblock(site, self._clock.now())

    def _answered(
        self, entry: FrontierEntry, origin: str, search: Search, result: FetchResult, rules: Rules | None
    ) -> None:
        self._outputs.keep(result)
        now = self._clock.now()
        elsewhere = self._elsewhere(entry, search.url)
        self._lead(elsewhere, self._clock.of(result.first_byte_at), now)
        if result.refuses:
            for name in elsewhere:
                self._frontier.hold(name, self._frontier.back_off(entry.site).until, now)
        if result.error is FetchError.UNSURE:
            return  # Another proxy makes the request again.
        target = canonical(result.location, result.url) if result.location else None
        if target is not None and search.hops < ROBOTS_HOPS_MAX:
            search.follow(target, now + self._site_settings.delay_s(entry.url))
        elif rules is not None:
            # A target that redirects on learns nothing here: its own search may go on from it.
            if search.hops and search.robots_origin and target is None:
                self._robots.learn(search.robots_origin, rules, now)
            self._learn(entry, origin, rules)
        else:
            # A host that cannot be reached is a better reason than its robots.txt.
            why = "robots_unreachable" if result.status is not None else str(result.error)
            wait_s = self._robots.fail(origin, why, result.passing, now, result.tried_by)
            log.info("robots.unreachable origin=%s why=%s", origin, result.error or result.status)
            self._frontier.hold(entry.site, now + wait_s, now)
        self._activity.move()

    def _learn(self, entry: FrontierEntry, origin: str, rules: Rules) -> None:
        now = self._clock.now()
        self._robots.learn(origin, rules, now)
        self._frontier.set_delay(entry.site, self.delay_s(entry.url, rules), now)


def promised_status(result: FetchResult) -> int | None:
    """Return the status of an answer, or None if the promised rules did not arrive whole or cannot be read.

    A file without end counts as far as it was read (RFC 9309 2.5). The rules of any other broken answer are unknown, so
    the answer must not count as permission.
    """
    promised = result.status is not None and 200 <= result.status < 300
    return None if promised and result.error is not None and not result.content else result.status
