"""The size of a work area, and the instants at which peers look at their levels (P1 1.4.2).

W is n heavy blocks. With URLs arriving at rate a and crawled at rate v (URL/s), looked at every T seconds, the paper
wants (its lambda is a here)

    a < v:   n < (v - a) T / H          a light peer finishes its full work area and all arrivals within T
    v < a:   n < (a - v) T / H - 1      a heavy peer fills its work area and one block more within T

and "suitably more", as if T were several intervals, for more output. This module takes the largest such n, and 1 where
there is none: when the rates are near each other, or T is short. The first bound has its price: a light peer runs dry
before it is filled again. So with `intervals` = 1 some of its power is lost, and with more it is not.

The rates are counted over the last intervals. Arrivals are the peer's own new URLs, not the blocks it borrows. The
crawl rate counts only the seconds *in which there were URLs to crawl*. An idle peer would otherwise take its arrivals
for its power, and ask for no work because it has none.
"""

from collections import deque
from dataclasses import dataclass
from math import ceil, floor, isfinite


def work_area_blocks(
    arrivals: float | None, crawls: float | None, interval_s: float, block: int, intervals: int = 1
) -> int:
    """Return n, at least 1: the work area in blocks of `block` URLs, for rates in URL/s (None: not yet known).

    To be filled or finished within `intervals` intervals of `interval_s` seconds.
    """
    if arrivals is None or crawls is None:
        return 1
    bound = abs(crawls - arrivals) * interval_s * intervals / block - (crawls < arrivals)
    return max(1, ceil(bound) - 1)


@dataclass(frozen=True, slots=True)
class WorkCounts:
    """The counts of a peer since it began, at one instant."""

    at: float
    """Seconds of the peer's clock."""
    arrived: int
    """Own new URLs."""
    crawled: int
    """Own and borrowed URLs."""
    busy_s: float
    """Seconds in which the peer had URLs to crawl."""


class Rates:
    """The rates of arrival and crawl over the last `intervals` intervals, from counts at each update."""

    def __init__(self, intervals: int) -> None:
        if intervals < 1:
            raise ValueError("rates need at least one interval")
        self._counts: deque[WorkCounts] = deque(maxlen=intervals + 1)

    def add(self, counts: WorkCounts) -> None:
        """Add counts. Raises ValueError if they are not later than the last counts, or lower."""
        if self._counts:
            last = self._counts[-1]
            if counts.at <= last.at or (
                counts.arrived < last.arrived or counts.crawled < last.crawled or counts.busy_s < last.busy_s
            ):
                raise ValueError(f"{counts} cannot follow {last}")
        self._counts.append(counts)

    @property
    def arrivals(self) -> float | None:
        """Own new URLs per second, or None before the second counts."""
        if len(self._counts) < 2:
            return None
        first, last = self._counts[0], self._counts[-1]
        return (last.arrived - first.arrived) / (last.at - first.at)

    @property
    def crawls(self) -> float | None:
        """URLs crawled per second with URLs to crawl, or None while there was no such second."""
        if len(self._counts) < 2:
            return None
        first, last = self._counts[0], self._counts[-1]
        busy_s = last.busy_s - first.busy_s
        return (last.crawled - first.crawled) / busy_s if busy_s > 0 else None


@dataclass(frozen=True, slots=True)
class UpdateSchedule:
    """The instants at which every peer looks at its level: `first_at`, and every `interval_s` from there.

    A joiner is told H, T and the seconds until the next instant (`wait_s`), as clocks differ.
    """

    first_at: float
    interval_s: float

    def __post_init__(self) -> None:
        if not (self.interval_s > 0 and isfinite(self.interval_s) and isfinite(self.first_at)):
            raise ValueError(f"no updates every {self.interval_s} s from {self.first_at}")

    def next_after(self, now: float) -> float:
        """Return the first such instant later than `now`."""
        if now < self.first_at:
            return self.first_at
        number = floor((now - self.first_at) / self.interval_s)
        while (at := self.first_at + number * self.interval_s) <= now:
            number += 1  # Twice at most, unless the division was rounded.
        return at

    def wait_s(self, now: float) -> float:
        """Return the seconds until the next such instant, for a joiner."""
        return self.next_after(now) - now
