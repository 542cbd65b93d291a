"""Table 2 on real peers: the peers keep their rates, URLs arrive at their owners, and lending brings what it should."""

from functools import cache
from unittest import mock

import pytest

from kadcrawl.lending.balancer import Balancer
from sim.papers import table2_peers as experiment
from sim.papers.balancing import DRAIN, LEVEL, OFF, PRINTED
from sim.papers.experiment import Result
from sim.papers.level_model import run
from sim.papers.table2 import BLOCK, PEERS, light
from sim.papers.table2_peers import gain, table2
from sim.papers.table2_run import SPEED, PeerRun, counted, run_peers
from sim.papers.unequal_web import BUSY_S, EmptyWeb, PacedServer
from sim.web_server import Head

pytestmark = [pytest.mark.xdist_group("table2"), pytest.mark.worlds]
"""Keeps these tests in one process, which plays each run once."""

UNTIL_S, SETTLED_S, SAMPLE_S = 600.0, 400.0, 200.0


@cache
def short(policy: str, seed: int = 1) -> PeerRun:
    return run_peers(policy, seed=seed, until=UNTIL_S, interval_s=60.0, settled_at=SETTLED_S, sample_s=SAMPLE_S)


def test_a_busy_client_gets_its_rate_and_an_idle_one_waits_a_whole_page() -> None:
    server = PacedServer(EmptyWeb(), {"10.0.0.1": 2.0, "10.0.0.2": 1.0})
    page = Head("a.test", "/", keep=True)
    assert 0.5 == server.take(10.0, page, "10.0.0.1").latency_s
    # The answer came at 10.5 s, and the next request 0.1 s later: its answer is due at 11 s.
    assert 0.4 == pytest.approx(server.take(10.6, page, "10.0.0.1").latency_s)
    assert 0.5 == server.take(11.0 + 2 * BUSY_S, page, "10.0.0.1").latency_s
    assert 1.0 == server.take(10.6, page, "10.0.0.2").latency_s
    assert 0.0 == server.take(10.7, Head("a.test", "/robots.txt", keep=True), "10.0.0.2").latency_s


def test_every_url_that_arrived_is_fetched_once_or_pending() -> None:
    for policy in (OFF, LEVEL):
        found = short(policy)
        # A page may be under way, or reported and not yet struck off at its owner.
        assert abs(found.arrived - found.pages - found.pending) <= 3 * len(PEERS)
        assert 0 == found.fetched_twice


def test_without_lending_each_peer_crawls_what_its_rates_allow() -> None:
    found = short(OFF)
    assert 0 == found.lent == found.questions
    for crawled, peer in zip(found.crawled, PEERS, strict=True):
        if peer.arrivals > peer.crawls:
            assert 9 * peer.crawls * UNTIL_S / 10 <= crawled <= peer.crawls * UNTIL_S + 1
        else:
            assert crawled == pytest.approx(peer.arrivals * UNTIL_S, rel=0.4)


def test_real_peers_without_lending_do_what_the_counting_model_does() -> None:
    model = run(
        PEERS,
        seed=1,
        block=BLOCK,
        policy="none",
        interval_s=60.0,
        until=UNTIL_S,
        settled_at=SETTLED_S // 60 * 60,
        sample_s=SAMPLE_S,
    )
    assert sum(sample.arrived for sample in model.samples) == pytest.approx(short(OFF).arrived, abs=3)
    assert model.pages == pytest.approx(short(OFF).pages, rel=0.03)


def test_lending_brings_pages_and_makes_no_light_peer_heavy() -> None:
    level = short(LEVEL)
    assert gain(level, short(OFF)) > 20
    assert 0 == level.flipped
    assert 0 < level.lent
    # In so short a time one of them may have no loan yet.
    assert all(level.crawled[peer] >= short(OFF).crawled[peer] for peer in light())
    assert sum(level.crawled[peer] > short(OFF).crawled[peer] for peer in light()) >= len(light()) - 1
    assert gain(short(DRAIN), short(OFF)) > 10


