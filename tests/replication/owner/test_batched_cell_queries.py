"""Test that queries about cells travel together, and that a bounded number of silent peers is remembered."""

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest

from kadcrawl.errors import RemoteError
from kadcrawl.keys import Cell
from kadcrawl.link.wire.messages import CellState, CellSummary, Contact, TakeOver, TakeOverAnswer
from kadcrawl.replication.owner import batched_cell_queries
from kadcrawl.replication.owner.batched_cell_queries import SILENCES_MAX, BatchedCellQueries
from sim.loop import world
from tests.support.links.contacts import contact
from tests.support.swarm.live_overlay import A, LiveOverlay


class TakeOverClient:
    def __init__(self) -> None:
        self.asked: list[list[int]] = []
        self.down = False
        self.about: int | None = None
        """The only cell in the answer, for any query."""

    async def ask(self, to: Contact, message: TakeOver, expected: Any, deadline_s: float) -> TakeOverAnswer:
        await asyncio.sleep(0.01)
        self.asked.append(message.cells)
        if self.down:
            raise RemoteError(to, "no answer")
        cells = message.cells if self.about is None else [self.about]
        digests = [CellSummary(cell, 0, 0, bytes(16)) for cell in cells]
        return TakeOverAnswer(
            [CellState(digest, None, [], releasing=False, released=False, sites=[]) for digest in digests]
        )


class SyncRequestsBench:
    def __init__(self) -> None:
        self.overlay = LiveOverlay()
        self.overlay.live.clear()
        self.client = TakeOverClient()
        self.tasks: list[asyncio.Task[None]] = []
        client: Any = self.client
        self.inquiry = BatchedCellQueries(self.overlay, client, self.spawn)

    def spawn(self, work: Coroutine[Any, Any, None], name: str) -> None:
        self.tasks.append(asyncio.get_running_loop().create_task(work, name=name))


def run_in_world(work: Coroutine[Any, Any, None]) -> None:
    with world(0) as loop:
        loop.run_until_complete(work)


def test_questions_asked_at_the_same_time_travel_together_each_once() -> None:
    async def scenario() -> None:
        bench = SyncRequestsBench()
        answers = await asyncio.gather(*(bench.inquiry.ask(A, Cell(cell)) for cell in (3, 4, 3)))
        assert [3, 4, 3] == [answer.held.cell for answer in answers if answer is not None]
        assert [[3, 4]] == bench.client.asked

    run_in_world(scenario())


def test_an_answer_about_other_cells_is_none() -> None:
    async def scenario() -> None:
        bench = SyncRequestsBench()
        bench.client.about = 9
        assert await bench.inquiry.ask(A, Cell(3)) is None

    run_in_world(scenario())


def test_who_keeps_silent_is_passed_over_unless_it_lives() -> None:
    async def scenario() -> None:
        bench = SyncRequestsBench()
        bench.client.down = True
        for number in range(1, SILENCES_MAX + 1):
            assert not bench.inquiry.is_gone(A)
            assert await bench.inquiry.ask(A, Cell(3)) is None
            assert [A] * number == bench.overlay.suspected
        assert bench.inquiry.is_gone(A)
        bench.overlay.live.add(A.id)
        assert not bench.inquiry.is_gone(A)
        bench.overlay.live.clear()
        bench.client.down = False
        await bench.inquiry.ask(A, Cell(3))
        assert not bench.inquiry.is_gone(A)

    run_in_world(scenario())


def test_silent_peers_are_remembered_in_bounded_number_the_latest_longest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batched_cell_queries, "SILENT_MAX", 10)

    async def scenario() -> None:
        bench = SyncRequestsBench()
        bench.client.down = True
        for _ in range(SILENCES_MAX):
            await bench.inquiry.ask(A, Cell(3))
        for number in range(100, 109):
            await bench.inquiry.ask(contact(number), Cell(3))
        assert bench.inquiry.is_gone(A)
        await bench.inquiry.ask(contact(109), Cell(3))
        assert not bench.inquiry.is_gone(A)
        assert 10 == len(bench.inquiry._silences)

    run_in_world(scenario())
