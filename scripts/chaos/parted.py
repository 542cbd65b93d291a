"""What a partition excuses: while it lasts neither side knows what the other asks for, or when. Pure.

So each side is held to a clock of its own: it is judged by the access log without the other side's requests of that
time. What is close, or asked for again, only across the cut is counted apart. All requests outside it are judged
together, as ever.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from sim.judge import Access
from sim.plan import RECOVERY_S


class NetworkSplit(NamedTuple):
    """Some peers cut off from the others, in one direction or both."""

    few: frozenset[str]
    """Their addresses."""
    from_s: float
    """On the access log's clock, as is the end."""
    healed_s: float

    def side(self, access: Access) -> bool | None:
        """Say whether a request is of the few; None if it is of another time than the parting.

        For `SETTLE_S` after it has healed the two sides may still be strangers to each other.
        """
        if self.from_s <= access.time <= self.healed_s + RECOVERY_S:
            return access.asker in self.few
        return None


class Across(NamedTuple):
    """What a partition explains."""

    hurried: int
    """Requests too soon after one of the other side."""
    repeated: int
    """Requests for a page the other side had asked for."""
    settled_s: float
    """How long after it had healed the last site was hurried so."""


def views(log: Sequence[Access], parting: NetworkSplit | None) -> list[list[Access]]:
    """Return the log as the two sides may know it; all of it, and once, if there was no parting."""
    if parting is None:
        return [list(log)]
    return [[access for access in log if parting.side(access) is not other] for other in (True, False)]


def across(log: Sequence[Access], parting: NetworkSplit | None, delay_s: float) -> Across:
    """Return what the two sides did to each other's sites and pages, unknowing."""
    if parting is None:
        return Across(0, 0, 0.0)
    pairs = list(_pairs(log, parting))
    unseen = [(before, later) for before, later in pairs if parting.side(before) is not None]
    hurried = {id(later): later.time for before, later in unseen if later.time - before.time < delay_s}
    repeated = {id(later) for before, later in pairs if later.url == before.url and later.path != "/robots.txt"}
    settled_s = max(hurried.values(), default=parting.healed_s) - parting.healed_s
    return Across(len(hurried), len(repeated), max(0.0, settled_s))


def _pairs(log: Sequence[Access], parting: NetworkSplit) -> Iterator[tuple[Access, Access]]:
    """Yield each request of the parting's time with each earlier one to the same site that the other side made."""
    earlier: defaultdict[tuple[str, bool], list[Access]] = defaultdict(list)
    for access in sorted(log, key=lambda access: access.time):
        few = access.asker in parting.few
        if parting.side(access) is not None:
            for before in earlier[access.site, not few]:
                yield before, access
        earlier[access.site, few].append(access)
