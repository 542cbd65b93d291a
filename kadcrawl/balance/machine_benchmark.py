"""Benchmarks of 50 ms that stand for the powers of a machine that does not tell them (P2 2.1).

ARM has no clock in /proc/cpuinfo, virtual network links have no speed, and other systems have no /proc. The paper's
network needs a number for each power. So the speed of a hash stands for the clock, and the speed of a pipe for the
link, of which it is the upper bound. Both block for `BENCHMARK_S` of the caller's clock: call them in a thread.
"""

import os
from collections.abc import Callable
from contextlib import closing
from hashlib import blake2b

BENCHMARK_S = 0.05
"""Seconds of one benchmark."""
CYCLES_PER_BYTE = 4.0
"""Cycles in which BLAKE2b hashes a byte: 2.6 GHz gave 550 to 860 MB/s on the x86 machine of this project."""
HASHED_BYTES = 1 << 14
"""Bytes hashed between two looks at the clock."""
LOOKS_MAX = 1_000
"""Looks at a clock that stands still, before a benchmark is given up."""
PIPED_BYTES = 1 << 14
"""Bytes passed between two looks at the clock: less than any pipe holds, so no write waits."""


def benchmark_clock_ghz(clock: Callable[[], float]) -> float | None:
    """Return the clock that the speed of a hash suggests, or None if `clock` (seconds) does not move."""
    data = bytes(HASHED_BYTES)
    bytes_s = _bytes_s(lambda: len(data) * bool(blake2b(data).digest()), clock)
    return None if bytes_s is None else bytes_s * CYCLES_PER_BYTE / 1e9


def benchmark_net_mbps(clock: Callable[[], float]) -> float | None:
    """Return the megabits a second that pass through a pipe, or None if `clock` (seconds) does not move."""
    data = bytes(PIPED_BYTES)
    read_end, write_end = os.pipe()
    with closing(os.fdopen(read_end, "rb", 0)) as reader, closing(os.fdopen(write_end, "wb", 0)) as writer:
        bytes_s = _bytes_s(lambda: len(reader.read(writer.write(data) or 0)), clock)
    return None if bytes_s is None else bytes_s * 8 / 1e6


def system_memory_gb() -> float | None:
    """Return the memory as POSIX systems without /proc tell it, in units of 2^30 bytes, or None."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / (1 << 30)
    except (AttributeError, ValueError, OSError):
        return None


def _bytes_s(step: Callable[[], int], clock: Callable[[], float]) -> float | None:
    """Return the bytes a second of repeated steps. Each returns its bytes."""
    begun, done, looks = clock(), 0, 0
    while (took_s := clock() - begun) < BENCHMARK_S:
        if took_s <= 0 and looks >= LOOKS_MAX:
            return None
        done += step()
        looks += 1
    return done / took_s if done else None
