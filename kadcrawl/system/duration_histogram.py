"""`DurationHistogram` counts durations by size. A decision: it costs one search among a dozen bounds per duration."""

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from itertools import accumulate

BOUNDS_S = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0)
"""Upper bounds of the buckets in seconds, from a request on one machine to the longest timeouts."""


class DurationHistogram:
    """The number of durations up to each bound, and their sum."""

    __slots__ = ("_counts", "bounds_s", "sum_s")

    def __init__(self, bounds_s: Sequence[float] = BOUNDS_S) -> None:
        self.bounds_s = tuple(bounds_s)
        self.sum_s = 0.0
        self._counts: list[int] = []
        """The durations by bucket, or nothing before the first. Most histograms of an idle peer have none."""

    def observe(self, seconds: float) -> None:
        """Count a duration. A negative duration, by a clock that was set back, counts as 0."""
        seconds = max(0.0, seconds)
        if not self._counts:
            self._counts = self._all_zero()
        self._counts[bisect_left(self.bounds_s, seconds)] += 1
        self.sum_s += seconds

    @property
    def count(self) -> int:
        """The number of durations."""
        return sum(self._counts)

    def add(self, other: "DurationHistogram") -> None:
        """Count the durations of another histogram, which has the same bounds."""
        assert self.bounds_s == other.bounds_s, "histograms with other bounds do not add up"
        if other._counts:
            mine = self._counts or self._all_zero()
            self._counts = [own + its for own, its in zip(mine, other._counts, strict=True)]
        self.sum_s += other.sum_s

    def cumulative(self) -> list[int]:
        """Return the number of durations up to each bound, and at last the number of all durations."""
        return list(accumulate(self._counts or self._all_zero()))

    def _all_zero(self) -> list[int]:
        return [0] * (len(self.bounds_s) + 1)


def added(histograms: Iterable[DurationHistogram]) -> DurationHistogram:
    """Return a new histogram with the durations of all these histograms, which have the usual bounds."""
    total = DurationHistogram()
    for histogram in histograms:
        total.add(histogram)
    return total
