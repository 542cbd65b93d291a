"""The command in a process of its own, its exit code and output, and a web to crawl.

The process is a fork of one that has imported the command, which saves most of its CPU (command_server.py). A test of
what only a new process of Python has gives `start` the program `NEW_PROCESS`, or takes the fixture `new_processes`.
"""

import asyncio
import atexit
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from functools import cache
from pathlib import Path
from typing import IO

from kadcrawl.cli.run import SAME_SIGNAL_S
from scripts.kadcrawl_run import page_lines
from tests.support.sites.web import Web, slow, tree
from tests.support.swarm.forked_command import fork_command, may_fork

KADCRAWL = str(Path(sys.executable).with_name("kadcrawl"))
NEW_PROCESS = (KADCRAWL,)
"""The program as a new process of Python, not as a fork."""
IMPATIENT = (sys.executable, "-m", "tests.support.swarm.impatient")
"""The same, but its peers give each other up sooner."""
SITES = 20
LOOPBACK = ("--allow-network", "127.0.0.0/8")
STATES = tempfile.mkdtemp(prefix="kadcrawl-state-")
"""The directory of the state directories of all processes that run tests."""
atexit.register(shutil.rmtree, STATES, ignore_errors=True)
PIPE = asyncio.subprocess.PIPE
STARTED: list[asyncio.subprocess.Process] = []
"""The processes that the current test started. Conftest.py ends the processes that a failed test leaves."""


@cache
def swarm_key() -> str:
    """Return the key of the commands of this process alone.

    Tests run at the same time, and a port may pass from the peers of a test to the peers of another test. Nobody asks
    before the processes are forked that run the tests.
    """
    return os.urandom(32).hex()


@cache
def state_directory() -> str:
    """Return the state directory of the commands of this process."""
    return tempfile.mkdtemp(dir=STATES)


class Run:
    """A finished run of the command."""

    def __init__(self, code: int | None, out: bytes, err: bytes) -> None:
        self.code, self.out, self.err = code, out.decode(), err.decode()

    def __repr__(self) -> str:
        return f"exit {self.code}\n{self.out}\n{self.err}"


async def kadcrawl(*arguments: str, env: dict[str, str] | None = None) -> Run:
    process = await start(*arguments, env=env)
    return await ended(process)


async def start(
    *arguments: str,
    env: dict[str, str] | None = None,
    program: Sequence[str] | None = None,
    directory: Path | None = None,
    stdin: IO[bytes] | None = None,
) -> asyncio.subprocess.Process:
    """Start the command, or another program that takes its place, as the head of a session.

    Its input is an open file, or nothing.
    """
    environment = {name: value for name, value in os.environ.items() if not name.startswith("KADCRAWL_")}
    environment |= {"KADCRAWL_KEY": swarm_key(), "XDG_STATE_HOME": state_directory()} | (env or {})
    if program is None and may_fork(environment):
        process: asyncio.subprocess.Process = await fork_command(
            KADCRAWL, arguments, environment, str(directory or Path.cwd()), stdin
        )
        STARTED.append(process)
        return process
    process = await asyncio.create_subprocess_exec(
        *(program or NEW_PROCESS),
        *arguments,
        stdin=stdin or asyncio.subprocess.DEVNULL,
        stdout=PIPE,
        stderr=PIPE,
        env=environment,
        cwd=directory,
        start_new_session=True,
    )
    STARTED.append(process)
    return process


async def ended(process: asyncio.subprocess.Process, within_s: float = 60.0) -> Run:
    async with asyncio.timeout(within_s):
        out, err = await process.communicate()
    return Run(process.returncode, out, err)


def crawl(data: Path, *urls: str, peers: int = 1) -> list[str]:
    return ["crawl", *urls, "--peers", str(peers), "--delay", "0", "--scope", "any", *LOOPBACK, "--data", str(data)]


def finished(data: Path) -> Counter[str]:
    return Counter(line.url for line in page_lines(data)) if data.exists() else Counter()


async def until(condition: object, process: asyncio.subprocess.Process) -> None:
    """Wait until the program fulfills a condition.

    Raises
    ------
    AssertionError
        The condition does not hold within a minute, or the process has ended. The error contains the output.
    """
    try:
        async with asyncio.timeout(60):
            while not condition():  # type: ignore[operator]
                assert process.returncode is None, await ended(process)
                await asyncio.sleep(0.02)
    except TimeoutError:
        raise AssertionError(f"not within a minute; asked to stop, it said: {await interrupted(process)}") from None


async def until_code(process: subprocess.Popen[bytes], condition: Callable[[], bool] = lambda: False) -> int | None:
    """Return the exit code of a process, or None as soon as it fulfills the condition. Raises TimeoutError."""
    async with asyncio.timeout(120):
        while process.poll() is None and not condition():
            await asyncio.sleep(0.02)
    return process.poll()


def children(process: asyncio.subprocess.Process) -> list[int]:
    return [int(pid) for pid in Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()]


@asynccontextmanager
async def slow_web(size: int, seconds: float = 0.02) -> AsyncIterator[Web]:
    async with Web(SITES) as site:
        site.fallback = slow(tree(size, SITES)(site), seconds)
        yield site


async def joinable(*arguments: str, data: Path) -> asyncio.subprocess.Process:
    """Start a first peer, at a port the system chooses, and return when others can join it."""
    return await _listening("start", *arguments, "--data", str(data), *LOOPBACK)


async def joined(address: str, data: Path, *arguments: str) -> asyncio.subprocess.Process:
    """Start a peer that joins another, and return when it is in."""
    return await _listening("join", "--bootstrap", address, "--data", str(data), *LOOPBACK, *arguments)


async def _listening(*arguments: str) -> asyncio.subprocess.Process:
    process = await start(*arguments, "--listen", "127.0.0.1:0")
    assert process.stderr is not None
    async with asyncio.timeout(60):
        await process.stderr.readuntil(b"others join with")
    return process


async def address_of(process: asyncio.subprocess.Process) -> str:
    """Return the address of a peer that just started or joined, from the end of its join hint."""
    assert process.stderr is not None
    async with asyncio.timeout(60):
        return (await process.stderr.readline()).decode().split()[-1]


async def force(process: asyncio.subprocess.Process, number: signal.Signals = signal.SIGINT) -> None:
    """Send the second signal to a process that says how to force its end, as late as a person would."""
    assert process.stderr is not None
    async with asyncio.timeout(60):
        await process.stderr.readuntil(b"Ctrl-C again to force")
    await asyncio.sleep(2 * SAME_SIGNAL_S)
    process.send_signal(number)


async def interrupted(process: asyncio.subprocess.Process) -> Run:
    process.send_signal(signal.SIGINT)
    return await ended(process)


def locked_by(lock: Path, pid: int) -> bool:
    """Return whether the process holds the lock."""
    return f"{pid} " in "".join(
        line for line in Path("/proc/locks").read_text().splitlines(True) if f":{lock.stat().st_ino} " in line
    )
