"""The lease of a loan: lender and borrower never both hold it."""

from hypothesis import given, strategies as st

from kadcrawl.balance.leases import (
    LEASE_S,
    MARGIN_S,
    RENEW_S,
    SILENCE_MAX_S,
    allowed_silence_s,
    borrower_stops_at,
    lender_takes_back_at,
)

delays = st.floats(0.0, 60.0)


@given(st.floats(0.0, 1e6), delays)
def test_the_borrower_has_stopped_before_the_lender_takes_back(sent_at: float, on_the_way_s: float) -> None:
    """The lease holds however long the report or the answer travels."""
    assert borrower_stops_at(sent_at) + MARGIN_S <= lender_takes_back_at(sent_at + on_the_way_s) + 1e-6


def test_two_reports_may_be_lost_before_a_lease_ends() -> None:
    assert LEASE_S >= 3 * RENEW_S


@given(st.floats(-10.0, 1e6))
def test_a_borrower_is_silent_for_about_a_page_and_no_longer_than_the_limit(page_s: float) -> None:
    silence_s = allowed_silence_s(page_s)
    assert RENEW_S <= silence_s <= max(RENEW_S, page_s)
    assert silence_s <= SILENCE_MAX_S


@given(st.floats(0.0, 1e6), delays, st.floats(-10.0, 1e6))
def test_a_lender_that_allows_silence_waits_for_two_further_reports(
    sent_at: float, on_the_way_s: float, page_s: float
) -> None:
    silence_s = allowed_silence_s(page_s)
    back_at = lender_takes_back_at(sent_at + on_the_way_s, silence_s)
    assert sent_at + silence_s + 2 * RENEW_S + MARGIN_S <= back_at + 1e-6
    assert borrower_stops_at(sent_at) + MARGIN_S <= back_at + 1e-6
