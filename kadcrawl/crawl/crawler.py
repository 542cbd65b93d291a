"""Steps 4 to 6 of a URL's life: ready, fetched, done.

Takes what the frontier says may be fetched, asks robots.txt first where it is not known, fetches, writes the outputs,
sends the links found on their way, and finishes the page when they are acknowledged. Starts nothing while anything
holds it, out of budget, or while too many requests, unfinished pages or bytes of them are under way. Every URL ends in
exactly one page line: what the job excludes by now as well, and what a fault of ours makes impossible to finish.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from random import Random

from kadcrawl.clock import Clock
from kadcrawl.config import Limits
from kadcrawl.crawl.budget import Budget
from kadcrawl.crawl.extract import LinkExtractor
from kadcrawl.crawl.fetch import Fetcher
from kadcrawl.crawl.fetched import Fetched
from kadcrawl.crawl.forward import Forwarder, Receipt
from kadcrawl.crawl.frontier import Frontier
from kadcrawl.crawl.outputs import Outputs
from kadcrawl.crawl.page import Page
from kadcrawl.crawl.robots import Rules, verdict
from kadcrawl.crawl.robots_cache import RobotsCache, Search
from kadcrawl.crawl.scope import Scope
from kadcrawl.crawl.totals import Totals
from kadcrawl.errors import StorageError
from kadcrawl.history.entry import Entry
from kadcrawl.history.store import Store
from kadcrawl.link.messages import Link
from kadcrawl.overlay.termination import Activity
from kadcrawl.urls import canonical, origin_of, site_of

ROBOTS_AGENT = "kadcrawl"
ROBOTS_HOPS_MAX = 5
"""RFC 9309 2.3.1.2: follow at least five redirects of a robots.txt."""
TURNS_MAX = 20
"""How often a robots.txt that redirects to another site lets that site's own URLs go first."""
HTML = frozenset({"text/html", "application/xhtml+xml", ""})
"""Media types whose links are followed; a page without a type is looked at."""

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Found:
    """What a final answer leads to."""

    links: tuple[str, ...]
    """Every distinct canonical URL on the page."""
    onward: list[Link]
    """Those of them in scope that their owners may not know yet, or the target of a redirect if it is such."""
    failed: str | None
    """Why the URL counts as failed, if it does."""


@dataclass(frozen=True, slots=True)
class Answered:
    """What is kept of a final answer until its links are acknowledged: not its body, unless somebody reads pages."""

    line: bytes
    failed: str | None
    receipt: Receipt
    page: Page | None
    body_bytes: int
    held_bytes: int


