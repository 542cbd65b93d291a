"""The processes of one page, known by a mark in their environment wherever they were started."""

import os
import signal
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

MARK: Final = "EXAMPLE_PAGE"
"""The environment variable that each process of a page inherits."""


def of_page(mark: str) -> Iterator[int]:
    """Yield the process IDs of a page, the shells too."""
    wanted = f"{MARK}={mark}".encode()
    for directory in Path("/proc").iterdir():
        if directory.name.isdigit():
            with suppress(OSError):
                if wanted in (directory / "environ").read_bytes().split(b"\0"):
                    yield int(directory.name)


def command_line(pid: int) -> str:
    """Return the command of a process, or "" if it is gone."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
    except OSError:
        return ""


def signal_all(mark: str, number: signal.Signals) -> int:
    """Send a signal to the processes of a page, and return how many there were."""
    count = 0
    for pid in of_page(mark):
        count += 1
        with suppress(ProcessLookupError):
            os.kill(pid, number)
    return count
