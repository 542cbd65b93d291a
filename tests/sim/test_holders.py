"""The fast computation of a cell's rightful holders agrees with a search over all machines."""

from hypothesis import given, strategies as st

from kadcrawl.keys import ID_BITS, Cell, Key
from kadcrawl.store.store import DONE, PENDING
from sim.holders import copies, nearest, rightful

numbers = st.integers(0, 2**ID_BITS - 1)
crowds = st.lists(numbers | st.integers(0, 15), min_size=1, max_size=40, unique=True)


@given(crowds, numbers | st.integers(0, 15), st.integers(1, 5))
def test_the_nearest_are_those_a_comparison_with_all_finds(crowd: list[int], key: int, count: int) -> None:
    assert nearest(sorted(crowd), key, count) == sorted(crowd, key=lambda number: number ^ key)[:count]


@given(crowds, st.tuples(numbers, numbers, numbers))
def test_holders_are_distinct_and_each_the_nearest_that_is_left(crowd: list[int], keys: tuple[int, int, int]) -> None:
    standing = dict(enumerate(crowd))
    chosen = rightful(standing, {Cell(7): keys})[Cell(7)]
    assert len(chosen) == min(3, len(crowd))
    left = set(standing)
    for key, number in zip(keys, chosen, strict=False):
        assert number == min(left, key=lambda one: standing[one] ^ key)
        left.remove(number)


def test_nobody_holds_anything_when_nobody_stands() -> None:
    assert rightful({}, {Cell(7): (1, 2, 3)}) == {Cell(7): ()}


def test_a_copy_counts_at_a_rightful_holder_and_in_the_furthest_state() -> None:
    finished, begun, elsewhere = (Key(bytes([first]) + bytes(19)) for first in (1, 1 + 16, 2 * 16))
    records = {
        1: {finished: DONE, begun: PENDING},
        2: {finished: PENDING, begun: PENDING},
        3: {finished: DONE, elsewhere: DONE},
    }
    holders = {Cell(0): (1, 2, 3), Cell(1): (1, 2), Cell(2): (1, 2)}
    assert copies(records, holders, cell_bits=4) == {finished: 2, begun: 2, elsewhere: 0}
