"""Running one peer in this process: the loop, its signals, its profile."""

import asyncio
import gc
import os
import signal
import sys
import time
from collections.abc import Coroutine
from math import inf
from typing import TYPE_CHECKING, Any, TypeVar

from kadcrawl.system.event import Event
from kadcrawl.system.garbage import GARBAGE_THRESHOLD
from kadcrawl.system.open_files import raise_limit

if TYPE_CHECKING:
    from kadcrawl.leaf.leaf import Leaf
    from kadcrawl.peer import Peer

Result = TypeVar("Result")

SAME_SIGNAL_S = 0.3
"""Seconds after the first signal for which further signals count as the same: a person takes longer to press again."""


def run(main: Coroutine[Any, Any, Result]) -> Result:
    """Run `main` on a uvloop. KADCRAWL_PROFILE names a file for a profile (one per process: FILE.PID)."""
    try:
        raise_limit()
        sys.unraisablehook = _unraisable
        gc.freeze()  # What is loaded by now stays.
        gc.set_threshold(GARBAGE_THRESHOLD)
        gc.enable()
        with asyncio.Runner(loop_factory=new_event_loop) as runner:
            path = os.environ.get("KADCRAWL_PROFILE")
            if not path:
                return runner.run(main)
            import cProfile

            profile = cProfile.Profile(time.thread_time)  # CPU, not waiting
            try:
                return profile.runcall(runner.run, main)
            finally:
                profile.dump_stats(f"{path}.{os.getpid()}")
    finally:
        main.close()  # Ctrl-C may come before `main` begins, and Python would warn that nothing awaited it.


def new_event_loop() -> asyncio.AbstractEventLoop:
    """Return a loop of uvloop or, where there is no uvloop, asyncio's own: slower, and the same otherwise."""
    try:
        import uvloop
    except ModuleNotFoundError:
        return asyncio.new_event_loop()
    return uvloop.new_event_loop()


def _unraisable(what: "sys.UnraisableHookArgs") -> None:
    """Report an exception that could not be raised.

    One exception is left out: `ssl` fails so for each server name that is not ASCII, and a stranger could fill a disk
    by that.
    """
    if not isinstance(what.exc_value, UnicodeDecodeError) or not isinstance(what.object, bytes):
        sys.__unraisablehook__(what)


class Interrupts:
    """Counts Ctrl-C and SIGTERM from now on: the first asks the running task to finish, the second cancels it.

    A terminal that is closed asks as well, unless `nohup` has the signal ignored. Such a hangup never cancels, as the
    shell and the system may both send one. For the same reason a second signal right after the first is no further
    one: GNU `timeout` signals its command and then the group of that command, and a shell may pass a signal on.
    """

    def __init__(self) -> None:
        task = asyncio.current_task()
        assert task is not None, "made inside the task to be interrupted"
        self._task = task
        self._loop = asyncio.get_running_loop()
        self._first_at = inf
        """Loop second of the first signal."""
        self.first = Event()
        for number in (signal.SIGINT, signal.SIGTERM):
            self._loop.add_signal_handler(number, self._on_signal)
        if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
            self._loop.add_signal_handler(signal.SIGHUP, self._on_hangup)

    def _on_signal(self) -> None:
        if self._loop.time() >= self._first_at + SAME_SIGNAL_S:
            self._task.cancel()
        self._on_hangup()

    def _on_hangup(self) -> None:
        self._first_at = min(self._first_at, self._loop.time())
        self.first.set()


async def first_of(*events: Coroutine[Any, Any, Any]) -> None:
    """Return when the first of these returns, and cancel the others. Raises the exception of the first."""
    tasks = [asyncio.create_task(event) for event in events]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def until_stopped(peer: "Peer | Leaf", interrupts: Interrupts) -> None:
    """Return when the peer was asked to stop, by a message or a signal."""
    await first_of(peer.wait_stopped(), interrupts.first.wait())
