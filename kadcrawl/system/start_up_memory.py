"""A process gives the memory that only its start needed back to the system.

Loading a shared library reads pages of its file that nothing uses later: in an idle peer two thirds of them. They count
as memory of the process until the system runs short. The first connections to other peers read further pages, so a
peer drops such pages once more when it has settled. Pages of a file that the process has not changed are dropped here,
and come back from the file when they are used again. Only Linux can tell which pages are unchanged.

SQLite shares an index of each WAL with other processes: 32 kB for each journal, of which a peer that writes little uses
a part. Its pages are dropped in the same way, as they stay in the file. A process of many peers drops them with each
commit (store/lean_commits.py).

Tests: tests/system/test_start_up_memory.py
"""

import gc
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

_MADV_DONTNEED = 4
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD, _M_ARENA_MAX = -1, -3, -8
_LARGE_BLOCK_BYTES = 128 * 1024
"""Size from which a block of memory is one of its own. By default it grows with the largest block that was freed."""
_MAPPING = re.compile(
    r"^(?P<start>[0-9a-f]+)-(?P<end>[0-9a-f]+) r-[x-]p \S+ (?P<file>\S+ (?P<inode>\d+)[^\n]*)\n"
    r"(?P<figures>(?:[A-Z]\w+: [^\n]*\n)*)",
    re.MULTILINE,
)
_SHARED_INDEX = re.compile(
    r"^(?P<start>[0-9a-f]+)-(?P<end>[0-9a-f]+) rw-s \S+ (?P<file>\S+ \d+ +/[^\n]*-shm)$", re.MULTILINE
)
_CHANGED = re.compile(r"^(?:Anonymous|Private_Dirty|Shared_Dirty|Locked): +[1-9]", re.MULTILINE)


class Mapping(NamedTuple):
    """A part of a file in the memory of a process."""

    start: int
    length: int
    file: str
    """Device, inode and path."""


def give_back(*, is_bounded: bool = False) -> None:
    """Drop the pages of files that this process can read again, and free memory that no object uses.

    A process whose memory is bounded also returns each large block when it is freed, which takes CPU.
    """
    if sys.platform != "linux":
        return
    import ctypes  # Not at the top: most processes of the command never come here.

    system = ctypes.CDLL(None)
    gc.collect()
    if is_bounded and hasattr(system, "malloc_trim"):
        system.mallopt(_M_MMAP_THRESHOLD, _LARGE_BLOCK_BYTES)
        system.mallopt(_M_TRIM_THRESHOLD, _LARGE_BLOCK_BYTES)
        system.mallopt(_M_ARENA_MAX, 1)
    give_back_again()


def give_back_again() -> None:
    """Drop pages of files and free memory as `give_back` does, without a garbage collection.

    A peer that crawls has so many objects that a collection would hold up everything else.
    """
    if sys.platform != "linux":
        return
    import ctypes

    system = ctypes.CDLL(None)
    if hasattr(system, "malloc_trim"):  # glibc has it, musl has not.
        system.malloc_trim(0)
    FilePages().look_and_drop()


class FilePages:
    """Drops pages of files again and again.

    To tell whether a mapping was changed, the system looks at each of its pages. A list of the mappings takes a quarter
    of that time, so most drops go by the last look, for the mappings that are still there.
    """

    def __init__(self) -> None:
        self._unchanged: set[Mapping] = set()

    def look_and_drop(self) -> None:
        """Look for mappings whose pages are unchanged, and drop their pages."""
        if (smaps := _read("smaps")) is not None:
            self._unchanged = set(unchanged_mappings(smaps))
            drop_mappings([*self._unchanged, *shared_indexes(smaps)])

    def drop(self) -> None:
        """Drop the pages of the mappings that were unchanged at the last look. Journals drop their own indexes."""
        if (maps := _read("maps")) is not None:
            drop_mappings(self._unchanged.intersection(mappings(maps)))


def _read(name: str) -> str | None:
    """Return what Linux says of the memory of this process, or None if it says nothing."""
    if sys.platform != "linux":
        return None
    try:
        with open(f"/proc/self/{name}", encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError:
        return None  # No /proc: the memory stays as it is.


@cache
def _advise() -> Callable[[int, int, int], int]:
    """Return madvise(2)."""
    import ctypes

    advise = ctypes.CDLL(None).madvise
    advise.argtypes = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int
    return advise


def drop_mappings(dropped: Iterable[Mapping]) -> None:
    """Drop the pages of these parts of files, which come back from the files. A mapping must not be gone meanwhile."""
    advise = _advise()
    for mapping in dropped:
        advise(mapping.start, mapping.length, _MADV_DONTNEED)


def shared_index(journal: Path) -> list[Mapping]:
    """Return where SQLite has the index of a journal's WAL in memory. It is nowhere if the system is not Linux."""
    file = f"{journal.resolve()}-shm"
    lines = (line for line in (_read("maps") or "").splitlines(keepends=True) if file in line)
    return [index for index in shared_indexes("".join(lines)) if index.file.partition("/")[1:] == ("/", file[1:])]


def mappings(maps: str) -> Iterator[Mapping]:
    """Yield the private, read-only mappings of files, given the text of maps(5)."""
    for found in _MAPPING.finditer(maps):
        if int(found["inode"]):
            yield _mapping(found)


def unchanged_mappings(smaps: str) -> Iterator[Mapping]:
    """Yield the private, read-only mappings of files of which no page was changed, given the text of smaps(5).

    A page that was changed, by a relocation or a debugger, exists in memory only, so its mapping stays.
    """
    for found in _MAPPING.finditer(smaps):
        if int(found["inode"]) and not _CHANGED.search(found["figures"]):
            yield _mapping(found)


def shared_indexes(smaps: str) -> Iterator[Mapping]:
    """Yield the mappings of SQLite's shared indexes of WALs, given the text of smaps(5)."""
    for found in _SHARED_INDEX.finditer(smaps):
        yield _mapping(found)


def _mapping(found: re.Match[str]) -> Mapping:
    start = int(found["start"], 16)
    return Mapping(start, int(found["end"], 16) - start, found["file"])
