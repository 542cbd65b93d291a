"""Starting the peers of a local crawl by the fork server (fork_server.py), and waiting for the processes it forked.

Tests: tests/cli/local/test_fork_server.py, tests/cli/test_command_local.py
"""

import asyncio
import os
import signal
import socket
from contextlib import suppress
from typing import IO

from kadcrawl.cli.local.child_process import ChildProcess, launch
from kadcrawl.cli.local.fork_server import ASK, PID, ForkServer
from kadcrawl.cli.local.protocol import PIPE_LINE_BYTES_MAX, Assignment
from kadcrawl.system.event import Event
from kadcrawl.system.subreaper import adopting_orphans


class AdoptedProcess:
    """A child of this process that another process has forked, or that was forked before the loop began."""

    def __init__(
        self, pid: int, stdin: asyncio.WriteTransport | None = None, stdout: asyncio.StreamReader | None = None
    ) -> None:
        """Wait for the process from now on. Raises OSError if it is no child of this process."""
        os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        self.pid = pid
        self.stdin = stdin
        self.stdout = stdout
        self.returncode: int | None = None
        """The exit status, once the process is known to have ended."""
        self._ended = Event()
        self._descriptor = os.pidfd_open(pid)
        asyncio.get_running_loop().add_reader(self._descriptor, self._on_end)

    async def wait(self) -> int:
        """Return the exit status once the process has ended."""
        await self._ended.wait()
        assert self.returncode is not None, "set before the event"
        return self.returncode

    def kill(self) -> None:
        """Kill the process if it still runs."""
        if self.returncode is None:  # So its number is of no other process yet.
            os.kill(self.pid, signal.SIGKILL)

    def _on_end(self) -> None:
        asyncio.get_running_loop().remove_reader(self._descriptor)
        os.close(self._descriptor)
        self.returncode = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        self._ended.set()
        if self.stdin is not None:
            self.stdin.close()


class ForkLauncher:
    """Starts peers by the fork server while there is one, and else as new processes of Python."""

    def __init__(self, server: ForkServer | None, peers: int) -> None:
        """`peers` is the number of peers after which the server ends."""
        self._server = server
        self._left = peers
        self._asking = asyncio.Lock()

    async def launch(self, assignment: Assignment) -> ChildProcess:
        """Start a process with this assignment."""
        async with self._asking:
            forked = await self._fork()
        if forked is None:
            return await launch(assignment)
        child = ChildProcess(forked)
        child.say(assignment)
        return child

    async def close(self) -> None:
        """End the server, and see it end."""
        server, self._server = self._server, None
        if server is not None:
            server.control.close()
            with suppress(OSError):
                process = AdoptedProcess(server.pid)
                process.kill()  # It may still import, or be stopped.
                await process.wait()

    async def _fork(self) -> AdoptedProcess | None:
        """Return the process of a new peer, or None if the server cannot fork one."""
        if self._server is None:
            return None
        self._left -= 1
        is_last = not self._left
        try:
            forked = await _ask(self._server)
        except OSError:
            is_last = True
            return None
        except BaseException:
            is_last = True  # The answer is still to come.
            raise
        finally:
            if is_last:
                await self.close()
        return forked


async def _ask(server: ForkServer) -> AdoptedProcess:
    """Let the server fork a peer. Raises OSError if it does not."""
    loop = asyncio.get_running_loop()
    (stdin, orders), (reports, stdout) = _pipe(), _pipe()
    with stdin, stdout:
        try:
            with adopting_orphans():
                socket.send_fds(server.control, [ASK], [stdin.fileno(), stdout.fileno()])
                said = await loop.sock_recv(server.control, PID.size)
                if len(said) != PID.size:
                    raise OSError("the fork server has ended")
                process = AdoptedProcess(*PID.unpack(said))
        except BaseException:
            orders.close()
            reports.close()  # If there is a process, this is its end.
            raise
    reader = asyncio.StreamReader(PIPE_LINE_BYTES_MAX)
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), reports)
    process.stdin, _ = await loop.connect_write_pipe(asyncio.BaseProtocol, orders)
    process.stdout = reader
    return process


def _pipe() -> tuple[IO[bytes], IO[bytes]]:
    """Return both ends of a new pipe."""
    readable, writable = os.pipe()
    return open(readable, "rb", 0), open(writable, "wb", 0)
