"""Test a peer as a task of its parent: its orders, its reports, and its end by an error."""

import asyncio
from contextlib import suppress
from itertools import pairwise
from pathlib import Path

import pytest

from kadcrawl import Job
from kadcrawl.cli.local import peer_life, supervisor
from kadcrawl.cli.local.child_task import (
    DROPS_A_LOOK,
    DROPS_INTERVAL_S,
    DROPS_OFTEN,
    SELDOM_INTERVAL_S,
    QueuedOrders,
    TaskLauncher,
    drop_pages,
)
from kadcrawl.cli.local.protocol import Assignment, Go, Unable
from kadcrawl.cli.local.supervisor import CrawlPlan, LocalSwarm
from kadcrawl.cli.view.progress import Progress
from kadcrawl.errors import StartError
from kadcrawl.system.start_up_memory import FilePages
from sim.loop import world
from tests.support.swarm.command import SITES, finished, slow_web
from tests.support.swarm.impatient import SETTINGS
from tests.support.waiting import until

PAGES = 300


async def test_an_order_stays_the_next_until_it_is_carried_out() -> None:
    orders = QueuedOrders()
    first, second = Go(["http://a.test/"]), Go([])
    orders.put(first)
    orders.put(second)
    orders.end()
    orders.put(Go([]))
    assert (first, first, False) == (await orders.next(), await orders.next(), orders.obeyed)
    orders.carried_out()
    assert (second, True, False) == (await orders.next(), orders.obeyed, orders.ended)
    orders.carried_out()
    assert (None, None, True) == (await orders.next(), await orders.next(), orders.ended)


def test_pages_of_files_are_dropped_often_while_peers_start_and_seldom_later(monkeypatch: pytest.MonkeyPatch) -> None:
    dropped: list[tuple[float, str]] = []

    async def story() -> None:
        with suppress(TimeoutError):
            await asyncio.wait_for(drop_pages(), DROPS_INTERVAL_S * DROPS_OFTEN + 2.5 * SELDOM_INTERVAL_S)

    with world(0) as loop:
        for way in ("look_and_drop", "drop"):
            monkeypatch.setattr(FilePages, way, lambda pages, way=way: dropped.append((loop.time(), way)))
        began = loop.time()
        loop.run_until_complete(story())
    gaps = [later - earlier for earlier, later in pairwise([began, *(at for at, _ in dropped)])]
    assert gaps == [pytest.approx(DROPS_INTERVAL_S)] * DROPS_OFTEN + [pytest.approx(SELDOM_INTERVAL_S)] * 2
    often = ["look_and_drop", *["drop"] * (DROPS_A_LOOK - 1)] * (DROPS_OFTEN // DROPS_A_LOOK)
    assert [*often, "look_and_drop", "look_and_drop"] == [way for _, way in dropped]


@pytest.mark.parametrize(("error", "status"), [(StartError("no way"), 2), (ZeroDivisionError("a bug"), 1)])
async def test_a_peer_that_fails_ends_alone_and_says_why(
    error: Exception, status: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def fail(life: object) -> None:
        raise error

    monkeypatch.setattr(peer_life.PeerLife, "run", fail)
    task = await TaskLauncher(1).launch(Assignment(str(tmp_path / "peer-1"), Job(), (), []))
    said = await task.next_report()
    assert (status, False) == (await task.wait(), task.is_running)
    if isinstance(error, StartError):
        assert (Unable("no way"), None) == (said, await task.next_report())
    else:
        assert said is None
        assert "peer.bug" in caplog.text


async def test_a_killed_peer_ends_its_reports(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def hang(life: object) -> None:
        await asyncio.Event().wait()

    monkeypatch.setattr(peer_life.PeerLife, "run", hang)
    task = await TaskLauncher(1).launch(Assignment(str(tmp_path / "peer-1"), Job(), (), []))
    task.kill()
    assert 1 == await task.wait()
    assert await task.next_report() is None


@pytest.mark.parametrize("respawn", [True, False])
async def test_the_others_live_on_when_one_peer_of_a_process_ends(
    respawn: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(peer_life, "LOCAL", SETTINGS)
    monkeypatch.setattr(supervisor, "log_to", lambda *_, **__: None)
    said: list[str] = []
    async with slow_web(PAGES) as site:
        with Progress("crawl") as progress:
            monkeypatch.setattr(progress, "say", said.append)
            plan = CrawlPlan(
                seeds=[site.url("/0")],
                job=Job(scope="any", delay_s=0.0),
                peers=4,
                data=tmp_path,
                allow_networks=("127.0.0.0/8",),
                in_process=True,
                respawn=respawn,
            )
            swarm = LocalSwarm(plan, progress)
            running = asyncio.create_task(swarm.run())
            await until(lambda: sum(finished(tmp_path).values()) >= 60)
            swarm._children[2].kill()
            summary = await running
    expected = "starting it again on its directory" if respawn else "the others go on with what it had"
    assert any(line.startswith("peer-3 died") and line.endswith(expected) for line in said), said
    assert 0 == summary.left_behind
    assert {site.url(f"/{n}", site=n % SITES) for n in range(PAGES)} == set(finished(tmp_path))
