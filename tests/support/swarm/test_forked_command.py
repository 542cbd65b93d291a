"""Test that a command forked by the server is as good as a new process, and that none outlives the test process."""

import asyncio
import os
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from kadcrawl.cli.local.fork_server import can_fork
from tests.support.swarm.command import NEW_PROCESS, STARTED, address_of, ended, joinable, start, swarm_key
from tests.support.swarm.forked_command import AT_START, EXEC, ForkedCommand, may_fork

pytestmark = pytest.mark.skipif(not can_fork(), reason="only Linux forks safely after imports")

ABANDONED = """
import asyncio, sys
from pathlib import Path
from tests.support.swarm.command import joinable
from tests.support.swarm import forked_command

async def main():
    process = await joinable(data=Path(sys.argv[1]))
    print(process.pid, len(forked_command._servers), flush=True)
    sys.stdin.read()

asyncio.run(main())
"""


@pytest.fixture(autouse=True)
def _forks(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let these tests fork even where all others do not, and leave nothing to wait for to the tests after them."""
    monkeypatch.delenv(EXEC, raising=False)
    before = len(STARTED)
    yield
    del STARTED[before:]


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("--version",), 0),
        (("--help",), 0),
        (("start", "--help"), 0),
        (("start", "--no-such-option"), 2),
        (("status", "--data", "no-such-directory"), 2),
        (("crawl", "no-url"), 2),
    ],
)
async def test_a_fork_says_the_same_as_a_new_process(arguments: tuple[str, ...], code: int, tmp_path: Path) -> None:
    env = {"COLUMNS": "80"}
    fork = await start(*arguments, env=env, directory=tmp_path)
    assert isinstance(fork, ForkedCommand)
    new = await start(*arguments, env=env, directory=tmp_path, program=NEW_PROCESS)
    assert not isinstance(new, ForkedCommand)
    one, two = await ended(fork), await ended(new)
    assert (code, one.out, one.err) == (one.code, two.out, two.err)
    assert code == two.code
    assert one.out or one.err


async def test_a_fork_has_its_own_session_directory_and_environment_and_no_file_of_the_test(tmp_path: Path) -> None:
    key = os.urandom(32).hex()
    process = await start(
        "start", "--listen", "127.0.0.1:0", "--data", "here", env={"KADCRAWL_KEY": key}, directory=tmp_path
    )
    address = await _address_when_up(process)
    assert process.pid == os.getsid(process.pid) == os.getpgid(process.pid)
    assert (tmp_path / "here").is_dir()
    assert not _pipes_and_sockets(process.pid, 3) & _pipes_and_sockets(os.getpid(), 3)
    assert 2 == len(_pipes_and_sockets(process.pid, 0) & _pipes_and_sockets(os.getpid(), 3)), "its outputs"
    for given, knows in ((key, True), (swarm_key(), False)):
        asked = await ended(await start("status", "--peer", address, env={"KADCRAWL_KEY": given}))
        assert knows == (asked.code == 0), asked
    process.terminate()
    assert 11 == (await ended(process)).code


async def test_the_end_by_a_signal_is_seen(tmp_path: Path) -> None:
    process = await joinable(data=tmp_path)
    assert process.returncode is None
    process.kill()
    assert -signal.SIGKILL == await process.wait() == process.returncode
    assert not Path(f"/proc/{process.pid}").exists(), "it is reaped"
    with pytest.raises(ProcessLookupError):
        process.send_signal(signal.SIGTERM)
    assert b"" == (await process.communicate())[0]


async def test_a_lost_answer_ends_the_server_and_its_commands_and_the_next_start_has_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Or the answer would be taken for that of the next question."""
    process = await joinable(data=tmp_path / "one")
    assert isinstance(process, ForkedCommand)
    monkeypatch.setattr(process._server, "_answer", lambda: fail(TimeoutError()))
    with pytest.raises(TimeoutError):
        await start("--version")
    with pytest.raises(AssertionError, match="the server of commands ended before"):
        await process.wait()
    run = await ended(await start("--version"))
    assert (0, "") == (run.code, run.err)


def test_no_command_outlives_a_test_process_that_is_killed(tmp_path: Path) -> None:
    temporary = tmp_path / "temporary"  # A process that is killed removes nothing.
    temporary.mkdir()
    with subprocess.Popen(
        (sys.executable, "-c", ABANDONED, str(tmp_path / "data")),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=AT_START | {"TMPDIR": str(temporary)},
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        pid, servers = map(int, process.stdout.readline().split())
        assert servers == 1
        command = os.pidfd_open(pid)
        try:
            process.kill()
            assert select.select([command], [], [], 60)[0], "it ends as well"
        finally:
            os.close(command)
        assert b"" == process.stderr.read(), "until the server has closed it"
    assert 1 == len([*temporary.glob("kadcrawl-state-*")]), "all that it leaves is here"


def test_what_python_reads_at_its_start_needs_a_new_process(monkeypatch: pytest.MonkeyPatch) -> None:
    assert may_fork(AT_START)
    assert may_fork(AT_START | {"KADCRAWL_KEY": swarm_key()})
    for name in ("PYTHONPATH", "LC_ALL", "KADCRAWL_PURE"):
        assert not may_fork(AT_START | {name: "another"}), name
    monkeypatch.setenv(EXEC, "1")
    assert not may_fork(AT_START)


def fail(error: Exception) -> int:
    raise error


async def _address_when_up(process: asyncio.subprocess.Process) -> str:
    assert process.stderr is not None
    async with asyncio.timeout(60):
        await process.stderr.readuntil(b"others join with")
    return await address_of(process)


def _pipes_and_sockets(pid: int, least: int) -> set[str]:
    """Return the names of the pipes and sockets that a process has under this number or a higher one."""
    found = [_link(path) for path in Path(f"/proc/{pid}/fd").iterdir() if int(path.name) >= least]
    return {name for name in found if name.startswith(("pipe:", "socket:"))}


def _link(path: Path) -> str:
    with suppress(FileNotFoundError):  # Closed since the directory was listed.
        return os.readlink(path)
    return ""
