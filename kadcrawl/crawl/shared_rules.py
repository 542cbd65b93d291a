"""`SharedRules` reads the robots.txt of hosts whose clocks this peer keeps, once for all peers with URLs of the host.

By URL, each peer of a swarm has URLs of each host, so each would ask for its robots.txt, and would have the host to
itself meanwhile. Instead, the owner of the clock requests the file when a peer first asks for the clock. All peers get
the rules with their leases (clocks/clock_host.py).

A file that redirects, that is refused, or that cannot be read, is left to the peers themselves for `FAILED_S`: each has
a search of its own (robots_fetch.py). So is a file with rules that are too large for a lease. One peer at a time has
the clock, so the host is not asked too often.

Tests: tests/crawl/test_shared_rules.py
"""

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Callable
from functools import partial

from kadcrawl.crawl.dependencies import CrawlDependencies
from kadcrawl.crawl.fetch.fetcher import Fetching
from kadcrawl.crawl.fetch.memory_slots import MemorySlots
from kadcrawl.crawl.fetch.result import UNASKED, FetchResult
from kadcrawl.crawl.robots.cache import LARGE_BYTES, ROBOTS_PATH
from kadcrawl.crawl.robots.rules import Rules, judging
from kadcrawl.crawl.robots_fetch import delay_by, promised_status
from kadcrawl.link.wire.cell_messages import RobotsRecord
from kadcrawl.store.site_table import SiteTable
from kadcrawl.system.cooperative import run_cooperatively
from kadcrawl.urls import is_canonical, origin_of

FAILED_S = 60.0
"""Seconds for which a robots.txt that could not be read here is left to the peers that need it."""
READING_MAX = 50
"""Limit on the robots.txt files requested for other peers at a time."""
PARSED_MAX = 1_000
"""Limit on the origins whose rules are kept parsed, at most 16 KB of text each."""
TURN_S = 3.0
"""Seconds for which a file waits for the clock of its host before it is left to the peers that need it."""
AGE_MAX_S = 86_400.0
"""Greatest age of rules in a message, in seconds."""

log = logging.getLogger(__name__)


class SharedRules:
    """The rules of hosts that this peer gives to others with leases of their clocks."""

    def __init__(self, parts: CrawlDependencies, fetcher: Fetching, sites: SiteTable) -> None:
        """`fetcher` makes requests for pages of other peers, and `sites` journals the rules."""
        self._parts = parts
        self._fetcher = fetcher
        self._sites = sites
        self._under_way: set[str] = set()
        self._failed: OrderedDict[str, float] = OrderedDict()
        """Origin -> wall-clock second until which its file is left to others, the earliest first."""
        self._parsed: dict[str, tuple[bytes, Rules]] = {}
        """Origin -> the rules that were told last, as text and parsed, the latest last."""
        self._parsing = asyncio.Lock()

    def known(self, url: str) -> RobotsRecord | None:
        """Return the rules for a canonical URL as they travel, or None if none are known, or if they are large."""
        origin = origin_of(url)
        row = self._sites.robots(origin)
        if row is None or len(row[0]) > LARGE_BYTES:
            return None
        age_s = max(0.0, self._parts.clock.now() - row[1])
        if age_s >= min(self._parts.limits.robots_ttl_s, AGE_MAX_S):
            return None
        return RobotsRecord(origin, row[0], age_s)

    def connections(self, url: str, record: RobotsRecord) -> int:
        """Return the requests that may be under way at a time to the host of a URL, by these rules."""
        parts, limits = self._parts, self._parts.limits
        assert parts.clocks is not None, "the clocks of this job are shared"
        parsed = self._parsed.get(record.origin)
        if parsed is None or parsed[0] != record.rules:
            self._parsed.pop(record.origin, None)
            parsed = self._parsed[record.origin] = record.rules, Rules.from_bytes(record.rules)
            if len(self._parsed) > PARSED_MAX:
                del self._parsed[next(iter(self._parsed))]
        return 1 if delay_by(parsed[1], url, parts.site_settings, limits) > 0 else parts.clocks.connections(url)

    def may_read(self, url: str) -> bool:
        """Return whether this peer reads the robots.txt for a URL of another peer, or is reading it."""
        if not is_canonical(url):
            return False
        parts, origin = self._parts, origin_of(url)
        if origin in self._under_way:
            return True
        now = parts.clock.now()
        while self._failed and next(iter(self._failed.values())) <= now:
            self._failed.popitem(last=False)
        row = self._sites.robots(origin)
        return (
            origin not in self._failed
            and (row is None or len(row[0]) <= LARGE_BYTES)
            and len(self._under_way) < READING_MAX
            and not parts.pause_reasons
            and parts.crawl_limits.may_request
            and parts.scope.why_not(url, 0) is None
            and not parts.site_settings.ignores_robots(url)
            and not parts.site_settings.steering.is_paused(url)
            and not parts.poison_pages.is_poison(origin + ROBOTS_PATH)
        )

    async def read(self, url: str) -> None:
        """Read the robots.txt for a URL for which `may_read` is true, at the turn of its host's clock."""
        origin = origin_of(url)
        if origin in self._under_way:
            return
        self._under_way.add(origin)
        try:
            if not await self._read(origin):
                self._failed.pop(origin, None)
                self._failed[origin] = self._parts.clock.now() + FAILED_S
        finally:
            self._under_way.discard(origin)

    async def _read(self, origin: str) -> bool:
        """Return whether the rules are known now."""
        parts, robots_url, memory_slots = self._parts, origin + ROBOTS_PATH, MemorySlots()
        assert parts.clocks is not None, "the clocks of this job are shared"
        rules = None
        try:
            async with parts.clocks.turn(robots_url, parts.site_settings.delay_s(robots_url), TURN_S) as may_send:
                if may_send is None:
                    return False
                if self.known(robots_url) is not None:  # By a search of this peer's own.
                    return True
                fetched = await self._fetcher.fetch(
                    robots_url, (), partial(self._may_send, may_send), memory_slots=memory_slots
                )
                if fetched.error not in UNASKED:
                    rules = await self._learn(origin, fetched)
                    delay_s = 0.0 if rules is None else delay_by(rules, robots_url, parts.site_settings, parts.limits)
                    clock, _, error = await parts.clocks.find(robots_url)
                    if error is None:
                        parts.clocks.rest(clock, max(fetched.hold_s, delay_s))
        finally:
            memory_slots.release()
        is_known = self.known(robots_url) is not None
        log.info("robots.shared origin=%s known=%s", origin, is_known)
        return is_known

    def _may_send(self, has_turn: Callable[[], bool]) -> bool:
        return has_turn() and self._parts.crawl_limits.may_request

    async def _learn(self, origin: str, fetched: FetchResult) -> Rules | None:
        """Keep the rules in an answer, and return them, or None if it has none or leads elsewhere."""
        parts = self._parts
        async with parts.poison_pages.reading(fetched.url):
            agent = parts.site_settings.robots_agent
            rules = await run_cooperatively(judging(promised_status(fetched), fetched.content, agent), self._parsing)
        parts.outputs.keep(fetched)
        if rules is None or fetched.location is not None:
            return None
        parts.poison_pages.was_read(fetched.url)
        self._sites.learn_robots(origin, rules.to_bytes(), parts.clock.now())
        return rules
