"""One short run of each scenario of real processes that are really killed, and the judge's own faults."""

from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from pathlib import Path

import pytest

from scripts.chaos.dealt_web import DealtWeb, documentation, made_up
from scripts.chaos.network import NETWORK
from scripts.chaos.processes import PROCESSES
from scripts.chaos.run import RUN_S_MAX, RunSize, Scenario, cut_short, run
from scripts.chaos.swarm import OverError, ProcessSwarm
from sim.judge import Access

SMALL = RunSize(peers=5, delay_s=0.3, freeze_s=3.0, duplicates_max=0.05, unfinished_s=5.0)
"""The run is small, so the pages that a dying peer has fetched but not finished are a large share, and count apart."""
SITES = 8

pytestmark = pytest.mark.timeout(RUN_S_MAX + 60)
"""A run ends itself and says why."""


@pytest.fixture
async def web() -> AsyncIterator[DealtWeb]:
    async with DealtWeb(made_up(120), SITES) as web:
        yield web


@pytest.mark.chaos
@pytest.mark.parametrize("scenario", [name for name in PROCESSES if name not in ("everything", "rolled")])
async def test_whatever_happens_to_a_peer_the_others_finish_the_crawl(
    scenario: str, web: DealtWeb, tmp_path: Path
) -> None:
    outcome = await run(PROCESSES[scenario], 1, web, tmp_path / "run", SMALL)
    assert [] == outcome.faults
    assert outcome.events
    assert (120, 120, 0, 0) == (outcome.pages, outcome.fetched, outcome.lost, outcome.hurried)


@pytest.mark.chaos
async def test_a_rolling_restart_of_all_peers_loses_nothing_and_hurries_no_site(web: DealtWeb, tmp_path: Path) -> None:
    outcome = await run(PROCESSES["rolled"], 1, web, tmp_path / "run", replace(SMALL, delay_s=1.0))
    assert [] == outcome.faults
    assert [f"peer-{number}" for number in range(1, 6)] == [
        event.rpartition(" ")[2] for event in outcome.events if "started again" in event
    ]
    assert (120, 120, 0, 0) == (outcome.pages, outcome.fetched, outcome.lost, outcome.hurried)


async def test_the_judge_sees_what_is_not_as_it_should_be(web: DealtWeb, tmp_path: Path) -> None:
    """A site that is hurried, a page nobody fetched, one nobody logged, a peer that ends otherwise than it should."""

    async def spoiled(swarm: ProcessSwarm, random: object, size: RunSize) -> None:
        await swarm.until(1.0)
        await swarm.end(30.0)
        url, last = next(iter(web.truth)), web.access_log[-1]
        web.truth[url + "x"] = 200
        web.access_log.append(last)
        swarm.processes[0].exit_expected = 7
        for process in swarm.processes:  # One of them may have fetched all by then.
            (process.directory / "pages.jsonl").write_text("")

    outcome = await run(Scenario(spoiled), 1, web, tmp_path / "run", replace(SMALL, peers=2))
    assert "spoiled" == outcome.scenario
    for kind in ("never fetched", "in no page log", "hurried", "peer-1 exited with 0, not 7"):
        assert any(fault.startswith(kind) for fault in outcome.faults), kind


@pytest.mark.chaos
async def test_a_crawl_without_an_end_is_stopped_though_a_fault_comes_too_late(web: DealtWeb, tmp_path: Path) -> None:
    async def too_late(swarm: ProcessSwarm, random: object, size: RunSize) -> None:
        raise OverError

    size = replace(SMALL, peers=2, delay_s=0.1, options=("--recrawl-after", "7d"), stops=True)
    outcome = await run(Scenario(too_late), 1, web, tmp_path / "run", size)
    assert [] == outcome.faults
    happened = [event.partition(" ")[2] for event in outcome.events]
    assert ["over before the rest could happen", "kadcrawl stop"] == happened


def test_a_kill_explains_a_second_fetch_only_of_what_was_fetched_shortly_before() -> None:
    def asked(*times: float) -> list[Access]:
        return [Access(at, "http://a", "/1.html", 200, "") for at in times]

    assert 1 == cut_short(asked(7.0, 20.0), [8.0], 2.0)
    assert 0 == cut_short(asked(7.0), [8.0], 2.0)
    assert 0 == cut_short(asked(5.0, 20.0), [8.0], 2.0)
    assert 0 == cut_short(asked(9.0, 20.0), [8.0], 2.0)
    assert 2 == cut_short(asked(7.0, 10.0, 20.0), [8.0, 11.0], 2.0)


async def test_no_process_outlives_its_swarm(web: DealtWeb, tmp_path: Path) -> None:
    async with ProcessSwarm(tmp_path / "run", web, 0.1) as swarm:
        await swarm.begin(2)
        assert [None, None] == [peer.process.returncode for peer in swarm.processes]
    assert [-9, -9] == [peer.process.returncode for peer in swarm.processes]


@pytest.mark.parametrize("make", [made_up, documentation])
async def test_every_page_of_a_dealt_web_is_reachable(make: Callable[[int], dict[str, str]]) -> None:
    pages = make(60)
    if not pages:
        pytest.skip("the documentation has not been fetched")
    async with DealtWeb(pages, SITES) as web:
        assert dict.fromkeys(web.truth, 200) == web.truth
        assert len(pages) == len(web.truth) == 60
        assert len({url.split("/")[2] for url in web.truth}) == SITES


def test_every_scenario_says_what_happens() -> None:
    for name, scenario in (PROCESSES | NETWORK).items():
        assert name == scenario.name
        assert scenario.happens.__doc__, name
