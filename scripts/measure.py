"""The cost of a program from outside: CPU seconds and peak memory of all its processes, on Linux.

CPU is the kernel's figure for the program and every descendant that it waited for (wait4). Peak memory is summed over
the processes, each at its own peak (VmHWM, read while they run), so shared pages count once for each.
"""

import math
import os
import signal
import subprocess
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

LOOK_INTERVAL_S: Final = 0.25
"""Seconds between two looks at the processes. A shorter process may be missed in the memory, never in the CPU."""


_measured: Final[set[int]] = set()
"""The process IDs of the programs that are being measured."""


class Cost(NamedTuple):
    """The cost of one run of a program."""

    exit_code: int
    wall_s: float
    cpu_s: float
    peak_bytes: int
    files: int = 0
    """The most files that all processes had open, as often as they were looked at."""


def cost_of(
    command: Sequence[str],
    output: Path,
    cwd: Path | None = None,
    environment: Mapping[str, str] | None = None,
    most_s: float = math.inf,
) -> Cost:
    """Run `command` to its end, with its output in a file, and return its cost. Raises OSError.

    A command that takes longer than `most_s` is killed with its descendants.
    """
    peaks: dict[int, int] = {}
    files: dict[int, int] = {}
    ended = threading.Event()
    began = time.perf_counter()
    with output.open("wb") as sink:
        process = subprocess.Popen(
            command, stdout=sink, stderr=subprocess.STDOUT, cwd=cwd, env={**os.environ, **(environment or {})}
        )
        _measured.add(process.pid)
        watcher = threading.Thread(
            target=_watch, args=(process.pid, peaks, files, ended, began + most_s), name="memory"
        )
        watcher.start()
        try:
            _, status, usage = os.wait4(process.pid, 0)
        finally:
            _measured.discard(process.pid)
            ended.set()
            watcher.join()
    process.returncode = os.waitstatus_to_exitcode(status)
    wall_s = time.perf_counter() - began
    return Cost(process.returncode, wall_s, usage.ru_utime + usage.ru_stime, sum(peaks.values()), sum(files.values()))


def _watch(root: int, peaks: dict[int, int], files: dict[int, int], ended: threading.Event, until: float) -> None:
    while not ended.wait(LOOK_INTERVAL_S):
        family = _family(root)
        for pid in family:
            peaks[pid] = max(peaks.get(pid, 0), _peak_bytes(pid))
            files[pid] = max(files.get(pid, 0), _open_files(pid))
        if time.perf_counter() > until:
            _kill(family)


def end_measured_at_sigterm() -> None:
    """Let SIGTERM end this program with exit code 143, and kill the programs that are being measured.

    Python alone would end without them, and without its temporary directories. Call it in the main thread.
    """

    def end(*_: object) -> None:
        for root in list(_measured):
            _kill(_family(root))
        sys.exit(128 + signal.SIGTERM)

    signal.signal(signal.SIGTERM, end)


def _kill(family: Sequence[int]) -> None:
    for pid in family:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def _family(root: int) -> list[int]:
    """Return a process and its descendants, as far as they still run."""
    children: defaultdict[int, list[int]] = defaultdict(list)
    for directory in Path("/proc").glob("[0-9]*"):
        try:
            # The name, in parentheses, may hold anything; state and parent follow it (proc(5)).
            after_name = (directory / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        children[int(after_name[1])].append(int(directory.name))
    found = [root]
    for pid in found:
        found.extend(children[pid])
    return found


def _open_files(pid: int) -> int:
    try:
        return len(os.listdir(f"/proc/{pid}/fd"))
    except OSError:
        return 0


def _peak_bytes(pid: int) -> int:
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM:")), 0)
