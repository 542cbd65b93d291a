"""An asyncio event loop in virtual time: callbacks run without waiting, in one order that depends only on the seed.

Time stands still while callbacks run. It jumps to the next timer or network event when no callback is ready. The loop
opens no file descriptor and reads no clock. Sockets come from the loop's `Network`, executors are the hosts' disks.
Unmodified asyncio code runs on it, aiohttp's client and server included.

Two sources could make the order depend on the process: the clock, and sets of tasks or futures, which iterate by
address. So tasks and futures made here hash by the order of their making.

Each callback runs on behalf of a host, known by its context (`HOST`). Killing a host ends it between two callbacks:
none of its callbacks runs any more, and its tasks are neither canceled nor finished. The tasks are kept until the loop
closes, so that the garbage collector does not run their `finally` blocks at a moment of its own. Freezing keeps
callbacks until the thaw.
"""

import asyncio
import contextvars
import gc
import socket
import warnings
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import copy_context
from heapq import heapify, heappop, heappush
from itertools import count
from typing import Any, TypeVarTuple, Unpack
from weakref import WeakKeyDictionary

from .handles import SimHandle, SimTimer, TimerCount
from .network import HOST, Address, Host, Network
from .tcp import Listener, SimTransport, connect

Ts = TypeVarTuple("Ts")

TIMER_STEP_S = 1e-6
"""The least time that passes before a timer fires.

Without it, a timer that is set again for a remainder left by rounding would stop the clock.
"""
CANCELED_MIN = 512
"""Canceled timers in the heap from which on they are searched for. Nearly all time limits are canceled in time."""
UNWINDINGS_MAX = 100
"""The number of awaits that an unfinished coroutine may make while it is ended."""


class WorldEnd(BaseException):
    """The exception thrown into unfinished coroutines, so that they release their files."""


class SimFuture(asyncio.Future[Any]):
    """A future that hashes by its number, given when first asked for."""

    __slots__ = ("_number",)
    _number: int

    def __hash__(self) -> int:
        try:
            return self._number
        except AttributeError:
            self._number = self.get_loop().next_number()  # type: ignore[attr-defined]
            return self._number


class SimTask(asyncio.Task[Any]):
    """A task that hashes by its number, given when it is made, and knows its host."""

    __slots__ = ("host", "number")
    number: int
    host: Host | None

    def __hash__(self) -> int:
        return self.number


