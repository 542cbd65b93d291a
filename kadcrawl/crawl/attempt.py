"""One attempt at one entry of the frontier: from a free slot to a finished page, or back to the frontier.

An attempt takes a request slot, a unit of the page budget, memory slots and the entry itself. It gives all of them
back in one place (`_settle` and `__exit__`), whatever happens. The steps are: ask the scope and robots.txt, fetch,
write the outputs, forward the links, and finish the page when its links are acknowledged.

Each URL ends in exactly one page line. URLs that the job excludes by now get a line as well, and so do URLs that a bug
here makes impossible to finish, and URLs that crashed this peer (crawl/fetch/poison_pages.py). A fault of this machine
is no fault of the URL: the entry goes back to the frontier. No request of a cell that was closed meanwhile goes out.

Tests: tests/crawl/test_crawler.py
"""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from types import TracebackType

from kadcrawl.crawl.capacity import WorkInProgress
from kadcrawl.crawl.clocks.clock_holder import ClockUse, waiter_of
from kadcrawl.crawl.cookies.login_request import LoginRequest
from kadcrawl.crawl.dependencies import CrawlDependencies, CrawlHooks, CrawlSource
from kadcrawl.crawl.fetch.memory_slots import MemorySlots
from kadcrawl.crawl.fetch.poison_pages import KILLED_PEER
from kadcrawl.crawl.fetch.result import UNASKED, UNREACHED, FetchError, FetchResult, retry_wait_s
from kadcrawl.crawl.finishing import PageFinisher
from kadcrawl.crawl.page_processor import PageProcessor, ProcessedPage
from kadcrawl.crawl.pause_reasons import PauseReason
from kadcrawl.crawl.recrawl.rounds import VisitStart
from kadcrawl.crawl.robots.cache import ROBOTS_PATH
from kadcrawl.crawl.robots.rules import Rules
from kadcrawl.crawl.robots_fetch import RobotsSearch
from kadcrawl.crawl.url_traces import FETCH, FETCH_OTHER
from kadcrawl.errors import StorageError
from kadcrawl.store.frontier_entry import FrontierEntry
from kadcrawl.store.visit import Visit
from kadcrawl.urls import canonical, host_of, origin_of

ALONE_WAIT_S = 0.25
"""Seconds a site waits while no backup of its cell is reachable, or while the proxies are not verified."""
OPINION_WAIT_S = 2.0
"""Seconds a site waits that this peer cannot connect to, until another peer has time to try."""
POOL_WAIT_S = 2.0
"""Seconds a site waits whose rule names a pool of proxies of which none is alive or none may try."""
SCOPE_WAIT_S = 5.0
"""Seconds a site waits while seeds that may bring its URLs into scope are still on their way."""
SITE_REFUSED = "site_refused"
"""The reason in the page line of a URL whose site refused too many requests in a row (`Job.refusals_max`)."""
KEPT_WAITING_TRIES = 3
"""Extra tries of a URL whose server gave up while the body waited here: five minutes by default.

Without this limit a few sites could keep each other waiting, and the crawl would not end."""
ALLOW_ALL = Rules()
"""The rules of a host whose robots.txt is ignored."""
log = logging.getLogger(__name__)


class AttemptOutcome(Enum):
    """The end of an attempt for its entry."""

    PUT_BACK = auto()
    """The entry is ready again when its site is."""
    POSTPONED = auto()
    """The fetch failed in a passing way. The entry is tried again later, and one try is counted."""
    FINISHED = auto()
    """The entry is DONE."""


@dataclass(frozen=True, slots=True)
class AttemptContext:
    """The parts that all attempts of one crawler share."""

    parts: CrawlDependencies
    source: CrawlSource
    hooks: CrawlHooks
    search: RobotsSearch
    page_processor: PageProcessor
    work: WorkInProgress
    finisher: PageFinisher
    wait_for_files: Callable[[str], None]
    """Pauses the crawl for a given reason, because this machine has no socket left."""
    wake: Callable[[], None]
    """Tells the crawler that an attempt is over."""


