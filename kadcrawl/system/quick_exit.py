"""A quick exit: a process ends without freeing its objects one by one, which takes as long as a tenth of its imports.

In a forked process to free an object is to copy its page. A quick exit does all else that Python does at an exit, in
the same order: it waits for threads, calls what is registered with `atexit`, and flushes the logs and the standard
streams. Files and connections must be closed by then.

Tests: tests/system/test_quick_exit.py
"""

import atexit
import os
import sys
from typing import NoReturn

_codes: list[int] = []
"""The exit code, once the process is about to exit quickly."""


def allow_quick_exit() -> None:
    """Prepare this process and its forks. Call it before anything else is registered with `atexit`."""
    atexit.register(_end)


def exit_quickly(code: int) -> NoReturn:
    """Exit with this code, and quickly if that was prepared."""
    _codes.append(code)
    sys.exit(code)


def _end() -> None:
    """End the process at last: what was registered first is called last."""
    if not _codes:
        return
    if (logging := sys.modules.get("logging")) is not None:
        logging.shutdown()  # It may have been imported before.
    for stream in (sys.stdout, sys.stderr):
        try:
            if stream is not None:
                stream.flush()
        except (OSError, ValueError):
            return  # Python says so, and has an exit code for it.
    os._exit(_codes[-1])
