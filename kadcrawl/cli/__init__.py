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

GARBAGE_THRESHOLD = 20_000
"""New objects before the garbage collector looks among them for cycles, which a crawl rarely makes. Python's own 700
is reached every few pages, and the full collections that follow cost a tenth of the crawl, and of its start."""


def main() -> None:
    """Run the command."""
    gc.set_threshold(GARBAGE_THRESHOLD)  # Before the imports, which make no garbage of note.
    _open_standard_streams()
    if sys.argv[1:2] in (["start"], ["join"]):
        from kadcrawl.system.lean_imports import import_lean  # Before whatever imports aiohttp.

        import_lean()
    from kadcrawl.cli.group import group_for  # Not at the top: the peer processes of a swarm do without it.

    group_for(sys.argv[1:])()


def _open_standard_streams() -> None:
    """Open standard streams that the shell has closed (`<&-`), or a journal would get their numbers."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)


__all__ = ["GARBAGE_THRESHOLD", "main"]
