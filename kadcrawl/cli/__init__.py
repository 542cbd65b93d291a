"""The command `kadcrawl`: a person's way in. Nothing here decides anything about the crawl.

`group` lists the commands, and `commands` has a file for each. `options`, `job_options` and `keys` are the options that
commands share, `exits` the exit codes. `local` runs a whole swarm as processes on this machine, for `kadcrawl crawl`.
`doctor` checks a machine and its network, for `kadcrawl doctor`. `view` is all that a person sees: progress, tables,
summaries. `targets` finds the running peer that a command asks, and `ask` asks it. `run` has the event loop, its
signals and the log.
"""

import gc
import os
import sys
from collections.abc import Sequence


def main() -> None:
    """Run the command."""
    from kadcrawl.cli.early_interrupt import end_by_interrupt

    end_by_interrupt()  # Before all other imports.
    from kadcrawl.system.garbage import GARBAGE_THRESHOLD

    gc.set_threshold(GARBAGE_THRESHOLD)  # Before the imports, which make no garbage of note.
    _open_standard_streams()
    from kadcrawl.cli.lean_start import LEAN_COMMANDS, start_lean

    if LEAN_COMMANDS.intersection(sys.argv[1:2]) and hasattr(os, "fork"):
        start_lean(sys.argv[1:])
    if sys.argv[1:2] == ["crawl"]:
        _crawl()
    from kadcrawl.cli.group import group_for  # Not at the top: the processes of peers do without it.

    group_for(sys.argv[1:])()


def _crawl() -> None:
    """Run `kadcrawl crawl`, whose processes are many and may be short. Exits."""
    from kadcrawl.cli.lean_start import HELP
    from kadcrawl.system.quick_exit import allow_quick_exit, exit_quickly

    allow_quick_exit()
    gc.disable()  # Until each process runs its loop.
    if not _asks_for_one_process(sys.argv[2:]):
        from kadcrawl.cli.local.fork_server import start_server

        start_server()
    elif not HELP.intersection(sys.argv[2:]):
        from kadcrawl.system.lean_code import drop_docstrings

        drop_docstrings()  # A swarm in one process may idle as long as peers that `kadcrawl start` has begun.
    from kadcrawl.cli.group import group_for

    try:
        group_for(sys.argv[1:])()
    except SystemExit as ending:
        if isinstance(ending.code, int):
            exit_quickly(ending.code)
        raise


def _asks_for_one_process(arguments: Sequence[str]) -> bool:
    """Return whether all peers are to run in the process of the command, as far as its unread options show."""
    names = {argument.partition("=")[0] for argument in arguments}
    return "--in-process" in names or "KADCRAWL_IN_PROCESS" in os.environ


def _open_standard_streams() -> None:
    """Open standard streams that the shell has closed (`<&-`), or a journal would get their numbers.

    Python has no object for a closed stream. Lines for a closed standard output go nowhere.
    """
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)
    sys.stdout = sys.stdout or os.fdopen(1, "w", closefd=False)


__all__ = ["main"]
