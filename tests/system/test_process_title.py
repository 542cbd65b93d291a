"""Test the title of a process, as other processes see it."""

import asyncio
import sys
from pathlib import Path

from tests.support.swarm.command import NEW_PROCESS, children, crawl, ended, finished, slow_web, start, until

PROGRAM = """
from kadcrawl.system.process_title import set_title
set_title("peer 3 of 4")
print(flush=True)
input()
"""


def title(pid: int) -> str:
    """Return the command line of a process."""
    return Path(f"/proc/{pid}/cmdline").read_bytes().rstrip(b"\0").decode()


async def test_a_process_is_named_and_keeps_its_environment() -> None:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", PROGRAM),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        env={"MARK": "of the environment", "PYTHONPATH": ":".join(sys.path)},
    )
    assert process.stdout is not None
    await process.stdout.readline()
    assert "kadcrawl: peer 3 of 4" == title(process.pid)
    assert b"MARK=of the environment" in Path(f"/proc/{process.pid}/environ").read_bytes().split(b"\0")
    await process.communicate(b"\n")
    assert 0 == process.returncode


async def test_the_processes_of_a_local_crawl_tell_their_peers(tmp_path: Path) -> None:
    async with slow_web(300) as site:
        process = await start(*crawl(tmp_path, site.url("/0"), peers=3), program=NEW_PROCESS)
        await until(lambda: len(finished(tmp_path)) > 5, process)
        expected = {f"kadcrawl: peer {number} of 3" for number in (1, 2, 3)}
        assert expected == {title(pid) for pid in children(process)}
        assert "kadcrawl: peer" not in title(process.pid), "a person finds the command by its own line"
        assert 0 == (await ended(process)).code
