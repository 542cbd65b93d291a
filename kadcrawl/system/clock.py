"""Time for records that outlive a restart: wall-clock seconds that run as evenly as the loop's clock.

The machine's clock is read once. From then on the loop's own time is added to that reading. So a step of the machine's
clock disturbs no delay, a virtual loop gives virtual time, and an instant can still be journaled and read after a
restart.

Tests: tests/crawl/recrawl/test_scheduler.py, tests/peer/test_peer.py
"""

import time
from asyncio import AbstractEventLoop


class Clock:
    """Seconds since 1970 by the loop's clock."""

    def __init__(self, loop: AbstractEventLoop, wall: float | None = None) -> None:
        """The wall-clock time `wall` is that of now, in seconds since 1970. None means the machine's own."""
        self._loop = loop
        self._offset = (time.time() if wall is None else wall) - loop.time()

    def now(self) -> float:
        return self._loop.time() + self._offset

    def loop_now(self) -> float:
        """Return the second of the loop, without the search for the running loop."""
        return self._loop.time()

    def of(self, loop_time: float) -> float:
        """Return the wall-clock second of an instant of the loop."""
        return loop_time + self._offset


def steady() -> float:
    """Return seconds from an arbitrary start, for measurements in a thread, where the loop's clock may stand still."""
    return time.perf_counter()


def wall() -> float:
    """Return seconds since 1970, for a command that runs no loop and reads a peer's journal."""
    return time.time()
