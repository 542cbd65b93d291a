"""A fuzzing run: each target in a process of its own, several at a time, and the result of each."""

import contextlib
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from fuzz import corpus
from fuzz.targets import target
from fuzz.watch import Sight, name_of

WORK = Path(".cache/fuzz")
"""The directory of libFuzzer's interesting inputs, by target. The next run continues from there."""
CRASHES = WORK / "crashes"
SILENT_PROCESS_TIMEOUT_S = 60
"""Seconds after the last output of a process before it is ended."""
OUTPUT_LINES = 40
"""Of the child's last words, shown if it died."""

_PULSE = re.compile(r"^#(?P<runs>\d+)\s.*\bcov: (?P<edges>\d+)\b.*\bcorp: (?P<inputs>\d+)/.*\brss: (?P<rss>\d+)Mb")
_STAT = re.compile(r"^stat::(?P<name>\w+):\s+(?P<value>\d+)")
_KINDS = {"timeout": "takes too long", "slow-unit": "takes too long", "oom": "takes too much memory"}
"""Maps the name prefixes of libFuzzer's files to the effect of their inputs."""
_ARTIFACT = re.compile(r"Test unit written to (?P<path>\S+)")


@dataclass(slots=True)
class TargetResult:
    """The state of one target's run, during the run and at its end."""

    name: str
    runs: int = 0
    units: str = ""
    """The unit in which an input is counted, with the count."""
    edges: int = 0
    inputs: int = 0
    peak_mb: int = 0
    runs_s: int = 0
    slowest_s: float = 0.0
    kept: int = 0
    """Inputs kept of it, with those of before."""
    crashes: dict[str, str] = field(default_factory=dict)
    """File of an input -> its effect, in a line."""
    over: bool = False
    output: list[str] = field(default_factory=list)
    """The last output of the process, if it died of another cause than an input."""


class Campaign:
    """The run of some targets. `start` begins it; `results` are up to date at any time."""

    def __init__(self, names: Sequence[str], seconds: int | None, runs: int | None, jobs: int) -> None:
        self.results = {name: TargetResult(name) for name in names}
        self._seconds = seconds or 0
        self._runs = -1 if runs is None else runs
        self._children: dict[str, subprocess.Popen[str]] = {}
        self._ended = False
        self._pool = ThreadPoolExecutor(jobs)
        self._futures = [self._pool.submit(self._fuzz, self.results[name]) for name in names]

    @property
    def running(self) -> bool:
        return not all(future.done() for future in self._futures)

    def finish(self) -> None:
        """Wait for all. Raises what went wrong in a run."""
        for future in self._futures:
            future.result()
        self._pool.shutdown()

    def end(self) -> None:
        """End the processes of this campaign."""
        self._ended = True
        for child in list(self._children.values()):
            child.terminate()
        self._pool.shutdown(cancel_futures=True)

    def _fuzz(self, result: TargetResult) -> None:
        name = result.name
        work = WORK / name
        for directory in (work, CRASHES):
            directory.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix="kadcrawl-fuzz-") as scratch:
            seeds = Path(scratch) / "seeds"
            seeds.mkdir()
            for data in target(name).seeds():
                (seeds / name_of(data)).write_bytes(data)
            report = Path(scratch) / "sight.json"
            others = [str(directory) for directory in (seeds, corpus.KEPT / name) if directory.is_dir()]
            command = [sys.executable, "-m", "fuzz.child", name, str(work), str(CRASHES), str(report)]
            command += [str(self._seconds), str(self._runs), *others]
            output: list[str] = []
            with self._child(name, command) as child:
                assert child.stderr is not None, "it was asked for"
                for line in child.stderr:
                    output = [*output[1 - OUTPUT_LINES :], line]
                    hear(result, line)
                    self._look(result, report)
            self._look(result, report)
        if child.returncode and not result.crashes and not self._ended:
            result.output = output
        self._conclude(result, work)

    @contextlib.contextmanager
    def _child(self, name: str, command: list[str]) -> Iterator[subprocess.Popen[str]]:
        child = subprocess.Popen(
            command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, errors="replace"
        )
        self._children[name] = child
        try:
            yield child
            child.wait(SILENT_PROCESS_TIMEOUT_S)
        finally:
            child.kill()
            child.wait()
            del self._children[name]

    def _look(self, result: TargetResult, report: Path) -> None:
        """Update the result by the report of the watch in the process."""
        if report.exists():
            sight = msgspec.json.decode(report.read_bytes(), type=Sight)
            result.slowest_s = sight.slowest_s
            if units := target(result.name).units:
                result.units = f"{sight.units:,} {units}"
            for path in sight.faults:
                result.crashes.setdefault(path, "raises")

    def _conclude(self, result: TargetResult, work: Path) -> None:
        """Try inputs that seemed slow in plain Python, and keep the inputs that are worth it."""
        name = result.name
        for path in CRASHES.glob(f"{name}-slow-*"):
            replay = subprocess.run(
                [sys.executable, "-m", "fuzz", "replay", name, str(path)], capture_output=True, text=True
            )
            if replay.returncode:
                result.crashes[str(path)] = "takes too much CPU"
            else:
                path.unlink()
        if not self._ended:
            subprocess.run([sys.executable, "-m", "fuzz", "keep", name], check=True, capture_output=True)
        held = corpus.kept(name)
        result.kept = len(held)
        result.over = True


def hear(result: TargetResult, line: str) -> None:
    """Update the result by a line of libFuzzer's output."""
    if found := _PULSE.match(line):
        result.runs, result.edges, result.inputs = (int(found[one]) for one in ("runs", "edges", "inputs"))
        result.peak_mb = max(result.peak_mb, int(found["rss"]))
    elif found := _STAT.match(line):
        value = int(found["value"])
        match found["name"]:
            case "number_of_executed_units":
                result.runs = value
            case "average_exec_per_sec":
                result.runs_s = value
            case "peak_rss_mb":
                result.peak_mb = value
    elif found := _ARTIFACT.search(line):
        result.crashes[found["path"]] = next(
            (what for kind, what in _KINDS.items() if f"-{kind}-" in found["path"]), "ends the process"
        )


def found_by(name: str) -> list[bytes]:
    """Return the inputs of a target that runs have found interesting so far."""
    work = WORK / name
    return [path.read_bytes() for path in work.iterdir()] if work.is_dir() else []
