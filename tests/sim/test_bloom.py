"""Swarms that keep fingerprints in place of keys: as whole as others, and pages come round by the links to them."""

import asyncio
import sqlite3
import tempfile
from collections import defaultdict
from contextlib import closing
from itertools import pairwise
from pathlib import Path
from typing import Any, get_args

import pytest
from msgspec.structs import replace

from kadcrawl.crawl import build
from kadcrawl.replication import cells, epoch_filter_transfer
from kadcrawl.replication.cells import Cells
from kadcrawl.replication.epoch_filter_chunks import IncomingEpochFilters
from kadcrawl.settings.job import Job
from kadcrawl.settings.limits import Limits
from kadcrawl.settings.recrawl_checks import CalendarGrain
from kadcrawl.store.bloom import cell_filters, epoch_filter
from kadcrawl.store.bloom.calendar_epochs import begin_s, number as number_of
from kadcrawl.store.bloom.cell_filters import EncodedFilter
from kadcrawl.store.bloom.expiring_filter import Period
from kadcrawl.store.frontier_entry import FrontierEntry
from sim.draw import draw
from sim.loop import world
from sim.machines import Machines
from sim.plan import Event, Kind, Plan
from sim.trial import Size, begins_at, run
from sim.web_server import WebServer
from tests.support.sites.changing_pages import DELAY_S, PAGES, SITES, ChangingPages
from tests.support.sites.sim_pages import MEMORY, WEB_IP

pytestmark = pytest.mark.worlds

EPOCH_S, EPOCHS = 15.0, 2
ROUND_S = 2 * EPOCH_S * EPOCHS
"""Seconds until each page has been met after its period.

Its seed comes at the beginning of an epoch, and the links on it are accepted unless they were finished in a later epoch
than the seed.
"""
LATE_S = 25.0


