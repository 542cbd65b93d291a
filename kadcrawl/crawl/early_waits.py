"""`EarlyWaits` lets an entry wait that cannot be asked for now, before an attempt at it is made.

In a crawl by URL each URL is a site of its own, and those of a host share its clock. So each of them has to wait for
its turn by itself, and an attempt that only finds this out costs several times as much as the wait. The same holds
while no backup of a cell is reachable. An entry that ends without a request never waits here: an attempt decides that.
A decision.

Tests: tests/crawl/test_early_waits.py
"""

from collections.abc import Callable

from kadcrawl.crawl.attempt import ALLOW_ALL, ALONE_WAIT_S
from kadcrawl.crawl.clocks.clock_holder import ClockHolder, key_of, waiter_of
from kadcrawl.crawl.dependencies import CrawlDependencies, CrawlHooks, CrawlSource
from kadcrawl.crawl.robots.rules import Rules
from kadcrawl.crawl.robots_fetch import RobotsSearch
from kadcrawl.store.frontier_entry import FrontierEntry
from kadcrawl.urls import origin_of


class EarlyWaits:
    """The waits of one crawler's entries."""

    def __init__(
        self,
        parts: CrawlDependencies,
        source: CrawlSource,
        hooks: CrawlHooks,
        search: RobotsSearch,
        wake: Callable[[], None],
    ) -> None:
        """`wake` tells the crawler that a site may go on."""
        self._parts = parts
        self._source = source
        self._hooks = hooks
        self._search = search
        self._wake = wake
        # The address of a host would have to be looked up first.
        by_host = parts.clocks is not None and not parts.clocks.is_by_address
        self._clocks: ClockHolder | None = parts.clocks if by_host else None

    def waits(self, entry: FrontierEntry) -> bool:
        """Return whether an entry that the frontier has just given out has to wait, and put it back if so."""
        if self._clocks is None:
            return False
        frontier, now = self._source.frontier, self._parts.clock.now()
        cell = self._source.store.cell_of(entry.key)
        if self._hooks.no_backup_reachable(cell):
            frontier.put_off(entry, now + ALONE_WAIT_S, now)
        elif self._waits_for_clock(self._clocks, entry, now) and self._hooks.lets_ask(cell):
            self._clocks.wait(entry.url, waiter_of(frontier, entry.site, self._wake))
        else:
            return False
        frontier.give_up_slot(entry)
        frontier.put_back(entry, now)
        return True

    def _waits_for_clock(self, clocks: ClockHolder, entry: FrontierEntry, now: float) -> bool:
        """Return whether an entry is to be requested without a delay, and its host has no connection for it now."""
        parts, frontier, url = self._parts, self._source.frontier, entry.url
        if clocks.may_enter(url, key_of(frontier, entry.site)):
            return False
        is_ignored = parts.site_settings.ignores_robots(url)
        rules = ALLOW_ALL if is_ignored else self._source.robots.look_up(origin_of(url), now)
        if not isinstance(rules, Rules) or self._search.delay_s(url, rules) or frontier.clock(entry.site, now)[1]:
            return False
        sessions = self._source.sessions
        if sessions is not None and sessions.login_before(entry.site, url) is not None:
            return False
        ends = parts.scope.why_ends(entry) is not None or frontier.gives_up(entry.site, now)
        return not ends and rules.allowed(url) and not parts.poison_pages.is_poison(url)
