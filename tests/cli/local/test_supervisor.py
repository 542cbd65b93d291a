"""`kadcrawl crawl` ends when the crawl does, although one of its peers does not notice."""

import asyncio
import os
import signal
from collections.abc import Sequence
from pathlib import Path

import pytest
from aiohttp import web

from kadcrawl.cli.local import child_process, supervisor
from kadcrawl.cli.local.child import Child, RunningPeer
from kadcrawl.cli.local.protocol import Assignment, Go
from kadcrawl.cli.local.supervisor import CrawlPlan, LocalSwarm
from kadcrawl.cli.machine import MachineSettings
from kadcrawl.cli.view.progress import Progress
from kadcrawl.cli.view.summary import LINES_COMPARED_MAX
from kadcrawl.errors import StartError
from kadcrawl.link.wire.order_messages import StandingOrder
from kadcrawl.settings.job import Job
from tests.support.sites.web import Web, html
from tests.support.swarm import impatient
from tests.support.swarm.at_rest import directory_at_rest
from tests.support.swarm.command import SITES, finished

PATIENCE_S = 90.0


async def test_a_peer_stopped_at_the_end_does_not_hold_up_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(supervisor, "END_S", 2.0)
    monkeypatch.setattr(child_process, "PROGRAM", impatient.PROGRAM)
    said: list[str] = []
    async with Web(SITES) as site:
        go_on, asked = asyncio.Event(), asyncio.Event()
        urls = [site.url("/page", site=number) for number in range(SITES)]

        async def waiting(request: web.BaseRequest) -> web.StreamResponse:
            asked.set()
            await go_on.wait()
            return html()

        site.pages["/0"] = lambda request: html(*urls)
        site.pages["/page"] = waiting
        job = Job(scope="any", delay_s=0.0)
        with Progress("crawl") as progress:
            monkeypatch.setattr(progress, "say", said.append)
            plan = CrawlPlan(seeds=[site.url("/0")], job=job, peers=3, data=tmp_path, allow_networks=("127.0.0.0/8",))
            swarm = LocalSwarm(plan, progress)
            running = asyncio.create_task(swarm.run())
            async with asyncio.timeout(PATIENCE_S):
                await asked.wait()
                stopped = swarm._children[2]
                process = stopped._running
                assert isinstance(process, child_process.ChildProcess)
                os.kill(process.pid, signal.SIGSTOP)
                go_on.set()
                summary = await running
        assert set(urls) <= set(finished(tmp_path))
        assert 0 == summary.left_behind
        assert f"{stopped.name} has not noticed the end of the crawl within 2 s; killing it" in said
        assert stopped.dead


