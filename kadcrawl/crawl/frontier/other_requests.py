"""`OtherRequests`: the requests to this peer's sites that its frontier cannot know of.

An earlier run may have asked a site just before its end, and may have lent pages to a borrower, which goes on for a
moment. Another peer may still crawl a cell that opens here. So sites are left alone for a while. A peer that has lent
nothing, or has never met another peer, does not wait for such requests: without a delay it fetches at once. Decides
only.

Tests: tests/crawl/frontier/test_frontier.py, tests/lending/test_loan_marker.py
"""

from collections.abc import Callable
from dataclasses import dataclass

HOLD_LEAST_S = 1.0
"""Least seconds for which each site of a cell without a release is left alone: a former owner is about to stop."""
BACK_LEAST_S = 1.5
"""Least seconds for which each site is left alone after a run with loans: a borrower of that run may go on as long
(`balance.leases.LEASE_S`)."""
LOANS_OUT = "loans_out"
"""The entry of the journal that says whether pages are on loan (lending/loan_marker.py)."""
LOANS, NO_LOANS = b"1", b"0"
"""Its values. Versions before had no such entry, and may have lent pages."""


@dataclass(frozen=True, slots=True)
class OtherRequests:
    """The requests of an earlier run and of other peers. Times are wall-clock seconds."""

    earlier_until: float = 0.0
    """The second by which the earlier run had ended, or 0 if there was none."""
    has_lent: bool = True
    """True if pages may have been on loan when the earlier run ended."""
    has_met_peers: Callable[[], bool] = lambda: True
    """Returns whether this directory has ever known another peer."""

    @property
    def hold_least_s(self) -> float:
        """Least seconds for which the sites of a cell without a release are left alone."""
        return HOLD_LEAST_S if self.has_met_peers() else 0.0

    def back_at(self, delay_s: float) -> float:
        """Return the second from which a site may be asked after an earlier run of this peer."""
        if not self.earlier_until:
            return 0.0
        return self.earlier_until + max(delay_s, BACK_LEAST_S if self.has_lent else 0.0)
