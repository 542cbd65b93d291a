"""Test that what goes to one receiver travels in few batches: the first at once, the others with company."""

import asyncio
from collections.abc import Awaitable, Callable

from kadcrawl.system.spaced_batches import BUSY_S, SpacedBatches
from sim.loop import world

HURRIED_S = 0.05
Batches = SpacedBatches[str, int]


def sent_by(scenario: Callable[[Batches], Awaitable[None]]) -> list[tuple[float, str, list[int]]]:
    """Return (second, receiver, items) of each batch."""
    sent: list[tuple[float, str, list[int]]] = []

    async def play() -> None:
        began, time = asyncio.get_running_loop().time(), asyncio.get_running_loop().time
        batches = Batches(HURRIED_S, lambda to, items: sent.append((round(time() - began, 3), to, items)))
        await scenario(batches)
        await asyncio.sleep(5 * BUSY_S)
        batches.close()

    with world(0) as loop:
        loop.run_until_complete(play())
    return sent


def test_a_batch_after_a_pause_leaves_at_once() -> None:
    async def scenario(batches: Batches) -> None:
        batches.put("a", [1], hurries=False)
        await asyncio.sleep(2 * BUSY_S)
        batches.put("a", [2], hurries=False)

    assert [(0.0, "a", [1]), (2 * BUSY_S, "a", [2])] == sent_by(scenario)


def test_items_of_a_busy_sender_travel_together_and_other_receivers_do_not_wait() -> None:
    async def scenario(batches: Batches) -> None:
        for number in range(4):
            batches.put("a", [number], hurries=False)
            await asyncio.sleep(BUSY_S / 5)
        batches.put("b", [9], hurries=False)

    assert [(0.0, "a", [0]), (0.4, "b", [9]), (BUSY_S, "a", [1, 2, 3])] == sent_by(scenario)


def test_one_item_that_hurries_takes_the_others_along() -> None:
    async def scenario(batches: Batches) -> None:
        batches.put("a", [1], hurries=False)
        batches.put("a", [2], hurries=False)
        batches.put("a", [3], hurries=True)
        batches.put("a", [4], hurries=True)
        await asyncio.sleep(4 * HURRIED_S)
        batches.put("a", [5], hurries=True)

    assert [(0.0, "a", [1]), (HURRIED_S, "a", [2, 3, 4]), (4 * HURRIED_S, "a", [5])] == sent_by(scenario)


def test_nothing_leaves_after_the_end() -> None:
    async def scenario(batches: Batches) -> None:
        batches.put("a", [1], hurries=False)
        batches.put("a", [2], hurries=False)
        batches.close()

    assert [(0.0, "a", [1])] == sent_by(scenario)