async def test_a_signal_while_the_first_peer_starts_ends_the_crawl(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with Web() as site:
        site.fallback = lambda request: html(f"{request.path}x")  # Without an end.
        job = Job(scope="any", delay_s=0.2)
        with Progress("crawl") as progress:
            plan = CrawlPlan(seeds=[site.url("/0")], job=job, peers=2, data=tmp_path, allow_networks=("127.0.0.0/8",))
            swarm = LocalSwarm(plan, progress)
            start = swarm._start

            async def interrupted(child: Child, bootstrap: Sequence[tuple[str, int]]) -> None:
                if not swarm.interrupted:
                    os.kill(os.getpid(), signal.SIGINT)
                    await swarm._stopping.wait()
                await start(child, bootstrap)

            monkeypatch.setattr(swarm, "_start", interrupted)
            async with asyncio.timeout(PATIENCE_S):
                await swarm.run()
        assert swarm.interrupted


async def test_a_crawl_that_is_interrupted_before_its_peers_are_up_tells_what_is_in_their_journals(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with Web() as site:
        site.pages["/"] = lambda request: html("/a", "/b")
        plan = CrawlPlan(
            seeds=[site.url()], job=Job(delay_s=0.0), peers=2, data=tmp_path, allow_networks=("127.0.0.0/8",)
        )
        with Progress("crawl") as progress:
            whole = await LocalSwarm(plan, progress).run()
            swarm = LocalSwarm(plan, progress)
            start = swarm._start

            async def interrupted(child: Child, bootstrap: Sequence[tuple[str, int]]) -> None:
                os.kill(os.getpid(), signal.SIGINT)
                await swarm._stopping.wait()
                await start(child, bootstrap)

            monkeypatch.setattr(swarm, "_start", interrupted)
            async with asyncio.timeout(PATIENCE_S):
                summary = await swarm.run()
    assert swarm.interrupted
    assert 3 == whole.pages
    assert (whole.pages, whole.urls_done, whole.urls_found) == (summary.pages, summary.urls_done, summary.urls_found)


async def test_a_signal_ends_the_crawl_although_a_peer_wants_to_join_a_peer_that_has_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Progress("crawl") as progress:
        job = Job(scope="any", delay_s=0.2)
        plan = CrawlPlan(
            seeds=["http://127.0.0.1:9/"], job=job, peers=2, data=tmp_path, allow_networks=("127.0.0.0/8",)
        )
        swarm = LocalSwarm(plan, progress)
        first, second = swarm._children
        launch = second._launch

        async def interrupted(assignment: Assignment) -> RunningPeer:
            running = await launch(assignment)
            os.kill(os.getpid(), signal.SIGINT)
            assert first._reading is not None
            await first._reading
            return running

        monkeypatch.setattr(second, "_launch", interrupted)
        async with asyncio.timeout(PATIENCE_S):
            await swarm.run()
    assert (True, True) == (swarm.interrupted, first.ended)


async def test_a_peer_that_is_launched_after_the_end_was_asked_for_ends_at_once(tmp_path: Path) -> None:
    class Launched:
        """Stand in for a peer that ends before it is ready if it gets no more orders."""

        is_running = True

        def __init__(self) -> None:
            self.reports: asyncio.Queue[None] = asyncio.Queue()

        def say(self, order: Go) -> None: ...

        def end_orders(self) -> None:
            self.reports.put_nowait(None)

        async def next_report(self) -> None:
            return await self.reports.get()

        async def wait(self) -> int:
            return 0

        def kill(self) -> None: ...

    async def launch(assignment: Assignment) -> RunningPeer:
        return Launched()

    child = Child(1, tmp_path, launch, tmp_path / "log", 1)
    assert not child.was_started
    child.finish()
    async with asyncio.timeout(PATIENCE_S):
        with pytest.raises(StartError):
            await child.start(Job(), (), [], MachineSettings(), None, 1.0)
        assert (True, False) == (child.was_started, await child.wait())


@pytest.mark.parametrize("lines_max", [0, LINES_COMPARED_MAX])
async def test_a_summary_has_examples_of_failures_however_large_the_logs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lines_max: int
) -> None:
    monkeypatch.setattr(supervisor, "LINES_COMPARED_MAX", lines_max)
    async with Web() as site:
        site.pages["/"] = lambda request: html("/gone", "/teapot")
        site.pages["/gone"] = lambda request: web.Response(status=410)
        site.pages["/teapot"] = lambda request: web.Response(status=499)
        await directory_at_rest(tmp_path / "peer-1", StandingOrder("exclude", "a.example", 1.0, 7, user="ann"))
        plan = CrawlPlan(
            seeds=[site.url()],
            job=Job(delay_s=0.0),
            peers=2,
            data=tmp_path,
            allow_networks=("127.0.0.0/8",),
        )
        with Progress("crawl") as progress:
            summary = await LocalSwarm(plan, progress).run()
    assert {"http_410": 1, "http_4xx": 1} == summary.urls_failed
    assert [("exclude", "a.example", "ann")] == [(it.kind, it.about, it.user) for it in summary.orders], "at its end"
    assert {"http_410": site.url("/gone"), "http_4xx": site.url("/teapot")} == summary.failed_examples
