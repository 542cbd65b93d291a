"""The lease of a loan: lender and borrower never both hold it."""

from hypothesis import given, strategies as st

from kadcrawl.balance.leases import LEASE_S, MARGIN_S, RENEW_S, borrower_stops_at, lender_takes_back_at

delays = st.floats(0.0, 60.0)


@given(st.floats(0.0, 1e6), delays)
def test_the_borrower_has_stopped_before_the_lender_takes_back(sent_at: float, on_the_way_s: float) -> None:
    """The lease holds however long the report or the answer travels."""
    assert borrower_stops_at(sent_at) + MARGIN_S <= lender_takes_back_at(sent_at + on_the_way_s) + 1e-6


def test_two_reports_may_be_lost_before_a_lease_ends() -> None:
    assert LEASE_S >= 3 * RENEW_S
