"""Pauses the crawl while the free disk space is below a reserve.

A paused peer still takes records from other peers as long as the reserve lasts. If the disk is full all the same, the
journal refuses to write and the peer ends with DiskFullError. Nothing is corrupted then, and nothing that the peer
promised is lost. The process that runs the peer waits for room (`Pauses`) and starts the peer again on its directory
(cli/commands/run_peer.py, cli/local/child_main.py).

Tests: tests/peer/test_disk_full.py
"""

import asyncio
import logging
import os
from collections.abc import Callable
from pathlib import Path

from kadcrawl.crawl.pause_reasons import Pausable, PauseReason
from kadcrawl.errors import StorageError
from kadcrawl.settings.config import Config
from kadcrawl.store.disk_faults import moved

CHECK_S = 1.0
WAIT_S_MAX = 60.0
"""Longest wait before a peer with a full disk tries to start again."""
LEAST_ROOM_BYTES = 1024 * 1024
"""Free bytes needed before a peer is started again, if the configuration has no reserve."""

log = logging.getLogger(__name__)


def free_bytes(directory: Path) -> int:
    """Return the bytes that this process may still write to the directory's file system. Quotas are not seen."""
    file_system = os.statvfs(directory)
    return file_system.f_bavail * file_system.f_frsize


async def guard(crawler: Pausable, directory: Path, reserve_bytes: int, free: Callable[[Path], int]) -> None:
    """Pause the crawler while less than the reserve is free, until cancelled.

    Raises StorageError if the directory is gone.
    """
    while True:
        try:
            full = free(directory) < reserve_bytes
        except FileNotFoundError:
            raise StorageError(moved(directory)) from None
        if full != (PauseReason.DISK in crawler.pause_reasons):
            what = "disk.full" if full else "disk.has_room"
            log.warning("%s directory=%s reserve_bytes=%d", what, directory, reserve_bytes)
            (crawler.pause_reasons.add if full else crawler.pause_reasons.discard)(PauseReason.DISK)
            crawler.wake()
        await asyncio.sleep(CHECK_S)


class Pauses:
    """Waits for disk room in a process whose peer ended because it could not write."""

    def __init__(self, config: Config, free: Callable[[Path], int]) -> None:
        self._directory = config.data
        self._needed = max(config.limits.disk_reserve_bytes, LEAST_ROOM_BYTES)
        self._free = free
        self._wait_s = CHECK_S
        self.count = 0
        """Number of waits for room so far."""

    @property
    def has_room(self) -> bool:
        """The file system has room for a peer to start."""
        return self._free(self._directory) >= self._needed

    async def wait(self) -> None:
        """Wait until a peer can be started again. Each wait is longer than the wait before, in case a quota is the
        limit.
        """
        self.count += 1
        await asyncio.sleep(self._wait_s)
        self._wait_s = min(2 * self._wait_s, WAIT_S_MAX)
        while not self.has_room:  # noqa: ASYNC110 -- the system does not report deleted files
            await asyncio.sleep(CHECK_S)
