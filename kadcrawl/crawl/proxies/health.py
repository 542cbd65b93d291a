"""The health of one proxy: its score, whether it is alive or suspect, and the time of its next verification.

The pool (pool.py) decides when each of these methods is called. A plain object: times are arguments.

Tests: tests/crawl/proxies/test_pool.py
"""

from dataclasses import dataclass
from math import inf

from kadcrawl.settings.proxy_list import Proxy
from kadcrawl.store.proxy_health_table import SavedHealth

STRIKES = 3
"""Certain faults in a row after which a proxy is dead."""
DECAY = 0.2
"""Weight of the last success and time in the averages."""
FAILS_MAX = 1_000
"""Limit on the counted failures of verification, of which a few already make the longest wait."""
DEAD_WAIT_MAX_S = 900.0
"""The longest wait in seconds before a dead proxy is verified again."""


@dataclass(slots=True, eq=False)
class ProxyHealth:
    """The health of one proxy. Instants are in seconds of the caller's clock."""

    proxy: Proxy
    alive: bool = False
    suspect: bool = False
    suspect_at: float = -inf
    """The time of the last trouble. Only a request begun later proves that the proxy works."""
    success: float = 1.0
    """Decaying average, from 0 to 1."""
    seconds: float = 1.0
    """Decaying average of the seconds of a request."""
    strikes: int = 0
    """Certain faults in a row."""
    came_at: float = -inf
    """The start of the last request that came through, for a page or the health-check page."""
    page_at: float = -inf
    """The start of the last request for a page that came through."""
    checked_at: float = -inf
    check_at: float = -inf
    """The time of the next verification."""
    checking: bool = False
    fails: int = 0
    """Verifications failed in a row."""
    told_alive: bool | None = None
    """The state that this run logged last: True for alive, False for dead, None before the first verification."""

    @property
    def score(self) -> float:
        """The score from 0 to 1: success by speed, where a request of one second is worth half of an instant
        request."""
        return self.success / (1.0 + self.seconds)

    @property
    def saved(self) -> SavedHealth:
        """The health as it is journaled."""
        state = (int(self.alive), self.fails, self.success, self.seconds)
        return SavedHealth(*state, self.page_at, self.checked_at, self.check_at)

    def restore(self, saved: SavedHealth, now: float, verify_s: float) -> None:
        """Go on with the journaled health. A proxy whose verification is due is verified before it is used.

        No instant is later than this run could have set it, as the clock may have been put back.
        """
        self.success = min(max(saved.success, 0.0), 1.0)
        self.seconds = max(saved.seconds, 0.0)
        self.fails = min(max(saved.fails, 0), FAILS_MAX)
        self.came_at = self.page_at = min(saved.page_at, now)
        self.checked_at = min(saved.checked_at, now)
        self.check_at = min(saved.check_at, now + (verify_s if saved.alive else DEAD_WAIT_MAX_S))
        self.alive = bool(saved.alive) and now < self.check_at

    def came(self, seconds: float, now: float, verify_s: float) -> None:
        """Note that a page came through, by a request that took so many seconds."""
        self._rate(1.0, seconds)
        began_at = now - seconds
        self.came_at, self.page_at = max(self.came_at, began_at), max(self.page_at, began_at)
        if self.alive and began_at > self.suspect_at:
            self.strikes, self.suspect = 0, False
            self.check_at = max(self.check_at, self.checked_at + verify_s)

    def failed(self, now: float) -> bool:
        """Note a certain fault of the proxy itself, and return whether it has had too many in a row."""
        self._rate(0.0)
        self.strikes += 1
        self._suspect(now)
        return self.strikes >= STRIKES

    def doubted(self, now: float) -> None:
        """Note a trouble that may be the proxy's fault or the site's."""
        self._rate(0.0)
        self._suspect(now)

    def begin_check(self) -> None:
        """Note that a verification is under way."""
        self.checking = True

    def checked(self, seconds: float | None, now: float, verify_s: float, retry_s: float) -> bool:
        """Note the end of a verification after so many seconds, or its failure (None).

        Return False if the proxy is to be taken for dead.
        """
        works = self.alive and not self.suspect and self.page_at > self.checked_at
        self.checking, self.checked_at = False, now
        if seconds is None:
            if works:
                self.check_at = now + retry_s
            return works
        if not self.alive:
            self.success, self.seconds = 1.0, seconds
        self._rate(1.0, seconds)
        began_at = now - seconds
        self.alive, self.fails = True, 0
        self.came_at = max(self.came_at, began_at)
        if began_at > self.suspect_at:
            self.suspect, self.strikes = False, 0
        self.check_at = now if self.suspect else now + verify_s
        return True

    def unchecked(self, now: float, retry_s: float) -> None:
        """Note that a verification could not be made, for a reason of this machine."""
        self.checking = False
        self.check_at = now + retry_s

    def die(self, now: float, retry_s: float) -> None:
        """Take the proxy for dead. Its next verification comes after a wait that doubles each time."""
        self.alive = self.suspect = False
        self.strikes, self.suspect_at = 0, -inf
        self.check_at = now + min(retry_s * 2.0 ** min(self.fails, 30), DEAD_WAIT_MAX_S)
        self.fails = min(self.fails + 1, FAILS_MAX)

    def _rate(self, success: float, seconds: float | None = None) -> None:
        self.success += DECAY * (success - self.success)
        if seconds is not None:
            self.seconds += DECAY * (seconds - self.seconds)

    def _suspect(self, now: float) -> None:
        if self.alive:
            self.suspect, self.suspect_at = True, now
            self.check_at = min(self.check_at, now)
