"""What is known of each origin's robots.txt, and when it must be asked again (RFC 9309 2.3, 2.4).

Owns the parsed rules in memory (bounded, the rest is in the store) and the count of failures. An unreachable file
forbids everything for now; after `robots_tries_max` tries the origin is given up for `robots_dead_s` and its URLs are
recorded as failed. Times are wall-clock seconds; no await here.
"""

from dataclasses import dataclass

from kadcrawl.config import Limits
from kadcrawl.crawl.robots import Rules
from kadcrawl.history.store import Store


@dataclass(slots=True)
class Failing:
    """An origin whose robots.txt could not be fetched."""

    tries: int = 0
    given_up: str | None = None
    """Why its URLs are recorded as failed; None while it is still tried."""
    until: float = 0.0
    """Second until which it stays given up."""


class RobotsCache:
    """Rules by origin, over the store."""

    def __init__(self, store: Store, limits: Limits) -> None:
        self._store = store
        self._limits = limits
        self._rules: dict[str, tuple[Rules, float]] = {}
        self._failing: dict[str, Failing] = {}

    def look_up(self, origin: str, now: float) -> Rules | str | None:
        """Return the origin's rules; or why it is given up; or None: its robots.txt must be fetched first."""
        known = self._rules.get(origin) or self._journaled(origin)
        if known is not None and now < known[1] + self._limits.robots_ttl_s:
            return known[0]
        failing = self._failing.get(origin)
        return failing.given_up if failing is not None and now < failing.until else None

    def learn(self, origin: str, rules: Rules, now: float) -> None:
        """The file was fetched (or is missing, which allows all)."""
        self._failing.pop(origin, None)
        self._keep(origin, rules, now)
        self._store.set_robots(origin, rules.to_bytes(), now)

    def fail(self, origin: str, why: str, passing: bool, now: float) -> float:
        """The file could not be had, which may pass or not; return for how many seconds to leave the site alone."""
        if len(self._failing) >= self._limits.robots_cached_max:
            self._failing = {name: one for name, one in self._failing.items() if one.until > now}
        failing = self._failing.get(origin)
        if failing is None or failing.given_up is not None:
            failing = self._failing[origin] = Failing()
        failing.tries += 1
        if not passing or failing.tries >= self._limits.robots_tries_max:
            failing.given_up, failing.until = why, now + self._limits.robots_dead_s
            return 0.0
        wait_s = self._limits.robots_retry_s * 2.0 ** (failing.tries - 1)
        failing.until = now + self._limits.robots_dead_s
        return wait_s

    def _journaled(self, origin: str) -> tuple[Rules, float] | None:
        row = self._store.robots(origin)
        if row is None:
            return None
        rules, fetched_at = Rules.from_bytes(row[0]), row[1]
        self._keep(origin, rules, fetched_at)
        return rules, fetched_at

    def _keep(self, origin: str, rules: Rules, fetched_at: float) -> None:
        if len(self._rules) >= self._limits.robots_cached_max:
            del self._rules[next(iter(self._rules))]
        self._rules[origin] = (rules, fetched_at)
