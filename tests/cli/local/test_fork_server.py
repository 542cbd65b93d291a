"""Test that a fork server makes the peers of a local crawl, each as good as a process of its own."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.test_parts import HEAVY
from tests.support.swarm.command import NEW_PROCESS, children, crawl, ended, finished, slow_web, start, until

PEER = """
import os, random, signal, sys
sys.path.insert(0, "/of the command")
os.environ["KADCRAWL_KEY"] = "secret"

class Peer:
    "Takes the place of the peer's main module."

    @staticmethod
    def main():
        order = sys.stdin.readline()
        said = {
            "number": os.getpid(),
            "session": os.getsid(0) == os.getpid(),
            "parent": os.getppid(),
            "random": random.random(),
            "entropy": os.urandom(8).hex(),
            "files": sorted(int(name) for name in os.listdir("/proc/self/fd"))[:-1],
            "key": "KADCRAWL_KEY" in os.environ,
            "path": "/of the command" in sys.path,
            "interrupt": signal.getsignal(signal.SIGINT) is signal.default_int_handler,
            "forked": sys.argv[0] == "the command",
        }
        os.write(1, (repr(said) + "\\n").encode())
        if sys.stdin.readline():
            os.kill(os.getpid(), signal.SIGKILL)
        sys.exit(7)

sys.modules["kadcrawl.cli.local.child_main"] = Peer
"""
"""A program with another peer, which says how its process is, and exits with 7 when its orders end."""
COMMAND = (
    PEER
    + """
import ast, asyncio
from kadcrawl.cli.local import child_process, fork_server
from kadcrawl.cli.local.forked_process import ForkLauncher
from kadcrawl.cli.local.protocol import Assignment, Go
from kadcrawl.cli.run import run
from kadcrawl.settings.job import Job

sys.argv[0] = "the command"
signal.signal(signal.SIGINT, signal.default_int_handler)
child_process.PROGRAM = {peer!r} + "Peer.main()"
ASSIGNMENT = Assignment("", Job(), (), [])
{before}
fork_server.start_server()

async def said_by(child):
    return ast.literal_eval((await child._process.stdout.readline()).decode())

async def command(forks):
{command}

async def main():
    forks = ForkLauncher(fork_server.take_server(), 2)
    try:
        await command(forks)
    finally:
        await forks.close()

run(main())
"""
)
"""A program that starts the server and launches peers."""


def said_by_command(command: str, before: str = "") -> list[str]:
    """Return the lines that a command with a fork server prints."""
    lines = "\n".join(f"    {line}" for line in command.strip().splitlines())
    code = COMMAND.replace("{peer!r}", repr(PEER)).replace("{before}", before).replace("{command}", lines)
    run = subprocess.run([sys.executable, "-c", code], text=True, capture_output=True, timeout=60)
    assert (0, "") == (run.returncode, run.stderr)
    return run.stdout.splitlines()


def test_forked_peers_are_processes_of_their_own() -> None:
    lines = said_by_command("""
children = [await forks.launch(ASSIGNMENT) for _ in range(2)]
one, two = [await said_by(child) for child in children]
for said, child in zip((one, two), children):
    assert said["number"] == child.pid != os.getpid()
    assert said["parent"] == os.getpid(), "the command waits for it"
    assert said["session"], "Ctrl-C is the command's"
    assert said["interrupt"]
    assert [0, 1, 2] == said["files"]
    assert said["forked"]
    assert not said["key"]
    assert not said["path"]
assert one["random"] != two["random"]
assert one["entropy"] != two["entropy"]
for child in children:
    child.end_orders()
    assert 7 == await child.wait()
    assert not child.is_running
    child.kill()
print("done")
""")
    assert ["done"] == lines


def test_the_server_ends_with_the_last_first_peer_and_later_peers_are_new_processes() -> None:
    lines = said_by_command("""
server = forks._server
first = await forks.launch(ASSIGNMENT)
assert forks._server is server
second = await forks.launch(ASSIGNMENT)
assert not os.path.exists(f"/proc/{server.pid}")
third = await forks.launch(ASSIGNMENT)
for child in (first, second, third):
    print((await said_by(child))["forked"])
    child.end_orders()
    print(await child.wait())
""")
    assert ["True", "7", "True", "7", "False", "7"] == lines


def test_a_killed_peer_is_seen_and_takes_no_other_along() -> None:
    lines = said_by_command("""
one, two = [await forks.launch(ASSIGNMENT) for _ in range(2)]
for child in (one, two):
    await said_by(child)
one.say(Go([]))
print(await one.wait(), one.is_running, two.is_running)
two.kill()
print(await two.wait())
""")
    assert ["-9 False True", "-9"] == lines


@pytest.mark.parametrize("number", ["SIGKILL", "SIGTERM"])
def test_where_the_server_dies_peers_live_on_and_others_are_new_processes(number: str) -> None:
    lines = said_by_command(f"""
