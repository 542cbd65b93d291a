"""The proxy pool decides which proxy a site is asked through, which proxies are alive, and when each is verified.

A proxy is used once the health-check page came through it (health_checks.py). From then on the proxy has a score, a
decaying average of success and of speed. Better proxies are chosen more often, and a site keeps its proxy as long as
nothing goes wrong. Three things can go wrong:

- **The proxy itself fails** (no connection to it, 407). That is certain, and the site was not asked. After three such
  failures in a row the proxy is dead.
- **The fault may be the proxy's or the site's**: the answer broke, the tunnel was refused, a relay sent 502. The proxy
  becomes *suspect*: it is verified at once, unless a page comes through before that, and others are chosen first. The
  page is given to another proxy, which is no try of its own, and does not go again by a proxy that is not proven alive
  since. Only when the page had the same trouble `DOUBTS` times, before the last by proxies that were proven alive
  afterwards, is the fault the page's. Troubles with a proxy that turns out to be dead are forgotten, but `DOUBTS_MOST`
  troubles end the page.
- **The health-check page does not come**: the proxy is dead, unless it is trusted and pages came through it since it
  was verified last. A health-check page that is down stops no working proxy.

A dead proxy comes back only by verification, each time after a longer wait. A proxy that the list no longer names is
gone. A restart goes on with the health that the journal has (health_memory.py). A site cannot spoil a proxy: all that a
site does is doubt, and the health check decides. Times are arguments.
"""

from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import Enum
from math import inf
from random import Random

from kadcrawl.crawl.fetch.result import UNASKED, FetchError, FetchResult
from kadcrawl.crawl.proxies.health import ProxyHealth
from kadcrawl.crawl.proxies.health_memory import HealthMemory
from kadcrawl.settings.proxy_list import Proxy

DOUBTS = 3
"""Troubles that convict a page, if all but the last were with proxies that were proven alive since."""
DOUBTS_MOST = 20
"""Troubles that convict a page regardless of its proxies, so that a page that kills proxies ends."""
NONE_WAIT_MAX_S = 30.0
"""The longest wait in seconds before a dead proxy is tried again while none is alive."""
STICKY_MAX = 10_000
"""Sites whose proxy is remembered, and pages whose troubles are."""
NOT_THE_WAY = frozenset(
    {
        FetchError.BAD_URL,
        FetchError.ADDRESS_REFUSED,
        FetchError.HEADERS_TOO_LARGE,
        FetchError.BODY_TOO_LARGE,
        FetchError.BAD_ENCODING,
        FetchError.INFLATED_TOO_LARGE,
        FetchError.NO_MEMORY,
        FetchError.INFLATED_NO_MEMORY,
    }
)
"""Errors that are the same by every way to a site."""
GATEWAY = frozenset({407, 502, 503, 504})
"""Statuses of an answer to a relayed request that may be the proxy's own."""


class Outcome(Enum):
    """The evidence of one request about its proxy."""

    NOTHING = 0
    CAME = 1
    """The site answered."""
    PROXY = 2
    """The proxy is to blame, and the site was not asked."""
    DOUBT = 3
    """The proxy or the site is to blame."""


def outcome(result: FetchResult, proxy: Proxy) -> Outcome:
    """Return the evidence of an answer, or of its absence, about the proxy."""
    relays = proxy.relays(result.url)
    if result.error is FetchError.PROXY or (result.error is FetchError.CONNECT and relays):
        return Outcome.PROXY
    if result.error in UNASKED or result.error is FetchError.KEPT_WAITING:
        return Outcome.NOTHING
    if result.error is None:
        # A 503 that says when to come back is a site's.
        doubtful = relays and result.status in GATEWAY and not result.retry_after_s
        return Outcome.DOUBT if doubtful else Outcome.CAME
    if result.error in NOT_THE_WAY:
        return Outcome.NOTHING if result.status is None else Outcome.CAME
    return Outcome.DOUBT


@dataclass(slots=True)
class _Troubles:
    """The troubles of one page since its last try that counted."""

    by: list[tuple[Proxy, float]] = field(default_factory=list)
    """The proxies and times of the troubles, without proxies that turned out dead."""
    count: int = 0
    """The number of troubles, with dead proxies."""


