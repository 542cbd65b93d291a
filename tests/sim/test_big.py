"""A large swarm, made small, crawls every page and reports its progress and cost."""

import gc
import re
import warnings
from pathlib import Path

import pytest
from click.testing import CliRunner

from kadcrawl.store import wal
from sim import big
from sim.__main__ import main
from sim.big import Alike, SwarmSnapshot, crawl, files_lacking, plan_of
from sim.few_files import FILES_OF_A_PEER
from sim.plan import RECOVERY_S, Kind

pytestmark = [pytest.mark.worlds, pytest.mark.timeout(600)]
"""A large world takes half a minute, and several minutes on a busy machine."""


def test_a_swarm_crawls_all_and_shows_how_far_it_is() -> None:
    checkpoint_bytes = wal.CHECKPOINT_BYTES
    sights: list[SwarmSnapshot] = []
    outcome, cost = crawl(plan_of(1, 40, kills=1), 400, show=sights.append)
    assert outcome.violations == {}
    assert (outcome.kills, outcome.urls) == (1, sights[-1].pages_all)
    assert 350 < outcome.urls < 450
    assert [sight.virtual_s for sight in sights] == sorted(sight.virtual_s for sight in sights)
    assert max(sight.peers for sight in sights) <= 40
    assert cost.memory_bytes > cost.disk_bytes > 0
    assert cost.wall_s > 0 < cost.cpu_s
    assert checkpoint_bytes == wal.CHECKPOINT_BYTES
    with warnings.catch_warnings(record=True) as left_open:
        warnings.simplefilter("always", ResourceWarning)
        gc.collect()
    assert left_open == []


def test_copies_become_whole_although_no_peer_knows_all_others() -> None:
    """This needs more peers than two buckets hold: backups that trusted only known owners once kept all others
    waiting."""
    outcome, _ = crawl(plan_of(1, 60, kills=5), 600, show=lambda sight: None)
    assert outcome.violations == {}


def test_who_joins_among_many_newcomers_hears_of_the_peer_that_crawls_its_cell() -> None:
    """No newcomer near the cell had taken it yet, and the peer that crawled it was far from all of them: once two peers
    asked one site at the same time."""
    outcome, _ = crawl(plan_of(1, 150, kills=0), 600, show=lambda sight: None)
    assert outcome.violations == {}


def test_sites_are_all_alike() -> None:
    web = Alike(pages=1_000, sites=20).web(plan_of(1, 10, kills=0))
    assert {site.pages for site in web.sites} == {50}
    assert max(web.delays(0.25).values()) == 0.25


def test_machines_are_killed_one_at_a_time() -> None:
    plan = plan_of(3, 30, kills=6)
    assert [event.kind for event in plan.events] == [Kind.KILL] * 6
    assert len({event.machines for event in plan.events}) == 6
    for event in plan.events:
        assert sum(event.at_s <= other.at_s < event.at_s + RECOVERY_S for other in plan.events) <= plan.exposed_max


def test_the_command_says_what_it_took() -> None:
    result = CliRunner().invoke(main, ["big", "--peers", "4", "--pages", "40", "--sites", "4"])
    assert result.exit_code == 0, result.output
    assert re.search(r"clean after [\d.]+ virtual seconds: \d+ URLs, \d+ requests, 0 duplicates", result.output)
    assert re.search(r"s of processor, .* GB of memory, .* GB on disks", result.output)


def test_more_peers_than_this_machine_has_files_for_are_refused_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine without files tried to join again and again, and its world never ended."""
    monkeypatch.setattr("sim.big.has_room", lambda count: count <= 12_000)
    monkeypatch.setattr("sim.big.files_allowed", lambda: 12_000)
    result = CliRunner().invoke(main, ["big", "--peers", "4000"])
    assert result.exit_code == 1
    assert "4,000 simulated peers keep about 16,500 files open, and this process may open 12,000" in result.output
    assert result.output.endswith("or take --peers 2875\n")
    monkeypatch.setattr("sim.big.has_room", lambda count: True)
    assert files_lacking(4_000) is None


def test_a_simulated_peer_keeps_no_more_files_open_than_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[int] = []
    monkeypatch.setattr(big, "MEASURED_APART_S", 1.0)

    def count(sight: SwarmSnapshot) -> None:
        opened.append(len(list(Path("/proc/self/fd").iterdir())))

    monkeypatch.setattr(big, "SHOWN_APART_S", 0.0)
    before = len(list(Path("/proc/self/fd").iterdir()))
    crawl(plan_of(1, 40, kills=0), 100, show=count)
    assert 40 * (FILES_OF_A_PEER - 2) < max(opened) - before < 40 * (FILES_OF_A_PEER + 1)
