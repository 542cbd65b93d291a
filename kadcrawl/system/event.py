"""`Event`: an `asyncio.Event` that takes a fraction of the memory.

The event of the standard library has a deque, which allocates room for 64 waiting tasks at once. A peer has about
thirty events, most of which no task or a single task waits for.

Tests: tests/system/test_event.py
"""

import asyncio
from typing import Any


class Event(asyncio.Event):
    """An `asyncio.Event` whose waiting tasks are in a list, which allocates nothing while it is empty."""

    def __init__(self) -> None:
        super().__init__()
        self._waiters: Any = []
