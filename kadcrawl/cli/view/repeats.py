"""Page lines are told apart: those of further visits to a URL, and repeats of one visit, as after a crash.

A line has the number of its visit, so lines of one URL with the same number are repeats. With fingerprints that expire
no peer knows this number. There a URL finished in one epoch is accepted again when the epoch begins that drops its
fingerprint (store/bloom/expiring_filter.py). So lines that are nearer to each other than that are repeats. A line that
is further away may have been due, and does not count.

Tests: tests/cli/view/test_repeats.py
"""

from collections.abc import Hashable, Iterable
from datetime import UTC, datetime

from kadcrawl.settings.job import Job
from kadcrawl.store.bloom.calendar_epochs import begin_s, number

CLOCK_MS = 1
"""Milliseconds that the difference of two times may lack, as page lines have whole milliseconds."""


class RecurringVisits:
    """The visits to the URLs of a job that keeps fingerprints and fetches pages again."""

    def __init__(self, job: Job) -> None:
        assert job.recrawl_after_s is not None, "the job fetches each page once"
        self._kept_epochs = job.grains - 1
        self._calendar = job.calendar_grain
        self._epoch_s = job.grain_s or job.recrawl_after_s / job.grains

    def least_ms(self, at_ms: int) -> int:
        """Return the milliseconds from a page line with this time to the next line of its URL, at least."""
        if self._calendar is None:
            return int(1000 * self._kept_epochs * self._epoch_s) - CLOCK_MS
        following = number(self._calendar, at_ms / 1000) + 1
        kept_s = begin_s(self._calendar, following + self._kept_epochs) - begin_s(self._calendar, following)
        return int(1000 * kept_s) - CLOCK_MS

    def repeats(self, lines: Iterable[tuple[Hashable, int]]) -> int:
        """Return how many of these lines are repeats. A line is a URL and a time in milliseconds, in this order."""
        count, url_before, before_ms = 0, None, 0
        for url, at_ms in lines:
            count += url == url_before and at_ms - before_ms < self.least_ms(before_ms)
            url_before, before_ms = url, at_ms
        return count


def recurring_visits(job: Job | None) -> RecurringVisits | None:
    """Return the visits of a job whose page lines have no number of the visit, or None for other jobs."""
    is_recurring = job is not None and job.history == "bloom" and job.recrawl_after_s is not None
    return RecurringVisits(job) if job is not None and is_recurring else None


def milliseconds(at: datetime) -> int:
    """Return the time of a page line in milliseconds since 1970. A time without a zone is in UTC."""
    return round(1000 * (at if at.tzinfo is not None else at.replace(tzinfo=UTC)).timestamp())
