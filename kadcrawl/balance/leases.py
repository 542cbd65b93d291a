"""The lease of a loan: both ends count it so that they never both hold the loan. Decisions only.

The borrower counts from the instant it *sent* the last answered report. The lender counts from the instant it
*received* that report, and adds a margin. So the borrower has stopped whenever the lender takes the pages back, even if
messages were lost or one end was suspended. A request sent in the last moment is in flight no longer than the margin,
which is all that a site's delay asks for. (Its answer may take longer: a site without a delay may then have more
requests in flight.) No third peer fetches the pages meanwhile. If the lender is dead, the next owner misses it no
sooner than after `LEASE_S` (overlay/settings.py: two misses), and then leaves each site alone for a full delay.

A borrower needs the lease only at the moments when it sends a request. So it renews the lease before a page, and until
the request is sent, as a connection may take long. From then on to the next page it may be silent for as long as the
lender's last answer says: about as long as a page of the loan takes. A lender that waits for a longer silence takes the
pages back later by the same time. What the borrower may do does not depend on that: each request needs a lease that is
not over.
"""

LEASE_S = 1.5
"""Seconds after a report in which a borrower may begin pages, without a further answer."""
RENEW_S = 0.5
"""Seconds between two reports of a borrower that begins many pages, and between two tries of a report."""
MARGIN_S = 1.0
"""Extra seconds that the lender waits before it takes the pages back."""
SILENCE_MAX_S = 5.0
"""Limit on the seconds that a borrower may be silent between two pages: what it has may be lost for longer by that."""
LOAN_S_MAX = SILENCE_MAX_S - RENEW_S + LEASE_S + MARGIN_S
"""Limit on the seconds after a report until the lender takes the pages back."""


def borrower_stops_at(sent_at: float) -> float:
    """Return the loop second at which a borrower stops if it sent its last answered report at `sent_at`."""
    return sent_at + LEASE_S


def allowed_silence_s(page_s: float) -> float:
    """Return the seconds until the next report of a borrower that finishes a page of a loan every `page_s` seconds."""
    return min(max(page_s, RENEW_S), SILENCE_MAX_S)


def lender_takes_back_at(received_at: float, silence_s: float = RENEW_S) -> float:
    """Return the loop second at which a lender takes back a loan after an offer or report at `received_at`.

    `silence_s` is how long the borrower may be silent from then on.
    """
    return received_at + silence_s - RENEW_S + LEASE_S + MARGIN_S
