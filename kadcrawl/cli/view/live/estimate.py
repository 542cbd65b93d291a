"""The bar of a crawl, and an estimate of its time left if that is more than a guess.

Both ends of the bar grow while links are found. So the rate tells the time left only once few new URLs are found, or
if --max-pages sets the end. The pace of the slowest site always tells a least time.

Tests: tests/cli/view/live/test_estimate.py
"""

from collections.abc import Sequence
from dataclasses import dataclass

from kadcrawl.cli.view.live.samples import Trend
from kadcrawl.link.wire.messages import PeerRow
from kadcrawl.link.wire.unresolved import urls_found
from kadcrawl.settings.durations import roughly

FOUND_SHARE_MAX = 0.2
"""New URLs found for each URL done, above which the end of a crawl is not known."""
DONE_MIN = 10
"""URLs done in the time of a trend by which a rate is known."""
LEAST_SHOWN_S = 10.0
"""Least times below this are not worth a word."""


@dataclass(frozen=True, slots=True)
class Bar:
    """The part of a crawl that is done."""

    done: int
    total: int
    is_budget: bool
    """The total is --max-pages, as there are more URLs than that."""

    @property
    def left(self) -> int:
        """URLs to be done."""
        return self.total - self.done

    @property
    def text(self) -> str:
        """The bar in words."""
        unit = "fetches of --max-pages" if self.is_budget else "URLs done"
        return f"{self.done:,} of {self.total:,} {unit}"

    @property
    def percent(self) -> str:
        """The part as a percentage, which is 100 only when nothing is left."""
        return f"{100 * self.done // self.total if self.total else 0} %"


def bar_of(rows: Sequence[PeerRow], max_pages: int | None) -> Bar:
    """Return the bar of a crawl by these peers.

    Pages that are fetched again are done several times, and found once: then the pending URLs are the part that is not
    done.
    """
    pending = sum(row.pending for row in rows)
    if max_pages is not None:
        begun = min(max_pages, sum(row.begun for row in rows))
        if begun + pending >= max_pages:
            return Bar(begun, max_pages, is_budget=True)
    again = any(row.counters.revisits or row.counters.retried or row.due_s is not None for row in rows)
    found = sum(row.counters.urls for row in rows) if again else urls_found(rows)
    done = found - pending if again else sum(row.counters.done for row in rows)
    return Bar(min(max(0, done), found), found, is_budget=False)


def time_left(bar: Bar, trend: Trend | None, least_s: float) -> str | None:
    """Return the time left in words, or None while it would be a guess.

    `least_s` is the time that the slowest site needs for its URLs at its delay.
    """
    if not bar.left:
        return None
    least_s = 0.0 if bar.is_budget else least_s
    if trend is not None and trend.done >= DONE_MIN:
        is_end_known = bar.is_budget or trend.found_rate <= FOUND_SHARE_MAX * trend.done_rate
        if is_end_known:
            return f"about {roughly(max(least_s, bar.left / trend.done_rate, 1.0))} left"
    return f"at least {roughly(least_s)} left" if least_s >= LEAST_SHOWN_S else None
