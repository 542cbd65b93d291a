"""The paper's eight peers: targets of load balance by heavy blocks, and correct counts of the model."""

from dataclasses import replace
from random import Random

import pytest

from kadcrawl.keys import ID_BITS, firstdiff
from sim.papers.experiment import Result
from sim.papers.level_model import LevelRun, Policy, buckets_of, run
from sim.papers.levels import FEWER, levels
from sim.papers.table2 import BLOCK, PEERS, gain_bound, interval_needed, light
from tests.support.forks import group

pytestmark = [pytest.mark.worlds, pytest.mark.xdist_group("levels")]
"""Keeps these tests in one process, which computes the result once."""


def short(policy: Policy, *, seed: int = 1, interval_s: float = 60.0, share: float = 1.0, hours: int = 3) -> LevelRun:
    return run(
        [replace(peer, arrivals=peer.arrivals * share) for peer in PEERS],
        seed=seed,
        block=BLOCK,
        policy=policy,
        interval_s=interval_s,
        until=hours * 3600.0,
        settled_at=3600.0,
        sample_s=600.0,
    )


@pytest.fixture(scope="module")
def told() -> list[float]:
    return []


@pytest.fixture(scope="module")
def levels_result(told: list[float]) -> Result:
    return levels(1, told.append)


def test_what_was_to_be_reached_is_reached(levels_result: Result) -> None:
    asked = [finding for finding in levels_result.findings if finding.reached is not None]
    assert 5 == len(asked)
    assert [] == [finding for finding in asked if not finding.reached]


def test_the_gain_is_near_its_bound_and_the_backlog_grows_as_it_must(levels_result: Result) -> None:
    near = {
        finding.what: finding
        for finding in levels_result.findings
        if finding.bound and "printed" not in finding.what and "W by" not in finding.what
    }
    assert 4 == len(near)
    for finding in near.values():
        assert finding.ours == pytest.approx(finding.bound, rel=0.04)


def test_with_the_papers_own_bound_for_w_the_gain_is_below_the_printed_one(levels_result: Result) -> None:
    own, ours = (finding for finding in levels_result.findings if "W by the bounds" in finding.what)
    assert own.theirs is not None
    assert 20 < own.ours < own.theirs < 50 < ours.ours


def test_progress_ends_at_one_and_figures_are_whole(levels_result: Result, told: list[float]) -> None:
    assert told == sorted(told)
    assert 1.0 == told[-1]
    for figure in levels_result.figures:
        for series in figure.series:
            assert len(series.xs) == len(series.ys) > 1
    for table in levels_result.tables:
        assert {len(table.heading)} == {len(row) for row in table.rows}
    assert "{" not in levels_result.how


@pytest.mark.parametrize(("share", "bound"), [(1.0, 57.2), (FEWER, 67.7), (0.1, 0.0)])
def test_the_bound_is_all_power_or_all_arrivals_over_what_each_does_alone(share: float, bound: float) -> None:
    assert bound == pytest.approx(gain_bound(PEERS, share), abs=0.05)
    alone = sum(min(peer.crawls, peer.arrivals * share) for peer in PEERS)
    together = min(sum(peer.crawls for peer in PEERS), sum(peer.arrivals * share for peer in PEERS))
    assert together / alone == pytest.approx(1 + gain_bound(PEERS, share) / 100)


@pytest.mark.parametrize(
    ("stuck", "given"), [([4], 0.316), ([4, 7], 0.196), ([3, 4], 0.206), ([8], 0.364), ([3, 4, 7, 8], 0.0)]
)
def test_who_is_stuck_adds_nothing_to_the_bound(stuck: list[int], given: float) -> None:
    assert 100 * given / 0.636 == pytest.approx(gain_bound(PEERS, stuck=stuck))


def test_by_the_printed_rules_no_gain_exceeds_that_of_runs_not_stuck(levels_result: Result) -> None:
    stuck = next(table for table in levels_result.tables if "stuck" in table.heading[1])
    assert len(stuck.rows) == 8
    assert len({row[1] for row in stuck.rows}) > 1
    for _, peers, bound, gained, _ in stuck.rows:
        assert isinstance(bound, float)
        assert isinstance(gained, float)
        assert gained < bound + 57.2 / 2, peers  # Who is stuck at last may have given for half the day.


@pytest.mark.parametrize(("peer", "interval_s"), [(4, 20 * 6 / 0.11), (5, 20 * 4 / 0.017), (7, 20 * 2 / 0.086)])
def test_a_work_area_needs_an_interval_in_both_cases_of_the_bound(peer: int, interval_s: float) -> None:
    assert interval_s == pytest.approx(interval_needed(PEERS[peer]))


@pytest.mark.parametrize("policy", ["none", "published", "ours"])
def test_every_url_that_arrived_is_crawled_or_pending(policy: Policy) -> None:
    done = short(policy)
    assert sum(sample.arrived for sample in done.samples) == done.pages + done.pending
    assert done.pages == sum(sample.pages for sample in done.samples) == sum(done.crawled)


def test_same_seed_same_run_and_the_same_arrivals_with_and_without() -> None:
    assert short("ours") == short("ours")
    assert short("ours") != short("ours", seed=2)
    assert [sample.arrived for sample in short("ours").samples] == [sample.arrived for sample in short("none").samples]


def test_the_rules_as_printed_make_light_peers_heavy_and_ours_do_not() -> None:
    assert short("published", hours=6).flipped > 0
    assert 0 == short("ours", hours=6).flipped


@pytest.mark.parametrize("seed", range(2, 5))
def test_other_chance_gives_the_same_answer(seed: int) -> None:
    full = short("ours", seed=seed, interval_s=8.0)
    assert all(full.lowest[peer] >= 0.5 and full.highest[peer] <= 1.2 for peer in light())
    assert max(short("ours", seed=seed, interval_s=8.0, share=FEWER).highest) <= 1.5


def test_buckets_stand_from_near_to_far_and_hold_everybody_else() -> None:
    rng = Random(1)
    ids = [rng.getrandbits(ID_BITS) for _ in range(20)]
    for me in range(20):
        buckets = buckets_of(ids, me)
        assert sorted(peer for bucket in buckets for peer in bucket) == [peer for peer in range(20) if peer != me]
        distances = [{firstdiff(ids[me], ids[peer]) for peer in bucket} for bucket in buckets]
        assert all(len(distance) == 1 for distance in distances)
        assert distances == sorted(distances, key=min)


def test_these_tests_run_in_one_process(request: pytest.FixtureRequest) -> None:
    """The suffix of a group is what pytest-xdist divides tests by. Forks look at the group itself."""
    assert group(request.node) == "levels"
    if request.config.getoption("loadgroup", False):
        assert request.node.nodeid.endswith("@levels")
