"""Each cell is due at the last instant said, soonest first, however often it is put off."""

from math import inf

from hypothesis import given, strategies as st

from kadcrawl.keys import Cell
from kadcrawl.replication.timer_queue import TimerQueue

CELLS = st.integers(0, 5).map(Cell)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("put"), CELLS, st.integers(0, 9)),
        st.tuples(st.just("put_if_new"), CELLS, st.integers(0, 9)),
        st.tuples(st.just("drop"), CELLS, st.just(0)),
    ),
    max_size=30,
)


@given(STEPS, st.integers(0, 9), st.integers(1, 6))
def test_it_says_what_a_table_of_instants_says(steps: list[tuple[str, Cell, int]], now: int, count: int) -> None:
    reminders = TimerQueue()
    table: dict[Cell, int] = {}
    for step, cell, at in steps:
        if step == "put":
            reminders.put(cell, at)
            table[cell] = at
        elif step == "put_if_new":
            reminders.put_if_new(cell, at)
            table.setdefault(cell, at)
        else:
            reminders.drop(cell)
            table.pop(cell, None)
        assert reminders.next_at == min(table.values(), default=inf)
    due = sorted((at, cell) for cell, at in table.items() if at <= now)[:count]
    assert [cell for _, cell in due] == reminders.due(now, count)
    assert [cell for _, cell in due] == reminders.due(now, count)
    assert len(reminders) == len(table)
    assert [table.get(cell) for cell in map(Cell, range(6))] == [reminders.get(cell) for cell in map(Cell, range(6))]
