"""The command loads what it needs, no more; the parts of it that can be tested without a crawl."""

import asyncio
import subprocess
import sys

import pytest

from kadcrawl.cli.run import first_of

HEAVY = ("aiohttp", "kademlia", "selectolax", "isal", "sqlite3", "rich", "kadcrawl.crawl", "kadcrawl.peer")


@pytest.mark.parametrize("module", ["kadcrawl", "kadcrawl.cli.app", "kadcrawl.cli.local"])
def test_the_parent_of_a_local_crawl_loads_nothing_of_a_peer(module: str) -> None:
    """Its start-up is paid on top of every peer's."""
    script = f"import sys, {module}; print(*(name for name in {HEAVY!r} if name in sys.modules))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "\n"


def test_a_peer_process_loads_nothing_of_the_command() -> None:
    script = "import sys, kadcrawl.cli.child; print(*(name for name in ('click', 'rich') if name in sys.modules))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "\n"


async def test_the_first_of_several_ends_the_others_and_its_fault_is_not_lost() -> None:
    cancelled = asyncio.Event()

    async def wait() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()

    async def fail() -> None:
        await asyncio.sleep(0)
        raise ValueError("found")

    with pytest.raises(ValueError, match="found"):
        await first_of(wait(), fail())
    assert cancelled.is_set()
