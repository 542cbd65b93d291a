"""Ctrl-C while a command is still being imported, and its options are read: one sentence, and the exit code for it.

Imports turn a KeyboardInterrupt into long tracebacks, and some of them swallow it. So until the command runs, the
signal ends the process in its handler: there is nothing to finish or to give back yet.

Tests: tests/cli/test_early_interrupt.py
"""

import os
import signal
from types import FrameType

CODE = 11
"""`INTERRUPTED` of exits.py, which imports too much for now."""
SAID = b"kadcrawl: interrupted\n"


def end_by_interrupt() -> None:
    """Let Ctrl-C end this process at once, unless it is ignored, as for a command in the background of a script."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, end_interrupted)


def raise_interrupt() -> None:
    """Let Ctrl-C raise KeyboardInterrupt again: the command runs, and knows what to do about it."""
    if signal.getsignal(signal.SIGINT) is end_interrupted:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def end_interrupted(number: int = signal.SIGINT, frame: FrameType | None = None) -> None:
    """Say that the command was interrupted, and end this process."""
    try:
        os.write(2, SAID)
    finally:
        os._exit(CODE)
