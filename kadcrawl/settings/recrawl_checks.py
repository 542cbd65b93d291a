"""Checks the settings of a job about recrawl and history, which depend on each other.

Tests: tests/settings/test_job_file.py, tests/settings/test_limits.py
"""

from typing import Literal, Protocol

from kadcrawl.settings.limits import require
from kadcrawl.settings.site_rules import RECRAWL_LEAST_S, RECRAWL_MOST_S

GRAINS_DEFAULT, GRAINS_MAX = 7, 400
"""Number of live epochs of the Bloom filters: the default, as in P4's week of days, and the limit, a year of days."""

CalendarGrain = Literal["hour", "day", "week", "month"]
CALENDAR_GRAINS_S: dict[CalendarGrain, float] = {
    "hour": 3_600.0,
    "day": 86_400.0,
    "week": 604_800.0,
    "month": 2_629_746.0,
}
"""The length of each unit of the calendar in seconds. That of a month is the mean of 400 years."""


class RecrawlSettings(Protocol):
    """The settings of a job that these checks read."""

    @property
    def history(self) -> str: ...
    @property
    def site_pages_max(self) -> int | None: ...
    @property
    def recrawl_after_s(self) -> float | None: ...
    @property
    def recrawl_adaptive(self) -> bool: ...
    @property
    def recrawl_bounds_s(self) -> tuple[float, float]: ...
    @property
    def grain_s(self) -> float | None: ...
    @property
    def calendar_grain(self) -> CalendarGrain | None: ...
    @property
    def grains(self) -> int: ...


def check_recrawl(job: RecrawlSettings) -> None:
    """Raise ConfigError unless the settings of recrawl and history go together."""
    for name in ("recrawl_after_s", "recrawl_least_s", "recrawl_most_s"):
        seconds = getattr(job, name)
        require(
            seconds is None or RECRAWL_LEAST_S <= seconds <= RECRAWL_MOST_S,
            f"{name} must be from {RECRAWL_LEAST_S} second to {RECRAWL_MOST_S // 86_400} days",
        )
    _check_history(job)
    if job.recrawl_after_s is None:
        return
    least_s, most_s = job.recrawl_bounds_s
    require(
        least_s <= job.recrawl_after_s <= most_s,
        "recrawl_after_s must lie between recrawl_least_s and recrawl_most_s",
    )


def _check_history(job: RecrawlSettings) -> None:
    if job.history == "bloom":
        require(
            job.site_pages_max is None,
            "history bloom cannot go with site_pages_max: fingerprints of a site's URLs cannot be counted; "
            "use max_pages or max_depth",
        )
        require(
            not job.recrawl_adaptive,
            "history bloom cannot go with recrawl_adaptive, as it keeps no earlier version of a page; "
            "use history exact",
        )
    require(job.grain_s is None or job.grain_s >= 1, "grain_s must be at least 1 second")
    require(
        job.grain_s is None or job.calendar_grain is None,
        "grain_s and calendar_grain cannot go together; use one of them",
    )
    if job.history == "bloom" and job.recrawl_after_s is not None and job.calendar_grain is not None:
        require(
            2 <= job.grains <= GRAINS_MAX,
            f"recrawl_after_s must be more than one {job.calendar_grain} and at most {GRAINS_MAX} with calendar_grain "
            f"{job.calendar_grain}",
        )
    elif job.history == "bloom" and job.recrawl_after_s is not None:
        require(
            job.recrawl_after_s >= GRAINS_DEFAULT or job.grain_s is not None,
            f"recrawl_after_s must be at least {GRAINS_DEFAULT} seconds with history bloom, or grain_s be given",
        )
        require(
            2 * (job.grain_s or 0) <= job.recrawl_after_s and job.grains <= GRAINS_MAX,
            f"grain_s must be from a {GRAINS_MAX}th of recrawl_after_s to half of it",
        )
