"""Steps 4 to 6 of a URL's life: ready, fetched, done.

Takes what the frontier says may be fetched, asks robots.txt first where it is not known, fetches, writes the outputs,
sends the links found on their way, and finishes the page when they are acknowledged. Starts nothing while anything
holds it, out of budget, or while too many requests or unfinished pages are under way. Every URL ends in exactly one
page line.
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
from kadcrawl.crawl.forward import Forwarder
from kadcrawl.crawl.frontier import Frontier
from kadcrawl.crawl.outputs import Outputs
from kadcrawl.crawl.page import Page
from kadcrawl.crawl.robots import Rules, verdict
from kadcrawl.crawl.robots_cache import RobotsCache
from kadcrawl.crawl.scope import Scope
from kadcrawl.crawl.totals import Totals
from kadcrawl.history.entry import Entry
from kadcrawl.history.store import Store
from kadcrawl.link.messages import Link
from kadcrawl.overlay.termination import Activity
from kadcrawl.urls import canonical, origin_of

ROBOTS_AGENT = "kadcrawl"
ROBOTS_HOPS_MAX = 5
"""RFC 9309 2.3.1.2: follow at least five redirects of a robots.txt."""
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


class Crawler:
    """Crawls what the frontier gives, until cancelled."""

    def __init__(
        self,
        *,
        by_depth: bool,
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
        self.holds: set[str] = set()
        """Reasons to start nothing, e.g. paused, joining, leaving."""
        self.in_flight = 0
        """Entries taken from the frontier whose request is not over."""
        self.on_page: Callable[[Page], Awaitable[None]] | None = None
        """Awaited with each fetched page, which slows the crawl to its reader."""

    # --- what others ask of it -----------------------------------------------------------------------------------

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
                    self.in_flight += 1
                    self._quiet.clear()
                    self._no_requests.clear()
                    tasks.create_task(self._crawl(entry), name=f"crawl {entry.url[:80]}")
                await self._until_more()

    def _may_start(self) -> bool:
        return (
            not self.holds
            and self.in_flight < self._limits.fetches_max
            and self._started < self._limits.unfinished_max
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
            known = self._robots.look_up(origin_of(entry.url), self._clock.now())
            if known is None:
                await self._ask_robots(entry)
            elif isinstance(known, Rules):
                await self._fetch(entry, known)
            else:
                self._leave_slot(entry)
                self._finish_unfetched(entry, known)
        finally:
            self._started -= 1
            if not self._started:
                self._quiet.set()
            self.wake()

    async def _fetch(self, entry: Entry, rules: Rules) -> None:
        self._frontier.set_delay(entry.site, self._delay_under(rules), self._clock.now())
        if not rules.allowed(entry.url):
            self._leave_slot(entry)
            self._finish_unfetched(entry, "robots")
            return
        if not self._budget.begin():
            self._leave_slot(entry)
            self._frontier.put_back(entry, self._clock.now())
            return
        fetched = await self._request(entry, entry.url)
        if fetched.passing and entry.tries < self._retries:
            self._budget.end(fetched=False)
            now = self._clock.now()
            self._frontier.postpone(entry, now + self._retry_wait_s(entry, fetched), now)
            self._activity.move()
            return
        await self._complete(entry, fetched)
        self._budget.end(fetched=True)

    async def _request(self, entry: Entry, url: str) -> Fetched:
        """Make one request in the entry's slot, and let its site's clock know."""
        fetched = await self._fetcher.fetch(url)
        hold_s = fetched.retry_after_s if fetched.retry_after_s and fetched.passing else 0.0
        self._slot_over()
        self._frontier.release(entry, self._clock.of(fetched.first_byte_at), self._clock.now(), hold_s)
        self._wake.set()
        return fetched

    def _slot_over(self) -> None:
        self.in_flight -= 1
        if not self.in_flight:
            self._no_requests.set()

    def _leave_slot(self, entry: Entry) -> None:
        """No request is made for the entry after all."""
        self._slot_over()
        self._frontier.give_up_slot(entry, self._clock.now())

    async def _complete(self, entry: Entry, fetched: Fetched) -> None:
        """Record a final answer, send its links on their way, and finish when they have arrived."""
        if self._by_depth:
            entry = self._store.latest(entry)
        found = self._found(entry, fetched)
        place = self._outputs.keep(fetched)
        receipt = self._forwarder.forward(found.onward)
        self._totals.links_seen += len(found.links)
        self._wake.set()
        await receipt.acknowledged
        if self.on_page is not None:
            await self.on_page(_page(entry, fetched, found))
        self._totals.pages += 1
        self._totals.body_bytes += len(fetched.body)
        self._finish(entry, self._outputs.line(entry, fetched, len(found.links), place, found.failed), found.failed)

    def _found(self, entry: Entry, fetched: Fetched) -> Found:
        failed = _why_failed(fetched)
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
        if not self._store.finish(entry, line):
            self._totals.duplicates += 1
        self._totals.done += 1
        if failed is not None:
            self._totals.fail(failed)
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
        """Use the entry's slot to fetch the robots.txt of its origin; the entry is ready again afterwards."""
        origin = origin_of(entry.url)
        if self._frontier.is_blocked(entry.site):
            self._leave_slot(entry)
            self._frontier.put_back(entry, self._clock.now())
            return
        self._frontier.block(entry.site)
        try:
            fetched = await self._request(entry, f"{origin}/robots.txt")
            fetched = await self._follow_robots(fetched)
            self._outputs.keep(fetched)
        finally:
            self._frontier.unblock(entry.site, self._clock.now())
            self._frontier.put_back(entry, self._clock.now())
        now = self._clock.now()
        rules = verdict(fetched.status, fetched.content, ROBOTS_AGENT)
        if rules is not None:
            self._robots.learn(origin, rules, now)
            self._frontier.set_delay(entry.site, self._delay_under(rules), now)
        else:
            # A host that cannot be reached says more than that its robots.txt cannot.
            why = "robots_unreachable" if fetched.status is not None else str(fetched.failure)
            wait_s = self._robots.fail(origin, why, fetched.passing, now)
            self._frontier.hold(entry.site, now + wait_s, now)
        self._activity.move()

    async def _follow_robots(self, fetched: Fetched) -> Fetched:
        for _ in range(ROBOTS_HOPS_MAX):
            target = canonical(fetched.location, fetched.url) if fetched.location else None
            if target is None:
                break
            fetched = await self._fetcher.fetch(target)
        return fetched


def _why_failed(fetched: Fetched) -> str | None:
    if fetched.failure is not None:
        return str(fetched.failure)
    if fetched.status is not None and fetched.status >= 400:
        return f"http_{fetched.status}"
    return None


def _page(entry: Entry, fetched: Fetched, found: Found) -> Page:
    return Page(
        url=entry.url,
        status=fetched.status,
        failure=found.failed,
        headers={name.decode("latin-1").lower(): value.decode("latin-1") for name, value in fetched.headers},
        content=fetched.content,
        content_type=fetched.content_type,
        depth=entry.depth,
        links=found.links,
        fetched_at=fetched.started_at.isoformat(),
    )
