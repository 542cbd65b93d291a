"""Test that a watch counts no time in which its loop stood still."""

import asyncio
from collections.abc import Callable
from typing import Any, cast

import pytest

from kadcrawl.crawl.fetch.response_watch import LATE_S, ResponseWatch
from kadcrawl.crawl.fetch.timeouts import ResponseDeadline
from kadcrawl.settings.limits import Limits

IDLE_S = 20.0
LIMITS = Limits(fetch_timeout_s=120, idle_timeout_s=IDLE_S)


class LateLoop:
    """A loop whose timers the test calls, as late as it likes."""

    def __init__(self) -> None:
        self.now = 0.0
        self.timers: list[tuple[float, Callable[[], Any]]] = []

    def time(self) -> float:
        return self.now

    def call_at(self, when: float, callback: Callable[[], Any]) -> None:
        self.timers.append((when, callback))


@pytest.mark.parametrize(("late_s", "more_s"), [(LATE_S + 0.5, 2 * LATE_S + 0.5), (30.0, 30.0 + LATE_S)])
async def test_a_look_that_is_late_gives_the_answer_as_much_time_again(late_s: float, more_s: float) -> None:
    loop, deadline = LateLoop(), ResponseDeadline(LIMITS, 0.0)
    deadline.head_came(0.0)
    deadline.bytes_came(1_000_000, 0.0)
    watch = ResponseWatch(cast(asyncio.AbstractEventLoop, loop), deadline)
    ((due, look),) = loop.timers
    assert IDLE_S == due
    loop.now = due + late_s
    look()
    assert watch.verdict is None
    assert IDLE_S + more_s == pytest.approx(loop.timers[-1][0])
    deadline.bytes_came(1, loop.now)  # What waited in the socket.
    assert deadline.verdict(loop.timers[-1][0]) is None


async def test_a_look_in_time_gives_none() -> None:
    loop, deadline = LateLoop(), ResponseDeadline(LIMITS, 0.0)
    deadline.head_came(0.0)
    deadline.bytes_came(1_000_000, 0.0)
    watch = ResponseWatch(cast(asyncio.AbstractEventLoop, loop), deadline)
    deadline.bytes_came(1, 10.0)
    loop.now = IDLE_S + LATE_S
    loop.timers[0][1]()
    assert watch.verdict is None
    assert 10.0 + IDLE_S == loop.timers[-1][0]
