"""Observes one target while it is fuzzed: exceptions that escape, and the CPU time of the slowest input.

A fault does not end the run, because others may be behind it. Its input is written once for each place in the code that
raises. A slow input is only suspected, because instrumented code takes several times as long: the run tries it in plain
Python later (`campaign.py`).
"""

import time
import traceback
from collections.abc import Callable
from hashlib import sha1
from pathlib import Path

import msgspec

from fuzz.target import Target

CPU_MOST_S = 0.1
"""The most CPU seconds of an input, in its thread in plain Python."""
TIMING_TRIES = 3
"""The number of tries. The fastest counts, because garbage of earlier inputs slows the others."""
FAULTS_MAX = 20
"""The most faults that a run keeps."""
TOLD_EVERY_S = 0.5


class Sight(msgspec.Struct):
    """The observations of a target so far."""

    runs: int = 0
    units: int = 0
    """The target's units in all runs."""
    slowest_s: float = 0.0
    faults: list[str] = []
    """Files of inputs that raised."""
    slow: list[str] = []
    """Files of inputs that seem to take too long."""


class Watch:
    """Calls the target with each input, and keeps a report file up to date."""

    def __init__(self, target: Target, crashes: Path, report: Path) -> None:
        self.sight = Sight()
        self._target = target
        self._crashes = crashes
        self._report = report
        self._told_at = 0.0
        self._places: set[str] = set()

    def __call__(self, data: bytes) -> None:
        sight = self.sight
        sight.runs += 1
        spent_s = self._run(data)
        news = False
        if spent_s > sight.slowest_s and sight.runs > 1:
            spent_s = min([spent_s, *(self._run(data) for _ in range(TIMING_TRIES - 1))])
            if spent_s > sight.slowest_s:
                sight.slowest_s = spent_s
                news = True
                if spent_s > CPU_MOST_S and len(sight.slow) < FAULTS_MAX:
                    sight.slow.append(self._write("slow", data))
        if news or sight.runs % 64 == 0:
            self._tell(news)

    def _run(self, data: bytes) -> float:
        """Return the seconds of CPU that the input takes."""
        begin = time.thread_time()
        try:
            self.sight.units += self._target.one(data) or 0
        except Exception as error:
            self._note(data, error)
        return time.thread_time() - begin

    def _note(self, data: bytes, error: Exception) -> None:
        place = fingerprint_of(error)
        if place not in self._places and len(self._places) < FAULTS_MAX:
            self._places.add(place)
            self.sight.faults.append(self._write("fault", data))
            self._tell(True)

    def _write(self, kind: str, data: bytes) -> str:
        path = self._crashes / f"{self._target.name}-{kind}-{name_of(data)}"
        path.write_bytes(data)
        return str(path)

    def _tell(self, now: bool) -> None:
        clock = time.monotonic()
        if now or clock - self._told_at > TOLD_EVERY_S:
            self._told_at = clock
            partial = self._report.with_suffix(".part")
            partial.write_bytes(msgspec.json.encode(self.sight))
            partial.replace(self._report)


def fingerprint_of(error: Exception) -> str:
    """Return the place in the code that raised an exception, and its type."""
    frames = traceback.extract_tb(error.__traceback__)
    ours = [frame for frame in frames if "/kadcrawl/" in frame.filename] or frames
    return f"{type(error).__name__} {ours[-1].filename}:{ours[-1].lineno} {frames[-1].lineno}"


def name_of(data: bytes) -> str:
    """Return the name of an input's file."""
    return sha1(data, usedforsecurity=False).hexdigest()[:12]


def timed(one: Callable[[bytes], object], data: bytes) -> float:
    """Return the seconds of CPU an input takes, at best."""
    spent = []
    for _ in range(TIMING_TRIES):
        begin = time.thread_time()
        one(data)
        spent.append(time.thread_time() - begin)
    return min(spent)
