"""What the processes of a swarm use: memory, open files, threads, and the sizes of their journals.

Tests: tests/scripts/test_soak.py
"""

import os
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

PAGE_BYTES: Final = os.sysconf("SC_PAGE_SIZE")


@dataclass(frozen=True, slots=True)
class Usage:
    """One look at one process."""

    at_s: float
    """Seconds since the begin of the soak."""
    peer: str
    pid: int
    age_s: float
    """Seconds since the start of the process."""
    rss_mb: float
    files: int
    threads: int
    wal_mb: float
    journal_mb: float

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def usage(at_s: float, peer: str, pid: int, age_s: float, directory: Path) -> Usage | None:
    """Return what a process uses now, or None if it has ended."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
        files = len(os.listdir(f"/proc/{pid}/fd"))
    except (OSError, IndexError):
        return None
    threads = next(int(line.split()[1]) for line in status.splitlines() if line.startswith("Threads:"))
    sizes = [0, 0]
    for at, suffix in enumerate(("-wal", "")):
        with suppress(OSError):
            sizes[at] = (directory / f"peer.sqlite{suffix}").stat().st_size
    return Usage(
        round(at_s, 1), peer, pid, round(age_s, 1), round(pages * PAGE_BYTES / 1e6, 1), files, threads,
        round(sizes[0] / 1e6, 2), round(sizes[1] / 1e6, 2),
    )  # fmt: skip


def growths(looks: Sequence[Usage], warm_s: float) -> dict[int, dict[str, float]]:
    """Return by process how much the last third of its looks exceeds the first, `warm_s` seconds after its start.

    Memory is in megabytes. A process with few looks is left out.
    """
    found = {}
    for pid in dict.fromkeys(look.pid for look in looks):
        mine = [look for look in looks if look.pid == pid and look.age_s >= warm_s]
        third = len(mine) // 3
        if third >= 3:
            first, last = mine[:third], mine[-third:]
            found[pid] = {
                name: round(_middle([getattr(look, name) for look in last])
                            - _middle([getattr(look, name) for look in first]), 1)
                for name in ("rss_mb", "files", "threads")
            }  # fmt: skip
    return found


def _middle(values: Sequence[float]) -> float:
    return sorted(values)[len(values) // 2]
