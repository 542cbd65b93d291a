"""What others have done wrong, and what follows: who is shunned for a while, and which refusals are worth a line.

A fault is something that no peer of this release does: bytes that are no message, a contact nobody can be at. One alone
says little, as peers have bugs and networks break things; so faults are forgotten by half in a minute, and only many
within that time make others shun their source, at first for a minute, each further time for twice as long. Sources are
whatever tells them apart (an ID, an address); hostile ones may be as many as they like, so only the latest are
remembered. Decides only; instants are seconds of any one clock.
"""

from collections import Counter, OrderedDict
from collections.abc import Callable
from enum import StrEnum
from math import inf
from typing import NamedTuple

from kadcrawl.errors import KadcrawlError

MISBEHAVIORS_MAX = 60.0
"""Faults, less what is forgotten, at which a source is shunned; one in two seconds for ever is less."""
HALF_LIFE_S = 60.0
BAN_S = 60.0
BAN_S_MAX = 3600.0
BAN_REMEMBERED_S = 3600.0
"""How long after it was shunned a source is one that was."""
SOURCES_MAX = 1_000
"""Sources with faults that are remembered, and as many that were shunned."""

LOG_INTERVAL_S = 10.0
REASONS_MAX = 100
OTHER_REASON = "another reason"
"""What stands for all reasons beyond so many."""

Source = bytes | str


class Misbehavior(StrEnum):
    """What a source did wrong."""

    MALFORMED = "malformed"
    """Bytes that are no message, or one beyond its limits."""
    VERSION = "version"
    """It speaks another version of the wire: it may be an honest peer of another release, so this weighs little."""
    CONTACT = "contact"
    """It named a peer where none can be."""
    CLAIM = "claim"
    """It spoke in the name of another."""


WEIGHTS = {Misbehavior.VERSION: 0.1}
"""Of faults that weigh less than one: who is started again each second by another release is not shunned for that."""


class MisbehaviorError(KadcrawlError):
    """A question that is refused and no peer of this release asks."""

    def __init__(self, misbehavior: Misbehavior, why: str) -> None:
        super().__init__(why)
        self.misbehavior = misbehavior


class _Score(NamedTuple):
    weight: float
    """How many, less what is forgotten, ..."""
    at: float
    """... at this second."""


class _Ban(NamedTuple):
    times: int
    until: float


class PeerScore:
    """What one peer has seen of all others."""

    def __init__(self) -> None:
        self.misbehaviors: Counter[Misbehavior] = Counter()
        """All so far, for the status."""
        self.bans = 0
        """How often a source began to be shunned."""
        self.on_banned: list[Callable[[Source], None]] = []
        """Called with each, at once: what it has begun here is to end, wherever its faults came."""
        self._scores: OrderedDict[Source, _Score] = OrderedDict()
        self._banned: OrderedDict[Source, _Ban] = OrderedDict()

    def note(self, source: Source, misbehavior: Misbehavior, now: float) -> bool:
        """Note a fault; return whether its source is shunned by now. What comes of one that is does not add to it."""
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
        """Return the second until which nothing is to be had of a source; None if it is not shunned."""
        shunned = self._banned.get(source)
        return shunned.until if shunned is not None and now < shunned.until else None

    def banned(self, now: float) -> int:
        """Return how many sources are shunned."""
        return sum(now < one.until for one in self._banned.values())

    def _ban(self, source: Source, now: float) -> None:
        before = self._banned.pop(source, None)
        times = before.times if before is not None and now < before.until + BAN_REMEMBERED_S else 0
        seconds = min(BAN_S * 2.0 ** min(times, 16), BAN_S_MAX)
        self._banned[source] = _Ban(times + 1, now + seconds)
        self.bans += 1
        if len(self._banned) > SOURCES_MAX:
            self._banned.popitem(last=False)
        for tell in self.on_banned:
            tell(source)


class LogLimiter:
    """Which refusals are logged: the first for each reason, and then one in `LINE_S`, however many there are."""

    def __init__(self) -> None:
        self._reasons: dict[str, tuple[float, int]] = {}
        """When a line was last written for it, and how many were left out since."""

    def count(self, reason: str, now: float) -> int | None:
        """Count a refusal; return how many were left out before it if it is to be logged, else None.

        `reason` is of few: beyond `REASONS_MAX` all further ones are one.
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
    """Return what to add to a line for those left out before it."""
    return f" (refused {left_out} more since the last such line)" if left_out else ""