class SimLoop(asyncio.BaseEventLoop):
    """One simulated world, determined by `seed`."""

    def __init__(self, seed: int = 0) -> None:
        self.now = 0.0
        """The instant, in seconds since the world began."""
        self._ready: deque[SimHandle]
        super().__init__()
        self._coming: list[tuple[float, int, SimTimer | None, Callable[..., object] | None, Any]] = []
        """A heap of timers and posted events, ordered by instant and then by the order of their making."""
        self._timers = TimerCount()
        self.next_number = count().__next__
        self._buried: list[asyncio.Task[Any]] = []
        self._over = False
        self._connected: WeakKeyDictionary[socket.socket, SimTransport] = WeakKeyDictionary()
        self.network = Network(self, seed)
        self.has_set_aside = False
        # Each future and task asks for it. A built-in that returns False takes a fraction of a method's time.
        self.get_debug = bool  # type: ignore[method-assign]

    @property
    def waiting(self) -> int:
        """The timers and posted events that wait for their instant, with the canceled ones still among them."""
        return len(self._coming)

    def set_aside(self) -> None:
        """Exempt all current objects from garbage collection until the world ends."""
        gc.freeze()
        self.has_set_aside = True

    def time(self) -> float:
        return self.now

    def create_future(self) -> asyncio.Future[Any]:
        return SimFuture(loop=self)

    def create_task(  # type: ignore[override]  # of any coroutine
        self, coro: Any, *, name: str | None = None, context: contextvars.Context | None = None, **options: Any
    ) -> asyncio.Task[Any]:
        if self._over:
            self._check_closed()  # type: ignore[attr-defined]
            coro.close()
            raise RuntimeError("the world has ended")
        task = SimTask.__new__(SimTask)
        task.host = HOST.get(None) if context is None else context.get(HOST)
        task.number = self.next_number()  # Now, because Python versions hash tasks at different moments.
        task.__init__(coro, loop=self, name=name, context=context, **options)  # type: ignore[misc]
        return task

    def post(self, at: float, event: Callable[[Unpack[Ts]], object], *args: *Ts) -> None:
        """Schedule an event at the instant `at` that belongs to no host. The event cannot be canceled."""
        heappush(self._coming, (at, self.next_number(), None, event, args))

    def kill(self, host: Host) -> None:
        """End all callbacks of `host`. Its kernel resets its connections. Senders of datagrams get no answer."""
        host.cease()
        for task in asyncio.all_tasks(self):
            if _host_of(task) is host:
                self._buried.append(task)

    def freeze(self, host: Host) -> None:
        """Stop all callbacks of `host`, as SIGSTOP does. Its kernel still receives data."""
        host.freeze()

    def thaw(self, host: Host) -> None:
        """Let `host` run again: first the callbacks that were due meanwhile, in their order, then the received data."""
        host.thaw()

    def make_up(self, at: float, handle: SimHandle) -> None:
        """Run at the instant `at` a callback that a frozen host has missed."""
        self.post(at, self._ready.append, handle)

    def close(self) -> None:
        """Close the loop and end all unfinished coroutines."""
        if self.is_closed():
            return
        self._over = True
        self.set_exception_handler(lambda loop, context: None)  # Unclosed resources are expected now.
        ended: set[asyncio.Task[Any]] = set()
        asyncio.set_event_loop(self)  # Otherwise a `finally` block that gathers tasks has asyncio make a loop.
        while unfinished := {*self._buried, *asyncio.all_tasks(self)} - ended:
            for task in unfinished:
                task._log_destroy_pending = False  # type: ignore[attr-defined]
                _unwind(task.get_coro())
            ended |= unfinished
        asyncio.set_event_loop(None)
        self._buried.clear()
        self._coming.clear()
        super().close()

    # --- methods that BaseEventLoop leaves to its subclasses

    def call_soon(  # type: ignore[override]  # a handle of our own
        self,
        callback: Callable[[Unpack[Ts]], object],
        *args: *Ts,
        context: contextvars.Context | None = None,
    ) -> SimHandle:
        handle = SimHandle(copy_context() if context is None else context, callback, args)
        if self._closed:  # type: ignore[attr-defined]  # the method would be a call for each callback
            handle.cancel()  # Objects of dead machines may still cancel tasks while the collector frees them.
        else:
            self._ready.append(handle)
        return handle

    call_soon_threadsafe = call_soon  # type: ignore[assignment]  # there is no other thread

    def call_at(  # type: ignore[override]
        self,
        when: float,
        callback: Callable[[Unpack[Ts]], object],
        *args: *Ts,
        context: contextvars.Context | None = None,
    ) -> SimTimer:
        if self._over:
            self._check_closed()  # type: ignore[attr-defined]
        timer = SimTimer(copy_context() if context is None else context, callback, args, False, when, self._timers)
        soonest = self.now + TIMER_STEP_S
        heappush(self._coming, (when if when > soonest else soonest, self.next_number(), timer, None, None))
        return timer

    def call_later(  # type: ignore[override]
        self,
        delay: float,
        callback: Callable[[Unpack[Ts]], object],
        *args: *Ts,
        context: contextvars.Context | None = None,
    ) -> SimTimer:
        if self._over:
            self._check_closed()  # type: ignore[attr-defined]
        now = self.now
        when = now + delay
        timer = SimTimer(copy_context() if context is None else context, callback, args, False, when, self._timers)
        soonest = now + TIMER_STEP_S
        heappush(self._coming, (when if when > soonest else soonest, self.next_number(), timer, None, None))
        return timer

    def _run_once(self) -> None:
        """Run callbacks, from instant to instant, until the loop is stopped."""
        ready, coming, timers = self._ready, self._coming, self._timers
        while True:
            if timers.canceled > CANCELED_MIN and 2 * timers.canceled > len(coming):
                self._drop_canceled()
            if not ready and not self._stopping:  # type: ignore[attr-defined]
                while coming and (first := coming[0][2]) is not None and first.canceled:
                    heappop(coming)
                    timers.canceled -= 1
                if not coming:
                    raise RuntimeError("nothing will ever happen again: every task waits and no timer is set")
                if coming[0][0] > self.now:
                    self.now = coming[0][0]
            now = self.now
            while coming and coming[0][0] <= now:
                _, _, timer, event, args = heappop(coming)
                if timer is not None:
                    if timer.canceled:
                        timers.canceled -= 1
                    else:
                        timer.count = None
                        ready.append(timer)
                else:
                    try:
                        event(*args)  # type: ignore[misc]  # an entry without a timer has an event
                    except Exception as error:
                        self.call_exception_handler({"message": f"{event} failed", "exception": error})
            for _ in range(len(ready)):
                handle = ready.popleft()
                context = handle.context
                if context is None:
                    continue  # The handle is canceled.
                host = context.get(HOST)
                if host is None or host.runs:
                    try:
                        context.run(handle.callback, *handle.args)
                    except (KeyboardInterrupt, SystemExit):
                        raise
                    except BaseException as error:
                        self._report(handle, error)
                elif host.alive:
                    host.held.append(handle)
            if self._stopping:  # type: ignore[attr-defined]
                return

    def _drop_canceled(self) -> None:
        """Take the canceled timers from the heap. The order of the others does not depend on the form of the heap."""
        coming = self._coming
        coming[:] = [entry for entry in coming if entry[2] is None or not entry[2].canceled]
        heapify(coming)
        self._timers.canceled = 0

    def _report(self, handle: SimHandle, error: BaseException) -> None:
        """Pass the exception of a callback on, as `asyncio.Handle` does."""
        self.call_exception_handler({"message": f"Exception in callback {handle.callback}", "exception": error})

    def _process_events(self, events: list[Any]) -> None:
        """There are no file descriptors, so no events."""

    def _write_to_self(self) -> None:
        """There is no other thread to be woken by."""

    def run_in_executor(  # type: ignore[override]
        self, executor: Any, func: Callable[..., Any], *args: Any
    ) -> asyncio.Future[Any]:
        """Call `func` a little later, in the order of the calls. If its host is dead by then, `func` is never
        called."""
        done = self.create_future()

        def call() -> None:
            try:
                result = func(*args)
            except Exception as error:
                if not done.cancelled():
                    done.set_exception(error)
            else:
                if not done.cancelled():
                    done.set_result(result)

        host = HOST.get(None)
        self.call_at(self.now if host is None else host.disk_turn(), call)
        return done

    async def shutdown_default_executor(self, timeout: float | None = None) -> None:
        """There are no threads."""

    # --- sockets

    async def getaddrinfo(
        self, host: Any, port: Any, *, family: int = 0, type: int = 0, proto: int = 0, flags: int = 0
    ) -> list[Any]:
        return self.network.getaddrinfo(host, port, type or socket.SOCK_STREAM)

    async def create_datagram_endpoint(  # type: ignore[override]  # only one of its many options is known
        self, protocol_factory: Callable[[], Any], local_addr: Address
    ) -> tuple[asyncio.DatagramTransport, Any]:
        protocol = protocol_factory()
        return self.network.open_datagram(HOST.get(), local_addr[1], protocol), protocol

    async def create_server(  # type: ignore[override]  # the options are for real sockets
        self, protocol_factory: Callable[[], Any], host: Any = None, port: Any = None, **options: Any
    ) -> Listener:
        return Listener(HOST.get(), port or 0, protocol_factory)

    async def sock_connect(self, sock: socket.socket, address: Any) -> None:
        """Connect a simulated stream and close the real socket, which names the stream in `create_connection`."""
        sock.close()
        self._connected[sock] = await connect(HOST.get(), (address[0], address[1]))

    async def create_connection(
        self,
        protocol_factory: Callable[[], Any],
        host: Any = None,
        port: Any = None,
        *,
        sock: socket.socket | None = None,
        **options: Any,
    ) -> tuple[asyncio.Transport, Any]:
        assert not options.get("ssl"), "TLS is not simulated"
        transport = self._connected.pop(sock) if sock is not None else await connect(HOST.get(), (host, port))
        protocol = protocol_factory()
        transport.begin(protocol)
        return transport, protocol


