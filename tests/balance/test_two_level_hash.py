"""The two-level hash: balance, consistency, and moves when a node leaves."""

from collections import Counter
from random import Random

import pytest
from hypothesis import given, strategies as st

from kadcrawl.balance.two_level_hash import two_level_hash

POSSIBLE = 37


def test_a_live_place_wins_and_a_dead_place_asks_the_real_table() -> None:
    assert [1, 1, 4, 3, 4, 4] == two_level_hash([0, 1, 2, 3, 4, 9], 5, [1, 3, 4])


def test_nothing_is_dealt_without_a_live_node() -> None:
    with pytest.raises(ValueError, match="no node is alive"):
        two_level_hash([1], 5, [])


@given(st.sets(st.integers(0, POSSIBLE - 1), min_size=1), st.lists(st.integers(0, 2**96)))
def test_each_number_has_one_live_node_whoever_asks(alive: set[int], numbers: list[int]) -> None:
    nodes = two_level_hash(numbers, POSSIBLE, sorted(alive))
    assert set(nodes) <= alive
    assert nodes == [two_level_hash([number], POSSIBLE, sorted(alive))[0] for number in numbers]


@given(st.sets(st.integers(0, POSSIBLE - 1), min_size=2), st.integers(0, 2**32))
def test_of_the_first_level_only_the_numbers_of_a_leaver_move(alive: set[int], seed: int) -> None:
    leaver = Random(seed).choice(sorted(alive))
    numbers = [number for number in range(5 * POSSIBLE) if number % POSSIBLE in alive - {leaver}]
    before = two_level_hash(numbers, POSSIBLE, sorted(alive))
    assert before == two_level_hash(numbers, POSSIBLE, sorted(alive - {leaver}))


@given(st.sets(st.integers(0, POSSIBLE - 1), min_size=1, max_size=32), st.integers(0, 2**32))
def test_the_numbers_are_spread_evenly(alive: set[int], seed: int) -> None:
    random = Random(seed)
    dealt = Counter(two_level_hash([random.getrandbits(96) for _ in range(20_000)], POSSIBLE, sorted(alive)))
    mean = 20_000 / len(alive)
    assert max(dealt.values()) < 1.25 * mean
    assert min(dealt[node] for node in alive) > 0.75 * mean
