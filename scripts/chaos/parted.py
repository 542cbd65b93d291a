"""A network split excuses some faults: while it lasts neither side knows the other side's requests. Pure.

So each side has a clock of its own: a side is judged by the access log without the other side's requests of that time.
Requests that are close, or repeated, only across the cut are counted apart. All requests outside the split are judged
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
    """The addresses of the smaller side."""
    from_s: float
    """The begin on the access log's clock, as is the end."""
    healed_s: float

    def side(self, access: Access) -> bool | None:
        """Return whether a request is of the smaller side, or None for a request outside the split.

        For `SETTLE_S` after the end of the split the two sides may still be unknown to each other.
        """
        if self.from_s <= access.time <= self.healed_s + RECOVERY_S:
            return access.asker in self.few
        return None


class Across(NamedTuple):
    """The faults that a network split explains."""

    hurried: int
    """Requests too soon after one of the other side."""
    repeated: int
    """Requests for a page the other side had asked for."""
    settled_s: float
    """Seconds after the end of the split in which the last site was hurried so."""


def views(log: Sequence[Access], parting: NetworkSplit | None) -> list[list[Access]]:
    """Return the log as each of the two sides may know it, or the whole log once without a split."""
    if parting is None:
        return [list(log)]
    return [[access for access in log if parting.side(access) is not other] for other in (True, False)]


def across(log: Sequence[Access], parting: NetworkSplit | None, delay_s: float) -> Across:
    """Return the faults of the two sides at each other's sites and pages."""
    if parting is None:
        return Across(0, 0, 0.0)
    pairs = list(_pairs(log, parting))
    unseen = [(before, later) for before, later in pairs if parting.side(before) is not None]
    hurried = {id(later): later.time for before, later in unseen if later.time - before.time < delay_s}
    repeated = {id(later) for before, later in pairs if later.url == before.url and later.path != "/robots.txt"}
    settled_s = max(hurried.values(), default=parting.healed_s) - parting.healed_s
    return Across(len(hurried), len(repeated), max(0.0, settled_s))


def _pairs(log: Sequence[Access], parting: NetworkSplit) -> Iterator[tuple[Access, Access]]:
    """Yield each request during the split with each earlier request of the other side to the same site."""
    earlier: defaultdict[tuple[str, bool], list[Access]] = defaultdict(list)
    for access in sorted(log, key=lambda access: access.time):
        few = access.asker in parting.few
        if parting.side(access) is not None:
            for before in earlier[access.site, not few]:
                yield before, access
        earlier[access.site, few].append(access)
