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
from kadcrawl.crawl.robots.cache import LARGE_BYTES, ROBOTS_PATH, RobotsCache
from kadcrawl.crawl.robots.rules import Rules, judging
from kadcrawl.crawl.robots_fetch import delay_by, promised_status
from kadcrawl.errors import StorageError
from kadcrawl.link.wire.cell_messages import RobotsRecord
from kadcrawl.store.site_table import SiteTable
from kadcrawl.system.cooperative import run_cooperatively
from kadcrawl.urls import is_canonical, origin_of

FAILED_S = 60.0
"""Seconds for which a robots.txt that could not be read here is left to the peers that need it."""
READING_MAX = 50
"""Limit on the robots.txt files requested for other peers at a time."""
DELAYS_MAX = 1_000
"""Limit on the origins whose Crawl-delay is remembered."""
TURN_S = 3.0
"""Seconds for which a file waits for the clock of its host before it is left to the peers that need it."""
AGE_MAX_S = 86_400.0
"""Greatest age of rules in a message, in seconds."""

log = logging.getLogger(__name__)


class SharedRules:
    """The rules of hosts that this peer gives to others with leases of their clocks."""

    def __init__(self, parts: CrawlDependencies, fetcher: Fetching, sites: SiteTable, robots: RobotsCache) -> None:
        """`fetcher` makes requests for pages of other peers, `sites` has the rules, and `robots` those read here."""
        self._parts = parts
        self._fetcher = fetcher
        self._sites = sites
        self._robots = robots
        self._under_way: dict[str, bool] = {}
        """Origins whose files are to be read -> whether that has begun."""
        self._failed: OrderedDict[str, float] = OrderedDict()
        """Origin -> wall-clock second until which its file is left to others, the earliest first."""
        self._delays: dict[str, tuple[int, float]] = {}
        """Origin -> the hash of the rules that were told last, and their Crawl-delay in seconds, the latest last."""
        self._parsing = asyncio.Lock()

    def known(self, url: str) -> RobotsRecord | None:
        """Return the rules for a canonical URL as they travel, or None if this peer has read none, or large ones.

        Rules that another peer told do not count, as all peers of the swarm would have them from here.
        """
        origin = origin_of(url)
        row = self._sites.robots(origin)
        if row is None or len(row[0]) > LARGE_BYTES or (read_at := self._robots.read_at(origin, row[0])) is None:
            return None
        age_s = max(0.0, self._parts.clock.now() - read_at)
        if age_s >= min(self._parts.limits.robots_ttl_s, AGE_MAX_S):
            return None
        return RobotsRecord(origin, row[0], age_s)

    def connections(self, url: str, record: RobotsRecord) -> int:
        """Return the requests that may be under way at a time to the host of a URL, by these rules."""
        parts = self._parts
        assert parts.clocks is not None, "the clocks of this job are shared"
        told = self._delays.get(record.origin)
        if told is None or told[0] != hash(record.rules):
            self._delays.pop(record.origin, None)
            told = hash(record.rules), Rules.from_bytes(record.rules).crawl_delay_s or 0.0
            self._delays[record.origin] = told
            if len(self._delays) > DELAYS_MAX:
                del self._delays[next(iter(self._delays))]
        delay_s = delay_by(told[1], url, parts.site_settings, parts.limits)
        return 1 if delay_s > 0 else parts.clocks.connections(url)

    def may_read(self, url: str) -> bool:
        """Return whether this peer reads the robots.txt for a URL of another peer, or is reading it."""
        if not is_canonical(url):
            return False
        parts, origin = self._parts, origin_of(url)
        if origin in self._under_way:
            return True
        now, last_at = parts.clock.now(), self._robots.last_read_at(origin)
        while self._failed and next(iter(self._failed.values())) <= now:
            self._failed.popitem(last=False)
        return (
            origin not in self._failed
            and not self._is_too_large(origin, now)
            and (last_at is None or not 0 <= now - last_at < min(FAILED_S, parts.limits.robots_ttl_s))
            and len(self._under_way) < READING_MAX
            and not parts.pause_reasons
            and parts.crawl_limits.may_request
            and parts.scope.why_not(url, 0) is None
            and not parts.site_settings.ignores_robots(url)
            and not parts.site_settings.steering.is_paused(url)
            and not parts.poison_pages.is_poison(origin + ROBOTS_PATH)
        )

    def begin(self, url: str) -> None:
        """Count the robots.txt for a URL for which `may_read` is true among those under way. `read` follows."""
        self._under_way.setdefault(origin_of(url), False)

    async def read(self, url: str) -> None:
        """Read the robots.txt for a URL for which `may_read` is true, at the turn of its host's clock.

        Raises StorageError.
        """
        origin, is_read = origin_of(url), False
        if self._under_way.get(origin):
            return
        self._under_way[origin] = True
        try:
            is_read = await self._read(origin)
        except StorageError:
            raise
        except Exception:
            # A fault of ours must not cost more than this file in a crawl of months.
            log.exception("crawl.bug url=%s", origin + ROBOTS_PATH)
        finally:
            del self._under_way[origin]
            if not is_read:
                self._failed.pop(origin, None)
                self._failed[origin] = self._parts.clock.now() + FAILED_S

    def _is_too_large(self, origin: str, now: float) -> bool:
        """Return whether this peer has read rules that no lease carries, and need not read them again yet."""
        row = self._sites.robots(origin)
        if row is None or len(row[0]) <= LARGE_BYTES or (read_at := self._robots.read_at(origin, row[0])) is None:
            return False
        return now < read_at + self._parts.limits.robots_ttl_s

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
                    robots_url, (), partial(self._may_send, robots_url, may_send), memory_slots=memory_slots
                )
                if fetched.error not in UNASKED:
                    rules = await self._learn(origin, fetched)
                    delay_s = 0.0
                    if rules is not None:
                        delay_s = delay_by(rules.crawl_delay_s, robots_url, parts.site_settings, parts.limits)
                    clock, _, error = await parts.clocks.find(robots_url)
                    if error is None:
                        parts.clocks.rest(clock, max(fetched.hold_s, delay_s))
        finally:
            memory_slots.release()
        is_known = self.known(robots_url) is not None
        log.info("robots.shared origin=%s known=%s", origin, is_known)
        return is_known

    def _may_send(self, url: str, has_turn: Callable[[], bool]) -> bool:
        parts = self._parts
        steering = parts.site_settings.steering
        is_stopped = parts.pause_reasons or steering.is_paused(url) or steering.is_excluded(url)
        return has_turn() and parts.crawl_limits.may_request and not is_stopped

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
        self._robots.learn(origin, rules, parts.clock.now())
        return rules
