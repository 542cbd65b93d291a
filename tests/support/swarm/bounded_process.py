"""A process whose private memory is bounded by the kernel where that is possible, and watched everywhere on Linux."""

import asyncio
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_V1 = Path("/sys/fs/cgroup/memory")
_V2 = Path("/sys/fs/cgroup")
LOOK_INTERVAL_S = 0.02


@contextmanager
def memory_group(name: str, bytes_max: int) -> Iterator[tuple[str, ...]]:
    """Give the first words of a command that runs in a control group with this memory, and without swap.

    The kernel kills a process of the group that needs more. There are no words where this process may make no group.
    """
    root, limit = (_V1, "memory.limit_in_bytes") if (_V1 / "tasks").exists() else (_V2, "memory.max")
    group = root / f"kadcrawl-{name}-{os.getpid()}"
    try:
        group.mkdir()
        (group / limit).write_text(str(bytes_max))
    except OSError:
        with suppress(OSError):
            group.rmdir()
        yield ()
        return
    try:
        yield ("/bin/sh", "-c", f'echo $$ > {group}/cgroup.procs && exec "$0" "$@"')
    finally:
        with suppress(OSError):
            group.rmdir()


async def peak_private_bytes(process: asyncio.subprocess.Process) -> int:
    """Return the most private memory that a process had until it ended."""
    status, most = Path(f"/proc/{process.pid}/status"), 0
    while process.returncode is None:
        with suppress(OSError, AttributeError):
            found = re.search(r"^RssAnon:\s+(\d+) kB", status.read_text(), re.MULTILINE)
            most = max(most, int(found[1]) * 1024 if found else 0)
        await asyncio.sleep(LOOK_INTERVAL_S)
    return most
