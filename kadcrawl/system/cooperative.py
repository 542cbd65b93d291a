"""Work in turns: a decision that takes long is a generator, which yields where others may have their turn.

So it is still plain, and whoever calls it says what happens in between: nothing (`at_once`), or all else the peer does
(`in_turns`). Of what is in the middle of its work one at a time goes on, the others wait: each may hold many times what
it was given, and all of them together would hold that at the same time. What never yields waits for nobody.
"""

import asyncio
from collections.abc import Generator
from typing import TypeVar

Result = TypeVar("Result")
CooperativeWork = Generator[None, None, Result]


def run_to_end(work: CooperativeWork[Result]) -> Result:
    """Return what the work comes to, done without a pause."""
    while True:
        try:
            next(work)
        except StopIteration as over:
            result: Result = over.value
            return result


async def run_cooperatively(work: CooperativeWork[Result], alone: asyncio.Lock) -> Result:
    """Return what the work comes to, done in turns with everything else; from its first yield on it holds `alone`."""
    try:
        next(work)
        async with alone:
            while True:
                await asyncio.sleep(0)
                next(work)
    except StopIteration as over:
        result: Result = over.value
        return result