class Attempt:
    """One attempt at one entry, as a context manager that owns all it takes."""

    __slots__ = (
        "_cell",
        "_context",
        "_due",
        "_entry",
        "_has_budget",
        "_has_new_cookies",
        "_has_slot",
        "_hooks",
        "_last_use",
        "_memory_slots",
        "_outcome",
        "_parts",
        "_seq",
        "_source",
    )

    def __init__(self, context: AttemptContext, entry: FrontierEntry) -> None:
        """Take the slot of an entry that the frontier counts as in flight. `run` gives the slot back."""
        self._context = context
        self._parts = context.parts
        self._source = context.source
        self._hooks = context.hooks
        self._entry = entry
        self._cell = context.source.store.cell_of(entry.key)
        self._seq = entry.seq
        """The number under which the entry was taken. The latest version of the entry may have another number."""
        self._memory_slots = MemorySlots()
        self._has_slot = True
        self._has_budget = False
        self._has_new_cookies = False
        """The last answer has changed the cookies of the site."""
        self._last_use = "", 0.0
        """The shared clock of the last request, and the second by which its site had the request."""
        self._due = 0.0
        """Wall-clock second of the next try, if the entry is postponed."""
        self._outcome: AttemptOutcome | None = None
        context.work.begin(self._seq)

    async def run(self) -> None:
        """Take the entry as far as possible now. Raises StorageError."""
        with self:
            self._settle(await self._advance())

    def __enter__(self) -> None:
        """Begin the attempt."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> bool:
        """Give back the slot, the budget unit and the memory slots. A bug here costs no more than this URL."""
        try:
            if not isinstance(error, Exception) or isinstance(error, StorageError):
                return False
            log.exception("crawl.bug url=%s", self._entry.url)
            self._abandon()
            return True
        finally:
            self._memory_slots.release()
            if self._has_budget:  # A page that a stop leaves unfinished is fetched again, and counts then.
                self._parts.crawl_limits.end(self._outcome is AttemptOutcome.FINISHED, self._entry.key)
            self._context.work.end()
            self._context.wake()

    def _settle(self, outcome: AttemptOutcome) -> None:
        """Give an unfinished entry back to the frontier."""
        self._outcome = outcome
        if outcome is AttemptOutcome.FINISHED:
            return
        self._leave_slot()
        self._context.work.give_back(self._seq)
        now = self._parts.clock.now()
        if outcome is AttemptOutcome.POSTPONED:
            self._source.frontier.postpone(self._entry, self._due, now)
            self._source.activity.move()
        else:
            self._source.frontier.put_back(self._entry, now)

    def _abandon(self) -> None:
        """Finish an entry that a bug made impossible to crawl."""
        if self._has_slot:
            now = self._parts.clock.now()
            self._source.frontier.release(self._entry, now, now)
            self._end_slot()
        if self._seq in self._context.work.taken:
            self._finish_unfetched("internal_error")

    # --- the steps -----------------------------------------------------------------------------------------------

    async def _advance(self) -> AttemptOutcome:
        """Take the next step: a request for robots.txt, a request for the page, or a line without a request."""
        parts, source, entry, hooks = self._parts, self._source, self._entry, self._hooks
        if await hooks.prepare(self._cell) and source.frontier.wait_s(entry.site, parts.clock.now()):
            return AttemptOutcome.PUT_BACK
        # From here to the request nothing is awaited.
        if not hooks.lets_ask(self._cell) or not source.frontier.is_open(self._cell):
            return AttemptOutcome.PUT_BACK
        if hooks.no_backup_reachable(self._cell):
            return self._put_off(ALONE_WAIT_S)
        if parts.by_depth:
            entry = self._entry = source.store.latest(entry)
        known: Rules | str | None = parts.scope.why_ends(entry)
        if known == "scope" and not parts.scope.scope_is_final():  # Another peer may know seeds that include the URL.
            return self._put_off(SCOPE_WAIT_S)
        if known is None and source.frontier.gives_up(entry.site, parts.clock.now()):
            known = SITE_REFUSED
        if known is None and parts.site_settings.ignores_robots(entry.url):
            known = ALLOW_ALL
        if known is None:
            known = source.robots.look_up(origin_of(entry.url), parts.clock.now())
        if known is None:
            await self._context.search.advance(entry, self._request)
            self._rest_by_rules()
            return AttemptOutcome.PUT_BACK
        return await self._fetch(known) if isinstance(known, Rules) else self._finish_unfetched(known)

    async def _fetch(self, rules: Rules) -> AttemptOutcome:
        """Fetch the page, if these rules of its robots.txt allow that, and finish the page if the answer is final."""
        parts, entry, now = self._parts, self._entry, self._parts.clock.now()
        frontier, processor = self._source.frontier, self._context.page_processor
        frontier.set_delay(entry.site, self._context.search.delay_s(entry.url, rules), now)
        is_allowed = rules.allowed(entry.url)
        if not is_allowed or parts.poison_pages.is_poison(entry.url):
            return await self._leave_out(rules, KILLED_PEER if is_allowed else "robots")
        # The delay may be new here, e.g. if the rules came from another peer: the site waits from its last request on.
        if frontier.wait_s(entry.site, parts.clock.now()):
            return AttemptOutcome.PUT_BACK
        sessions, logging_in = self._source.sessions, self._source.logging_in
        if sessions is not None and (login := sessions.login_before(entry.site, entry.url)) is not None:
            if sessions.is_given_up(entry.site, now):
                return self._finish_unfetched("login_failed")
            if logging_in is not None:
                opening = frontier.opening(self._cell)
                await logging_in.log_in(entry.site, login, lambda request: self._send(request, opening))
            return AttemptOutcome.PUT_BACK
        if not parts.crawl_limits.begin():
            return AttemptOutcome.PUT_BACK
        self._has_budget = True
        last = self._source.store.last_visit(entry.key)
        number = 0 if last is None else self._source.store.rounds(entry.key)
        start = parts.rounds.start(last, number) if parts.rounds else VisitStart(number)
        fields = parts.rounds.validators(start.last) if parts.rounds else ()
        fetched = await self._request(entry.url, fields)
        if fetched is None or fetched.error is FetchError.UNSURE:
            return AttemptOutcome.PUT_BACK
        is_lost = sessions is not None and sessions.is_lost(entry.site, entry.url, fetched, parts.clock.now())
        if self._wants_its_cookie(fetched) or (is_lost and not entry.tries):
            self._due = parts.clock.now()
            return AttemptOutcome.POSTPONED
        more = KEPT_WAITING_TRIES if fetched.error is FetchError.KEPT_WAITING else 0
        if fetched.passing and entry.tries < parts.site_settings.retries(entry.url) + more:
            self._due = parts.clock.now() + retry_wait_s(entry.tries, fetched, parts.limits, parts.random)
            return AttemptOutcome.POSTPONED
        if parts.by_depth:
            entry = self._entry = self._source.store.latest(entry)
        reading_bytes = len(fetched.content)
        self._context.work.add_bytes(reading_bytes)
        try:
            processed = await processor.read(entry, fetched, rules, start, page_wanted=parts.page_feed.is_read)
        finally:
            self._context.work.add_bytes(-reading_bytes)
        # The body is large, and the links of the page may take long to arrive.
        del fetched
        self._memory_slots.release()
        return await self._complete(processed)

    def _wants_its_cookie(self, fetched: FetchResult) -> bool:
        """Return whether the site sets a cookie and sends the crawl back to the same URL to show it."""
        if not self._has_new_cookies or fetched.location is None:
            return False
        is_same = canonical(fetched.location, self._entry.url) == self._entry.url
        return is_same and self._entry.tries < self._parts.site_settings.retries(self._entry.url)

    async def _leave_out(self, rules: Rules, why: str) -> AttemptOutcome:
        """Finish a page that must not be fetched. The sitemaps of its site are links of the page all the same."""
        self._leave_slot()
        links = self._context.page_processor.outlinks_of_forbidden(self._entry, rules)
        await self._parts.forwarder.forward_all(links, self._cell)
        return self._finish_unfetched(why)

    async def _send(self, login: LoginRequest, opening: int | None) -> FetchResult | None:
        """Send a request of a login in the slot, if its cell has not been closed since this opening."""
        if self._source.frontier.opening(self._cell) != opening:
            return None
        return await self._request(login.url, login.headers, login)

    async def _request(
        self, url: str, fields: Sequence[tuple[str, str]] = (), login: LoginRequest | None = None
    ) -> FetchResult | None:
        """Make one request in the slot, a POST if it is a login with a form, and tell the clock of the site.

        Returns None if no request went out, or if another peer is to make the request.
        """
        parts, frontier, entry = self._parts, self._source.frontier, self._entry
        opening = frontier.opening(self._cell)
        if parts.clocks is None:
            return await self._send_request(url, fields, login, opening, None)
        clock, address, error = await parts.clocks.find(url)
        if frontier.wait_s(entry.site, parts.clock.now()):
            return None  # The look-up of the address took a while.
        parts.clocks.pin(url, address, error)
        if error is not None:
            return await self._send_request(url, fields, login, opening, None)
        delay_s = max(frontier.clock(entry.site, parts.clock.now())[1], parts.site_settings.delay_s(url))
        waiter = waiter_of(frontier, entry.site, self._context.wake)
        rules = self._source.robots.look_up(origin_of(url), parts.clock.now())
        is_known = isinstance(rules, Rules) or parts.site_settings.ignores_robots(url)
        # The owner of the clock reads only the robots.txt of the entry's own origin, and none to be fetched again.
        is_shared = (
            not is_known
            and url == origin_of(entry.url) + ROBOTS_PATH
            and not self._source.robots.is_own(origin_of(url))
        )
        page = entry.url if is_shared else ""
        with parts.clocks.enter(clock, url, address, delay_s, waiter, is_known=is_known, page=page) as use:
            if use is None:
                return None
            return await self._send_request(url, fields, login, opening, use)

    async def _send_request(
        self,
        url: str,
        fields: Sequence[tuple[str, str]],
        login: LoginRequest | None,
        opening: int | None,
        use: ClockUse | None,
    ) -> FetchResult | None:
        """Make the request, now that it has its turn on the shared clock, if there is one."""
        parts, frontier, entry, hooks = self._parts, self._source.frontier, self._entry, self._hooks
        kept, form = self._source.cookies, b"" if login is None else login.form
        is_own = login is not None or host_of(url) == host_of(entry.url)
        cookies = kept if kept is not None and is_own and kept.keeps(url) else None
        if cookies is not None and (value := cookies.header(entry.site, url, parts.clock.now())):
            fields = [*fields, ("Cookie", value)]

        def may_send() -> bool:
            if use is not None and not use.may_send():
                return False
            is_open = frontier.may_ask(entry.site, self._cell, opening)
            return is_open and parts.crawl_limits.may_request and hooks.lets_send(self._cell)

        if cookies is None:
            fetched = await parts.fetcher.fetch(url, fields, may_send, memory_slots=self._memory_slots, page=entry.url)
        else:
            fetched = await parts.direct.fetch(url, fields, may_send, memory_slots=self._memory_slots, form=form)
        if fetched.error in UNASKED:
            if use is not None:
                use.rest(0.0)
            if fetched.error is FetchError.NO_SOCKET:
                self._context.wait_for_files(fetched.detail)
            elif fetched.error is FetchError.NO_PROXY:
                parts.pause_reasons.add(PauseReason.PROXIES)
            elif fetched.error in (FetchError.VERIFYING, FetchError.NO_OPINION):
                now = parts.clock.now()
                verified_s = POOL_WAIT_S if parts.site_settings.pool(url) else ALONE_WAIT_S
                wait_s = verified_s if fetched.error is FetchError.VERIFYING else OPINION_WAIT_S
                frontier.hold(entry.site, now + wait_s, now)
            return None
        if parts.traces is not None:
            parts.traces.fetched(entry.key, FETCH if url == entry.url else FETCH_OTHER, fetched)
        received_at, now = parts.clock.of(fetched.first_byte_at), parts.clock.now()
        frontier.time_request(entry.site, fetched.seconds, fetched.why_failed is None, now, fetched.status)
        self._heed(fetched, now)
        rests_until = frontier.release(entry, received_at, now, fetched.hold_s, fetched.answered)
        if use is not None:
            self._rest(use, fetched, max(rests_until, received_at + parts.site_settings.delay_s(url)) - now)
        self._end_slot()
        parts.capacity.wake_all(self._context.work)
        if hooks.on_unreached is not None and fetched.status is None and fetched.error in UNREACHED:
            hooks.on_unreached(entry.site)
            return None
        if cookies is not None:
            fetched, self._has_new_cookies = cookies.learn(entry.site, fetched, now)
        return fetched

    def _rest(self, use: ClockUse, fetched: FetchResult, seconds: float) -> None:
        """Let the shared clock rest after a request, and try another address next if there was no connection."""
        use.rest(max(0.0, seconds))
        self._last_use = use.clock, self._parts.clock.of(fetched.first_byte_at)
        if fetched.error is FetchError.CONNECT and self._parts.clocks is not None:
            self._parts.clocks.missed(use)

    def _rest_by_rules(self) -> None:
        """Let the shared clock of a robots.txt rest for the delay that the file asks for, or while its host refuses."""
        parts, (clock, received_at), url = self._parts, self._last_use, self._entry.url
        now, refused_until = parts.clock.now(), self._source.frontier.back_off(self._entry.site).until
        rules = self._source.robots.look_up(origin_of(url), now) if clock else None
        until = received_at + self._context.search.delay_s(url, rules) if isinstance(rules, Rules) else refused_until
        if parts.clocks is not None and (isinstance(rules, Rules) or not parts.clocks.is_by_address):
            parts.clocks.rest(clock, until - now)

    def _heed(self, fetched: FetchResult, now: float) -> None:
        """Leave the site alone for a while if it refused. Any answer eases its back-off, but that to robots.txt."""
        frontier, site = self._source.frontier, self._entry.site
        if fetched.accepts and fetched.url != origin_of(fetched.url) + ROBOTS_PATH:
            frontier.accept(site, now)
        if not fetched.refuses or fetched.status is None:
            return
        known = frontier.back_off(site)
        frontier.refuse(site, fetched.status, fetched.hold_s, now)
        if (back_off := frontier.back_off(site)).refusals > known.refusals:
            log.info(
                "crawl.backed_off site=%s status=%d refusals=%d wait_s=%.0f",
                *(site, back_off.status, back_off.refusals, back_off.until - now),
            )
        if self._hooks.on_refused is not None:
            self._hooks.on_refused(site)

    def _end_slot(self) -> None:
        self._has_slot = False
        self._context.work.end_request(self._seq)

    def _leave_slot(self) -> None:
        """Free the slot, if no request was made in it."""
        if self._has_slot:
            self._source.frontier.give_up_slot(self._entry)
            self._end_slot()

    def _put_off(self, wait_s: float) -> AttemptOutcome:
        """Leave the whole site alone for some seconds."""
        now = self._parts.clock.now()
        self._source.frontier.put_off(self._entry, now + wait_s, now)
        return AttemptOutcome.PUT_BACK

    # --- the end of a page ---------------------------------------------------------------------------------------

    async def _complete(self, processed: ProcessedPage) -> AttemptOutcome:
        """Finish the entry when its links are acknowledged, its records are extracted and its page was read."""
        parts, work = self._parts, self._context.work
        work.add_bytes(processed.held_bytes)
        work.changed.set()
        try:
            await parts.forwarder.forward_all(processed.outlinks, self._cell)
            line, records = await self._context.page_processor.lines(self._entry, processed)
            if processed.page is not None and parts.page_feed.is_read:
                await parts.page_feed.put(processed.page)
        finally:
            work.add_bytes(-processed.held_bytes)
        self._context.page_processor.count(processed, records)
        return self._finish(line, processed.failed, processed.visit, processed.number, records)

    def _finish_unfetched(self, why: str) -> AttemptOutcome:
        """Finish the entry without a request, and give `why` as the reason in its page line."""
        self._leave_slot()
        self._context.work.give_back(self._seq)
        self._context.finisher.finish_unfetched(self._entry, why)
        return self._is_finished()

    def _finish(
        self, line: bytes, failed: str | None, visit: Visit | None, number: int, records: bytes
    ) -> AttemptOutcome:
        """Journal the entry as DONE with its lines. `number` counts the visits before this visit."""
        self._context.work.give_back(self._seq)
        self._context.finisher.finish(self._entry, line, failed, visit, number, records)
        return self._is_finished()

    def _is_finished(self) -> AttemptOutcome:
        self._source.frontier.finish(self._entry, self._parts.clock.now())
        self._source.activity.move()
        self._outcome = AttemptOutcome.FINISHED
        return self._outcome
