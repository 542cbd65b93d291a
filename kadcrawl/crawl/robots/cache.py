"""The known robots.txt rules of origins, and the searches for unknown rules (RFC 9309 2.3, 2.4).

The parsed rules are in memory, bounded by number and bytes. All other rules are in the store. Large stored rules are
parsed again at a bounded rate, however many sites have some. A search knows how far redirects have led, which sites
wait, and the count of failures. An unreachable file forbids everything for now. After `robots_tries_max` tries the
origin is given up for `robots_dead_s`, and its URLs are recorded as failed. Times are wall-clock seconds. Nothing is
awaited here.
"""

from dataclasses import dataclass

from kadcrawl.crawl.robots.rules import Rules
from kadcrawl.settings.limits import Limits
from kadcrawl.store.store import Store
from kadcrawl.urls import origin_of

ROBOTS_PATH = "/robots.txt"
LARGE_BYTES = 16 * 1024
"""Text of rules above this size is not parsed again at once: this size takes up to 5 ms, the largest takes 150 ms."""
REREAD_BYTES_S = 512 * 1024
"""Text of large rules parsed again per second: at most a sixth of a core. Sites without large rules see no delay."""
TURN_KEPT_S = 60.0
"""Seconds for which the turn of a site that does not come is kept."""


@dataclass(slots=True)
class Search:
    """The search for one origin's robots.txt."""

    url: str
    """The URL to request next: the robots.txt itself, or the target of its redirect."""
    hops: int = 0
    """Redirects followed so far."""
    turns: int = 0
    """Times that another site was let go first."""
    is_promised: bool = False
    """The search need not let another site go first from `not_before` on."""
    not_before: float = 0.0
    """Second before which no request is made."""
    waiting: list[str] | None = None
    """Sites blocked until the request in flight is over, or None without a request in flight."""
    tries: int = 0
    given_up: str | None = None
    """Reason for which the origin's URLs are recorded as failed, or None while the search goes on."""
    tried_by: int = 1
    """Peers that tried to connect, at the last try."""
    until: float = 0.0
    """Second until which the origin stays given up."""

    @property
    def robots_origin(self) -> str | None:
        """The origin with `url` as its robots.txt, or None if `url` is another file."""
        origin = origin_of(self.url)
        return origin if self.url == origin + ROBOTS_PATH else None

    def follow(self, target: str, not_before: float) -> None:
        """Follow a redirect."""
        self.url, self.not_before = target, not_before
        self.hops += 1

    def let_go_first(self) -> int:
        """Let another site go first, and return the number of such turns."""
        self.turns += 1
        return self.turns

    def promise(self, not_before: float) -> None:
        """Give the search its turn at `not_before`, or later if it must wait for longer."""
        self.is_promised, self.not_before = True, max(self.not_before, not_before)

    def take_turn(self) -> None:
        """Use the turn of the search."""
        self.is_promised = False

    def begin(self, site: str) -> None:
        """Begin a request, for which this site is blocked."""
        self.waiting = [site]

    def end(self) -> list[str]:
        """End the request, and return the sites that were blocked meanwhile."""
        waiting, self.waiting = self.waiting or [], None
        return waiting

    def count_try(self, until: float) -> int:
        """Count a failed try, and return the tries so far. If the search ends now, it stays given up until `until`."""
        self.tries += 1
        self.until = until
        return self.tries

    def give_up(self, why: str, tried_by: int) -> None:
        """Give the origin up, after so many peers tried to connect."""
        self.given_up, self.tried_by = why, tried_by

    def start_again(self, origin: str, not_before: float) -> None:
        """Go back to the robots.txt of the origin, without its redirects."""
        self.url, self.hops, self.turns, self.not_before = origin + ROBOTS_PATH, 0, 0, not_before
        self.is_promised = False


