"""`start_lean` runs `kadcrawl start` and `kadcrawl join`: a fork reads their options and then ends.

A peer lives for weeks, and the options of the command take megabytes that only its start needs. So a fork of the
process reads them, with all their messages and mistakes, and hands the order over. Meanwhile this process loads the
peer, and nothing of the options. Where there is no fork, one process does both.

Tests: tests/cli/test_lean_start.py
"""

import os
import pickle
import signal
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from importlib import import_module
from typing import TYPE_CHECKING

from kadcrawl.cli.early_interrupt import CODE, end_interrupted

if TYPE_CHECKING:
    from kadcrawl.cli.peer_order import PeerOrder

LEAN_COMMANDS = frozenset({"start", "join"})
"""The commands that run a peer in their process."""
ROOMS = ("kadcrawl.cli.peer_order", "kadcrawl.cli.commands.run_peer", "kadcrawl.cli.run")
"""The modules that carry an order out."""
ROOMS_OF_A_PEER = ("kadcrawl.peer.peer", "kadcrawl.peer.rejoin")
"""The modules of a full peer. A leaf runs without them."""
HELP = frozenset({"-h", "--help"})
"""The options with which no peer begins."""
SIGNALED = 128
"""The exit code of a process that a signal has ended is this and the number of the signal, as in a shell."""

_pipes: list[int] = []
"""The pipe for the order, in a process that only reads options."""


def start_lean(arguments: Sequence[str]) -> None:
    """Run the command of these arguments. Exits."""
    said = _read_by_fork(arguments)
    os.environ.pop("KADCRAWL_KEY", None)  # The fork has read it, and took it out of its own environment only.
    from kadcrawl.cli.exits import told
    from kadcrawl.cli.peer_order import carry_out

    try:
        told(carry_out)(pickle.loads(said))  # A pickle of our own fork.
    except BrokenPipeError:  # The reader of the output is gone.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # Or Python would try once more at its end.
        sys.exit(1)


def hand_over(order: "PeerOrder") -> int:
    """Give an order to the process that carries it out: the parent of a fork, or else this process."""
    if not _pipes:
        from kadcrawl.cli.peer_order import carry_out

        return carry_out(order)
    with open(_pipes.pop(), "wb") as pipe:
        pickle.dump(order, pipe)
    return 0


def _load(arguments: Sequence[str], is_needed: Callable[[], bool]) -> None:
    """Import the modules that the process of these arguments needs, without docstrings, while they are needed."""
    if HELP.intersection(arguments):
        return
    from kadcrawl.system.lean_code import drop_docstrings
    from kadcrawl.system.lean_imports import import_lean

    drop_docstrings()
    import_lean()
    for name in ROOMS if "--leaf" in arguments else ROOMS + ROOMS_OF_A_PEER:
        if not is_needed():
            return
        import_module(name)


def _read_by_fork(arguments: Sequence[str]) -> bytes:
    """Load the peer, and return the pickled order. Exits with the code of the fork if it gives none.

    Ctrl-C goes to the fork as well, and the fork says so if it can. A signal that only this process gets ends both.
    """
    readable, writable = os.pipe()
    signals: list[int] = []
    forks: list[int] = []

    def end_both(number: int, frame: object) -> None:
        signals.append(number)
        if number == signal.SIGTERM:
            for fork in forks:
                with suppress(ProcessLookupError):
                    os.kill(fork, number)

    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGCHLD)}
    for number in (signal.SIGINT, signal.SIGTERM):
        if before[number] != signal.SIG_IGN:
            signal.signal(number, end_both)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # If it is ignored, as by some supervisors, the fork has no code.
    reader = os.fork()
    if reader == 0:
        os.close(readable)
        for number, handler in before.items():
            signal.signal(number, handler)
        _pipes.append(writable)
        from kadcrawl.cli.group import group_for

        group_for(list(arguments))()
    forks.append(reader)
    os.close(writable)
    codes: list[int] = []

    def is_needed() -> bool:
        if not codes and (waited := os.waitpid(reader, os.WNOHANG))[0]:
            forks.clear()
            codes.append(os.waitstatus_to_exitcode(waited[1]))
        return not signals and not any(codes)

    _load(arguments, is_needed)
    with open(readable, "rb") as pipe:
        said = pipe.read()
    code = codes[0] if codes else os.waitstatus_to_exitcode(os.waitpid(reader, 0)[1])
    for number, handler in before.items():
        signal.signal(number, handler)
    if signal.SIGINT in signals:
        if code != CODE:  # The fork has not said so, as it is unaware or has ended before.
            end_interrupted()
        os._exit(CODE)  # While Python ends, another Ctrl-C would have another exit code.
    if not code and signals:
        code = -signals[0]
    if code or not said:
        sys.exit(code if code >= 0 else SIGNALED - code)
    return said
