"""An executor for calls that may never end, such as a call to a disk that hangs: the exit does not wait for them.

The loop's own executor is waited for when the loop is closed, and its threads once more when Python ends.

Tests: tests/sinks/test_warc_work.py
"""

from collections.abc import Callable
from concurrent.futures import Executor, Future
from threading import Thread
from typing import ParamSpec, TypeVar

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")


class DaemonThreadExecutor(Executor):
    """Gives each call a daemon thread of its own."""

    def submit(
        self, fn: Callable[Parameters, Result], /, *args: Parameters.args, **kwargs: Parameters.kwargs
    ) -> Future[Result]:
        future: Future[Result] = Future()
        future.set_running_or_notify_cancel()

        def call() -> None:
            try:
                future.set_result(fn(*args, **kwargs))
            except BaseException as error:
                future.set_exception(error)

        Thread(target=call, name=getattr(fn, "__name__", None), daemon=True).start()
        return future
