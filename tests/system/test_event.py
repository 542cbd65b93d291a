"""Test the event: it wakes the tasks that wait as the event of asyncio does, and is small."""

import asyncio
import sys
from typing import Any

import pytest

from kadcrawl.system.event import Event


async def waiting(event: Event, count: int) -> list[asyncio.Task[Any]]:
    """Return so many tasks that wait for the event."""
    tasks = [asyncio.create_task(event.wait()) for _ in range(count)]
    await asyncio.sleep(0)
    assert not any(task.done() for task in tasks)
    return tasks


async def test_a_set_event_wakes_all_tasks_and_holds_nobody_up() -> None:
    event = Event()
    tasks = await waiting(event, 3)
    event.set()
    event.set()
    await asyncio.gather(*tasks)
    assert event.is_set()
    await event.wait()


async def test_a_woken_task_goes_on_although_the_event_is_cleared() -> None:
    event = Event()
    before = await waiting(event, 2)
    event.set()
    event.clear()
    after = await waiting(event, 1)
    await asyncio.gather(*before)
    assert not event.is_set()
    assert not after[0].done()
    event.set()
    await after[0]


async def test_a_cancelled_task_waits_no_more() -> None:
    event = Event()
    first, second = await waiting(event, 2)
    event.set()
    first.cancel()
    with pytest.raises(asyncio.CancelledError):
        await first
    await second
    third, fourth = await waiting(cleared := Event(), 2)
    third.cancel()
    await asyncio.wait([third])
    cleared.set()
    await fourth


async def test_a_task_that_waits_again_is_woken_again() -> None:
    event = Event()
    (first,) = await waiting(event, 1)
    event.set()
    event.clear()
    (second,) = await waiting(event, 1)
    await first
    event.set()
    await second
    for count in (1, 2, 1):
        event.clear()
        tasks = await waiting(event, count)
        event.set()
        await asyncio.gather(*tasks)
    assert not event._waiting, "nothing is left of tasks that wait no more"


async def test_an_event_is_small() -> None:
    event, usual = Event(), asyncio.Event()
    empty_bytes = sys.getsizeof(event)
    assert empty_bytes < sys.getsizeof(usual._waiters) / 4
    assert not hasattr(event, "__dict__")
    tasks = await waiting(event, 1)
    assert isinstance(event._waiting, asyncio.Future), "no list for a single task"
    event.set()
    await asyncio.gather(*tasks)
    assert event._waiting is None
