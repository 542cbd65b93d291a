"""The chance that a URL is lost, by the number of copies and by the failure rate of peers: a model, and its table.

The model is a Markov chain over the live copies of one record (as in Patterson, Gibson and Katz, 1988, for RAID). Each
holder fails by itself, for good, at the rate 1 / `mttf_s`. A sync makes all missing copies at once, at the rate 1 /
`repair_s`. The record is lost when its last copy is. Peers that fail together are outside of the model: of those any
`copies` - 1 are promised to lose nothing.

Tests: tests/docs/test_loss_odds.py
"""

from math import expm1
from typing import Final

from kadcrawl.settings.job import COPIES_MAX, COPIES_MIN

NOTICED_S: Final = 6.0
"""Seconds until the other peers have noticed a death (overlay/settings.py)."""
SLOW_REPAIR_S: Final = 600.0
"""Seconds assumed for a repair where the history of a peer is large and its links are slow."""
CRAWL_S: Final = 30 * 86_400.0
"""Seconds of the crawl of the table."""
LIVES: Final = (("hour", 3600.0), ("day", 86_400.0), ("30 days", 30 * 86_400.0), ("year", 365 * 86_400.0))
"""Mean times to the failure of a peer: their names, and seconds."""


def mean_time_to_loss_s(copies: int, mttf_s: float, repair_s: float) -> float:
    """Return the mean seconds until all copies of a record are gone, from the time at which there are `copies`.

    `mttf_s` is the mean time to the failure of one peer, and `repair_s` the mean time of a repair.
    """
    # With k copies left the mean time is a + (1 - c) t, where t is the mean time with all copies. c is the chance that
    # no repair comes. It is kept apart from 1, as it may be smaller than the precision of a float beside 1.
    a, c = 0.0, 1.0
    for left in range(1, copies):
        failing, repaired = left / mttf_s, 1 / repair_s
        a, c = (1 + failing * a) / (failing + repaired), failing * c / (failing + repaired)
    return (mttf_s / copies + a) / c


def loss_probability(copies: int, mttf_s: float, repair_s: float, seconds: float) -> float:
    """Return the chance that a record is lost within so many seconds."""
    return -expm1(-seconds / mean_time_to_loss_s(copies, mttf_s, repair_s))


def loss_rows(repair_s: float) -> list[list[str]]:
    """Return the rows of the table: the life of a peer, the repair, and the chance for each number of copies."""
    return [
        [
            f"1 {life}" if life != "30 days" else life,
            f"{repair:.0f} s",
            *(f"{loss_probability(copies, mttf_s, repair, CRAWL_S):.1e}" for copies in copies_shown()),
        ]
        for life, mttf_s in LIVES
        for repair in (repair_s, SLOW_REPAIR_S)
    ]


def copies_shown() -> range:
    """Return the numbers of copies that a job may have."""
    return range(COPIES_MIN, COPIES_MAX + 1)
