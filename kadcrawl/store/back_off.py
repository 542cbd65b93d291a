"""`BackOff`: the refusals of one site, as its holders keep them. `crawl/frontier/back_off.py` decides what follows.

Tests: tests/store/test_store.py, tests/crawl/frontier/test_back_off.py
"""

from typing import NamedTuple


class BackOff(NamedTuple):
    """The refusals of a site: answers 429 or 503."""

    refusals: int
    """Number of refusals in a row. An answer that is no refusal sets it to 0."""
    wait_s: float
    """Seconds of the last wait that had no Retry-After. The next is twice as long, and each answer halves it."""
    status: int
    """Status of the last refusal."""
    until: float
    """Wall-clock second before which the site is not asked because of the last refusal."""
    version: int
    """Number of changes so far. Of two copies the one with more changes counts: ages would need equal clocks."""


NO_REFUSALS = BackOff(0, 0.0, 0, 0.0, 0)
"""The state of a site that never refused a request."""
