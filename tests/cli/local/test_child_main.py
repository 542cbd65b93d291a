"""Test the pipe of a peer process.

A report that does not fit, or that nobody reads, holds up no peer. A line that is cut off is the end of the parent.
"""

import asyncio
import select
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from kadcrawl import Job
from kadcrawl.cli.local import child_main
from kadcrawl.cli.local.child_process import PROGRAM
from kadcrawl.cli.local.peer_life import PeerLife
from kadcrawl.cli.local.protocol import Assignment, DoingSites, Go, Ready, Report, line
from kadcrawl.crawl.frontier.site_figures import SiteFigures
from kadcrawl.peer.environment import Environment
from kadcrawl.settings.site_settings import SiteSettings
from kadcrawl.system.event import Event


def telling_sites(peer: Any) -> asyncio.Task[None]:
    """Start to report the sites of a peer to the pipe."""
    orders: Any = None
    life = PeerLife(Assignment(str(Path()), Job(), (), []), Environment(), orders, child_main.PipeReports(), Event())
    return asyncio.create_task(life.tell_sites(peer, 0.0))


@pytest.mark.parametrize(("name_chars", "expected"), [(20, 18), (250, 9)], ids=["all fit", "half of them fit"])
async def test_a_report_of_sites_fits_one_write_to_the_pipe(
    name_chars: int, expected: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    figures = [SiteFigures(f"{n:03}" + "x" * name_chars, 1 + n % 7, 1 + n % 5, n, 1e3 - n) for n in range(99)]
    frontier = SimpleNamespace(figures=lambda now: figures)
    site_settings = SiteSettings(Job())
    peer: Any = SimpleNamespace(
        components=SimpleNamespace(frontier=frontier, site_settings=site_settings),
        clock=SimpleNamespace(now=lambda: 0.0),
        job=Job(),
    )
    written: list[bytes] = []
    sent = Event()

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
    looked = Event()

    def figures(now: float) -> list[SiteFigures]:
        looked.set()
        return [SiteFigures("a", 1, 1.0, 0.0, 0.0)]

    peer: Any = SimpleNamespace(
        components=SimpleNamespace(frontier=SimpleNamespace(figures=figures), site_settings=SiteSettings(Job())),
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


def run_child(said: bytes) -> "subprocess.CompletedProcess[bytes]":
    """Return the run of a peer process whose parent says this and is gone."""
    return subprocess.run([sys.executable, "-c", PROGRAM], input=said, capture_output=True, timeout=60)


@pytest.mark.parametrize("length", [0, 1, 20, -1])
def test_a_parent_killed_while_it_writes_an_assignment_starts_no_peer(length: int, tmp_path: Path) -> None:
    run = run_child(line(Assignment(str(tmp_path / "data"), Job(), (), []))[:length])
    assert (0, b"", b"") == (run.returncode, run.stdout, run.stderr)
    assert not (tmp_path / "data").exists()


@pytest.mark.parametrize("length", [1, 12, -1])
def test_a_parent_killed_while_it_writes_an_order_ends_its_peer(length: int, tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        assert child.stderr is not None
        child.stdin.write(line(Assignment(str(tmp_path), Job(), (), [])))
        child.stdin.flush()
        assert isinstance(msgspec.json.decode(child.stdout.readline(), type=Report), Ready)
        child.stdin.write(line(Go(["http://127.0.0.1:9/"]))[:length])
        child.stdin.close()
        child.stdout.read()
        assert (0, b"") == (child.wait(60), child.stderr.read())
