"""An asyncio event loop in virtual time: nothing waits, everything happens in one order, the same for the same seed.

Time stands still while callbacks run and jumps to the next timer when none is ready. The loop opens no file
descriptor and reads no clock; sockets come from the `Network` it is made with. Unmodified asyncio code runs on it.

Two things would let the order depend on the process: the clock, and sets of tasks or futures, which iterate by
address. So tasks and futures made here hash by the order of their making.

Each callback runs on behalf of a host, known by its context (`HOST`). Killing a host is a power cut: its callbacks are
dropped, its tasks neither cancelled nor finished; they are kept until the loop closes, so that the garbage
collector does not run their `finally` blocks at a moment of its own.
"""

import asyncio
import contextvars
from collections import deque
from collections.abc import Callable, Coroutine
from itertools import count
from random import Random
from typing import Any

from sim.network import HOST, Host, Network


class Clock:
    """The virtual clock, in the place of a selector: to wait is to put the clock forward."""

    def __init__(self) -> None:
        self.now = 0.0

    def select(self, timeout: float | None) -> list[Any]:
        if timeout is None:
            raise RuntimeError("nothing will ever happen again: every task waits and no timer is set")
        self.now += timeout
        return []


class SimFuture(asyncio.Future[Any]):
    """A future that hashes by its number."""

    def __init__(self, *, loop: "SimLoop") -> None:
        self._number = loop.next_number()
        super().__init__(loop=loop)

    def __hash__(self) -> int:
        return self._number


class SimTask(asyncio.Task[Any]):
    """A task that hashes by its number and knows its host."""

    def __init__(
        self,
        coro: Coroutine[Any, Any, Any],
        *,
        loop: "SimLoop",
        context: contextvars.Context | None = None,
        **options: Any,
    ) -> None:
        self._number = loop.next_number()
        self.host = HOST.get(None) if context is None else context.get(HOST)
        super().__init__(coro, loop=loop, context=context, **options)

    def __hash__(self) -> int:
        return self._number


class SimLoop(asyncio.BaseEventLoop):
    """One simulated world, made whole from `seed`."""

    def __init__(self, seed: int = 0) -> None:
        self._selector = Clock()
        self._ready: deque[asyncio.Handle]
        self._scheduled: list[asyncio.TimerHandle]
        super().__init__()
        self._clock_resolution = 1e-9
        self._numbers = count()
        self._tasks: dict[SimTask, None] = {}
        self._buried: list[SimTask] = []
        self.network = Network(self, Random(f"network {seed}"))
        self.set_task_factory(self._make_task)

    def time(self) -> float:
        return self._selector.now

    def next_number(self) -> int:
        return next(self._numbers)

    def create_future(self) -> asyncio.Future[Any]:
        return SimFuture(loop=self)

    def kill(self, host: Host) -> None:
        """Cut the power of `host`: no callback of it runs any more, and nobody is told."""
        host.alive = False
        host.sockets.clear()
        for handle in [*self._ready, *self._scheduled]:
            if handle._context.get(HOST) is host:  # type: ignore[attr-defined]
                handle.cancel()
        for task in [task for task in self._tasks if task.host is host]:
            del self._tasks[task]
            self._buried.append(task)

    def close(self) -> None:
        """Close the loop. The coroutines of killed hosts end here, whatever they still wanted to do."""
        for task in self._buried:
            task._log_destroy_pending = False  # type: ignore[attr-defined]
            try:
                task.get_coro().close()
            except RuntimeError:
                pass  # It tried to wait for something.
        self._buried.clear()
        super().close()

    # --- what BaseEventLoop leaves to a loop

    def _process_events(self, events: list[Any]) -> None:
        """There are no file descriptors, so no events."""

    def _write_to_self(self) -> None:
        """There is no other thread to be woken by."""

    async def getaddrinfo(
        self, host: Any, port: Any, *, family: int = 0, type: int = 0, proto: int = 0, flags: int = 0
    ) -> list[Any]:
        return self.network.getaddrinfo(host, port)

    async def create_datagram_endpoint(  # type: ignore[override]  # of its many options we know one
        self, protocol_factory: Callable[[], Any], local_addr: tuple[str, int]
    ) -> tuple[asyncio.DatagramTransport, Any]:
        protocol = protocol_factory()
        return self.network.open_datagram(HOST.get(), local_addr[1], protocol), protocol

    def _make_task(self, loop: asyncio.AbstractEventLoop, coro: Any, **options: Any) -> asyncio.Task[Any]:
        task = SimTask(coro, loop=self, **options)
        self._tasks[task] = None
        task.add_done_callback(lambda _: self._tasks.pop(task, None))
        return task
