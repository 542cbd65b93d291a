"""A peer of a local crawl as a process of its own, with its orders on stdin and its reports on stdout.

Tests: tests/cli/local/test_supervisor.py, tests/cli/test_command_local.py
"""

import asyncio
import sys
from typing import Protocol

import msgspec

from kadcrawl.cli.local.protocol import PIPE_LINE_BYTES_MAX, Assignment, Go, Report, line
from kadcrawl.system.garbage import GARBAGE_THRESHOLD

PROGRAM = (
    f"import gc; gc.set_threshold({GARBAGE_THRESHOLD}); from kadcrawl.system.lean_imports import import_lean; "
    "import_lean(); from kadcrawl.cli.local.child_main import main; main()"
)
"""The program of a child process. It sets the collector before the first import, as imports make no garbage of note."""


class OrderWriter(Protocol):
    """The writing end of a pipe to a process."""

    def write(self, data: bytes) -> None:
        """Send the data in the background."""

    def close(self) -> None:
        """Close the pipe once all is sent."""

    def is_closing(self) -> bool:
        """Return whether the pipe is closed, or about to be."""


class Process(Protocol):
    """A process with pipes, as asyncio and forked_process.py have it."""

    pid: int

    @property
    def stdin(self) -> OrderWriter | None:
        """The pipe for orders."""

    @property
    def stdout(self) -> asyncio.StreamReader | None:
        """The pipe for reports."""

    @property
    def returncode(self) -> int | None:
        """The exit status, once the process is known to have ended."""

    async def wait(self) -> int:
        """Return the exit status once the process has ended."""

    def kill(self) -> None:
        """Kill the process."""


class ChildProcess:
    """The running process of one peer."""

    def __init__(self, process: Process) -> None:
        self._process = process

    @property
    def pid(self) -> int:
        """The number of the process."""
        return self._process.pid

    @property
    def is_running(self) -> bool:
        """False once the process is known to have ended."""
        return self._process.returncode is None

    def say(self, message: Assignment | Go) -> None:
        """Send a message. To a process that ends it is lost, which the end of the reports tells."""
        assert self._process.stdin is not None, "stdin is a pipe"
        if not self._process.stdin.is_closing():
            self._process.stdin.write(line(message))

    def end_orders(self) -> None:
        """Say no more, so that the peer finishes its work under way and ends."""
        if self._process.stdin is not None:
            self._process.stdin.close()

    async def next_report(self) -> Report | None:
        """Return the next report, or None when there will be no more."""
        assert self._process.stdout is not None, "stdout is a pipe"
        if not (said := await self._process.stdout.readline()).endswith(b"\n"):
            return None
        report: Report = msgspec.json.decode(said, type=Report)
        return report

    async def wait(self) -> int:
        """Return the exit status once the process has ended."""
        return await self._process.wait()

    def kill(self) -> None:
        """Kill the process if it still runs."""
        if self.is_running:
            self._process.kill()


async def launch(assignment: Assignment) -> ChildProcess:
    """Start a process with this assignment."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-P",  # What lies in the directory the crawl was begun in, which may be anybody's, is not imported.
        "-c",
        PROGRAM,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        start_new_session=True,  # Ctrl-C is the parent's to understand.
        limit=PIPE_LINE_BYTES_MAX,
    )
    child = ChildProcess(process)
    child.say(assignment)
    return child
