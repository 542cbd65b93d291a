"""Cooperative work: a decision that takes long is a generator, which yields where other tasks may run.

So the decision stays plain, and its caller decides what happens in between: nothing (`run_to_end`), or all other tasks
of the peer (`run_cooperatively`). Only one unfinished work goes on at a time and the others wait: each may hold many
times its input in memory, and all of them together would hold that at the same time. Work that never yields waits for
no other.
"""

import asyncio
from collections.abc import Generator
from typing import TypeVar

Result = TypeVar("Result")
CooperativeWork = Generator[None, None, Result]


def run_to_end(work: CooperativeWork[Result]) -> Result:
    """Return the result of the work, done without a pause."""
    while True:
        try:
            next(work)
        except StopIteration as over:
            result: Result = over.value
            return result


async def run_cooperatively(work: CooperativeWork[Result], alone: asyncio.Lock) -> Result:
    """Return the result of the work, alternating with all other tasks. From its first yield on it holds `alone`."""
    try:
        next(work)
        async with alone:
            while True:
                await asyncio.sleep(0)
                next(work)
    except StopIteration as over:
        result: Result = over.value
        return result