@contextmanager
def world(seed: int) -> Iterator[SimLoop]:
    """Yield a loop that is closed at the end. The garbage collector, a source of chance, is disabled meanwhile.

    Warnings for resources that dead peers leave open are suppressed: dead machines do the same in real life.
    """
    enabled = gc.isenabled()
    gc.disable()
    gc.freeze()  # Objects that exist already are not searched at the end.
    loop = SimLoop(seed)
    try:
        yield loop
    finally:
        loop.close()
        if loop.has_set_aside:
            gc.unfreeze()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ResourceWarning)
            gc.collect()
        gc.unfreeze()
        if enabled:
            gc.enable()


def _host_of(task: asyncio.Task[Any]) -> Host | None:
    """Return the host of a task. Since Python 3.12 aiohttp makes some tasks without the loop's factory."""
    if isinstance(task, SimTask):
        return task.host
    return task.get_context().get(HOST)  # type: ignore[attr-defined, no-any-return]


def _unwind(coro: Any) -> None:
    """End a coroutine, although its `finally` blocks may await futures."""
    for _ in range(UNWINDINGS_MAX):
        try:
            coro.throw(WorldEnd())
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException:
            return  # The coroutine has ended; exceptions on its way out do not matter.
    raise AssertionError(f"{coro} does not end")