class Crawler:
    """Crawls what the frontier gives, until cancelled."""

    def __init__(
        self,
        *,
        by_depth: bool,
        owned: Callable[[Entry], bool],
        limits: Limits,
        delay_s: float,
        retries: int,
        clock: Clock,
        random: Random,
        store: Store,
        frontier: Frontier,
        robots: RobotsCache,
        budget: Budget,
        fetcher: Fetcher,
        extractor: LinkExtractor,
        scope: Scope,
        forwarder: Forwarder,
        outputs: Outputs,
        totals: Totals,
        activity: Activity,
    ) -> None:
        self._by_depth = by_depth
        self._owned = owned
        self._limits = limits
        self._delay_s = delay_s
        self._retries = retries
        self._clock = clock
        self._random = random
        self._store = store
        self._frontier = frontier
        self._robots = robots
        self._budget = budget
        self._fetcher = fetcher
        self._extractor = extractor
        self._scope = scope
        self._forwarder = forwarder
        self._outputs = outputs
        self._totals = totals
        self._activity = activity
        self._wake = asyncio.Event()
        self._quiet = asyncio.Event()
        self._quiet.set()
        self._no_requests = asyncio.Event()
        self._no_requests.set()
        self._started = 0
        self._unfinished_bytes = 0
        self._slots: set[int] = set()
        """Entries (by sequence number) taken from the frontier whose request is not over."""
        self._taken: set[int] = set()
        """Entries taken, neither finished nor given back."""
        self.holds: set[str] = set()
        """Reasons to start nothing, e.g. paused, joining, leaving."""
        self.foreign: dict[str, None] = {}
        """Sites frozen because another peer owns them now."""
        self.on_foreign: Callable[[], None] = lambda: None
        """Called when a site was added to them."""
        self.on_page: Callable[[Page], Awaitable[None]] | None = None
        """Awaited with each fetched page, which slows the crawl to its reader."""

    # --- what others ask of it -----------------------------------------------------------------------------------

    @property
    def in_flight(self) -> int:
        """Entries taken from the frontier whose request is not over."""
        return len(self._slots)

    @property
    def pending(self) -> int:
        """URLs accepted, not finished, and still to be fetched: with the budget spent, only those begun."""
        return self._budget.held if self._budget.spent else self._frontier.pending

    def wake(self) -> None:
        """Something changed: there may be work, or none any more."""
        self._activity.settle(not self.holds and not self.pending and not self._forwarder.unacknowledged)
        self._wake.set()

    async def drained(self, links_s: float) -> None:
        """Wait until no request is under way, then `links_s` seconds at most until all pages are finished.

        Call after adding to `holds`. A page left unfinished stays PENDING, so its links are found again.
        """
        await self._no_requests.wait()
        try:
            async with asyncio.timeout(links_s):
                await self._quiet.wait()
        except TimeoutError:
            log.warning("crawl.unfinished pages=%d", self._started)

    # --- the loop ------------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Start whatever may be started, as soon as it may; until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            while True:
                self._wake.clear()
                while self._may_start() and (entry := self._frontier.next(self._clock.now())) is not None:
                    self._started += 1
                    self._slots.add(entry.seq)
                    self._taken.add(entry.seq)
                    self._quiet.clear()
                    self._no_requests.clear()
                    tasks.create_task(self._crawl(entry), name=f"crawl {entry.url[:80]}")
                await self._until_more()

    def _may_start(self) -> bool:
        return (
            not self.holds
            and self.in_flight < self._limits.fetches_max
            and self._started < self._limits.unfinished_max
            and self._unfinished_bytes < self._limits.unfinished_bytes_max
            and self._budget.may_begin
        )

    async def _until_more(self) -> None:
        due = self._frontier.next_due() if self._may_start() else None
        try:
            async with asyncio.timeout(None if due is None else max(0.0, due - self._clock.now())):
                await self._wake.wait()
        except TimeoutError:
            pass

    async def _crawl(self, entry: Entry) -> None:
        """Take one entry as far as it can go now."""
        try:
            await self._advance(entry)
        except StorageError:
            raise
        except Exception:
            # A fault of ours must not cost more than this URL in a crawl of months.
            log.exception("crawl.bug url=%s", entry.url)
            if entry.seq in self._slots:
                self._slot_over(entry)
                self._frontier.release(entry, self._clock.now(), self._clock.now())
            if entry.seq in self._taken:
                self._finish_unfetched(entry, "internal_error")
        finally:
            self._started -= 1
            if not self._started:
                self._quiet.set()
            self.wake()

    async def _advance(self, entry: Entry) -> None:
        if not self._owned(entry):
            # Its range has moved: leave the site alone until it has been given to its owner.
            self._leave_slot(entry)
            self._give_back(entry)
            self._frontier.freeze(entry.site)
            self.foreign[entry.site] = None
            self.on_foreign()
            return
        if self._by_depth:
            entry = self._store.latest(entry)
        known: Rules | str | None = self._scope.why_not(entry.url, entry.depth)
        if known is None:
            known = self._robots.look_up(origin_of(entry.url), self._clock.now())
        if known is None:
            await self._ask_robots(entry)
        elif isinstance(known, Rules):
            await self._fetch(entry, known)
        else:
            self._leave_slot(entry)
            self._finish_unfetched(entry, known)

    async def _fetch(self, entry: Entry, rules: Rules) -> None:
        self._frontier.set_delay(entry.site, self._delay_under(rules), self._clock.now())
        if not rules.allowed(entry.url):
            self._leave_slot(entry)
            self._finish_unfetched(entry, "robots")
            return
        if not self._budget.begin():
            self._give_back(entry)
            return
        final = True
        try:
            fetched = await self._request(entry, entry.url)
            final = not fetched.passing or entry.tries >= self._retries
            if final:
                answered = self._answered(entry, fetched)
                del fetched
                await self._complete(entry, answered)
            else:
                now = self._clock.now()
                self._taken.discard(entry.seq)
                self._frontier.postpone(entry, now + self._retry_wait_s(entry, fetched), now)
                self._activity.move()
        finally:
            self._budget.end(fetched=final)

    async def _request(self, entry: Entry, url: str) -> Fetched:
        """Make one request in the entry's slot, and let its site's clock know."""
        fetched = await self._fetcher.fetch(url)
        hold_s = fetched.retry_after_s if fetched.retry_after_s and fetched.passing else 0.0
        self._slot_over(entry)
        self._frontier.release(entry, self._clock.of(fetched.first_byte_at), self._clock.now(), hold_s)
        self._wake.set()
        return fetched

    def _slot_over(self, entry: Entry) -> None:
        self._slots.discard(entry.seq)
        if not self._slots:
            self._no_requests.set()

    def _leave_slot(self, entry: Entry) -> None:
        """No request is made for the entry after all."""
        self._slot_over(entry)
        self._frontier.give_up_slot(entry, self._clock.now())

    def _give_back(self, entry: Entry) -> None:
        """The entry cannot be fetched now; it is ready again when its site is."""
        if entry.seq in self._slots:
            self._leave_slot(entry)
        self._taken.discard(entry.seq)
        self._frontier.put_back(entry, self._clock.now())

    def _answered(self, entry: Entry, fetched: Fetched) -> Answered:
        """Record a final answer and send its links on their way."""
        if self._by_depth:
            entry = self._store.latest(entry)
        found = self._found(entry, fetched)
        place = self._outputs.keep(fetched)
        line = self._outputs.line(entry, fetched, len(found.links), place, found.failed)
        page = None if self.on_page is None else Page.of(entry, fetched, found.links, found.failed)
        held = len(line) + sum(len(link.url) for link in found.onward)
        if page is not None:
            held += len(page.content) + sum(map(len, page.links))
        self._totals.links_seen += len(found.links)
        return Answered(line, found.failed, self._forwarder.forward(found.onward), page, len(fetched.body), held)

    async def _complete(self, entry: Entry, answered: Answered) -> None:
        """Finish an entry when its links have arrived and its page is with the reader."""
        self._unfinished_bytes += answered.held_bytes
        self._wake.set()
        try:
            await answered.receipt.acknowledged
            if self.on_page is not None and answered.page is not None:
                await self.on_page(answered.page)
        finally:
            self._unfinished_bytes -= answered.held_bytes
        self._totals.pages += 1
        self._totals.body_bytes += answered.body_bytes
        self._finish(entry, answered.line, answered.failed)

    def _found(self, entry: Entry, fetched: Fetched) -> Found:
        failed = fetched.why_failed
        if fetched.location is not None:
            target = canonical(fetched.location, entry.url)
            if target is None:
                return Found((), [], "bad_redirect")
            if entry.hops >= self._limits.redirects_max:
                return Found((target,), [], "redirect_limit")
            return Found((target,), self._onward((target,), entry.depth, entry.hops + 1), failed)
        if failed is not None or fetched.mime not in HTML or not fetched.content:
            return Found((), [], failed)
        try:
            extracted = self._extractor.extract(
                fetched.content, fetched.content_type, entry.url, fetched.header(b"x-robots-tag") or ""
            )
        except Exception:
            # A fault of ours must not cost more than this page's links in a crawl of months.
            log.exception("crawl.bug url=%s", entry.url)
            return Found((), [], "internal_error")
        return Found(tuple(extracted.links), self._onward(extracted.links, entry.depth + 1, 0), None)

    def _onward(self, urls: Iterable[str], depth: int, hops: int) -> list[Link]:
        # In this order: most links of a site have been forwarded before, and then were in scope.
        allows = self._scope.allows
        return [Link(url, depth, hops) for url in self._forwarder.fresh(urls, depth) if allows(url, depth)]

    def _finish(self, entry: Entry, line: bytes, failed: str | None) -> None:
        self._taken.discard(entry.seq)
        if not self._store.finish(entry, line):
            self._totals.duplicates += 1
        self._totals.done += 1
        if failed is not None:
            self._totals.fail(failed)
            log.info("crawl.failed url=%s why=%s", entry.url, failed)
        self._frontier.finish(entry, self._clock.now())
        self._activity.move()

    def _finish_unfetched(self, entry: Entry, why: str) -> None:
        at = datetime.fromtimestamp(self._clock.now(), UTC).isoformat(timespec="milliseconds")
        self._finish(entry, self._outputs.unfetched_line(entry, at.replace("+00:00", "Z"), why), why)

    def _retry_wait_s(self, entry: Entry, fetched: Fetched) -> float:
        backoff_s = self._limits.retry_base_s * 2.0**entry.tries * self._random.uniform(0.75, 1.25)
        return max(backoff_s, fetched.retry_after_s or 0.0)

    # --- robots.txt ----------------------------------------------------------------------------------------------

    def _delay_under(self, rules: Rules) -> float:
        return max(self._delay_s, min(rules.crawl_delay_s or 0.0, self._limits.crawl_delay_max_s))

    async def _ask_robots(self, entry: Entry) -> None:
        """Use the entry's slot for one request on the way to the robots.txt of its origin; then it is ready again.

        A redirect is followed in the next slot its site gets, so that each hop keeps the distance to the one before.
        """
        now = self._clock.now()
        origin = origin_of(entry.url)
        search = self._robots.search(origin, now)
        if search.waiting is not None and not self._frontier.is_blocked(entry.site):
            # One origin has many sites if each URL is one (--partition url).
            self._frontier.block(entry.site)
            search.waiting.append(entry.site)
        elif not self._frontier.is_blocked(entry.site) and self._turn_has_come(entry, search, now):
            await self._search_on(entry, origin, search)
        self._give_back(entry)

    def _turn_has_come(self, entry: Entry, search: Search, now: float) -> bool:
        """Say whether the next request may be made now; else see that the entry comes back when it may."""
        elsewhere = self._elsewhere(entry, search.url)
        busy = self._delay_s if any(map(self._frontier.out, elsewhere)) else 0.0
        wait_s = max(busy, max((self._frontier.wait_s(name, now) for name in elsewhere), default=0.0))
        if wait_s > 0:
            search.turns += 1
            if search.turns > TURNS_MAX:
                wait_s = 0.0
        wait_s = max(wait_s, search.not_before - now)
        if wait_s > 0:
            self._frontier.hold(entry.site, now + wait_s, now)
            return False
        known = self._robots.look_up(search.robots_origin, now) if search.hops and search.robots_origin else None
        if isinstance(known, Rules):
            self._learn(entry, origin_of(entry.url), known)
            return False
        for name in elsewhere:
            self._frontier.hold(name, now + self._delay_s, now)
        return True

    def _elsewhere(self, entry: Entry, url: str) -> set[str]:
        """Return the clocks, beside the entry's own, that a request for `url` counts on, whatever a site is here."""
        host = site_of(url, "host")
        if host == site_of(entry.url, "host"):
            return set()
        return {host, site_of(url, "domain")} - {entry.site}

    async def _search_on(self, entry: Entry, origin: str, search: Search) -> None:
        self._frontier.block(entry.site)
        search.waiting = [entry.site]
        try:
            fetched = await self._request(entry, search.url)
        finally:
            for site in search.waiting:
                self._frontier.unblock(site, self._clock.now())
            search.waiting = None
        self._outputs.keep(fetched)
        now = self._clock.now()
        for name in self._elsewhere(entry, search.url):
            self._frontier.hold(name, self._clock.of(fetched.first_byte_at) + self._delay_s, now)
        target = canonical(fetched.location, fetched.url) if fetched.location else None
        rules = verdict(fetched.status, fetched.content, ROBOTS_AGENT)
        if target is not None and search.hops < ROBOTS_HOPS_MAX:
            search.follow(target, now + self._delay_s)
        elif rules is not None:
            if search.hops and search.robots_origin:
                self._robots.learn(search.robots_origin, rules, now)
            self._learn(entry, origin, rules)
        else:
            # A host that cannot be reached says more than that its robots.txt cannot.
            why = "robots_unreachable" if fetched.status is not None else str(fetched.failure)
            wait_s = self._robots.fail(origin, why, fetched.passing, now)
            log.info("robots.unreachable origin=%s why=%s", origin, fetched.failure or fetched.status)
            self._frontier.hold(entry.site, now + wait_s, now)
        self._activity.move()

    def _learn(self, entry: Entry, origin: str, rules: Rules) -> None:
        now = self._clock.now()
        self._robots.learn(origin, rules, now)
        self._frontier.set_delay(entry.site, self._delay_under(rules), now)
