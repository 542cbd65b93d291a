"""Test that lines without a reader, or without room, end no command that runs peers."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.sites.endless_web import endless_web
from tests.support.swarm.command import (
    KADCRAWL,
    LOOPBACK,
    crawl,
    finished,
    slow_web,
    state_directory,
    swarm_key,
    until_code,
)

PROGRAM = """
import sys
from kadcrawl.cli.say import settle_errors, tell
for number in range(3):
    tell(f"error {number}", err=True)
    tell(f"line {number}")
print("at work", file=open(sys.argv[1], "w"))
settle_errors()
"""


def unread() -> int:
    """Return the descriptor of a pipe without a reader."""
    readable, writable = os.pipe()
    os.close(readable)
    return writable


def full() -> int:
    """Return the descriptor of a file on a full disk."""
    return os.open("/dev/full", os.O_WRONLY)


@pytest.mark.parametrize("broken", [unread, full])
@pytest.mark.parametrize("streams", [("stdout",), ("stderr",), ("stdout", "stderr")])
def test_lines_that_no_stream_takes_are_dropped(broken: object, streams: tuple[str, ...], tmp_path: Path) -> None:
    taken = {name: broken() for name in streams}  # type: ignore[operator]
    command = [sys.executable, "-c", PROGRAM, str(tmp_path / "done")]
    run = subprocess.run(command, **({"stdout": subprocess.PIPE, "stderr": subprocess.PIPE} | taken), timeout=60)
    for descriptor in taken.values():
        os.close(descriptor)
    assert (0, "at work\n") == (run.returncode, (tmp_path / "done").read_text())
    said = {"stdout": b"line 0\nline 1\nline 2\n", "stderr": b"error 0\nerror 1\nerror 2\n"}
    assert {name: getattr(run, name) for name in said.keys() - taken.keys()} == {
        name: said[name] for name in said.keys() - taken.keys()
    }


def popen(arguments: list[str], output: int) -> subprocess.Popen[bytes]:
    """Start the command with both streams at this descriptor, as the head of a session."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("KADCRAWL_")}
    environment |= {"KADCRAWL_KEY": swarm_key(), "XDG_STATE_HOME": state_directory()}
    process = subprocess.Popen(
        [KADCRAWL, *arguments], stdin=subprocess.DEVNULL, stdout=output, stderr=output, env=environment,
        start_new_session=True,
    )  # fmt: skip
    os.close(output)
    return process


@pytest.mark.parametrize("broken", [unread, full])
async def test_a_peer_without_a_reader_goes_on_until_it_is_asked_to_leave(broken: object, tmp_path: Path) -> None:
    async with endless_web() as endless:
        options = ("--delay", "0", "--scope", "any", "--listen", "127.0.0.1:0", "--data", str(tmp_path), *LOOPBACK)
        peer = popen(["start", endless.seed, *options], broken())  # type: ignore[operator]
        try:
            assert await until_code(peer, lambda: len(finished(tmp_path)) > 5) is None
            peer.send_signal(signal.SIGTERM)
            assert await until_code(peer) == 11
        finally:
            peer.kill()


@pytest.mark.parametrize("broken", [unread, full])
async def test_a_crawl_without_a_reader_comes_to_its_end(broken: object, tmp_path: Path) -> None:
    async with slow_web(20, 0.0) as site:
        process = popen(crawl(tmp_path, site.url("/"), peers=2), broken())  # type: ignore[operator]
        try:
            assert await until_code(process) == 0
        finally:
            process.kill()
        assert len(finished(tmp_path)) > 5
