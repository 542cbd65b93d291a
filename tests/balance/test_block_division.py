"""The division of blocks: all end together by the predicted times, with either solver."""

from random import Random

import pytest
from hypothesis import given, settings, strategies as st

from kadcrawl.balance.batch_partition import TimeModel, exact_partition
from kadcrawl.balance.block_division import Candidate, Solver, block_time, divided_blocks, swarm_solver
from kadcrawl.balance.drain import Backlog

H, FAR_S = 20, 1e9


def rate(url_s: float) -> TimeModel:
    return lambda urls: urls * url_s


def swarm(seed: int = 1) -> Solver:
    return swarm_solver(Random(seed), rounds=100)


def end_s(own: Candidate, others: list[Candidate], blocks: list[int]) -> float:
    """Return when the last of the lender and its borrowers ends."""
    assert isinstance(own.load, Backlog)
    ends = [own.load.busy_s + (own.load.pending - H * sum(blocks)) * own.load.url_s]
    for other, count in zip(others, blocks, strict=True):
        time = block_time(other, H)
        if count and time is not None:
            ends.append((other.load.drain_s if isinstance(other.load, Backlog) else 0.0) + time(count * H))
    return max(ends)


def test_unlike_machines_get_the_papers_shares() -> None:
    """The five nodes of P2, Table 1: a heavy peer that plays the first has all 500 URLs, and shares them out."""
    shares = (164, 70, 120, 36, 110)
    own, *others = (Candidate(Backlog(0, 1 / share), rate(1 / share)) for share in shares)
    own = Candidate(Backlog(500, 1 / shares[0]), own.predicted)
    for solve in (exact_partition, swarm()):
        blocks = divided_blocks(own, others, 2, 0.0, FAR_S, solve)
        assert all(abs(2 * count - share) <= 2 for count, share in zip(blocks, shares[1:], strict=True))


DRAWN = st.tuples(st.integers(0, 100), st.floats(0.05, 1.0), st.floats(0, 20))


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 3000), st.floats(0.05, 1.0), st.lists(DRAWN, max_size=12), st.booleans())
def test_both_solvers_give_the_same_within_a_block(
    pending: int, url_s: float, drawn: list[tuple[int, float, float]], predicted: bool
) -> None:
    own = Candidate(Backlog(pending, url_s), rate(url_s) if predicted else None)
    others = [Candidate(Backlog(*one), rate(one[1]) if predicted else None) for one in drawn]
    exact, by_swarm = (divided_blocks(own, others, H, 0.2, FAR_S, solve) for solve in (exact_partition, swarm()))
    assert all(abs(one - other) <= 1 for one, other in zip(exact, by_swarm, strict=True))
    assert end_s(own, others, exact) == pytest.approx(end_s(own, others, by_swarm))
    assert H * sum(exact) <= pending
    assert end_s(own, others, exact) <= max(own.load.drain_s, 0.2)  # type: ignore[union-attr]


def test_a_prediction_counts_for_a_machine_that_nobody_has_measured() -> None:
    own = Candidate(Backlog(200, 1.0), rate(1.0))
    slow, quick = Candidate(9, rate(4.0)), Candidate(9, rate(0.25))
    blocks = divided_blocks(own, [slow, quick], H, 0.2, FAR_S)
    assert blocks[1] > 3 * blocks[0]
    assert blocks[1] <= 9, "no more than it would try"


def test_a_cold_peer_without_powers_gets_its_trial() -> None:
    own = Candidate(Backlog(200, 1.0), rate(1.0))
    assert [1] == divided_blocks(own, [Candidate(1, None)], H, 0.2, FAR_S)


def test_what_a_peer_measured_says_how_long_a_block_takes_and_the_prediction_how_that_grows() -> None:
    def sped_up(urls: float) -> float:
        return float(urls**0.5)

    time = block_time(Candidate(Backlog(0, 2.0), sped_up), H)
    assert time is not None
    assert 2.0 * H == pytest.approx(time(H))
    assert 2 * time(H) == pytest.approx(time(4 * H))
    assert block_time(Candidate(3, None), H) is None


def test_a_peer_that_is_busy_for_longer_gets_nothing_and_changes_nothing() -> None:
    own, idle, busy = (Candidate(backlog, None) for backlog in (Backlog(200, 0.5), Backlog(0, 0.5), Backlog(900, 0.5)))
    for solve in (exact_partition, swarm()):
        with_busy = divided_blocks(own, [busy, idle], H, 0.2, FAR_S, solve)
        assert [0, *divided_blocks(own, [idle], H, 0.2, FAR_S, solve)] == with_busy
        assert 5 == with_busy[1]


def test_nobody_is_offered_more_than_it_needs_soon() -> None:
    own, idle = Candidate(Backlog(2000, 0.5), None), Candidate(Backlog(0, 0.5), None)
    (blocks,) = divided_blocks(own, [idle], H, 0.2, 10.0)
    assert 0.2 + (blocks - 1) * H * 0.5 <= 10.0 < 0.2 + blocks * H * 0.5


def test_a_machine_that_lies_to_be_infinitely_quick_costs_balance_alone() -> None:
    own = Candidate(Backlog(200, 0.5), None)
    others = [Candidate(3, lambda urls: 0.0), Candidate(Backlog(0, 0.5), None)]
    blocks = divided_blocks(own, others, H, 0.2, FAR_S)
    assert 3 == blocks[0]
    assert H * sum(blocks) <= 200


WILD = st.sampled_from([0.0, 1e-300, 1e-9, 1.0, 1e9, 1e300, float("inf")])


@settings(max_examples=100, deadline=None)
@given(
    st.integers(0, 1_000_000),
    st.sampled_from([1e-6, 0.5, 1e5]),
    st.lists(st.tuples(WILD, WILD, st.sampled_from([1, 64, Backlog(0, 1e-6), Backlog(7, 1e5, 1e9)])), max_size=5),
    st.booleans(),
)
def test_no_prediction_however_wild_breaks_the_division(
    pending: int, url_s: float, drawn: list[tuple[float, float, Backlog | int]], by_swarm: bool
) -> None:
    """A network may have any weights, and predicts for powers that a peer made up."""
    own = Candidate(Backlog(pending, url_s), None)
    others = [Candidate(load, lambda urls, a=a, b=b: a if urls < 9 else b) for a, b, load in drawn]  # type: ignore[misc]
    blocks = divided_blocks(own, others, H, 0.2, FAR_S, swarm() if by_swarm else exact_partition)
    assert all(count >= 0 for count in blocks)
    assert H * sum(blocks) <= pending