def test_a_light_peer_that_a_loan_makes_heavy_is_counted() -> None:
    levels = iter([-0.5, 0.5, -2.0, -1.0, 0.5, 1.5])
    world, result = mock.Mock(level_of=lambda balancer: next(levels)), PeerRun()
    with mock.patch.object(Balancer, "accept_loan", return_value=True), counted(world, result):
        assert all(Balancer.accept_loan(mock.Mock(), mock.Mock()) for _ in range(3))
    assert 1 == result.flipped


def test_work_areas_are_those_of_table_2() -> None:
    highest = short(LEVEL).highest
    assert all(highest[peer] <= 1.2 for peer in light())
    # Peer 4 gets three times what it crawls, and cannot have given all of it in so short a time.
    assert highest[3] > 1


def test_at_the_papers_own_rates_as_many_urls_arrive_and_time_is_not_scaled() -> None:
    scaled, own = (
        run_peers(OFF, seed=1, until=60.0, interval_s=20.0, settled_at=40.0, sample_s=20.0, speed=speed)
        for speed in (SPEED, 1.0)
    )
    assert own.arrived == pytest.approx(scaled.arrived, abs=3)
    # What a link waits for its owner weighs less.
    assert own.pages >= scaled.pages
    # Heartbeats go on for twenty times as long.
    assert own.datagrams > 3 * scaled.datagrams


def test_heavy_peers_fall_and_light_peers_rise_only_with_lending(monkeypatch: pytest.MonkeyPatch) -> None:
    def findings(policies: dict[str, str]) -> dict[str, bool | None]:
        monkeypatch.setattr(experiment, "run_peers", lambda policy, seed, **rest: short(policies[policy]))
        result = table2(1, lambda share: None, hours=UNTIL_S / 3600)
        return {finding.what.partition(", 0.")[0]: finding.reached for finding in result.findings}

    aims = [
        "pending URLs of the heavy peers at the end, of those without lending",
        "light peers (of 4) with a higher load ratio than without lending",
    ]
    found = findings({OFF: OFF, PRINTED: DRAIN, LEVEL: DRAIN, DRAIN: DRAIN})
    assert all(found[f"{policy}: {aim}"] for policy in (LEVEL, DRAIN) for aim in aims)
    assert found["off: heavy peers (of 4) whose load ratio is over 1 and grows"]
    found = findings(dict.fromkeys((OFF, PRINTED, LEVEL, DRAIN), OFF))
    assert not any(found[f"{policy}: {aim}"] for policy in (LEVEL, DRAIN) for aim in aims)


def test_the_same_seed_gives_the_same_run() -> None:
    once, again = (
        run_peers(LEVEL, seed=2, until=120.0, interval_s=20.0, settled_at=60.0, sample_s=60.0) for _ in range(2)
    )
    assert once == again
    assert once.lent > 0


def test_the_result_has_real_peers_beside_the_counting_model(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        experiment, "run_peers", lambda policy, seed, **rest: short(policy if policy != PRINTED else LEVEL)
    )
    told: list[float] = []
    result = table2(1, told.append, hours=UNTIL_S / 3600)
    assert isinstance(result, Result)
    assert told == sorted(told)
    assert 1.0 == told[-1]
    assert "{" not in result.how
    kinds = [row[:2] for row in result.tables[1].rows]
    assert [(policy, "real peers") for policy in (OFF, PRINTED, LEVEL, DRAIN)] == kinds[:4]
    assert {"counting model"} == {kind for _, kind in kinds[4:]}
    assert [*range(1, 9)] == [row[0] for row in result.tables[0].rows]
    for table in result.tables:
        assert {len(table.heading)} == {len(row) for row in table.rows}
    for figure in result.figures:
        for series in figure.series:
            assert len(series.xs) == len(series.ys) > 1
