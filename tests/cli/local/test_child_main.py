"""Test the pipe of a peer process: a report that does not fit, or that nobody reads, holds up no peer."""

import asyncio
import select
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from kadcrawl import Job
from kadcrawl.cli.local import child_main
from kadcrawl.cli.local.peer_life import PeerLife
from kadcrawl.cli.local.protocol import Assignment, DoingSites, Report, line
from kadcrawl.crawl.frontier.site_figures import SiteFigures
from kadcrawl.peer.environment import Environment


def telling_sites(peer: Any) -> asyncio.Task[None]:
    """Start to report the sites of a peer to the pipe."""
    orders: Any = None
    life = PeerLife(
        Assignment(str(Path()), Job(), (), []), Environment(), orders, child_main.PipeReports(), asyncio.Event()
    )
    return asyncio.create_task(life.tell_sites(peer, 0.0))


@pytest.mark.parametrize(("name_chars", "expected"), [(20, 18), (250, 9)], ids=["all fit", "half of them fit"])
async def test_a_report_of_sites_fits_one_write_to_the_pipe(
    name_chars: int, expected: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    figures = [SiteFigures(f"{n:03}" + "x" * name_chars, 1 + n % 7, 1 + n % 5, n, 1e3 - n) for n in range(99)]
    frontier = SimpleNamespace(figures=lambda now: figures)
    peer: Any = SimpleNamespace(
        components=SimpleNamespace(frontier=frontier), clock=SimpleNamespace(now=lambda: 0.0), job=Job()
    )
    written: list[bytes] = []
    sent = asyncio.Event()

    def write(said: bytes) -> None:
        written.append(said)
        sent.set()

    monkeypatch.setattr(child_main, "_write", write)
    monkeypatch.setattr(select, "select", lambda *_: ([], [True], []))
    telling = telling_sites(peer)
    async with asyncio.timeout(60):
        await sent.wait()
    telling.cancel()
    report = msgspec.json.decode(written[0], type=Report)
    assert isinstance(report, DoingSites)
    assert len(line(report)) <= select.PIPE_BUF
    assert (99, expected) == (report.sites.active, len(report.sites.lines))


async def test_sites_are_not_told_to_a_parent_that_does_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    looked = asyncio.Event()

    def figures(now: float) -> list[SiteFigures]:
        looked.set()
        return [SiteFigures("a", 1, 1.0, 0.0, 0.0)]

    peer: Any = SimpleNamespace(
        components=SimpleNamespace(frontier=SimpleNamespace(figures=figures)),
        clock=SimpleNamespace(now=lambda: 0.0),
        job=Job(),
    )
    written: list[bytes] = []
    monkeypatch.setattr(child_main, "_write", written.append)
    monkeypatch.setattr(select, "select", lambda *_: ([], [], []))
    telling = telling_sites(peer)
    async with asyncio.timeout(60):
        await looked.wait()
        await asyncio.sleep(0)
    telling.cancel()
    assert [] == written
