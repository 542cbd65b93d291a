"""Lines for a person on the standard streams, for processes that do without the library of the options.

Tests: tests/cli/test_lean_start.py
"""

import sys


def say(text: str, *, err: bool = False) -> None:
    """Print a line to standard output or, with `err`, to standard error, unless the stream is closed."""
    stream = sys.stderr if err else sys.stdout
    if stream is not None:
        print(text, file=stream, flush=True)
