"""The lease of a loan: both ends count it so that they never both hold the loan. Decisions only.

The borrower counts from the instant it *sent* the last answered report. The lender counts from the instant it
*received* that report, and adds a margin. So the borrower has stopped whenever the lender takes the pages back, even if
messages were lost or one end was suspended. A request sent in the last moment is in flight no longer than the margin,
which is all that a site's delay asks for. (Its answer may take longer: a site without a delay may then have more
requests in flight.) No third peer fetches the pages meanwhile. If the lender is dead, the next owner misses it no
sooner than after `LEASE_S` (overlay/settings.py: two misses), and then leaves each site alone for a full delay.
"""

LEASE_S = 1.5
"""Seconds for which a borrower goes on without an answer."""
RENEW_S = 0.5
"""Seconds between two reports of a borrower."""
MARGIN_S = 1.0
"""Extra seconds that the lender waits before it takes the pages back."""


def borrower_stops_at(sent_at: float) -> float:
    """Return the loop second at which a borrower stops if it sent its last answered report at `sent_at`."""
    return sent_at + LEASE_S


def lender_takes_back_at(received_at: float) -> float:
    """Return the loop second at which a lender takes back a loan after an offer or report at `received_at`."""
    return received_at + LEASE_S + MARGIN_S
