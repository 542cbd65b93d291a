"""The command in a process that the server of this test process forks (command_server.py).

Tests: tests/support/swarm/test_forked_command.py
"""

import asyncio
import atexit
import os
import pickle
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from functools import cache
from signal import SIGKILL, SIGTERM
from typing import IO

from kadcrawl.cli.local.fork_server import can_fork
from tests.support.swarm import command_server
from tests.support.swarm.command_server import ANSWER, LENGTH, Begin

EXEC = "KADCRAWL_TESTS_EXEC"
"""The environment variable by which all commands are new processes of Python."""
AT_START = {name: value for name, value in os.environ.items() if not name.startswith("KADCRAWL_")}
"""The environment of the server, before any test has changed that of this process."""
ANSWER_S = 100.0
"""Seconds in which the server answers. It imports for seconds at its start, and for more on a busy machine."""

END_S = 20.0
"""Seconds in which the server ends all."""


def may_fork(environment: Mapping[str, str]) -> bool:
    """Return whether a fork can take the place of a new process with this environment."""
    if os.environ.get(EXEC, "") not in ("", "0") or not _can_fork():
        return False
    return _read_at_start(environment) == _read_at_start(AT_START)


async def fork_command(
    program: str, arguments: Sequence[str], environment: dict[str, str], directory: str, stdin: IO[bytes] | None = None
) -> "ForkedCommand":
    """Start the command with an open file as its input, or without input. Its stdout and stderr are pipes."""
    server = _server(program)
    (out, its_out), (err, its_err) = _pipe(), _pipe()
    with open(os.devnull, "rb") as nothing, its_out, its_err:
        try:
            streams = [file.fileno() for file in (stdin or nothing, its_out, its_err)]
            pid = server.fork(arguments, environment, directory, streams)
        except BaseException:
            out.close()
            err.close()
            raise
    process = ForkedCommand(pid, server)
    process.stdout, process.stderr = await _reader(out), await _reader(err)
    return process


class ForkedCommand(asyncio.subprocess.Process):
    """A process that the server forked, which tests use as one that asyncio started."""

    def __init__(self, pid: int, server: "CommandServer") -> None:
        self.pid = pid
        self.stdin = None
        self._server = server
        self._code: int | None = None
        self._ended = asyncio.Event()
        self._descriptor = os.pidfd_open(pid)  # The number is of no other process until the server reaps this one.
        asyncio.get_running_loop().add_reader(self._descriptor, self._on_end)

    @property
    def returncode(self) -> int | None:
        return self._code

    async def wait(self) -> int:
        await self._ended.wait()
        assert self._code is not None, "the server of commands ended before"
        return self._code

    async def communicate(self, input: bytes | bytearray | memoryview | None = None) -> tuple[bytes, bytes]:
        assert input is None, "there is no stdin"
        assert self.stdout is not None
        assert self.stderr is not None
        out, err, _ = await asyncio.gather(self.stdout.read(), self.stderr.read(), self.wait())
        return out, err

    def send_signal(self, signal: int) -> None:
        if self._code is not None:
            raise ProcessLookupError
        os.kill(self.pid, signal)

    def terminate(self) -> None:
        self.send_signal(SIGTERM)

    def kill(self) -> None:
        self.send_signal(SIGKILL)

    def _on_end(self) -> None:
        asyncio.get_running_loop().remove_reader(self._descriptor)
        os.close(self._descriptor)
        try:
            self._code = os.waitstatus_to_exitcode(self._server.reap(self.pid))
        finally:
            self._ended.set()


class CommandServer:
    """The server of this process, and the questions to it."""

    def __init__(self, program: str) -> None:
        """`program` is the path of the command's script."""
        self._control, theirs = socket.socketpair()
        self._control.settimeout(ANSWER_S)
        self.is_open = True
        with theirs:
            self.process = subprocess.Popen(
                (sys.executable, command_server.__file__, program, str(theirs.fileno())),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                env=AT_START,
                pass_fds=[theirs.fileno()],
                start_new_session=True,
            )
        self._answer()

    def fork(
        self, arguments: Sequence[str], environment: dict[str, str], directory: str, streams: Sequence[int]
    ) -> int:
        """Return the process ID of a new process with these streams. Raises OSError if there can be none."""
        if (pid := self._ask((list(arguments), environment, directory), streams)) < 0:
            raise OSError(-pid, os.strerror(-pid))
        return pid

    def reap(self, pid: int) -> int:
        """Return the wait status of a process that ended. Its number is free then."""
        return self._ask(pid)

    def close(self) -> None:
        """Let the server end, and all that it forked."""
        self.is_open = False
        self._control.close()
        try:
            self.process.wait(END_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def _ask(self, request: int | Begin, streams: Sequence[int] = ()) -> int:
        said = pickle.dumps(request)
        try:
            socket.send_fds(self._control, [LENGTH.pack(len(said))], streams)
            self._control.sendall(said)
            return self._answer()
        except BaseException:  # Also when the time of a test is over: its answer is not for the next question.
            self.close()
            raise

    def _answer(self) -> int:
        said = b""
        while len(said) < ANSWER.size:
            if not (more := self._control.recv(ANSWER.size - len(said))):
                raise RuntimeError("the server of commands ended; its stderr says why")
            said += more
        return int(ANSWER.unpack(said)[0])


_can_fork = cache(can_fork)
_servers: list[CommandServer] = []
"""The servers of this process. The last one may be open."""


def _pipe() -> tuple[IO[bytes], IO[bytes]]:
    """Return both ends of a new pipe."""
    readable, writable = os.pipe()
    return open(readable, "rb", 0), open(writable, "wb", 0)


async def _reader(pipe: IO[bytes]) -> asyncio.StreamReader:
    """Return a reader of a pipe, which is closed at its end."""
    reader = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), pipe)
    return reader


def _server(program: str) -> CommandServer:
    if not _servers or not _servers[-1].is_open:
        _servers.append(CommandServer(program))
        atexit.register(_servers[-1].close)
    return _servers[-1]


def _read_at_start(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that Python, its libraries or kadcrawl read before the command runs."""
    names = ("PYTHON", "LANG", "LC_", "TZ", "KADCRAWL_PURE", "LD_", "SSL_", "OPENSSL_")
    return {name: value for name, value in environment.items() if name.startswith(names)}