class Proxies:
    """The pool of one peer."""

    def __init__(self, random: Random, verify_s: float, retry_s: float, memory: HealthMemory | None = None) -> None:
        """Make an empty pool. A live proxy is verified after `verify_s` seconds, a dead proxy after `retry_s`, then
        twice that, ... Without a `memory` all proxies are new."""
        self._random = random
        self._verify_s = verify_s
        self._retry_s = retry_s
        self._memory = memory
        self._health: dict[Proxy, ProxyHealth] = {}
        self._sticky: OrderedDict[str, Proxy] = OrderedDict()
        self._troubles: OrderedDict[str, _Troubles] = OrderedDict()

    # --- who there is --------------------------------------------------------------------------------------------

    def learn(self, proxies: Iterable[Proxy], now: float) -> None:
        """Take these as all proxies there are: missing proxies are gone, new proxies are to be verified.

        A new proxy that an earlier run knew has the health that it had then.
        """
        named = dict.fromkeys(proxies)
        for proxy in self._health.keys() - named.keys():
            self._forgive(proxy)
            del self._health[proxy]
        for proxy in named:
            if proxy not in self._health:
                self._health[proxy] = health = ProxyHealth(proxy)
                if self._memory is not None and (saved := self._memory.recall(proxy)) is not None:
                    health.restore(saved, now, self._verify_s)
        if self._memory is not None:
            self._memory.keep_only(named)

    @property
    def known(self) -> int:
        return len(self._health)

    @property
    def alive(self) -> int:
        """The number of proxies that may be used."""
        return sum(health.alive for health in self._health.values())

    def news(self, proxy: Proxy) -> bool | None:
        """Return whether a proxy is alive if the last call for it said otherwise, or if there was none. Else None."""
        health = self._health.get(proxy)
        if health is None or health.told_alive is health.alive:
            return None
        health.told_alive = health.alive
        return health.alive

    # --- choosing ------------------------------------------------------------------------------------------------

    def choose(self, site: str, url: str) -> Proxy | None:
        """Return the proxy for a URL of a site now, or None if there is none for it."""
        alive = [health for health in self._health.values() if health.alive]
        if not alive:
            return None
        troubles = self._troubles.get(url)
        tried = dict(troubles.by) if troubles is not None else {}  # To the last time.
        kept = self._health.get(self._sticky[site]) if site in self._sticky else None
        if kept is not None and kept.alive and not kept.suspect and kept.proxy not in tried:
            self._sticky.move_to_end(site)
            return kept.proxy
        # The best that can be had: another one that is not suspect, another one, one that did work in between.
        fresh = [health for health in alive if health.proxy not in tried]
        those = [health for health in fresh if not health.suspect] or fresh
        those = those or [health for health in alive if health.came_at > tried[health.proxy]]
        if not those:
            return None
        (chosen,) = self._random.choices(those, [max(health.score, 1e-3) ** 2 for health in those])
        self._sticky[site] = chosen.proxy
        self._sticky.move_to_end(site)
        if len(self._sticky) > STICKY_MAX:
            self._sticky.popitem(last=False)
        return chosen.proxy

    # --- what came of it -----------------------------------------------------------------------------------------

    def came(self, proxy: Proxy, url: str, seconds: float, now: float) -> None:
        """A site answered for a URL through this proxy, in so many seconds."""
        self._troubles.pop(url, None)
        if (health := self._health.get(proxy)) is not None:
            health.came(seconds, now, self._verify_s)

    def failed(self, proxy: Proxy, now: float) -> None:
        """The proxy itself did not do, and no site was asked."""
        health = self._health.get(proxy)
        if health is not None and health.alive and health.failed(now):
            self._dead(health, now)

    def doubted(self, proxy: Proxy, url: str, now: float) -> bool:
        """Note a trouble of a URL with this proxy. Return whether another proxy is to try first."""
        if (health := self._health.get(proxy)) is not None:
            was_suspect = health.suspect
            health.doubted(now)
            if health.suspect and not was_suspect:
                self._keep(health)
        troubles = self._troubles.setdefault(url, _Troubles())
        self._troubles.move_to_end(url)
        if len(self._troubles) > STICKY_MAX:
            self._troubles.popitem(last=False)
        proven = sum(self._proven(by, at) for by, at in troubles.by)
        troubles.by.append((proxy, now))
        troubles.count += 1
        if proven >= DOUBTS - 1 or troubles.count >= DOUBTS_MOST:
            del self._troubles[url]
            return False
        return True

    # --- verification --------------------------------------------------------------------------------------------

    def to_check(self, now: float) -> Proxy | None:
        """Return a proxy to verify now. The caller must then call `checked` or `unchecked`."""
        # With none alive the whole crawl waits.
        most_s = inf if self.alive else NONE_WAIT_MAX_S
        due = [
            one
            for one in self._health.values()
            if not one.checking and min(one.check_at, one.checked_at + most_s) <= now
        ]
        if not due:
            return None
        first = min(due, key=lambda one: (not one.suspect, one.check_at))
        first.begin_check()
        return first.proxy

    def checked(self, proxy: Proxy, seconds: float | None, now: float) -> None:
        """Note that the health-check page came through in so many seconds, or did not (None)."""
        health = self._health.get(proxy)
        if health is None:
            return
        if health.checked(seconds, now, self._verify_s, self._retry_s):
            self._keep(health)
        else:
            self._dead(health, now)

    def unchecked(self, proxy: Proxy, now: float) -> None:
        """Note that the proxy could not be verified, for a reason of this machine."""
        if (health := self._health.get(proxy)) is not None:
            health.unchecked(now, self._retry_s)

    # --- inside --------------------------------------------------------------------------------------------------

    def _dead(self, health: ProxyHealth, now: float) -> None:
        health.die(now, self._retry_s)
        self._keep(health)
        self._forgive(health.proxy)

    def _keep(self, health: ProxyHealth) -> None:
        if self._memory is not None:
            self._memory.keep(health.proxy, health.saved)

    def _forgive(self, proxy: Proxy) -> None:
        """Pages had trouble because of this proxy."""
        for troubles in self._troubles.values():
            troubles.by = [(by, at) for by, at in troubles.by if by != proxy]

    def _proven(self, proxy: Proxy, since: float) -> bool:
        health = self._health.get(proxy)
        return health is not None and health.alive and health.came_at > since
