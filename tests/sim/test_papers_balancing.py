"""Load balance by several policies on real peers: what is counted, and that near peers are asked before far ones."""

from functools import cache

import pytest

from sim.papers import balancing as experiment
from sim.papers.balancing import DRAIN, OFF, PAGES_PER_PEER_LARGE, POLICIES, SAMPLED, Balanced, balancing, crawl
from sim.papers.experiment import Result
from sim.papers.registry import LARGE

pytestmark = pytest.mark.worlds

PEERS, PAGES = 8, 60


@cache
def small(policy: str) -> Balanced:
    return crawl(1, PEERS, policy, PAGES)


@pytest.mark.parametrize("policy", POLICIES)
def test_every_policy_crawls_the_same_web_and_only_off_lends_nothing(policy: str) -> None:
    count = small(policy)
    assert PEERS * PAGES == count.pages
    assert (policy == OFF) is (not count.questions) is (not count.moved)
    assert count.lent == count.moved.total() / count.pages
    assert count.refused <= count.offers


def test_each_policy_decides_otherwise() -> None:
    assert len(POLICIES) == len({(small(policy).questions, small(policy).offers) for policy in POLICIES})


def test_drain_asks_a_third_of_what_a_sample_asks_and_is_not_much_slower_in_a_short_crawl() -> None:
    drain, sampled, off = (
        [crawl(seed, PEERS, policy, PAGES) for seed in (1, 2, 3)] for policy in (DRAIN, SAMPLED, OFF)
    )
    for one, sample, alone in zip(drain, sampled, off, strict=True):
        assert one.questions <= sample.questions / 3
        assert one.output > alone.output
    # Single worlds differ by a tenth in both directions.
    assert sum(one.output for one in drain) >= 0.9 * sum(one.output for one in sampled)


def test_the_same_seed_gives_the_same_counts() -> None:
    assert small(DRAIN) == crawl(1, PEERS, DRAIN, PAGES)


def test_each_size_has_its_findings_and_its_table(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(experiment, "crawl", lambda seed, peers, policy, pages: small(policy))
    told: list[float] = []
    result = balancing(1, told.append, sizes=(8, 64))
    assert isinstance(result, Result)
    assert 8 == len(result.findings)
    assert [[*POLICIES]] * 2 == [[row[0] for row in table.rows] for table in result.tables]
    assert 1.0 == told[-1]


def test_a_shorter_crawl_is_named_by_its_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[int, int]] = []

    def noted(seed: int, peers: int, policy: str, pages: int) -> Balanced:
        asked.append((peers, pages))
        return small(policy)

    monkeypatch.setattr(experiment, "crawl", noted)
    (table,) = LARGE["balancing-256"](1, lambda share: None).tables
    assert {(256, PAGES_PER_PEER_LARGE)} == set(asked)
    assert f"256 peers, {256 * PAGES_PER_PEER_LARGE:,} pages" == table.title
