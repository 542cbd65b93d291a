"""Partitions that end together: the exact solver against all partitions, and the paper's swarm against the solver."""

from collections.abc import Callable
from itertools import product
from math import ceil
from random import Random

import pytest

from kadcrawl.balance.batch_partition import (
    PARTICLES,
    TimeModel,
    equal_shares,
    exact_partition,
    makespan_s,
    monotone,
    normalized,
    swarm_partition,
)
from tests.support.cases import cases


def line(start_s: float, url_s: float) -> TimeModel:
    return lambda urls: start_s + urls * url_s


def drawn(random: Random) -> TimeModel:
    """A function that never falls, of any of several kinds."""
    kind = random.randrange(4)
    if kind == 0:
        return line(random.choice((0.0, random.uniform(0, 5))), random.uniform(0.1, 5))
    if kind == 1:
        return line(random.uniform(0, 9), 0.0)  # Never longer: ends may be equal over any range.
    if kind == 2:
        power = random.uniform(0.3, 2.5)
        return lambda urls: float(urls**power)
    step = random.randint(1, 4)
    return lambda urls: float(urls // step)


def best_makespan_s(times: list[TimeModel], total: int) -> float:
    """Return the shortest time of the slowest peer over all divisions of the URLs."""
    everything = product(range(total + 1), repeat=len(times))
    return min(makespan_s(times, urls) for urls in everything if sum(urls) == total)


@cases("seed", range(60))
def test_no_division_ends_before_the_exact_one(seed: int) -> None:
    random = Random(seed)
    times = [drawn(random) for _ in range(random.randint(1, 4))]
    total = random.randint(0, 9)
    found = exact_partition(times, total)
    assert total == sum(found.urls)
    assert min(found.urls) >= 0
    assert best_makespan_s(times, total) == makespan_s(times, found.urls)


def test_shares_of_equal_ends_are_found_as_they_were() -> None:
    shares = (164, 70, 120, 36, 110)
    times = [line(78.3125, (134 - 78.3125) / share) for share in shares]
    assert shares == exact_partition(times, 500).urls


def test_who_cannot_even_start_in_time_gets_nothing() -> None:
    assert (10, 0) == exact_partition([line(0, 1), line(1000, 0.001)], 10).urls


def test_the_exact_solver_needs_few_calls_per_halving_of_time_and_urls() -> None:
    asked = exact_partition([line(1, 0.01 * peer) for peer in range(1, 6)], 1_000_000).evaluations
    assert asked < 5 * 22 * 70


def test_the_exact_solver_ends_even_if_a_function_falls() -> None:
    bumpy: list[TimeModel] = [lambda urls: abs(urls - 3) % 4, lambda urls: (urls * 7) % 5]
    assert 50 == sum(exact_partition(bumpy, 50).urls)


@pytest.mark.parametrize(
    "solver", [exact_partition, lambda times, total: swarm_partition(times, total, Random(1), rounds=1)]
)
def test_there_is_somebody_and_no_fewer_than_no_urls(solver: Callable[[list[TimeModel], int], object]) -> None:
    with pytest.raises(ValueError, match="must be a peer"):
        solver([], 1)
    with pytest.raises(ValueError, match="no fewer URLs than none"):
        solver([line(0, 1)], -1)


def test_the_swarm_comes_near_the_exact_solution() -> None:
    times = [line(78.3, url_s) for url_s in (0.34, 0.8, 0.46, 1.55, 0.51)]
    best = makespan_s(times, exact_partition(times, 500).urls)
    for seed in range(3):
        assert (
            makespan_s(times, normalized(swarm_partition(times, 500, Random(seed), rounds=1000).urls, 500))
            <= 1.03 * best
        )


def test_the_swarm_starts_at_equal_shares() -> None:
    found = swarm_partition([line(0, 1), line(0, 5)], 7, Random(1), rounds=0)
    assert (3, 3) == found.urls
    assert 2 * PARTICLES == found.evaluations


def test_the_swarm_never_asks_for_fewer_than_no_urls() -> None:
    asked: list[float] = []

    def seen(urls: float) -> float:
        asked.append(urls)
        return urls

    swarm_partition([seen, line(0, 0.001), line(0, 0.01)], 6, Random(3), rounds=50)
    assert min(asked) >= 0


def test_particles_move_by_the_papers_formulas() -> None:
    """One peer, whose best place is where all start: so both pull there from the first round to the last."""
    asked: list[float] = []

    def seen(urls: float) -> float:
        asked.append(urls)
        return 0.0

    swarm_partition([seen], 50, Random(4), rounds=3)
    random = Random(4)
    expected = [50] * 30
    speeds, places = [random.random() for _ in range(30)], [50] * 30
    for _ in range(3):
        for particle in range(30):
            pull = 2 * random.random() * (50 - places[particle]) + 2 * random.random() * (50 - places[particle])
            speeds[particle] = 0.8 * speeds[particle] + pull
            places[particle] += ceil(speeds[particle])
        expected += places
    assert expected == asked


def test_the_swarm_finds_the_best_by_the_papers_fitness_even_undivided() -> None:
    """The second peer takes so long to start that its price gives it less than nothing. All shares together are too
    large."""
    times = [line(0, 1), line(100, 1)]

    def fitness(first: int, second: int) -> float:
        ends = times[0](max(0, first)), times[1](max(0, second))
        return (
            (ends[0] - ends[1]) ** 2 / 4 + (first + second - 6) ** 2 + (sum(abs(n) - n for n in (first, second))) ** 2
        )

    best = min(product(range(-30, 60), repeat=2), key=lambda urls: fitness(*urls))
    found = swarm_partition(times, 6, Random(2), rounds=400).urls
    assert fitness(*best) == pytest.approx(fitness(*found), rel=0.01)
    assert found[1] < 0
    assert sum(found) > 6
    assert (6, 0) == normalized(found, 6)


def test_chance_is_the_callers() -> None:
    times = [line(0, 1), line(3, 2), line(1, 0.5)]
    assert swarm_partition(times, 90, Random(7), rounds=20) == swarm_partition(times, 90, Random(7), rounds=20)
    assert swarm_partition(times, 90, Random(7), rounds=2) != swarm_partition(times, 90, Random(8), rounds=2)


@pytest.mark.parametrize(
    ("urls", "total", "expected"),
    [
        ((3, 3), 6, (3, 3)),
        ((3, 3), 7, (4, 3)),
        ((-2, 4), 4, (0, 4)),
        ((0, -1, 0), 4, (2, 1, 1)),
        ((10, 20, 30), 6, (1, 2, 3)),
        ((1, 1, 3), 8, (2, 1, 5)),
        ((1, 1, 1), 0, (0, 0, 0)),
    ],
)
def test_shares_that_do_not_sum_up_are_settled_in_proportion(
    urls: tuple[int, ...], total: int, expected: tuple[int, ...]
) -> None:
    assert expected == normalized(urls, total)


def test_equal_shares_differ_by_one_at_most() -> None:
    assert (3, 3, 2) == equal_shares(3, 8)
    assert (100,) * 5 == equal_shares(5, 500)


def test_a_rising_function_is_the_least_above_the_function() -> None:
    values = [1.0, 0.5, 2.0, 1.5, 3.0]
    risen = monotone(lambda urls: values[int(urls)], 4)
    assert [1.0, 1.0, 2.0, 2.0, 3.0] == [risen(urls) for urls in range(5)]
    assert 1.5 == risen(1.5)
    assert 3.0 == risen(9)


def test_nobody_who_gets_nothing_counts_for_the_makespan() -> None:
    assert 2.0 == makespan_s([line(0, 1), line(50, 1)], (2, 0))
    assert 0.0 == makespan_s([line(9, 1)], (0,))