one = await forks.launch(ASSIGNMENT)
await said_by(one)
os.kill(forks._server.pid, signal.{number})
two = await forks.launch(ASSIGNMENT)
print((await said_by(two))["forked"])
for child in (one, two):
    child.end_orders()
    print(await child.wait())
""")
    assert ["False", "7", "7"] == lines


@pytest.mark.parametrize(
    ("before", "is_forked"),
    [
        ("signal.signal(signal.SIGCHLD, signal.SIG_IGN)", True),
        ("sys.stdin = None", True),
        ("fork_server.can_fork = lambda: False", False),
        ("del os.pidfd_open", False),
        ("os.fork = lambda: os.close(-1)", False),
        ("from kadcrawl.system import subreaper; subreaper._PR_SET_CHILD_SUBREAPER = -1", False),
        ("fork_server._MAIN, fork_server._import_peer = 'none', lambda: 1 / 0", False),
    ],
    ids=[
        "ignores the ends of children",
        "began without stdin",
        "no Linux",
        "old Python",
        "no process",
        "no subreaper",
        "broken import",
    ],
)
def test_a_peer_starts_wherever_it_can(before: str, is_forked: bool) -> None:
    lines = said_by_command(
        """
child = await forks.launch(ASSIGNMENT)
print((await said_by(child))["forked"])
child.end_orders()
print(await child.wait())
""",
        before,
    )
    assert [str(is_forked), "7"] == lines


def test_the_server_does_not_outlive_a_command_that_never_asks() -> None:
    code = COMMAND.split("async def said_by")[0].replace("{peer!r}", "''").replace("{before}", "")
    code += "print(fork_server._servers[0].pid, flush=True); os.kill(os.getpid(), signal.SIGKILL)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=60)  # Until nobody holds stderr.
    assert -signal.SIGKILL == run.returncode
    assert int(run.stdout) > 0


def test_what_is_imported_before_the_forks_starts_no_thread_and_opens_no_file() -> None:
    code = f"""
import os, sys, gc
from kadcrawl.cli.local import fork_server
fork_server._import_shared()
print(*(name for name in {HEAVY!r} if name in sys.modules))
fork_server._import_peer()
print(*(name for name in ("click", "rich", "aiodns") if name in sys.modules))
print(len(os.listdir("/proc/self/task")), len(os.listdir("/proc/self/fd")))
import asyncio, sqlite3
print(any(isinstance(one, (asyncio.AbstractEventLoop, sqlite3.Connection)) for one in gc.get_objects()))
"""
    run = subprocess.run([sys.executable, "-c", code], text=True, capture_output=True, check=True, timeout=60)
    assert ["", "", "1 4", "False"] == run.stdout.splitlines()


async def test_the_peers_of_a_crawl_are_forked_and_the_server_is_gone(tmp_path: Path) -> None:
    async with slow_web(300) as site:
        process = await start(*crawl(tmp_path, site.url("/0"), peers=2), program=NEW_PROCESS)
        await until(lambda: len(finished(tmp_path)) > 10, process)
        titles = [Path(f"/proc/{pid}/cmdline").read_bytes().rstrip(b"\0").decode() for pid in children(process)]
        files = [os.readlink(f"/proc/{pid}/fd/2") for pid in (*children(process), process.pid)]
        programs = [Path(f"/proc/{pid}/environ").read_bytes() for pid in (*children(process), process.pid)]
        run = await ended(process)
        assert run.code == 0, run
        assert ["kadcrawl: peer 1 of 2", "kadcrawl: peer 2 of 2"] == sorted(titles)
        assert 1 == len(set(files)), "they say what goes wrong where the command does"
        assert 1 == len(set(programs)), "all are the process of the command"
        assert not re.search("Warning|Traceback", run.err)


REFUSED = """
import os, sys
def refuse():
    os.write(2, b"a fork")
    raise OSError("no forks here")
os.fork = refuse
from kadcrawl.cli import main
main()
"""
"""The command, which says when it forks."""


@pytest.mark.parametrize(
    ("option", "variables", "forks"),
    [
        (["--peers", "2"], {}, True),
        (["--in-process", "2"], {}, False),
        (["--in-process=2"], {}, False),
        ([], {"KADCRAWL_IN_PROCESS": "2"}, False),
    ],
)
def test_the_command_forks_no_server_for_peers_in_its_process(
    option: list[str], variables: dict[str, str], forks: bool
) -> None:
    command = [sys.executable, "-c", REFUSED, "crawl", *option, "--help"]
    run = subprocess.run(command, capture_output=True, env={**os.environ, **variables}, check=True)
    assert b"--in-process" in run.stdout
    assert forks == (b"a fork" in run.stderr)
