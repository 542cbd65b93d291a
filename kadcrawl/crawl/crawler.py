"""Steps 4 to 6 of a URL's life: ready, fetched, done.

Takes what the frontier says may be fetched, asks robots.txt first where it is not known (robots_fetch.py), fetches,
writes the outputs, sends the links found on their way, and finishes the page when they are acknowledged. Starts nothing
while anything holds it, out of budget, or while too many requests, unfinished pages or bytes of them are under way; no
request of a cell that was closed meanwhile goes out. Every URL ends in exactly one page line: what the job excludes by
now as well, what a fault of ours makes impossible to finish, and what this peer has died of
(crawl/fetch/poison_pages.py). What this machine lacks, such as files to open, is no fault of any URL: it waits until
there are some.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime
from random import Random
from typing import Protocol

from kadcrawl.crawl.content.html_links import LinkExtractor
from kadcrawl.crawl.content.link_finder import LinkFinder
from kadcrawl.crawl.content.near_duplicates import NearDuplicates
from kadcrawl.crawl.content.page import Page
from kadcrawl.crawl.content.record_extractor import Extraction
from kadcrawl.crawl.fetch.fetcher import Fetching
from kadcrawl.crawl.fetch.memory_slots import MemorySlots
from kadcrawl.crawl.fetch.poison_pages import KILLED_PEER, PoisonPages
from kadcrawl.crawl.fetch.result import UNASKED, UNREACHED, FetchError, FetchResult
from kadcrawl.crawl.frontier.frontier import Frontier
from kadcrawl.crawl.links.forwarder import Forwarder
from kadcrawl.crawl.output.counters import Counters
from kadcrawl.crawl.output.outputs import Outputs
from kadcrawl.crawl.page_budget import Budget
from kadcrawl.crawl.page_processor import PageProcessor, ProcessedPage
from kadcrawl.crawl.pause_reasons import PauseReason
from kadcrawl.crawl.recrawl.rounds import Rounds
from kadcrawl.crawl.robots.cache import RobotsCache
from kadcrawl.crawl.robots.rules import Rules
from kadcrawl.crawl.robots_fetch import RobotsSearch
from kadcrawl.crawl.scope.scope import Scope
from kadcrawl.errors import StorageError
from kadcrawl.keys import Cell, Key
from kadcrawl.overlay.waves.activity import Activity
from kadcrawl.settings.config import Limits
from kadcrawl.settings.page_rules import PageRules
from kadcrawl.store.frontier_entry import FrontierEntry
from kadcrawl.store.visit import Visit
from kadcrawl.system.clock import Clock
from kadcrawl.urls import origin_of

FILES_WAIT_S = 5.0
"""How long nothing is started after this machine had no socket to give: other requests end meanwhile."""
ALONE_WAIT_S, SCOPE_WAIT_S = 0.25, 5.0
"""How long a site is left alone before it is asked again whether anybody else would know what was fetched of it, or
whether its proxies were verified; and whether its URLs are in scope by now."""
KEPT_WAITING_TRIES = 3
"""More than others has a URL whose server gave up as its body waited here: five minutes by default. Without an end a
few sites could keep each other waiting, and the crawl from its end."""
log = logging.getLogger(__name__)


class CrawlStore(Protocol):
    """What a crawler asks of where its URLs are kept."""

    @property
    def pending(self) -> int: ...
    def cell_of(self, key: Key) -> Cell: ...
    def latest(self, entry: FrontierEntry) -> FrontierEntry: ...
    def finish(self, entry: FrontierEntry, line: bytes, records: bytes = b"") -> bool: ...


class Crawler:
    """Crawls what the frontier gives, until cancelled."""

    def __init__(
        self,
        *,
        by_depth: bool,
        may_start: Callable[[], bool],
        limits: Limits,
        delay_s: float,
        retries: int,
        clock: Clock,
        random: Random,
        store: CrawlStore,
        frontier: Frontier,
        robots: RobotsCache,
        budget: Budget,
        fetcher: Fetching,
        extractor: LinkExtractor,
        scope: Scope,
        forwarder: Forwarder,
        outputs: Outputs,
        counters: Counters,
        activity: Activity,
        rounds: Rounds | None = None,
        rules: PageRules | None = None,
        extraction: Extraction | None = None,
        near_duplicates: NearDuplicates | None = None,
        poison_pages: PoisonPages | None = None,
    ) -> None:
        """`may_start` is asked right before each request; who lets it change to True calls `wake`.

        `rounds` if pages are to be fetched again; `extraction` takes the records out of pages, if `rules` has any;
        `twins` if the links of near-identical pages are not followed. `deadly` knows what is not to be read.
        """
        self._poison_pages = poison_pages or PoisonPages(None)
        self._rounds = rounds
        self._by_depth = by_depth
        self._may_start = may_start
        self._limits = limits
        self._retries = retries
        self._clock = clock
        self._random = random
        self._store = store
        self._frontier = frontier
        self._robots = robots
        self._budget = budget
        self._fetcher = fetcher
        self._scope = scope
        self._forwarder = forwarder
        self._outputs = outputs
        self._counters = counters
        self._activity = activity
        self._search = RobotsSearch(
            request=lambda entry, url, hold: self._request(entry, url, (), hold),
            limits=limits,
            delay_s=delay_s,
            clock=clock,
            frontier=frontier,
            robots=robots,
            outputs=outputs,
            activity=activity,
            poison_pages=self._poison_pages,
        )
        page_rules = rules or PageRules()
        news = forwarder.newer_lastmod if rounds is not None else None
        finder = LinkFinder(extractor, scope, forwarder.not_recently_sent, limits, page_rules, near_duplicates, news)
        self._page_processor = PageProcessor(
            finder, outputs, counters, rounds, page_rules, extraction, limits, self._poison_pages
        )
        self._wake = asyncio.Event()
        self._eased = asyncio.Event()
        """A request or an entry is over."""
        self._files_timer: asyncio.TimerHandle | None = None
        self._started = 0
        self._unfinished_bytes = 0
        self._slots: set[int] = set()
        """Entries (by sequence number) taken from the frontier whose request is not over."""
        self._taken: set[int] = set()
        """Entries taken, neither finished nor given back."""
        self.pause_reasons: set[PauseReason] = set()
        """Reasons to start nothing, e.g. paused, joining, leaving, files."""
        self.companion: Crawler | None = None
        """The peer's other crawler, with which this one shares its bounds, and is woken."""
        self.no_backup_reachable: Callable[[Cell], bool] = lambda cell: False
        """Says whether, for the moment, nobody else would learn what is fetched of a cell."""
        self.on_unreached: Callable[[str], None] | None = None
        """If set, what may be out of reach for this machine alone is for another to fetch: called with its site."""
        self.on_page: Callable[[Page], Awaitable[None]] | None = None
        """Awaited with each fetched page, which slows the crawl to its reader."""

    # --- what others ask of it -----------------------------------------------------------------------------------

    @property
    def in_flight(self) -> int:
        """Entries taken from the frontier whose request is not over."""
        return len(self._slots)

    @property
    def pending(self) -> int:
        """URLs not finished and still to be fetched, of whatever cell: with the budget spent, only those begun here."""
        return self._budget.held if self._budget.spent else self._store.pending

    def is_taken(self, entry: FrontierEntry) -> bool:
        """Say whether the entry is with the crawler: being fetched, or waiting for its links to arrive."""
        return entry.seq in self._taken

    def wake(self) -> None:
        """Something changed: there may be work, or none any more."""
        # Who lacks a proxy, and nothing else, keeps nobody from ending.
        held = bool(self.pause_reasons - {PauseReason.PROXIES})
        self._activity.settle(not held and not self.pending and not self._forwarder.unacknowledged)
        self._stir()

    def _stir(self) -> None:
        # The other one first, so that with room for one they take turns.
        if self.companion is not None:
            self.companion._wake.set()
        self._wake.set()

    async def drained(self, links_s: float) -> None:
        """Wait until no request is under way, then `links_s` seconds at most until all pages are finished.

        Call after adding to `holds`. A page left unfinished stays PENDING, so its links are found again.
        """
        await self._until(lambda: not self._slots)
        try:
            async with asyncio.timeout(links_s):
                await self._until(lambda: not self._started)
        except TimeoutError:
            log.warning("crawl.unfinished pages=%d", self._started)

    async def _until(self, holds: Callable[[], bool]) -> None:
        while not holds():
            self._eased.clear()
            await self._eased.wait()

    # --- the loop ------------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Start whatever may be started, as soon as it may; until cancelled."""
        try:
            async with asyncio.TaskGroup() as tasks:
                while True:
                    self._wake.clear()
                    while self._has_room() and (entry := self._frontier.next(self._clock.now())) is not None:
                        self._started += 1
                        self._slots.add(entry.seq)
                        self._taken.add(entry.seq)
                        tasks.create_task(self._crawl(entry), name=f"crawl {entry.url[:80]}")
                    await self._until_more()
        finally:
            if self._files_timer is not None:
                self._files_timer.cancel()

    def _has_room(self) -> bool:
        requests, started, held_bytes = self.in_flight, self._started, self._unfinished_bytes
        if self.companion is not None:
            requests += self.companion.in_flight
            started += self.companion._started
            held_bytes += self.companion._unfinished_bytes
        return (
            not self.pause_reasons
            and self._may_start()
            and requests < self._limits.fetches_max
            and started < self._limits.unfinished_max
            and held_bytes < self._limits.unfinished_bytes_max
            and self._budget.may_begin
        )

    async def _until_more(self) -> None:
        due = self._frontier.next_due() if self._has_room() else None
        try:
            async with asyncio.timeout(None if due is None else max(0.0, due - self._clock.now())):
                await self._wake.wait()
        except TimeoutError:
            pass

    async def _crawl(self, entry: FrontierEntry) -> None:
        """Take one entry as far as it can go now."""
        try:
            await self._advance(entry)
        except StorageError:
            raise
        except Exception:
            # A fault of ours must not cost more than this URL in a crawl of months.
            log.exception("crawl.bug url=%s", entry.url)
            if entry.seq in self._slots:
                self._frontier.release(entry, self._clock.now(), self._clock.now())
                self._slot_over(entry)
            if entry.seq in self._taken:
                self._finish_unfetched(entry, "internal_error")
        finally:
            self._started -= 1
            self._eased.set()
            self.wake()

    async def _advance(self, entry: FrontierEntry) -> None:
        # From here to the request nothing is awaited.
        cell = self._store.cell_of(entry.key)
        if not self._may_start() or not self._frontier.is_open(cell):
            self._give_back(entry)
            return
        if self.no_backup_reachable(cell):
            self._put_off(entry, ALONE_WAIT_S)
            return
        if self._by_depth:
            entry = self._store.latest(entry)
        known: Rules | str | None = self._scope.why_not(entry.url, entry.depth)
        if known == "scope" and not self._scope.scope_is_final():  # Who handed it over may know more seeds.
            self._put_off(entry, SCOPE_WAIT_S)
            return
        if known is None:
            known = self._robots.look_up(origin_of(entry.url), self._clock.now())
        if known is None:
            await self._search.advance(entry)
            self._give_back(entry)
        elif isinstance(known, Rules):
            await self._fetch(entry, known)
        else:
            self._leave_slot(entry)
            self._finish_unfetched(entry, known)

    async def _fetch(self, entry: FrontierEntry, rules: Rules) -> None:
        self._frontier.set_delay(entry.site, self._search.delay_s(rules), self._clock.now())
        is_allowed = rules.allowed(entry.url)
        if not is_allowed or self._poison_pages.is_poison(entry.url):
            self._leave_slot(entry)
            links = self._page_processor.outlinks_of_forbidden(entry, rules)
            await self._forwarder.forward_all(links, self._store.cell_of(entry.key))
            self._finish_unfetched(entry, KILLED_PEER if is_allowed else "robots")
            return
        # The delay may be news, e.g. if the rules came from another peer: then the site waits from its last request on.
        if self._frontier.wait_s(entry.site, self._clock.now()) or not self._budget.begin():
            self._give_back(entry)
            return
        final = True
        hold = MemorySlots()
        try:
            last = self._rounds.last(entry) if self._rounds else None
            number = self._rounds.number(entry) if self._rounds else 0
            fields = self._rounds.validators(last) if self._rounds else ()
            fetched = await self._request(entry, entry.url, fields, hold)
            if fetched is None or fetched.error is FetchError.UNSURE:
                final = False
                self._give_back(entry)
                return
            more = KEPT_WAITING_TRIES if fetched.error is FetchError.KEPT_WAITING else 0
            final = not fetched.passing or entry.tries >= self._retries + more
            if final:
                if self._by_depth:
                    entry = self._store.latest(entry)
                reading_bytes = len(fetched.content)
                self._unfinished_bytes += reading_bytes
                try:
                    answered = await self._page_processor.read(
                        entry, fetched, rules, last, number, page_wanted=self.on_page is not None
                    )
                finally:
                    self._unfinished_bytes -= reading_bytes
                del fetched
                hold.release()
                await self._complete(entry, answered)
            else:
                now = self._clock.now()
                self._taken.discard(entry.seq)
                self._frontier.postpone(entry, now + self._retry_wait_s(entry, fetched), now)
                self._activity.move()
        finally:
            hold.release()
            self._budget.end(fetched=final)

    async def _request(
        self,
        entry: FrontierEntry,
        url: str,
        fields: Sequence[tuple[str, str]] = (),
        memory_slots: MemorySlots | None = None,
    ) -> FetchResult | None:
        """Make one request in its slot, and let its site's clock know; None if none went out, or it is another's."""
        cell = self._store.cell_of(entry.key)
        opening = self._frontier.opening(cell)
        fetched = await self._fetcher.fetch(
            url,
            fields,
            may_send=lambda: self._may_start() and self._frontier.opening(cell) == opening,
            memory_slots=memory_slots,
        )
        if fetched.error in UNASKED:
            if fetched.error is FetchError.NO_SOCKET:
                self._wait_for_files(fetched.detail)
            elif fetched.error is FetchError.NO_PROXY:
                self.pause_reasons.add(PauseReason.PROXIES)
            elif fetched.error is FetchError.VERIFYING:
                now = self._clock.now()
                self._frontier.hold(entry.site, now + ALONE_WAIT_S, now)
            return None
        received_at, now = self._clock.of(fetched.first_byte_at), self._clock.now()
        self._frontier.release(entry, received_at, now, fetched.hold_s, fetched.answered)
        self._slot_over(entry)
        self._stir()
        if self.on_unreached is not None and fetched.status is None and fetched.error in UNREACHED:
            self.on_unreached(entry.site)
            return None
        return fetched

    def _wait_for_files(self, why: str) -> None:
        if self._files_timer is None:
            log.warning("crawl.waiting why=%s seconds=%.0f", why, FILES_WAIT_S)
            self.pause_reasons.add(PauseReason.FILES)
            self._files_timer = asyncio.get_running_loop().call_later(FILES_WAIT_S, self._go_on)

    def _go_on(self) -> None:
        self._files_timer = None
        self.pause_reasons.discard(PauseReason.FILES)
        self.wake()

    def _slot_over(self, entry: FrontierEntry) -> None:
        self._slots.discard(entry.seq)
        self._eased.set()

    def _leave_slot(self, entry: FrontierEntry) -> None:
        """No request is made for the entry after all."""
        self._frontier.give_up_slot(entry)
        self._slot_over(entry)

    def _give_back(self, entry: FrontierEntry) -> None:
        """The entry cannot be fetched now; it is ready again when its site is."""
        if entry.seq in self._slots:
            self._leave_slot(entry)
        self._taken.discard(entry.seq)
        self._frontier.put_back(entry, self._clock.now())

    def _put_off(self, entry: FrontierEntry, wait_s: float) -> None:
        """The entry is ready again after a while, as is all of its site."""
        now = self._clock.now()
        self._frontier.hold(entry.site, now + wait_s, now)
        self._give_back(entry)

    async def _complete(self, entry: FrontierEntry, processed: ProcessedPage) -> None:
        """Finish an entry when its links have arrived, its records are there and its page is with the reader."""
        self._unfinished_bytes += processed.held_bytes
        self._wake.set()
        try:
            await self._forwarder.forward_all(processed.outlinks, self._store.cell_of(entry.key))
            line, records = await self._page_processor.lines(entry, processed)
            if self.on_page is not None and processed.page is not None:
                await self.on_page(processed.page)
        finally:
            self._unfinished_bytes -= processed.held_bytes
        self._page_processor.count(processed, records)
        self._finish(entry, line, processed.failed, processed.visit, processed.number, records)

    def _finish(
        self,
        entry: FrontierEntry,
        line: bytes,
        failed: str | None,
        visit: Visit | None,
        number: int,
        records: bytes = b"",
    ) -> None:
        self._taken.discard(entry.seq)
        if self._rounds is not None:
            fresh = self._rounds.finish(entry, line, records, visit, number)
        else:
            fresh = self._store.finish(entry, line, records)
        if not fresh:
            self._counters.duplicates += 1
        self._counters.done += 1
        if failed is not None:
            self._counters.fail(failed)
            log.info("crawl.failed url=%s why=%s", entry.url, failed)
        self._frontier.finish(entry, self._clock.now())
        self._activity.move()

    def _finish_unfetched(self, entry: FrontierEntry, why: str) -> None:
        at = datetime.fromtimestamp(self._clock.now(), UTC).isoformat(timespec="milliseconds")
        number = self._rounds.number(entry) if self._rounds else 0
        visit = self._rounds.unasked(entry, why) if self._rounds else None
        line = self._outputs.unfetched_line(entry, at.replace("+00:00", "Z"), why, number)
        self._finish(entry, line, why, visit, number)

    def _retry_wait_s(self, entry: FrontierEntry, result: FetchResult) -> float:
        backoff_s = min(self._limits.retry_base_s * 2.0**entry.tries, self._limits.retry_after_max_s)
        return max(backoff_s * self._random.uniform(0.75, 1.25), result.retry_after_s or 0.0)
