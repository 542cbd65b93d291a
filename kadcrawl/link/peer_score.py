"""Scores of other peers' misbehavior: when a peer is banned for a while, and which refusals are logged.

Misbehavior is an action that no peer of this release takes: bytes that are no message, a contact at an impossible
address. One case says little, as peers have bugs and networks break. So the score halves every minute, and only many
cases within that time ban their source, at first for a minute, each further time for twice as long. Sources are any
identifiers (an ID, an address). An attacker may have any number of them, so only the latest are remembered. A decision;
instants are seconds of any one clock.
"""

from collections import Counter, OrderedDict
from collections.abc import Callable
from enum import StrEnum
from math import inf
from typing import NamedTuple

from kadcrawl.errors import KadcrawlError

MISBEHAVIORS_MAX = 60.0
"""Decayed count of misbehavior at which a source is banned. One case every two seconds for ever stays below."""
HALF_LIFE_S = 60.0
BAN_S = 60.0
BAN_S_MAX = 3600.0
"""Longest ban. A ban soon after another is twice as long."""
BAN_REMEMBERED_S = 3600.0
"""Time after a ban within which the next ban is longer."""
SOURCES_MAX = 1_000
"""Sources with misbehavior that are remembered, and as many banned sources."""

LOG_INTERVAL_S = 10.0
REASONS_MAX = 100
"""Limit on the reasons with log lines of their own."""
OTHER_REASON = "another reason"
"""The name of all reasons beyond `REASONS_MAX`."""

Source = bytes | str


class Misbehavior(StrEnum):
    """The kinds of misbehavior."""

    MALFORMED = "malformed"
    """Bytes that are no message, or a message beyond its limits."""
    VERSION = "version"
    """Another version of the wire. The source may be an honest peer of another release, so this weighs little."""
    CONTACT = "contact"
    """A contact at an address where no peer can be."""
    CLAIM = "claim"
    """A message in the name of another peer."""


WEIGHTS = {Misbehavior.VERSION: 0.1}
"""Weights below 1: a peer of another release that restarts every second is not banned for that."""


class MisbehaviorError(KadcrawlError):
    """A refusal of a request that no peer of this release sends."""

    def __init__(self, misbehavior: Misbehavior, why: str) -> None:
        super().__init__(why)
        self.misbehavior = misbehavior


class _Score(NamedTuple):
    weight: float
    """The decayed count of misbehavior ..."""
    at: float
    """... at this second."""


class _Ban(NamedTuple):
    times: int
    until: float


class PeerScore:
    """The misbehavior of all other peers, as one peer has seen it."""

    def __init__(self) -> None:
        self.misbehaviors: Counter[Misbehavior] = Counter()
        """Counts of all misbehavior so far, for the status."""
        self.bans = 0
        """Bans so far."""
        self.on_banned: list[Callable[[Source], None]] = []
        """Listeners for each banned source, called at once: the listener ends all that the source has begun here."""
        self._scores: OrderedDict[Source, _Score] = OrderedDict()
        self._banned: OrderedDict[Source, _Ban] = OrderedDict()

    def note(self, source: Source, misbehavior: Misbehavior, now: float) -> bool:
        """Note a misbehavior. Return whether its source is banned by now. During a ban the score does not grow."""
        self.misbehaviors[misbehavior] += 1
        if self.banned_until(source, now) is not None:
            return True
        weight, at = self._scores.pop(source, _Score(0.0, now))
        weight = weight * 0.5 ** (max(0.0, now - at) / HALF_LIFE_S) + WEIGHTS.get(misbehavior, 1.0)
        if weight >= MISBEHAVIORS_MAX:
            self._ban(source, now)
            return True
        self._scores[source] = _Score(weight, now)
        if len(self._scores) > SOURCES_MAX:
            self._scores.popitem(last=False)
        return False

    def banned_until(self, source: Source, now: float) -> float | None:
        """Return the second at which the ban of a source ends, or None if it is not banned."""
        ban = self._banned.get(source)
        return ban.until if ban is not None and now < ban.until else None

    def banned(self, now: float) -> int:
        """Return the number of banned sources."""
        return sum(now < ban.until for ban in self._banned.values())

    def _ban(self, source: Source, now: float) -> None:
        before = self._banned.pop(source, None)
        times = before.times if before is not None and now < before.until + BAN_REMEMBERED_S else 0
        seconds = min(BAN_S * 2.0 ** min(times, 16), BAN_S_MAX)
        self._banned[source] = _Ban(times + 1, now + seconds)
        self.bans += 1
        if len(self._banned) > SOURCES_MAX:
            self._banned.popitem(last=False)
        for listener in self.on_banned:
            listener(source)


class LogLimiter:
    """Limits log lines of refusals: the first for each reason, and then at most one every `LOG_INTERVAL_S`."""

    def __init__(self) -> None:
        self._reasons: dict[str, tuple[float, int]] = {}
        """The second of the last line for each reason, and the number of refusals left out since."""

    def count(self, reason: str, now: float) -> int | None:
        """Count a refusal. Return the number left out before it if it is to be logged, else None.

        `reason` is one of few. Beyond `REASONS_MAX` reasons all further ones count as one.
        """
        if reason not in self._reasons and len(self._reasons) >= REASONS_MAX:
            reason = OTHER_REASON
        at, left_out = self._reasons.get(reason, (-inf, 0))
        if now < at + LOG_INTERVAL_S:
            self._reasons[reason] = at, left_out + 1
            return None
        self._reasons[reason] = now, 0
        return left_out


def left_out_note(left_out: int) -> str:
    """Return the end of a log line that gives the number of refusals left out before it."""
    return f" (refused {left_out} more since the last such line)" if left_out else ""
