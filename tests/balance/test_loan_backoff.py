"""The backoff of failed loans: the length of its bars."""

from kadcrawl.balance.loan_backoff import BACKOFF_FIRST_S, BACKOFF_KEPT_MAX, BACKOFF_MOST_S, LoanBackoff


def barred_s(backoff: LoanBackoff, what: str, now: float) -> float:
    """Return for how long it is barred, to half a second."""
    return next(steps / 2 for steps in range(10_000) if not backoff.is_barred(what, now + steps / 2))


def test_each_loss_bars_for_twice_as_long_until_something_comes_of_a_loan() -> None:
    losses, now, waits = LoanBackoff(), 0.0, []
    for _ in range(12):
        losses.note_failure("a", now, now)
        waits.append(barred_s(losses, "a", now))
        now += waits[-1]
    assert [BACKOFF_FIRST_S, 2 * BACKOFF_FIRST_S, 4 * BACKOFF_FIRST_S] == waits[:3]
    assert BACKOFF_MOST_S == waits[-1] == waits[-2]
    assert not losses.is_barred("b", 0.0)
    losses.note_success("a")
    losses.note_failure("a", now, now)
    assert BACKOFF_FIRST_S == barred_s(losses, "a", now)


def test_it_lasts_beyond_the_time_in_which_nobody_may_crawl_it_anyway() -> None:
    losses = LoanBackoff()
    losses.note_failure("a", 100.0, 0.0)
    assert 100.0 + BACKOFF_FIRST_S == barred_s(losses, "a", 0.0)


def test_several_loans_lost_at_once_are_one_loss() -> None:
    losses = LoanBackoff()
    for _ in range(6):
        losses.note_failure("a", 0.0, 0.0)
    assert BACKOFF_FIRST_S == barred_s(losses, "a", 0.0)


def test_no_more_are_remembered_than_may_be() -> None:
    losses = LoanBackoff()
    for number in range(BACKOFF_KEPT_MAX + 1):
        losses.note_failure(number, 0.0, 0.0)
    assert [False, True] == [losses.is_barred(number, 0.0) for number in (0, 1)]
