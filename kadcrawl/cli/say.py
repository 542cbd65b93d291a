"""Lines for a person on the standard streams, for processes that do without the library of the options.

Tests: tests/cli/test_say.py, tests/cli/test_lean_start.py
"""

import errno
import os
import sys
from contextlib import suppress
from typing import Final, TextIO

NO_ROOM: Final = frozenset({errno.ENOSPC, errno.EDQUOT})
"""Errors of a stream that goes to a full disk. There may be room later."""


def say(text: str, *, err: bool = False) -> None:
    """Print a line to standard output or, with `err`, to standard error, unless the stream is closed."""
    stream = sys.stderr if err else sys.stdout
    if stream is not None:
        print(text, file=stream, flush=True)


def tell(text: str, *, err: bool = False) -> None:
    """Print a line as `say` does, or drop the line if the stream cannot take it.

    The commands that run peers use this function: a crawl goes on while its log is on a full disk, and after the
    reader of its output is gone.
    """
    try:
        say(text, err=err)
    except OSError as error:
        if not err or error.errno not in NO_ROOM:
            silence(sys.stderr if err else sys.stdout)


def settle_errors() -> None:
    """Let the exit of Python not fail by lines of standard error that found no room."""
    try:
        if sys.stderr is not None:
            sys.stderr.flush()
    except (OSError, ValueError):
        silence(sys.stderr)


def silence(stream: TextIO | None) -> None:
    """Let a stream write to nowhere from now on, with all that it holds back."""
    with suppress(OSError, ValueError):
        if stream is not None:
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, stream.fileno())
            os.close(nowhere)
