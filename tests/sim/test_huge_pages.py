"""The heap of a large world is collected into huge pages, and nothing else of the process is."""

import re
import sys
from pathlib import Path

import pytest

from sim.huge_pages import HUGE_BYTES, collect_heap, whole_pages

MAPPINGS = """\
55d0c0000000-55d0c0100000 r--p 00000000 fe:00 123                        /usr/bin/python3
55d0c1100000-55d0c1900000 rw-p 00000000 00:00 0                          [heap]
7f0000000000-7f0000600000 rw-p 00000000 00:00 0
7f0000800000-7f0000900000 rw-p 00000000 00:00 0
7f0000a00000-7f0000c00000 rw-s 00000000 00:00 0
7f0000c00000-7f0001000000 rw-p 00000000 fe:00 456                        /usr/lib/libc.so.6
7ffd00000000-7ffd00800000 rw-p 00000000 00:00 0                          [stack]
"""


def test_whole_pages_of_the_heap_and_of_unnamed_memory_are_taken() -> None:
    expected = [(0x55D0C1200000, 3 * HUGE_BYTES), (0x7F0000000000, 3 * HUGE_BYTES)]
    assert expected == list(whole_pages(MAPPINGS))


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have no such mappings")
def test_the_objects_of_this_process_stay_as_they_are() -> None:
    filler = [bytearray(b"x" * 1000) for _ in range(20_000)]
    assert collect_heap() >= 10 * HUGE_BYTES
    assert all(one == b"x" * 1000 for one in filler)


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have no such mappings")
def test_memory_is_huge_afterwards_where_the_kernel_does_that() -> None:
    enabled = Path("/sys/kernel/mm/transparent_hugepage/enabled")
    if not enabled.exists() or "[never]" in enabled.read_text():
        pytest.skip("this kernel gives no huge pages")
    filler = [bytes(1000) for _ in range(20_000)]
    collect_heap()
    assert len(filler) == 20_000
    rollup = Path("/proc/self/smaps_rollup").read_text()
    assert (found := re.search(r"AnonHugePages: +(\d+) kB", rollup)) is not None
    assert int(found[1]) * 1024 >= HUGE_BYTES
