"""Huge pages for the heap of a large simulated world.

Each event of a world concerns another peer, whose objects lie anywhere in gigabytes of memory. With pages of 4 kB most
accesses then wait for the table of pages. The kernel collects the heap into pages of 2 MB on request
(https://man7.org/linux/man-pages/man2/madvise.2.html, MADV_COLLAPSE). What happens in the world does not depend on it.

Tests: tests/sim/test_huge_pages.py
"""

import ctypes
import re
from collections.abc import Iterator
from pathlib import Path

MAPPINGS = Path("/proc/self/maps")
HUGE_BYTES = 2 * 1024 * 1024
MADV_HUGEPAGE = 14
MADV_COLLAPSE = 25
"""Known to Linux from 6.1 on. An older kernel refuses it, and the pages stay as they are."""

_ANONYMOUS = re.compile(r"([0-9a-f]+)-([0-9a-f]+) rw-p 00000000 00:00 0\s*(?:\[heap\])?\s*")


def collect_heap() -> int:
    """Collect the heap of this process into huge pages. Return the bytes asked for: 0 on other systems than Linux."""
    try:
        mappings = MAPPINGS.read_text()
    except OSError:
        return 0
    libc = ctypes.CDLL(None)
    libc.madvise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    asked = 0
    for begin, length in whole_pages(mappings):
        libc.madvise(begin, length, MADV_HUGEPAGE)  # What is allocated there from now on is huge at once.
        libc.madvise(begin, length, MADV_COLLAPSE)
        asked += length
    return asked


def whole_pages(mappings: str) -> Iterator[tuple[int, int]]:
    """Yield address and length of the whole huge pages in each private mapping that belongs to no file."""
    for line in mappings.splitlines():
        if (found := _ANONYMOUS.fullmatch(line)) is not None:
            first = -(-int(found[1], 16) // HUGE_BYTES) * HUGE_BYTES
            end = int(found[2], 16) // HUGE_BYTES * HUGE_BYTES
            if first < end:
                yield first, end - first
