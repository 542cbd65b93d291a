"""Open cells are looked through at the right moments, and no cell while too much is on its way to backups."""

import asyncio
from contextlib import suppress

from kadcrawl.crawl.recrawl.scheduler import COPYING_MAX
from kadcrawl.keys import Cell
from kadcrawl.peer.swarm.cell_looks import CellLooks

ONE, TWO = Cell(1), Cell(2)


class Looking:
    """Note the cells looked at, and finish each at its second look."""

    def __init__(self) -> None:
        self.needed, self.copying = True, 0
        self.looks = CellLooks(lambda: self.needed, lambda: self.copying)
        self.seen: list[tuple[Cell, bytes]] = []

    def look(self, cell: Cell) -> None:
        place = self.looks.place(cell)
        self.seen.append((cell, place))
        if place:
            self.looks.finish(cell)
        else:
            self.looks.reach(cell, b"half")

    async def run_until_idle(self) -> None:
        """Run until nothing is left to look at, or nothing may be."""
        task = asyncio.create_task(self.looks.run(self.look))
        for _ in range(50):
            await asyncio.sleep(0)
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def test_a_cell_is_looked_through_when_it_opens_and_at_each_order() -> None:
    looking = Looking()
    looking.looks.opened(TWO)
    looking.looks.opened(ONE)
    assert 2 == looking.looks.left
    await looking.run_until_idle()
    assert [(TWO, b""), (TWO, b"half"), (ONE, b""), (ONE, b"half")] == looking.seen
    assert 0 == looking.looks.left
    looking.looks.closed(TWO)
    looking.looks.heard()
    assert (1, True, False) == (looking.looks.left, looking.looks.is_open(ONE), looking.looks.is_open(TWO))


async def test_without_an_order_nothing_is_left_and_a_closed_cell_is_left_alone() -> None:
    looking = Looking()
    looking.needed = False
    looking.looks.opened(ONE)
    assert 0 == looking.looks.left
    looking.needed = True
    looking.looks.heard()
    looking.looks.closed(ONE)
    await looking.run_until_idle()
    assert [] == looking.seen


async def test_no_cell_is_looked_at_while_backups_lag_behind() -> None:
    looking = Looking()
    looking.copying = COPYING_MAX + 1
    looking.looks.opened(ONE)
    await looking.run_until_idle()
    assert [] == looking.seen
    looking.copying = COPYING_MAX
    await looking.run_until_idle()
    assert [(ONE, b""), (ONE, b"half")] == looking.seen


async def test_a_cell_that_was_put_off_is_looked_through_again() -> None:
    looking = Looking()
    looking.looks.opened(ONE)
    looking.looks.put_off(ONE)
    await looking.run_until_idle()
    assert 2 == len(looking.seen)
    task = asyncio.create_task(looking.looks.run(looking.look))
    async with asyncio.timeout(60):
        while len(looking.seen) < 4:
            await asyncio.sleep(0.01)
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task
    assert [(ONE, b""), (ONE, b"half")] == looking.seen[2:]
