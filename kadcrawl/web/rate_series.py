"""The curves of the dashboard: pages per second of each peer, and the URLs found and done, over the last minutes.

`SmoothRate` is the rate of a counter without the jumps between two looks. `RateSeries` keeps the last points. It draws
a limited number of peers by themselves, and the others together. A decision: times are given by the caller.
"""

from collections import deque
from collections.abc import Mapping
from math import exp
from typing import Any, NamedTuple

SMOOTH_S = 5.0
"""Time over which a rate is smoothed."""
GAP_S = 30.0
"""Time between two looks above which the rate begins anew, as nobody looked between."""
POINTS_MAX = 600
"""Points of a curve."""
DRAWN_MAX = 24
"""Peers with a curve of their own."""
OTHERS = "others"
"""The name of the curve of all other peers."""


class SmoothRate:
    """The rate of one counter."""

    def __init__(self) -> None:
        self.per_s = 0.0
        self._last: tuple[float, int] | None = None

    def note(self, count: int, now: float) -> float:
        """Note the counter at this second, and return its rate."""
        if self._last is not None:
            at, before = self._last
            if now <= at:
                return self.per_s
            latest = max(0, count - before) / (now - at)
            weight = 1.0 if now - at > GAP_S else 1.0 - exp(-(now - at) / SMOOTH_S)
            self.per_s += (latest - self.per_s) * weight
        self._last = now, count
        return self.per_s


class Point(NamedTuple):
    """One point of all curves."""

    at: float
    found: int
    done: int
    rates: Mapping[str, float]
    """Pages per second by peer, and of the `OTHERS`."""

    def as_json(self) -> dict[str, Any]:
        return {"t": round(self.at, 1), "found": self.found, "done": self.done, "rates": dict(self.rates)}


class RateSeries:
    """The last points of all curves."""

    def __init__(self, points_max: int = POINTS_MAX, drawn_max: int = DRAWN_MAX) -> None:
        self._points: deque[Point] = deque(maxlen=points_max)
        self._drawn_max = drawn_max
        self._drawn: dict[str, None] = {}
        """The peers with a curve of their own, in the order in which they came."""

    def note(self, at: float, found: int, done: int, rates: Mapping[str, float]) -> Point:
        """Add a point, and return it as it is drawn."""
        for peer in [peer for peer in self._drawn if peer not in rates]:
            del self._drawn[peer]
        for peer in sorted(rates, key=lambda peer: -rates[peer]):
            if len(self._drawn) < self._drawn_max:
                self._drawn[peer] = None
        drawn = {peer: round(rates[peer], 2) for peer in rates if peer in self._drawn}
        if len(drawn) < len(rates):
            drawn[OTHERS] = round(sum(rate for peer, rate in rates.items() if peer not in drawn), 2)
        point = Point(at, found, done, drawn)
        self._points.append(point)
        return point

    def as_json(self, step_s: float) -> dict[str, Any]:
        """Return all points, as the document has them."""
        names = dict.fromkeys(name for point in self._points for name in point.rates)
        return {
            "step_s": step_s,
            "t": [round(point.at, 1) for point in self._points],
            "found": [point.found for point in self._points],
            "done": [point.done for point in self._points],
            "rates": {name: [point.rates.get(name, 0.0) for point in self._points] for name in names},
        }
