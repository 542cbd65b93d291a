"""The title of a process that a command starts: `ps` and `top` show it in place of the program's arguments.

A command that a person typed keeps its own line, by which the person finds it.
"""

import os


def set_title(title: str) -> None:
    """Name this process `kadcrawl: TITLE`. Its environment stays where `ps` and others look for it."""
    os.environ["SPT_NOENV"] = "1"
    from setproctitle import setproctitle  # Not at the top: it looks for this variable when it is loaded.

    setproctitle(f"kadcrawl: {title}")
