"""An idle swarm of real processes: a first peer, a second peer that joined it, and a leaf.

Each process is started as a person starts it, and counts as idle some seconds after it has entered the swarm. The
processes have nothing to fetch.

Tests: tests/scripts/test_bench_memory.py
"""

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

BEGUN: Final = {"peer": "others join with", "leaf": "draws pages of other peers"}
"""The words of each kind of process when it has entered the swarm."""
START_S: Final = 60.0
"""Seconds for a start, at most."""
LOOK_INTERVAL_S: Final = 0.05
_LISTENS = re.compile(r"listens on (\S+)")
_RECORDING = """
import importlib._bootstrap as bootstrap, os, sys
load = bootstrap._load_unlocked
def recorded(spec):
    module = load(spec)
    os.write(2, f"imported {os.getpid()} {spec.name}\\n".encode())
    return module
bootstrap._load_unlocked = recorded
sys.argv[0] = "kadcrawl"
from kadcrawl.cli import main
main()
"""
"""A program that runs kadcrawl, and says which process imports which module."""


class IdleError(Exception):
    """A process has not started. The text says why."""


@dataclass(frozen=True, slots=True)
class IdleProcess:
    """One idle process."""

    name: str
    kind: str
    """A key of `BEGUN`."""
    process: subprocess.Popen[bytes]
    said: Path
    """The file with its output."""

    @property
    def pid(self) -> int:
        return self.process.pid

    def modules(self) -> frozenset[str]:
        """Return the modules that this process has imported, if the swarm records them."""
        said = self.said.read_text(encoding="utf-8", errors="replace")
        return frozenset(re.findall(rf"^imported {self.pid} (\S+)", said, re.MULTILINE))


@contextmanager
def idle_swarm(
    directory: Path, more: Sequence[str] = (), *, records_imports: bool = False
) -> Iterator[list[IdleProcess]]:
    """Give the idle processes, and end them. Raises IdleError if one does not start.

    `more` goes to each command.
    """
    key = directory / "swarm.key"
    key.touch(0o600)
    key.write_bytes(subprocess.check_output([sys.executable, "-m", "kadcrawl", "keygen"]))
    kadcrawl = [sys.executable, *(("-c", _RECORDING) if records_imports else ("-m", "kadcrawl"))]
    with ExitStack() as stack:
        swarm: list[IdleProcess] = []

        def start(name: str, kind: str, *words: str) -> IdleProcess:
            data, said = directory / name, directory / f"{name}.txt"
            command = [*kadcrawl, *words, "--key-file", str(key), "--data", str(data), *more]
            with said.open("wb") as sink:
                process = subprocess.Popen(command, stdout=sink, stderr=sink, stdin=subprocess.DEVNULL)
            stack.callback(_end, process)
            one = IdleProcess(name, kind, process, said)
            _wait(one)
            swarm.append(one)
            return one

        first = start("first peer", "peer", "start", "--listen", "127.0.0.1:0")
        listens = _LISTENS.search(first.said.read_text(encoding="utf-8"))
        if listens is None:
            raise IdleError("the first peer does not say where it listens")
        start("second peer", "peer", "join", "--bootstrap", listens[1], "--listen", "127.0.0.1:0")
        start("leaf", "leaf", "join", "--leaf", "--bootstrap", listens[1])
        yield swarm


def _wait(one: IdleProcess) -> None:
    """Return when the process says that it is in the swarm."""
    ended_at = time.monotonic() + START_S
    while BEGUN[one.kind] not in one.said.read_text(encoding="utf-8", errors="replace"):
        if one.process.poll() is not None or time.monotonic() > ended_at:
            raise IdleError(f"the {one.name} has not started: {one.said.read_text(encoding='utf-8')[-500:]}")
        time.sleep(LOOK_INTERVAL_S)


def _end(process: "subprocess.Popen[bytes]") -> None:
    for number in (signal.SIGTERM, signal.SIGKILL):
        if process.poll() is None:
            process.send_signal(number)
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                continue


def memory_kb(pid: int, proc: Path = Path("/proc")) -> dict[str, int]:
    """Return the memory of a process in kB as Linux counts it: Rss, Pss, Anonymous."""
    text = (proc / str(pid) / "smaps_rollup").read_text(encoding="utf-8")
    return {name: int(value) for name, value in re.findall(r"^(Rss|Pss|Anonymous): +(\d+) kB", text, re.MULTILINE)}


def cpu_s(pid: int, proc: Path = Path("/proc")) -> float:
    """Return the CPU seconds that a process has used."""
    fields = (proc / str(pid) / "stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
