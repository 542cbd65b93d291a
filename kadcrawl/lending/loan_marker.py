"""`LoanMarker` keeps in the journal whether pages of this peer are on loan, for the next run of its directory.

After `kill -9` a borrower goes on for up to `LEASE_S`. The next run asks no site of this peer for as long, unless the
journal says that nothing was on loan (crawl/frontier/other_requests.py). So the entry is on disk before a borrower
hears of a loan, and says so for `LEASE_S` after a run whose loans it cannot know.

Tests: tests/lending/test_loan_marker.py
"""

from collections.abc import Callable

from kadcrawl.balance.leases import LEASE_S
from kadcrawl.crawl.frontier.other_requests import LOANS, LOANS_OUT, NO_LOANS
from kadcrawl.store.store import Store


class LoanMarker:
    """The marker of one peer."""

    def __init__(self, store: Store, has_loans: Callable[[], bool], loop_now: Callable[[], float]) -> None:
        """`has_loans` returns whether any page of this peer is on loan now."""
        self._store = store
        self._has_loans = has_loans
        self._loop_now = loop_now
        had_loans = store.saved_time.has_run and store.meta.get(LOANS_OUT) != NO_LOANS
        self._kept_until = loop_now() + LEASE_S if had_loans else 0.0
        """Loop second until which a borrower of the earlier run may go on."""

    async def noted(self) -> None:
        """Return when the journal says that pages are on loan. Call it once a loan has begun, before its offer."""
        self._store.meta.set(LOANS_OUT, LOANS)
        await self._store.journal.durable()

    def update(self) -> None:
        """Write whether pages are on loan into the open transaction. The peer calls this before each commit."""
        may_be = self._has_loans() or self._loop_now() < self._kept_until
        self._store.meta.set(LOANS_OUT, LOANS if may_be else NO_LOANS)
