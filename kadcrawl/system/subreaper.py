"""A subreaper is a process that adopts orphans among its descendants, so that it can wait for them. Only Linux has it.

Tests: tests/cli/local/test_fork_server.py
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager

_PR_SET_CHILD_SUBREAPER = 36


@contextmanager
def adopting_orphans() -> Iterator[None]:
    """Let this process adopt its descendants that become orphans in between. Raises OSError if it cannot.

    It keeps those that it has adopted.
    """
    _set(True)
    try:
        yield
    finally:
        _set(False)


def _set(adopts: bool) -> None:
    if sys.platform != "linux":
        raise OSError("only Linux has subreapers")
    import ctypes  # Not at the top: most processes of the command never come here.

    arguments = (ctypes.c_ulong(argument) for argument in (adopts, 0, 0, 0))
    if ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, *arguments):
        raise OSError("this process may not be a subreaper")