@pytest.mark.parametrize("seed", [2, 7, 12])
def test_with_filters_from_the_first_key_nothing_is_lost_or_fetched_twice(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (cell_filters, epoch_filter):
        monkeypatch.setattr(module, "EXACT_MAX", 1)
    monkeypatch.setattr(epoch_filter, "CAPACITY_LEAST", 4)
    outcome = run(draw(seed, 16).kept_by("bloom"))
    assert {} == outcome.violations
    assert outcome.plan.events


def test_borrowers_keep_no_fingerprint_that_only_the_owner_is_to_keep(monkeypatch: pytest.MonkeyPatch) -> None:
    journal, foreign = Cells.journal_borrowed, 0

    def noted(self: Cells, entry: FrontierEntry, *rest: Any, reported: bool) -> bool:
        nonlocal foreign
        is_foreign = reported and self._store.state(entry.key) is None
        is_first = journal(self, entry, *rest, reported=reported)
        if is_foreign:
            foreign += 1
            assert self._store.state(entry.key) is None, "a fingerprint cannot be taken back"
        return is_first

    monkeypatch.setattr(Cells, "journal_borrowed", noted)
    outcomes = [run(draw(seed, 16).kept_by("bloom")) for seed in (2, 7)]
    assert [{}, {}] == [outcome.violations for outcome in outcomes]
    assert sum(outcome.lent for outcome in outcomes) >= foreign > 5


@pytest.mark.parametrize("seed", [2, 5])
def test_nothing_is_lost_when_most_epoch_filters_travel_in_parts(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """With seed 2 a partition cuts senders off amid their filters, and other owners send theirs to the same backup."""
    for module in (cell_filters, epoch_filter):
        monkeypatch.setattr(module, "EXACT_MAX", 1)
    monkeypatch.setattr(epoch_filter, "CAPACITY_LEAST", 4)
    for module in (epoch_filter_transfer, cells):
        monkeypatch.setattr(module, "EPOCH_FILTER_BYTES_MAX", 60)
    arrived: list[EncodedFilter] = []
    whole = IncomingEpochFilters.whole

    def noted(incoming: IncomingEpochFilters, sender: bytes) -> EncodedFilter:
        arrived.append(whole(incoming, sender))
        return arrived[-1]

    monkeypatch.setattr(IncomingEpochFilters, "whole", noted)
    assert {} == run(draw(seed, 16).kept_by("bloom")).violations
    assert len(arrived) > 5


def test_a_swarm_whose_fingerprints_are_often_wrong_still_comes_to_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (cell_filters, epoch_filter):
        monkeypatch.setattr(module, "EXACT_MAX", 1)
    monkeypatch.setattr(epoch_filter, "CAPACITY_LEAST", 4)
    monkeypatch.setattr(build, "period_of", lambda job: Period(1e9, 1, error=0.1))
    found: set[str] = set()
    for seed in (2, 3, 7):
        found |= run(draw(seed, 16).kept_by("bloom")).violations.keys()
    assert "nothing_lost" in found, "the errors do show"
    # No hang, no exception, no site hurried, no two opinions of who owns what. A URL that one filter alone takes for
    # known counts as one with too few copies.
    errors = {"nothing_lost", "nothing_made_up", "copied_before_acknowledged", "three_copies", "no_early_end"}
    assert found <= errors


async def _live_with_filters(machines: Machines) -> None:
    machines.start(1)
    for number in range(2, 5):
        await asyncio.sleep(0.5)
        machines.join(number)
    while not all(machine.begun for machine in machines.live):
        await asyncio.sleep(0.5)
    first = machines.machines[1]
    assert first.peer is not None
    await first.host.spawn(first.peer.crawl([f"http://site-{site}.example/0" for site in range(SITES)]))
    await asyncio.sleep(60)
    machines.kill(2)
    await asyncio.sleep(30)
    machines.join(5)
    machines.join(2, "same")
    await asyncio.sleep(30)
    machines.leave(3)
    machines.kill(1)
    await asyncio.sleep(120)


async def _crawl_for_three_hours(machines: Machines) -> None:
    machines.start(1)
    machines.join(2)
    while not all(machine.begun for machine in machines.live):
        await asyncio.sleep(0.5)
    first = machines.machines[1]
    assert first.peer is not None
    await first.host.spawn(first.peer.crawl(["http://site-0.example/0"]))
    await asyncio.sleep(3 * 3_600)


def test_the_seeds_are_offered_again_when_an_hour_of_the_calendar_begins() -> None:
    with tempfile.TemporaryDirectory(dir=MEMORY) as directory, world(3) as loop:
        server = WebServer(ChangingPages())
        job = Job(delay_s=DELAY_S, recrawl_after_s=7_200, calendar_grain="hour", history="bloom", max_depth=0)
        disks = Path(directory) / "disks"
        with Machines(loop, ChangingPages(), job=job, limits=Limits(), seed=3, directory=disks) as machines:
            host = loop.network.host(WEB_IP)
            loop.run_until_complete(host.spawn(loop.create_server(server.connect, WEB_IP, 80)))
            loop.run_until_complete(_crawl_for_three_hours(machines))
            assert [] == machines.errors
            ahead_s = machines.wall - loop.time()
    first, second = (request.time + ahead_s for request in server.log if request.path == "/0")
    assert number_of("hour", first) + 2 == number_of("hour", second)
    assert second - begin_s("hour", number_of("hour", second)) < LATE_S


@pytest.mark.parametrize("grain", get_args(CalendarGrain))
def test_a_unit_of_the_calendar_that_begins_amid_a_crawl_forgets_nothing(grain: CalendarGrain) -> None:
    plan = Plan(4, 4, (), delay_s=0.5, history="bloom", calendar=grain, boundary_s=7.0, max_pages=55)
    begins, size = begins_at(plan), Size(pages=60, sites=6)
    assert number_of(grain, begins + 6.9) + 1 == number_of(grain, begins + 7.1)
    kill = (Event(9.0, Kind.KILL, (1,)),)
    assert [{}, {}] == [run(replace(plan, events=events), size).violations for events in ((), kill)]
    assert "one_fetch_per_owner" in run(plan, size, mutant="forgotten_with_the_calendar").violations


@pytest.mark.parametrize("seed", [1, 2])
def test_pages_come_round_when_they_are_met_after_their_period(seed: int) -> None:
    with tempfile.TemporaryDirectory(dir=MEMORY) as directory, world(seed) as loop:
        server = WebServer(ChangingPages())
        job = Job(delay_s=DELAY_S, recrawl_after_s=EPOCH_S * EPOCHS, grain_s=EPOCH_S, history="bloom")
        disks = Path(directory) / "disks"
        with Machines(loop, ChangingPages(), job=job, limits=Limits(), seed=seed, directory=disks) as machines:
            host = loop.network.host(WEB_IP)
            loop.run_until_complete(host.spawn(loop.create_server(server.connect, WEB_IP, 80)))
            loop.run_until_complete(_live_with_filters(machines))
            assert [] == machines.errors
            for machine in machines.live:
                assert machine.peer is not None
                with closing(sqlite3.connect(f"file:{machine.peer.store.journal.path}?mode=ro", uri=True)) as db:
                    assert 0 == db.execute("SELECT count(*) FROM history WHERE state=2").fetchone()[0]
                    assert db.execute("SELECT count(DISTINCT grain) FROM slice").fetchone()[0] <= EPOCHS + 1
    visits: defaultdict[str, list[float]] = defaultdict(list)
    sites: defaultdict[str, list[float]] = defaultdict(list)
    for request in server.log:
        sites[request.host].append(request.time)
        if request.path != "/robots.txt":
            visits[request.url].append(request.time)
    assert SITES * PAGES == len(visits)
    for url, times in visits.items():
        gaps = [later - earlier for earlier, later in pairwise(times)]
        assert max([*gaps, loop.time() - times[-1]]) <= ROUND_S + LATE_S, (url, times)
        # Only a peer that died amid a page, or with its epoch filter on no other disk, causes a second fetch.
        assert sum(gap < EPOCH_S * (EPOCHS - 1) for gap in gaps) <= 2, (url, times)
    for site, times in sites.items():
        assert min(later - earlier for earlier, later in pairwise(sorted(times))) >= DELAY_S - 1e-5, site
