"""The age of a pending URL is known from marks of arrivals, also after a restart."""

from kadcrawl.store.arrival_marks import MARK_INTERVAL_S, MARKS_MAX, ArrivalMarks
from kadcrawl.store.store import Store


def test_a_row_is_as_old_as_the_last_mark_before_it(store: Store) -> None:
    marks = ArrivalMarks(store.meta)
    assert 0 == marks.older_than(1e9)
    for second, number in ((100.0, 5), (100.0 + MARK_INTERVAL_S / 2, 6), (200.0, 9), (300.0, 9), (400.0, 12)):
        marks.note(second, number)
    assert [0, 5, 5, 9, 9, 12] == [marks.older_than(second) for second in (99, 100, 199, 200, 399, 400)]
    again = ArrivalMarks(store.meta)
    assert [5, 12] == [again.older_than(second) for second in (150, 500)]


def test_marks_become_sparse_with_their_age_and_stay_few(store: Store) -> None:
    marks = ArrivalMarks(store.meta)
    for number in range(5 * MARKS_MAX):
        marks.note(number * MARK_INTERVAL_S, number)
    assert len(marks._marks) <= MARKS_MAX
    last = 5 * MARKS_MAX - 1
    assert last - 60 == marks.older_than((last - 60) * MARK_INTERVAL_S), "the young ones are exact"
    assert 1_000 < marks.older_than(1_500 * MARK_INTERVAL_S) <= 1_500


def test_a_clock_that_was_put_back_costs_only_its_marks(store: Store) -> None:
    marks = ArrivalMarks(store.meta)
    marks.note(1_000.0, 5)
    marks.note(500.0, 7)
    assert [0, 7] == [marks.older_than(second) for second in (499, 2_000)]