class RobotsCache:
    """Rules by origin, over the store."""

    def __init__(self, store: Store, limits: Limits) -> None:
        self._store = store
        self._limits = limits
        self._rules: dict[str, tuple[Rules, float, int]] = {}
        self._bytes = 0
        self._searches: dict[str, Search] = {}
        self._turns: dict[str, float] = {}
        """Origin -> second from which its large rules may be parsed again, the latest last."""
        self._next_turn_at = 0.0
        self._own: dict[str, None] = {}
        """The origins whose robots.txt this peer is to fetch itself, the latest last."""
        self._read: dict[str, tuple[float, int]] = {}
        """Origin -> second at which this peer read its robots.txt, and the hash of its rules, the latest last."""

    def last_read_at(self, origin: str) -> float | None:
        """Return the wall-clock second at which this peer read the robots.txt of an origin, if it did so lately."""
        return self._read[origin][0] if origin in self._read else None

    def read_at(self, origin: str, rules: bytes) -> float | None:
        """Return the wall-clock second at which this peer itself read these rules of an origin, if it did so lately."""
        at, read = self._read.get(origin, (0.0, None))
        return at if read == hash(rules) else None

    def is_own(self, origin: str) -> bool:
        """Return whether this peer must fetch an origin's robots.txt itself: other peers may have an older file."""
        return origin in self._own

    def look_up(self, origin: str, now: float) -> Rules | str | None:
        """Return the rules of an origin, or the reason for giving the origin up.

        Returns None if the robots.txt must be parsed again, or fetched.
        """
        self._forget_old(origin, now)
        known = self._rules.get(origin) or self._journaled(origin)
        if known is not None and now < known[1] + self._limits.robots_ttl_s:
            return known[0]
        search = self._searches.get(origin)
        return search.given_up if search is not None and now < search.until else None

    def tried_by(self, origin: str) -> int:
        """Return the number of peers that tried to connect to an origin that is given up."""
        search = self._searches.get(origin)
        return search.tried_by if search is not None else 1

    def unread(self, origin: str, now: float) -> tuple[bytes, float] | None:
        """Return the (rules, second of the fetch) of an origin if the rules are journaled, large, and not in memory."""
        self._forget_old(origin, now)
        if origin in self._rules:
            return None
        row = self._store.sites.robots(origin)
        is_large = row is not None and len(row[0]) > LARGE_BYTES
        return row if row is not None and is_large and now < row[1] + self._limits.robots_ttl_s else None

    def turn_at(self, origin: str, size: int, now: float) -> float:
        """Return the second from which large rules of `size` bytes may be parsed again. Origins take turns."""
        while self._turns and self._turns[first := next(iter(self._turns))] + TURN_KEPT_S < now:
            del self._turns[first]
        if origin not in self._turns:
            self._turns[origin] = max(now, self._next_turn_at)
            self._next_turn_at = self._turns[origin] + size / REREAD_BYTES_S
        return self._turns[origin]

    def read_again(self, origin: str, rules: Rules, fetched_at: float) -> None:
        """Keep the rules of an origin that were parsed again in its turn."""
        self._turns.pop(origin, None)
        self._searches.pop(origin, None)
        self._keep(origin, rules, fetched_at)

    def search(self, origin: str, now: float) -> Search:
        """Return the search for an origin's robots.txt, begun anew if there is none or the last search was given up."""
        search = self._searches.get(origin)
        if search is None or search.given_up is not None:
            if len(self._searches) >= self._limits.robots_cached_max:
                self._searches = {
                    name: one for name, one in self._searches.items() if one.until > now or one.waiting is not None
                }
            search = self._searches[origin] = Search(origin + ROBOTS_PATH)
        return search

    def learn(self, origin: str, rules: Rules, now: float) -> None:
        """Keep the rules of a fetched robots.txt. A missing file allows everything."""
        self._searches.pop(origin, None)
        self._own.pop(origin, None)
        text = rules.to_bytes()
        self._read.pop(origin, None)
        self._read[origin] = now, hash(text)
        if len(self._read) > self._limits.robots_cached_max:
            del self._read[next(iter(self._read))]
        self._keep(origin, rules, now)
        self._store.sites.set_robots(origin, text, now)

    def forget(self, origin: str, before: float) -> None:
        """Forget rules that were fetched before this second, and that the origin was given up before it."""
        self._read.pop(origin, None)
        self._own[origin] = None
        if len(self._own) > self._limits.robots_cached_max:
            del self._own[next(iter(self._own))]
        row = self._store.sites.robots(origin)
        if row is not None and row[1] < before:
            self._store.sites.forget_robots(origin)
            self._forget(origin)
        search = self._searches.get(origin)
        if search is not None and search.given_up is not None and search.until - self._limits.robots_dead_s < before:
            del self._searches[origin]

    def fail(self, origin: str, why: str, passing: bool, now: float, tried_by: int = 1) -> float:
        """Count a failed try, and return the seconds for which to leave the site alone.

        With `passing` False the origin is given up at once. `tried_by` is the number of peers that tried to connect.
        """
        search = self.search(origin, now)
        tries = search.count_try(now + self._limits.robots_dead_s)
        if not passing or tries >= self._limits.robots_tries_max:
            search.give_up(why, tried_by)
            return 0.0
        wait_s = self._limits.robots_retry_s * 2.0 ** (tries - 1)
        search.start_again(origin, now + wait_s)
        return wait_s

    def _journaled(self, origin: str) -> tuple[Rules, float, int] | None:
        row = self._store.sites.robots(origin)
        if row is None or len(row[0]) > LARGE_BYTES:
            return None
        self._keep(origin, Rules.from_bytes(row[0]), row[1])
        return self._rules[origin]

    def _keep(self, origin: str, rules: Rules, fetched_at: float) -> None:
        self._forget(origin)
        size = rules.memory_bytes
        while self._rules and (
            len(self._rules) >= self._limits.robots_cached_max
            or self._bytes + size > self._limits.robots_cached_bytes_max
        ):
            self._forget(next(iter(self._rules)))
        self._rules[origin] = (rules, fetched_at, size)
        self._bytes += size

    def _forget_old(self, origin: str, now: float) -> None:
        """Forget rules that are too old: the journal may have newer rules from another peer."""
        if (kept := self._rules.get(origin)) is not None and now >= kept[1] + self._limits.robots_ttl_s:
            self._forget(origin)

    def _forget(self, origin: str) -> None:
        if origin in self._rules:
            self._bytes -= self._rules.pop(origin)[2]
