"""Room on the disk: a peer about to run out of it fetches nothing until there is some again.

What it would fetch has no place; what others hand it still has, as long as the reserve lasts. Should even that run out,
the journal refuses to write and the peer ends (DiskFullError), with nothing corrupted and nothing lost that it had
promised; whoever runs it waits (`Pauses`) and enters it again on its directory (cli/commands/run_peer.py,
cli/local/child_main.py).

Tests: tests/peer/test_disk_full.py
"""

import asyncio
import logging
import os
from collections.abc import Callable
from pathlib import Path

from kadcrawl.crawl.pause_reasons import Pausable, PauseReason
from kadcrawl.settings.config import Config

CHECK_S = 1.0
WAIT_S_MAX = 60.0
LEAST_ROOM_BYTES = 1024 * 1024
"""Without a reserve, what must be free before a peer is entered again."""

log = logging.getLogger(__name__)


def free_bytes(directory: Path) -> int:
    """Return what this process may still write to the directory's file system; quotas are not seen."""
    found = os.statvfs(directory)
    return found.f_bavail * found.f_frsize


async def guard(crawler: Pausable, directory: Path, reserve_bytes: int, free: Callable[[Path], int]) -> None:
    """Hold the crawler while less than the reserve is free; until cancelled."""
    while True:
        full = free(directory) < reserve_bytes
        if full != (PauseReason.DISK in crawler.pause_reasons):
            what = "disk.full" if full else "disk.has_room"
            log.warning("%s directory=%s reserve_bytes=%d", what, directory, reserve_bytes)
            (crawler.pause_reasons.add if full else crawler.pause_reasons.discard)(PauseReason.DISK)
            crawler.wake()
        await asyncio.sleep(CHECK_S)


class Pauses:
    """Of one process, whose peer has ended because it could not write, and is to be entered again."""

    def __init__(self, config: Config, free: Callable[[Path], int]) -> None:
        self._directory = config.data
        self._needed = max(config.limits.disk_reserve_bytes, LEAST_ROOM_BYTES)
        self._free = free
        self._wait_s = CHECK_S
        self.count = 0
        """How often it has waited for room so far."""

    @property
    def has_room(self) -> bool:
        """Whether a peer can be entered, as far as the file system knows."""
        return self._free(self._directory) >= self._needed

    async def wait(self) -> None:
        """Return when a peer can be entered again; each time a little later, in case what lacks is a quota."""
        self.count += 1
        await asyncio.sleep(self._wait_s)
        self._wait_s = min(2 * self._wait_s, WAIT_S_MAX)
        while not self.has_room:  # noqa: ASYNC110 -- nobody tells when files are deleted
            await asyncio.sleep(CHECK_S)
