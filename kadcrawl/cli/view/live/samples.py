"""Samples of a crawl: the figures of the last minutes, for its rate, its sparkline and its estimate.

Only what is done while somebody looks counts: earlier work of a peer that comes, or comes back, is no news. Times are
seconds of any clock.

Tests: tests/cli/view/live/test_samples.py, tests/cli/view/test_progress.py
"""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

from kadcrawl.link.wire.messages import PeerRow

RATE_OVER_S = 5.0
"""Seconds over which the rate in the line is taken."""
BUCKET_S = 5.0
"""Seconds of one block of the sparkline."""
BUCKETS_MAX = 60
"""Blocks kept: the last five minutes."""
TREND_BUCKETS_MIN, TREND_BUCKETS_MAX = 6, 24
"""Full buckets by which a trend is known, and buckets that count: half a minute, and two minutes."""
BLOCKS = "▁▂▃▄▅▆▇█"
BLOCKS_ASCII = "_.-=*#"


class Figures(NamedTuple):
    """Counts of URLs since somebody looks."""

    pages: int = 0
    done: int = 0
    found: int = 0


@dataclass(frozen=True, slots=True)
class Trend:
    """The rates of the last minutes."""

    done_rate: float
    """URLs done per second."""
    found_rate: float
    """URLs found per second."""
    done: int
    """URLs done in this time."""


class Samples:
    """The last minutes of a crawl."""

    def __init__(self) -> None:
        self._seen: dict[tuple[bytes, bool], Figures] = {}
        """Figures of each peer, or leaf, as last seen."""
        self._sum = Figures()
        self._recent: list[tuple[float, int]] = []
        """Instants, and pages fetched by then since this began to look."""
        self._buckets: deque[Figures] = deque(maxlen=BUCKETS_MAX + 1)
        """The sum at the end of each bucket, after the sum at the begin of the first."""
        self._bucket_ends = 0.0

    def add(self, now: float, rows: Sequence[PeerRow]) -> None:
        """Take the figures of all peers at this second."""
        before, self._seen = self._seen, {(row.contact.id, row.hosted_leaf): _figures(row) for row in rows}
        for which, figures in self._seen.items():
            earlier = before.get(which, figures)
            self._sum = Figures._make(
                total + max(0, new - old) for total, new, old in zip(self._sum, figures, earlier, strict=True)
            )
        self._recent = [sample for sample in self._recent if now - sample[0] < RATE_OVER_S]
        self._recent.append((now, self._sum.pages))
        if not self._buckets:
            self._buckets.append(self._sum)
            self._bucket_ends = now + BUCKET_S
        elif now >= self._bucket_ends:
            missed = min(BUCKETS_MAX, int((now - self._bucket_ends) // BUCKET_S))
            for _ in range(missed):  # The process was stopped, or its terminal was.
                self._buckets.append(self._buckets[-1])
            self._buckets.append(self._sum)
            self._bucket_ends += (missed + 1) * BUCKET_S
            if now >= self._bucket_ends:
                self._bucket_ends = now + BUCKET_S

    @property
    def page_rate(self) -> float:
        """Pages per second just now."""
        if not self._recent:
            return 0.0
        (first_at, first), (last_at, last) = self._recent[0], self._recent[-1]
        return (last - first) / (last_at - first_at) if last_at > first_at else 0.0

    @property
    def page_rates(self) -> list[float]:
        """Pages per second of each full bucket, the latest last."""
        sums = [figures.pages for figures in self._buckets]
        return [(after - before) / BUCKET_S for before, after in pairwise(sums)]

    @property
    def trend(self) -> Trend | None:
        """The rates of the last full buckets, or None if there are too few to tell."""
        if len(self._buckets) <= TREND_BUCKETS_MIN:
            return None
        buckets = min(len(self._buckets) - 1, TREND_BUCKETS_MAX)
        first, last = self._buckets[-1 - buckets], self._buckets[-1]
        seconds = buckets * BUCKET_S
        return Trend((last.done - first.done) / seconds, (last.found - first.found) / seconds, last.done - first.done)


def sparkline(rates: Sequence[float], width: int, blocks: str = BLOCKS) -> str:
    """Return the last rates as at most `width` blocks, the largest as the highest block."""
    shown = rates[-width:] if width > 0 else ()
    most = max(shown, default=0.0)
    steps = len(blocks) - 1
    return "".join(blocks[round(rate / most * steps) if most > 0 else 0] for rate in shown)


def _figures(row: PeerRow) -> Figures:
    return Figures(row.counters.pages, row.counters.done, row.counters.urls)
