"""The lender's record of one loan, and of pages that came back from loans that are over.

Decisions only: the caller gives the time. Two clocks appear here: loop seconds for the lease, wall-clock seconds for
the site's politeness.

Tests: tests/lending/test_lender.py, tests/lending/test_lending_to_leaves.py
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from math import inf

from kadcrawl.balance.leases import MARGIN_S, RENEW_S, allowed_silence_s, lender_takes_back_at
from kadcrawl.keys import Cell, Key
from kadcrawl.link.wire.leaf_messages import is_leaf
from kadcrawl.link.wire.messages import Contact, SiteRecord
from kadcrawl.store.frontier_entry import FrontierEntry

CONNECTION_WAIT_S = 5.0
"""A loan waits this long for the lender's own requests to leave its connections."""
RECALLED_MAX_S = 130.0
"""Seconds after its recall in which a loan is renewed, and seconds that a loan may make no progress.

No request lasts longer (`Limits.fetch_timeout_s`)."""
LATE_PAGES_MAX = 10_000
"""Returned pages whose borrower is remembered."""
RETURNED_WAIT_MAX_S = 3600.0
"""A borrower can keep a returned page or its site from being fetched for no longer."""


@dataclass(slots=True)
class Loan:
    """Pages of one site that another peer fetches for this peer."""

    id: bytes
    borrower: Contact
    site: str
    cell: Cell
    entries: dict[Key, FrontierEntry]
    """The pages that are neither done nor returned."""
    connections: int
    """Requests the borrower may have in flight at a time."""
    moved_at: float
    """The wall-clock second at which the loan began, or a page of it was last done or returned."""
    page_s: float = 0.0
    """Seconds between the last two moves of pages."""
    order: int = 0
    """Stamp of the latest order to retry that the lender knew when it lent the pages."""
    until: float = inf
    """The loop second at which the lender takes the loan back unless the borrower reports."""
    hold_until: float = 0.0
    """The wall-clock second before which the site must not be asked, by the borrower's last report."""
    waits_until: float = 0.0
    """The latest such second, over all reports, of waits that the site demanded beyond its delay."""
    recalled_at: float | None = None
    """The loop second of the recall, or None without a recall."""
    is_stuck: bool = False
    """The lender recalled the loan because it made no progress."""
    begun: bool = False
    """The lender has answered a report of the loan, so the borrower may fetch."""
    is_refused: bool = False
    """The site refused a request of the borrower."""
    made_progress: bool = False
    """The borrower has finished a page of the loan."""
    shorter: dict[Key, int] = field(default_factory=dict)
    """Key -> depth of each page to which a shorter path was met while it is lent."""

    def shorten(self, key: Key, depth: int) -> None:
        """Note a smaller depth of a page of the loan, for the borrower."""
        if (entry := self.entries.get(key)) is not None:
            self.entries[key] = entry._replace(depth=depth)
            self.shorter[key] = depth

    def renew(self, loop_s: float, silence_s: float = RENEW_S) -> None:
        """Start the lease anew, as for an offer or a report received at `loop_s`, with this silence of the borrower."""
        self.until = lender_takes_back_at(loop_s, silence_s)

    def allowed_silence_s(self, wall_s: float) -> float:
        """Return how long the borrower may be silent, by the pages of this loan so far.

        A leaf is never silent for longer than between two quick pages, as it hears of a recall only when it reports.
        """
        return RENEW_S if is_leaf(self.borrower) else allowed_silence_s(max(self.page_s, wall_s - self.moved_at))

    def note_report(self, clock: SiteRecord, delay_s: float, wall_s: float, loop_s: float) -> None:
        """Take in that the borrower reports, and the site's `clock` as the borrower sees it.

        `delay_s` is the site's delay as the lender knows it. A report does not renew the lease once `RECALLED_MAX_S`
        have passed since the recall.
        """
        if self.recalled_at is None or loop_s < self.recalled_at + RECALLED_MAX_S:
            self.renew(loop_s)
        self.begun = True
        self.hold_until = wall_s + min(clock.wait_s, RETURNED_WAIT_MAX_S)
        if clock.wait_s > max(clock.delay_s, delay_s):
            self.waits_until = max(self.waits_until, self.hold_until)

    def finish(self, key: Key, wall_s: float) -> FrontierEntry | None:
        """Take out a page that the borrower has finished, or return None if the loan lacks it."""
        entry = self._take_out(key)
        if entry is not None:
            self._move(wall_s)
            self.made_progress = True
        return entry

    def give_back(self, key: Key, wall_s: float) -> FrontierEntry | None:
        """Take out a page that the borrower returns unfinished, or return None if the loan lacks it."""
        entry = self._take_out(key)
        if entry is not None:
            self._move(wall_s)
        return entry

    def recall(self, loop_s: float, *, is_stuck: bool = False) -> None:
        """Note the first recall, and whether the loan made no progress."""
        self.recalled_at = self.recalled_at or loop_s
        self.is_stuck = self.is_stuck or is_stuck

    def note_refusal(self, loop_s: float) -> None:
        """Note that the site refused a request of the borrower, which ends the loan."""
        self.is_refused = True
        self.recall(loop_s)

    def makes_no_progress(self, delay_s: float, wall_s: float) -> bool:
        """Return whether no page has moved for longer than a site can be slow, even if the borrower says otherwise."""
        waits_until = min(self.waits_until, self.moved_at + RETURNED_WAIT_MAX_S)
        return wall_s > max(self.moved_at, waits_until) + delay_s + RECALLED_MAX_S

    def _move(self, wall_s: float) -> None:
        self.page_s, self.moved_at = wall_s - self.moved_at, wall_s

    def _take_out(self, key: Key) -> FrontierEntry | None:
        self.shorter.pop(key, None)
        return self.entries.pop(key, None)


def allow_silence(loans: Sequence[Loan], wall_s: float, loop_s: float) -> float:
    """Renew the leases of all loans of one borrower that go on, and return how long it may be silent.

    Its report is about all of them, so the quickest of them decides.
    """
    silence_s = min((loan.allowed_silence_s(wall_s) for loan in loans), default=RENEW_S)
    for loan in loans:
        loan.renew(loop_s, silence_s)
    return silence_s


def await_reports(loans: Iterable[Loan], loop_s: float) -> None:
    """Keep the loans for a moment more, as this peer stood still and reports that came meanwhile wait to be read."""
    for loan in loans:
        loan.until = max(loan.until, loop_s + MARGIN_S)


class LatePages:
    """The borrowers of pages that came back: each may finish such a page after its loan is over."""

    def __init__(self) -> None:
        self._borrowers: dict[tuple[bytes, Key], bytes] = {}
        """(loan ID, key) -> ID of the borrower, the oldest first."""

    def note(self, loan: Loan, key: Key) -> None:
        """Remember the borrower of a page that came back, and forget the oldest page beyond `LATE_PAGES_MAX`."""
        self._borrowers[loan.id, key] = loan.borrower.id
        if len(self._borrowers) > LATE_PAGES_MAX:
            del self._borrowers[next(iter(self._borrowers))]

    def is_from(self, loan_id: bytes, key: Key, borrower: bytes) -> bool:
        """Return whether this peer had the page on that loan."""
        return self._borrowers.get((loan_id, key)) == borrower

    def forget(self, loan_id: bytes, key: Key) -> None:
        """Forget a page that is done."""
        self._borrowers.pop((loan_id, key), None)
