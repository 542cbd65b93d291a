"""A process gives the memory that only its start needed back to the system.

Loading a shared library reads pages of its file that nothing uses later: in an idle peer two thirds of them. They count
as memory of the process until the system runs short. The first connections to other peers read further pages, so a
peer drops such pages once more when it has settled. Pages of a file that the process has not changed are dropped here,
and come back from the file when they are used again. Only Linux can tell which pages are unchanged.

SQLite shares an index of each WAL with other processes: 32 kB for each journal, of which a peer that writes little uses
a part. Its pages are dropped in the same way, as they stay in the file.

Tests: tests/system/test_start_up_memory.py
"""

import gc
import re
import sys
from collections.abc import Iterator
from typing import NamedTuple

_MADV_DONTNEED = 4
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD, _M_ARENA_MAX = -1, -3, -8
_LARGE_BLOCK_BYTES = 128 * 1024
"""Size from which a block of memory is one of its own. By default it grows with the largest block that was freed."""
_MAPPING = re.compile(
    r"^(?P<start>[0-9a-f]+)-(?P<end>[0-9a-f]+) r-[x-]p \S+ \S+ (?P<inode>\d+)[^\n]*\n"
    r"(?P<figures>(?:[A-Z]\w+: [^\n]*\n)*)",
    re.MULTILINE,
)
_SHARED_INDEX = re.compile(
    r"^(?P<start>[0-9a-f]+)-(?P<end>[0-9a-f]+) rw-s \S+ \S+ (?P<inode>\d+) +/[^\n]*-shm$", re.MULTILINE
)
_CHANGED = re.compile(r"^(?:Anonymous|Private_Dirty|Shared_Dirty|Locked): +[1-9]", re.MULTILINE)


class Mapping(NamedTuple):
    """A part of a file in the memory of a process."""

    start: int
    length: int


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
    drop_start_pages()


def drop_start_pages() -> None:
    """Drop the pages of files that this process can read again, and do nothing else."""
    if sys.platform != "linux":
        return
    import ctypes

    advise = ctypes.CDLL(None).madvise
    try:
        with open("/proc/self/smaps", encoding="utf-8", errors="replace") as file:
            smaps = file.read()
    except OSError:
        return  # No /proc: the memory stays as it is.
    for mapping in [*unchanged_mappings(smaps), *shared_indexes(smaps)]:
        advise(ctypes.c_void_p(mapping.start), ctypes.c_size_t(mapping.length), _MADV_DONTNEED)


def unchanged_mappings(smaps: str) -> Iterator[Mapping]:
    """Yield the private, read-only mappings of files of which no page was changed, given the text of smaps(5).

    A page that was changed, by a relocation or a debugger, exists in memory only, so its mapping stays.
    """
    for found in _MAPPING.finditer(smaps):
        if int(found["inode"]) and not _CHANGED.search(found["figures"]):
            start = int(found["start"], 16)
            yield Mapping(start, int(found["end"], 16) - start)


def shared_indexes(smaps: str) -> Iterator[Mapping]:
    """Yield the mappings of SQLite's shared indexes of WALs, given the text of smaps(5)."""
    for found in _SHARED_INDEX.finditer(smaps):
        start = int(found["start"], 16)
        yield Mapping(start, int(found["end"], 16) - start)
