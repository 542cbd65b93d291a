"""Test that what goes to one receiver travels in few batches: the first at once, the others with company."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from kadcrawl.system.spaced_batches import BUSY_S, LADEN_S, UNANSWERED_S, SpacedBatches
from sim.loop import world

HURRIED_S = 0.05
Batches = SpacedBatches[str, int]


def sent_by(
    scenario: Callable[[Batches], Awaitable[None]],
    is_laden: Callable[[], bool] = lambda: False,
    *,
    with_answers: bool = False,
) -> list[tuple[float, str, list[int]]]:
    """Return (second, receiver, items) of each batch."""
    sent: list[tuple[float, str, list[int]]] = []

    async def play() -> None:
        began, time = asyncio.get_running_loop().time(), asyncio.get_running_loop().time
        batches = Batches(
            HURRIED_S,
            lambda to, items: sent.append((round(time() - began, 3), to, items)),
            is_laden,
            with_answers=with_answers,
        )
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


def test_items_of_a_laden_sender_wait_longer_for_company_unless_one_hurries() -> None:
    async def scenario(batches: Batches) -> None:
        for number in range(4):
            batches.put("a", [number], hurries=False)
            await asyncio.sleep(BUSY_S / 2)
        await asyncio.sleep(LADEN_S)
        batches.put("a", [9], hurries=True)

    at_last = 4 * BUSY_S / 2 + LADEN_S
    assert [(0.0, "a", [0]), (LADEN_S, "a", [1, 2, 3]), (at_last, "a", [9])] == sent_by(scenario, lambda: True)


@pytest.mark.parametrize(
    ("answered_s", "left_s"), [(BUSY_S / 2, BUSY_S), (2 * BUSY_S, 2 * BUSY_S), (None, UNANSWERED_S)]
)
def test_a_batch_to_a_slow_receiver_waits_for_the_answer_to_the_last_one_for_a_while(
    answered_s: float | None, left_s: float
) -> None:
    async def scenario(batches: Batches) -> None:
        for number in range(3):
            batches.put("a", [number], hurries=False)
        batches.put("b", [9], hurries=False)
        if answered_s is not None:
            await asyncio.sleep(answered_s)
            batches.answered("a")
        await asyncio.sleep(UNANSWERED_S)

    sent = sent_by(scenario, with_answers=True)
    assert [(0.0, "a", [0]), (0.0, "b", [9]), (left_s, "a", [1, 2])] == sent


def test_an_item_that_hurries_waits_for_no_answer() -> None:
    async def scenario(batches: Batches) -> None:
        batches.put("a", [1], hurries=False)
        batches.put("a", [2], hurries=False)
        await asyncio.sleep(2 * BUSY_S)
        batches.put("a", [3], hurries=True)
        await asyncio.sleep(HURRIED_S)

    assert [(0.0, "a", [1]), (2 * BUSY_S, "a", [2, 3])] == sent_by(scenario, with_answers=True)


def test_one_item_that_hurries_takes_the_others_along() -> None:
    async def scenario(batches: Batches) -> None:
        batches.put("a", [1], hurries=False)
        batches.put("a", [2], hurries=False)
        batches.put("a", [3], hurries=True)
        batches.put("a", [4], hurries=True)
        await asyncio.sleep(4 * HURRIED_S)
        batches.put("a", [5], hurries=True)

    assert [(0.0, "a", [1]), (HURRIED_S, "a", [2, 3, 4]), (4 * HURRIED_S, "a", [5])] == sent_by(scenario)


def test_all_items_hurry_once_the_sender_comes_to_its_end() -> None:
    async def scenario(batches: Batches) -> None:
        batches.put("a", [1], hurries=False)
        batches.put("a", [2], hurries=False)
        await asyncio.sleep(0.2)
        batches.hurry()
        await asyncio.sleep(0.1)
        batches.put("a", [3], hurries=False)
        batches.put("b", [4], hurries=False)
        batches.put("b", [5], hurries=False)

    sent = sent_by(scenario, lambda: True, with_answers=True)
    assert [(0.0, "a", [1]), (0.2, "a", [2]), (0.3, "b", [4]), (0.3, "a", [3]), (0.35, "b", [5])] == sent


def test_nothing_leaves_after_the_end() -> None:
    async def scenario(batches: Batches) -> None:
        batches.put("a", [1], hurries=False)
        batches.put("a", [2], hurries=False)
        batches.close()

    assert [(0.0, "a", [1])] == sent_by(scenario)
