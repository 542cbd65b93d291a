"""Reads the facts about this machine: Python, libraries, limits, memory, disk, clock.

The disk is tried with a file without a name, so nothing is left behind.

Tests: tests/cli/doctor/test_machine_probes.py
"""

import ctypes
import fcntl
import importlib
import importlib.metadata
import os
import platform
import re
import resource
import sys
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from statistics import median
from typing import Final

from kadcrawl.cli.doctor.machine import DiskFacts
from kadcrawl.system.clock import steady

SYNCS: Final = 9
"""Writes that are timed. Their median leaves out a moment in which the disk is busy."""
WRITE_BYTES: Final = 4096
DISTRIBUTION: Final = "kadcrawl"
MODULES_OF_A_PEER: Final = (
    "kadcrawl.peer.peer",
    "kadcrawl.leaf.leaf",
    "kadcrawl.overlay.protocol",
    "kadcrawl.crawl.fetch.proxy_connector",
    "kadcrawl.peer.monitoring.listener",
    "kadcrawl.web.listener",
    "charset_normalizer",
    "parsel",
    "pybloom_live",
    "selectolax.lexbor",
    "setproctitle",
)
"""Modules that load all required libraries between them, also those that only some crawls need."""

_TIMEX_BYTES: Final = 208
_STATUS_AT: Final = 40
"""The size of the struct timex of 64-bit Linux, and the place of its status (adjtimex(2))."""
_UNSYNCHRONIZED: Final = 0x40


def python_version() -> str:
    return platform.python_version()


def system_name() -> str:
    """Return the name of the system, for the first line."""
    return f"{platform.system()} {platform.release()}"


def requirements() -> tuple[list[str], str | None] | None:
    """Return the requirements of kadcrawl and its Requires-Python, or None if kadcrawl is not installed."""
    try:
        found = importlib.metadata.distribution(DISTRIBUTION)
    except importlib.metadata.PackageNotFoundError:
        return None
    (python,) = found.metadata.get_all("Requires-Python") or [None]
    return found.requires or [], python


def installed(name: str) -> str | None:
    """Return the installed version of a package, or None."""
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def loading_error(modules: Sequence[str] = MODULES_OF_A_PEER) -> str | None:
    """Return the error of the first module of a peer that does not load, or None. A library may be broken."""
    for module in modules:
        try:
            importlib.import_module(module)
        except Exception as error:  # A broken library may raise anything.
            return f"{type(error).__name__}: {error}"
    return None


def file_limits() -> tuple[int, int]:
    """Return the soft and the hard limit on open files, -1 for none."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    return (soft, -1) if hard == resource.RLIM_INFINITY else (soft, hard)


def available_memory(root: Path = Path("/")) -> int | None:
    """Return the bytes that programs can still take, by the system and by the control group. None if unknown."""
    found: list[int] = []
    with suppress(OSError):
        if match := re.search(r"^MemAvailable:\s*(\d+) kB$", (root / "proc/meminfo").read_text(), re.M):
            found.append(int(match[1]) * 1024)
    group = root / "sys/fs/cgroup"
    with suppress(OSError, ValueError):  # "max" is no number, and no limit.
        limit = int((group / "memory.max").read_text())
        found.append(max(0, limit - int((group / "memory.current").read_text())))
    return min(found, default=None)


def nearest_directory(path: Path) -> Path:
    """Return the directory, or else the nearest directory above that is there."""
    path = path.absolute()
    while not path.is_dir():
        path = path.parent
    return path


def disk_facts(data: Path) -> DiskFacts:
    """Return the facts about the disk of a directory, which need not be there yet."""
    place = nearest_directory(data)
    room = os.statvfs(place)
    sync_s = write_error = lock_error = None
    try:
        with tempfile.TemporaryFile(dir=place, buffering=0) as file:
            sync_s = median([_sync_s(file.fileno()) for _ in range(SYNCS)])
            try:
                fcntl.flock(file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                lock_error = error.strerror
    except OSError as error:
        write_error = error.strerror
    return DiskFacts(
        place=str(place),
        file_system=file_system(place),
        free_bytes=room.f_bavail * room.f_frsize,
        sync_s=sync_s,
        write_error=write_error,
        lock_error=lock_error,
    )


def file_system(place: Path, mounts: Path = Path("/proc/self/mountinfo")) -> str | None:
    """Return the type of the file system of a directory, or None if the system does not tell."""
    best: tuple[int, str] | None = None
    try:
        lines = mounts.read_text("utf-8", "surrogateescape").splitlines()
    except OSError:
        return None
    where = place.resolve()
    for line in lines:
        left, _, right = line.partition(" - ")
        point = Path(re.sub(r"\\(\d{3})", lambda code: chr(int(code[1], 8)), left.split()[4]))
        # Of two mounts at one point the later is on top.
        if where.is_relative_to(point) and (best is None or len(point.parts) >= best[0]):
            best = len(point.parts), right.split()[0]
    return None if best is None else best[1]


def clock_is_synchronized() -> bool | None:
    """Return whether the system keeps its clock by a time server, or None if it does not tell."""
    if sys.platform != "linux" or ctypes.sizeof(ctypes.c_long) != 8:
        return None
    buffer = ctypes.create_string_buffer(_TIMEX_BYTES)  # Modes of 0 change nothing.
    try:
        if ctypes.CDLL(None, use_errno=True).adjtimex(buffer) < 0:
            return None
    except (AttributeError, OSError):
        return None
    status = int.from_bytes(buffer.raw[_STATUS_AT : _STATUS_AT + 4], sys.byteorder)
    return not status & _UNSYNCHRONIZED


def _sync_s(descriptor: int) -> float:
    begun = steady()
    os.write(descriptor, b"0" * WRITE_BYTES)
    os.fdatasync(descriptor)
    return steady() - begun
