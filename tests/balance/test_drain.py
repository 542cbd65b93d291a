"""Shedding by time: who gives what to whom, and when nobody does."""

from random import Random

import pytest

from kadcrawl.balance.drain import Load, Move, shed


def after(loads: list[Load], moves: list[Move]) -> list[Load]:
    pending = [load.pending for load in loads]
    for move in moves:
        pending[move.giver] -= move.urls
        pending[move.taker] += move.urls
    return [Load(count, load.url_s, load.busy_s) for count, load in zip(pending, loads, strict=True)]


@pytest.mark.parametrize(
    ("loads", "block", "expected"),
    [
        ([], 5, []),
        ([Load(100, 1.0)], 5, []),
        ([Load(10, 1.0), Load(10, 1.0)], 5, []),
        # The slow one is heavy although it has fewer.
        ([Load(10, 1.0), Load(40, 0.1)], 5, [Move(0, 1, 5)]),
        # One end after the other comes nearer, and it stops before they cross.
        ([Load(20, 1.0), Load(0, 1.0)], 5, [Move(0, 1, 10)]),
        # A block would end later there than here.
        ([Load(10, 1.0), Load(0, 5.0)], 5, []),
        # Less than a block is not moved.
        ([Load(4, 10.0), Load(0, 1.0)], 5, []),
        # To the one that ends first with the block, idle or not: 5 x 0.1 after 1 s is before 5 x 1.
        ([Load(10, 2.0), Load(0, 1.0), Load(10, 0.1)], 5, [Move(0, 2, 10)]),
        # What is begun cannot be handed over.
        ([Load(0, 1.0, busy_s=100.0), Load(0, 1.0)], 5, []),
    ],
)
def test_who_gives_what_to_whom(loads: list[Load], block: int, expected: list[Move]) -> None:
    assert expected == shed(loads, block)


def test_a_taker_that_would_wait_for_the_block_is_counted_with_the_waiting() -> None:
    loads = [Load(10, 1.0), Load(0, 1.0)]
    assert [Move(0, 1, 5)] == shed(loads, 5, hand_over_s=4.9)
    assert [] == shed(loads, 5, hand_over_s=5.0)
    # Who has enough to do meanwhile does not wait.
    assert [Move(0, 1, 10)] == shed([Load(40, 1.0), Load(20, 1.0)], 5, hand_over_s=19.0)
    assert [Move(0, 1, 5)] == shed([Load(40, 1.0), Load(20, 1.0)], 5, hand_over_s=29.0)


@pytest.mark.parametrize("seed", range(200))
def test_shedding_makes_the_last_end_no_later_and_nothing_bounces(seed: int) -> None:
    random = Random(seed)
    loads = [
        Load(random.randrange(200), random.uniform(0.05, 3), random.choice((0.0, random.uniform(0, 30))))
        for _ in range(random.randint(2, 12))
    ]
    block = random.randint(1, 25)
    moves = shed(loads, block)
    then = after(loads, moves)
    assert sum(load.pending for load in loads) == sum(load.pending for load in then)
    assert max(load.drain_s for load in then) <= max(load.drain_s for load in loads)
    mean_s = sum(load.drain_s for load in loads) / len(loads)
    givers, takers = {move.giver for move in moves}, {move.taker for move in moves}
    assert all(loads[giver].drain_s > mean_s for giver in givers)
    assert all(loads[taker].drain_s <= mean_s for taker in takers)
    assert all(move.urls % block == 0 and move.urls > 0 for move in moves)
    for back in shed(then, block):
        assert (back.taker, back.giver) not in {(move.giver, move.taker) for move in moves}


def test_the_heaviest_ends_within_a_block_of_the_best_there_is() -> None:
    loads = [Load(100, url_s) for url_s in (0.34, 0.8, 0.46, 1.55, 0.51)]
    then = after(loads, shed(loads, 1))
    best_s = 500 / sum(1 / load.url_s for load in loads)
    assert best_s <= max(load.drain_s for load in then) <= best_s + 1.55


def test_a_load_is_checked() -> None:
    for wrong in ((-1, 1.0, 0.0), (1, 0.0, 0.0), (1, float("nan"), 0.0), (1, 1.0, -0.1), (1, 1.0, float("inf"))):
        with pytest.raises(ValueError, match="cannot be"):
            Load(*wrong)
    with pytest.raises(ValueError, match="1 or more"):
        shed([Load(1, 1.0)], 0)
