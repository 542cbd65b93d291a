"""Test the order of steps in a peer of a local crawl.

Nothing is fetched before all peers know the pages that any of them has fetched.
"""

import asyncio
import select
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Self

import msgspec
import pytest

from kadcrawl import Job
from kadcrawl.cli.local import child_main
from kadcrawl.cli.local.protocol import Assignment, Doing, DoingSites, Go, Report, line
from kadcrawl.crawl.frontier.site_figures import SiteFigures


class Recorder:
    """Stand in for a peer, its cells and its swarm state, and note the calls."""

    def __init__(self, data: Path, done: list[str], *, paused: bool = True) -> None:
        self.paused = paused
        self.swarm_has_work = self.leaving = False
        self.config = SimpleNamespace(data=data)
        self.contact = SimpleNamespace(address=("127.0.0.1", 9))
        self.cells = self.state_gossip = self
        self._done = done

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None: ...

    async def begin(self, *, paused: bool) -> None:
        self._done.append("begin paused" if paused else "begin")

    async def join(self, bootstrap: object, *, rekeyed: bool) -> None:
        self._done.append("join")

    async def settle(self, seconds: float) -> bool:
        await asyncio.sleep(0)
        self._done.append("settle")
        return True

    async def crawl(self, seeds: object) -> None:
        self._done.append("seeds")

    async def order(self, verb: str) -> None:
        self._done.append(verb)

    async def wait_stopped(self) -> None:
        await asyncio.Event().wait()

    async def finish(self) -> None: ...

    def row(self) -> None: ...

    def warning(self) -> None: ...


class Parent:
    """Stand in for the messages of the parent."""

    obeyed = False

    def __init__(self) -> None:
        self._says = [Go(["http://a.example/"])]

    async def next(self) -> Go | None:
        return self._says.pop() if self._says else None

    def carried_out(self) -> None:
        self.obeyed = True


@pytest.mark.parametrize(
    ("bootstrap", "paused", "expected"),
    [
        ([], True, ["begin paused", "Ready", "seeds", "settle", "resume", "Going", "Final"]),
        ([("127.0.0.1", 8)], True, ["join", "settle", "Ready", "seeds", "settle", "resume", "Going", "Final"]),
        ([("127.0.0.1", 8)], False, ["join", "Ready", "seeds", "resume", "Going", "Final"]),
    ],
    ids=["the first", "another, while nothing is fetched", "one that comes later"],
)
async def test_a_swarm_that_begins_anew_waits_for_what_its_peers_know(
    bootstrap: list[tuple[str, int]],
    paused: bool,
    expected: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    done: list[str] = []

    def report(said: Report) -> bool:
        if not isinstance(said, Doing):
            done.append(type(said).__name__)
        return True

    for name in ("_report", "_report_if_room"):
        monkeypatch.setattr(child_main, name, report)
    monkeypatch.setattr(child_main, "log_to", lambda data: None)
    peer: Any = Recorder(tmp_path, done, paused=paused)
    parent: Any = Parent()
    interrupts: Any = SimpleNamespace(first=asyncio.Event())
    await child_main._one_life(peer, Assignment(str(tmp_path), Job(), (), bootstrap), False, parent, interrupts)
    assert expected == done


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
    telling = asyncio.create_task(child_main._tell_sites(peer, 0.0))
    async with asyncio.timeout(10):
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
    telling = asyncio.create_task(child_main._tell_sites(peer, 0.0))
    async with asyncio.timeout(10):
        await looked.wait()
        await asyncio.sleep(0)
    telling.cancel()
    assert [] == written
