"""The command `kadcrawl`: a person's way in.

`app` has the commands, `options` what they share, `exits` how they end; `check` explains a job file, `verdict` what
becomes of a URL; `live` runs one peer in this process, `local` a whole swarm of processes on this machine
(`child_process` holds one, `child` is in it, `pipe` between them, `remains` is what a dead one leaves), `control` talks
to a running peer, `progress` shows, `summary` adds up, `run` has the loop and its signals.
Nothing here decides anything about the crawl.
"""

import os


def main() -> None:
    """Run the command."""
    _open_standard_streams()
    from kadcrawl.cli.app import main as command  # Not at the top: the peer processes of a swarm do without it.

    command()


def _open_standard_streams() -> None:
    """Open what the shell has closed (`<&-`), or a journal or socket of ours would get its number."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)


__all__ = ["main"]
