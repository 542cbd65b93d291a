"""How long a loan lasts without a word: decided so that its two ends never both think it is theirs.

The taker counts from the instant it *sent* the last question that was answered, the giver from the instant it
*received* it, and adds a margin. So whenever the giver takes the pages back, the taker has stopped, whatever became of
the messages and of whoever was stopped in between; a request sent in the last moment is on its way no longer than the
margin, which is all a delay asks for. (Its answer may take longer: of a site without a delay more may be under way for
that long.) Nobody else fetches the pages meanwhile: were the giver dead, the next owner would miss it no sooner than
after `LEASE_S` (overlay/settings.py: two misses), and would then leave each site alone for a full delay. Pure.
"""

LEASE_S = 1.5
"""How long the taker goes on without an answer."""
RENEW_S = 0.5
"""How often it reports."""
MARGIN_S = 1.0
"""By how much longer the giver waits before it takes the pages back."""


def borrower_stops_at(sent_at: float) -> float:
    """Return when a taker stops whose last answered report was sent at `sent_at` (seconds of its loop)."""
    return sent_at + LEASE_S


def lender_takes_back_at(received_at: float) -> float:
    """Return when a giver takes back what it offered or last had a report of at `received_at` (loop seconds)."""
    return received_at + LEASE_S + MARGIN_S
