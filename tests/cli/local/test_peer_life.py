"""Test the order of steps in a peer of a local crawl.

Nothing is fetched before all peers know the pages that any of them has fetched.
"""

import asyncio
import select
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Self

import pytest
from msgspec.structs import replace

from kadcrawl import Job
from kadcrawl.cli.local.peer_life import WARNING_BYTES_MAX, PeerLife
from kadcrawl.cli.local.protocol import Assignment, Doing, Final, Go, Report, line
from kadcrawl.link.wire.messages import Contact, PeerCounters, PeerRow
from kadcrawl.link.wire.peer_state import PeerState
from kadcrawl.peer.environment import Environment
from kadcrawl.peer.swarm.standing_orders import StandingOrders
from kadcrawl.system.event import Event


class Recorder:
    """Stand in for a peer, its cells and its swarm state, and note the calls."""

    def __init__(self, data: Path, done: list[str], *, paused: bool = True) -> None:
        self.paused = paused
        self.swarm_has_work = self.leaving = False
        self.config = SimpleNamespace(data=data)
        self.contact = SimpleNamespace(address=("127.0.0.1", 9))
        self.cells = self.state_gossip = self
        self.runtime = SimpleNamespace(standing_orders=StandingOrders())
        self._done = done
        self.answered = Event()
        """A peer has answered that is there to be joined."""
        self.answered.set()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None: ...

    async def begin(self, *, paused: bool) -> None:
        self._done.append("begin paused" if paused else "begin")

    async def join(self, bootstrap: object, *, rekeyed: bool) -> None:
        self._done.append("join")
        await self.answered.wait()

    async def settle(self, seconds: float) -> bool:
        await asyncio.sleep(0)
        self._done.append("settle")
        return True

    async def crawl(self, seeds: object) -> None:
        self._done.append("seeds")

    async def order(self, verb: str) -> None:
        self._done.append(verb)

    async def wait_stopped(self) -> None:
        await Event().wait()

    async def finish(self) -> None: ...

    def row(self) -> PeerRow:
        return PeerRow(Contact(bytes(20), "127.0.0.1", 9), PeerState.CRAWLING, 0, 0, 0, PeerCounters(), 0, 0)

    def warning(self) -> None: ...


class Parent:
    """Stand in for the messages of the parent."""

    obeyed = ended = False

    def __init__(self, *says: Go) -> None:
        self._says = [*says]

    async def next(self) -> Go | None:
        return self._says[0] if self._says else None

    def carried_out(self) -> None:
        self._says.clear()
        self.obeyed = True


class WaitingParent(Parent):
    """Stand in for a parent that says nothing more, and stays."""

    async def next(self) -> Go | None:
        await Event().wait()
        return None


class Listener:
    """Note the reports to the parent, but for the figures."""

    def __init__(self, done: list[str]) -> None:
        self._done = done

    def send(self, said: Report) -> None:
        if not isinstance(said, Doing):
            self._done.append(type(said).__name__)

    def send_if_room(self, said: Report) -> bool:
        self.send(said)
        return True


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
) -> None:
    done: list[str] = []
    peer: Any = Recorder(tmp_path, done, paused=paused)
    parent: Any = Parent(Go(["http://a.example/"]))
    assignment = Assignment(str(tmp_path), Job(), (), bootstrap)
    await PeerLife(assignment, Environment(), parent, Listener(done), Event()).one_life(peer, False)
    assert expected == done


class WarningPeer(Recorder):
    """Stand in for a peer with one long warning."""

    def __init__(self, data: Path, warning: str) -> None:
        super().__init__(data, [])
        self._warnings = [warning]

    def row(self) -> PeerRow:
        failed = {f"reason {number}": number for number in range(64)}
        return replace(super().row(), counters=PeerCounters(failed=failed))

    def warning(self) -> Any:
        return self._warnings.pop() if self._warnings else None


@pytest.mark.parametrize("letter", ["w", "\u00e4", "\u754c", "\U0001f577"])
@pytest.mark.parametrize("chars", [100, 3_500, 100_000])
async def test_a_long_warning_keeps_no_figures_back_and_is_said_once(chars: int, letter: str, tmp_path: Path) -> None:
    """A report to the parent has room for the bytes that a pipe takes at once."""
    said: list[Doing] = []
    over = Event()

    def send_if_room(report: Doing) -> bool:
        if len(line(report)) > select.PIPE_BUF:
            return False
        said.append(report)
        if len(said) == 3:
            over.set()
        return True

    listener: Any = SimpleNamespace(send=lambda report: None, send_if_room=send_if_room)
    peer: Any = WarningPeer(tmp_path, letter * chars)
    life = PeerLife(Assignment(str(tmp_path), Job(), (), []), Environment(), Parent(), listener, Event(), interval_s=0)
    telling = asyncio.create_task(life._tell(peer))
    async with asyncio.timeout(60):
        await over.wait()
    telling.cancel()
    warnings = [report.warning for report in said if report.warning is not None]
    assert [letter * min(chars, WARNING_BYTES_MAX // len(letter.encode()))] == warnings


class EndingPeer(Recorder):
    """Stand in for a peer that stops, and says before and after its `finish` whether the swarm has work."""

    def __init__(self, data: Path, *, before: bool, after: bool) -> None:
        super().__init__(data, [])
        self.swarm_has_work, self._after = before, after

    async def wait_stopped(self) -> None: ...

    async def finish(self) -> None:
        self.swarm_has_work = self._after


@pytest.mark.parametrize(
    ("before", "after", "is_stopped"), [(False, True, False), (True, True, True), (True, False, False)]
)
async def test_a_peer_that_meets_another_after_the_end_was_not_stopped(
    before: bool, after: bool, is_stopped: bool, tmp_path: Path
) -> None:
    """A busy machine takes peers for dead. One that is met again while this peer ends may answer no more."""
    said: list[Report] = []
    peer: Any = EndingPeer(tmp_path, before=before, after=after)
    listener: Any = SimpleNamespace(send=said.append, send_if_room=said.append)
    parent: Any = WaitingParent()
    await PeerLife(Assignment(str(tmp_path), Job(), (), []), Environment(), parent, listener, Event()).one_life(
        peer, False
    )
    assert [is_stopped] == [one.is_stopped for one in said if isinstance(one, Final)]


@pytest.mark.parametrize("is_signaled", [True, False], ids=["by a signal", "by its parent"])
async def test_a_peer_that_is_to_end_waits_for_no_answer_of_those_it_wants_to_join(
    is_signaled: bool, tmp_path: Path
) -> None:
    done: list[str] = []
    peer: Any = Recorder(tmp_path, done)
    peer.answered.clear()
    parent: Any = Parent(*[Go(["http://a.example/"])] * is_signaled)
    interrupted = Event()
    if is_signaled:
        interrupted.set()
    assignment = Assignment(str(tmp_path), Job(), (), [("127.0.0.1", 8)])
    async with asyncio.timeout(60):
        await PeerLife(assignment, Environment(), parent, Listener(done), interrupted).one_life(peer, False)
    assert ["join"] == done
