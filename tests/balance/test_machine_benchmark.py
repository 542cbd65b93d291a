"""Benchmarks that stand for powers: they end after 50 ms of any clock, and a faster machine has more."""

import time
from collections.abc import Callable
from itertools import count

import pytest

from kadcrawl.balance.machine_benchmark import (
    BENCHMARK_S,
    CYCLES_PER_BYTE,
    HASHED_BYTES,
    PIPED_BYTES,
    benchmark_clock_ghz,
    benchmark_net_mbps,
    system_memory_gb,
)


def ticking(tick_s: float) -> Callable[[], float]:
    """A clock that moves by so much at each look."""
    ticks = count()
    return lambda: tick_s * next(ticks)


def test_the_clock_is_the_speed_of_a_hash() -> None:
    # The fifth step ends at the sixth look, when 50 ms have passed.
    assert HASHED_BYTES / 0.0125 * CYCLES_PER_BYTE / 1e9 * 3 / 4 == pytest.approx(benchmark_clock_ghz(ticking(0.0125)))


def test_the_link_is_the_speed_of_a_pipe() -> None:
    assert PIPED_BYTES / 0.0125 * 8 / 1e6 * 3 / 4 == pytest.approx(benchmark_net_mbps(ticking(0.0125)))


@pytest.mark.parametrize("benchmark", [benchmark_clock_ghz, benchmark_net_mbps])
def test_a_faster_machine_has_more(benchmark: Callable[[Callable[[], float]], float]) -> None:
    assert benchmark(ticking(0.001)) > 5 * benchmark(ticking(0.01))


@pytest.mark.parametrize("benchmark", [benchmark_clock_ghz, benchmark_net_mbps])
def test_a_clock_that_stands_still_tells_nothing(benchmark: Callable[[Callable[[], float]], float]) -> None:
    assert benchmark(lambda: 1.0) is None


@pytest.mark.parametrize("benchmark", [benchmark_clock_ghz, benchmark_net_mbps])
def test_a_benchmark_ends_once_its_time_is_over(benchmark: Callable[[Callable[[], float]], float]) -> None:
    looks: list[float] = []

    def clock() -> float:
        looks.append(time.perf_counter())
        return looks[-1]

    assert benchmark(clock) > 0
    assert looks[-2] - looks[0] < BENCHMARK_S <= looks[-1] - looks[0]


def test_posix_tells_its_memory() -> None:
    memory = system_memory_gb()
    assert memory is not None
    assert 0 < memory < 1e6
