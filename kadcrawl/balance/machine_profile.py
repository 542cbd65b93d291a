"""`MachineProfile`: the powers of a peer's machine as the paper counts them (P2 2.1), declared or measured.

`MachineProfile` is a checked value, so it may take another peer's declaration as it comes. `measure_profile` reads this
machine (Linux's /proc and /sys). Where it does not tell a power, as ARM its clock, a benchmark of 50 ms stands for it
(machine_benchmark.py). It blocks for about a second, as it writes to the disk: call it in a thread, once.
"""

import os
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import astuple, dataclass, fields, replace
from math import isfinite
from pathlib import Path

from kadcrawl.balance.machine_benchmark import benchmark_clock_ghz, benchmark_net_mbps, system_memory_gb
from kadcrawl.errors import ConfigError

PROFILE_MOST = {"cores": 4096.0, "clock_ghz": 100.0, "memory_gb": 1e6, "net_mbps": 1e7, "disk_mbps": 1e7}
"""The bounds of the powers, far above any machine: nonsense beyond them would bend the prediction for all peers."""
PROBE_BYTES = 16 << 20
"""Bytes written to measure the disk: enough for the clock to see, few enough to wait for."""
CHUNK_BYTES = 1 << 20
PROBE_FILE = "probe"
"""The name of the probe file. A new process overwrites the file that a killed process left."""


@dataclass(frozen=True, slots=True)
class MachineProfile:
    """The powers of one machine.

    Raises ConfigError (a ValueError) unless each power is a number above 0 and at most its `PROFILE_MOST`.
    """

    cores: int
    clock_ghz: float
    memory_gb: float
    net_mbps: float
    """Download speed in megabits per second."""
    disk_mbps: float
    """Disk speed in megabits per second, written and synced."""

    def __post_init__(self) -> None:
        for field in fields(self):
            power = getattr(self, field.name)
            kinds = (int,) if field.name == "cores" else (int, float)
            if type(power) not in kinds or not isfinite(power) or not 0 < power <= PROFILE_MOST[field.name]:
                raise ConfigError(
                    f"{field.name} must be a number above 0 and at most {PROFILE_MOST[field.name]:g}, not {power!r}"
                )

    @property
    def vector(self) -> tuple[float, ...]:
        """The powers in the order of the paper's input layer, where the number of URLs follows."""
        return tuple(float(power) for power in astuple(self))


_ANY = MachineProfile(1, 1.0, 1.0, 1.0, 1.0)


def check_declared(declared: Mapping[str, float]) -> dict[str, float]:
    """Return the powers that an owner declares, by name. Raises ConfigError for an unknown or impossible power."""
    powers: dict[str, float] = {}
    for name, power in declared.items():
        if name not in PROFILE_MOST:
            raise ConfigError(f"there is no power {name!r}: declare {', '.join(PROFILE_MOST)}")
        whole = name == "cores" and isfinite(power) and power == int(power)
        powers[name] = int(power) if whole else power
        replace(_ANY, **{name: powers[name]})  # type: ignore[arg-type]  # checks the power
    return powers


def clock_ghz(cpuinfo: str) -> float | None:
    """Return the clock of the fastest core in the text of /proc/cpuinfo, or None without one (as on ARM)."""
    return (
        max((float(mhz) for mhz in re.findall(r"^cpu MHz\s*:\s*(\d+(?:\.\d+)?)\s*$", cpuinfo, re.M)), default=0.0) / 1e3
        or None
    )


def memory_gb(meminfo: str) -> float | None:
    """Return the memory in the text of /proc/meminfo, in units of 2^30 bytes, or None if it has none."""
    found = re.search(r"^MemTotal:\s*(\d+) kB$", meminfo, re.M)
    return int(found[1]) / (1 << 20) if found else None


def net_mbps(speeds: Iterable[str]) -> float | None:
    """Return the fastest speed in the texts of /sys/class/net/*/speed, or None (virtual links say -1)."""
    return float(max((int(speed) for speed in speeds if re.fullmatch(r"\d+\s*", speed)), default=0)) or None


def disk_mbps(directory: Path, clock: Callable[[], float]) -> float | None:
    """Write a file, sync it to the disk, remove it, and return the speed by `clock` (seconds).

    The file is in `directory`, which must be this process's own. Return None if it took no time by that clock. Raises
    OSError as the disk does.
    """
    chunk = os.urandom(CHUNK_BYTES)  # Random bytes, which a file system cannot compress.
    path = directory / PROBE_FILE
    begun = clock()
    try:
        with path.open("wb") as file:
            for _ in range(PROBE_BYTES // CHUNK_BYTES):
                file.write(chunk)
            file.flush()
            os.fsync(file.fileno())
        took_s = clock() - begun
    finally:
        path.unlink(missing_ok=True)
    return PROBE_BYTES * 8 / 1e6 / took_s if took_s > 0 else None


def undetected(declared: Mapping[str, float], root: Path = Path("/")) -> list[str]:
    """Return the powers that are neither declared nor readable on this machine, except the disk's.

    A benchmark stands for them (machine_benchmark.py).
    """
    return [name for name, probe in _probes(root).items() if name not in declared and probe() is None]


def measure_profile(
    directory: Path, clock: Callable[[], float], declared: Mapping[str, float] | None = None, root: Path = Path("/")
) -> MachineProfile:
    """Return this machine's profile. Powers that are `declared` (by the names in `MachineProfile`) are not measured.

    Args:
        directory: on the disk to be measured.
        clock: seconds that run evenly.
        declared: wins over the machine's own figures: a link is rarely as fast as its card.
        root: where /proc and /sys are.

    Raises:
        ConfigError: a declared power is unknown or out of range, or neither the machine nor a benchmark tells a power.
        OSError: the disk does not take the probe.
    """
    powers: dict[str, float | None] = {**check_declared(declared or {})}
    probes = _probes(root)
    probes["disk_mbps"] = lambda: disk_mbps(directory, clock)
    benchmarks: dict[str, Callable[[], float | None]] = {
        "clock_ghz": lambda: benchmark_clock_ghz(clock),
        "memory_gb": system_memory_gb,
        "net_mbps": lambda: benchmark_net_mbps(clock),
    }
    for name, probe in probes.items():
        if name not in powers:
            powers[name] = probe()
        if powers[name] is None and name in benchmarks:
            powers[name] = _bounded(name, benchmarks[name]())
        if powers[name] is None:
            raise ConfigError(f"this machine does not tell its {name}: declare it")
    return MachineProfile(**powers)  # type: ignore[arg-type]


def _bounded(name: str, power: float | None) -> float | None:
    return None if power is None else min(power, PROFILE_MOST[name])


def _probes(root: Path) -> dict[str, Callable[[], float | None]]:
    """Return the functions that read the machine, by power."""
    return {
        "cores": _cores,
        "clock_ghz": lambda: clock_ghz(_text(root / "proc/cpuinfo")),
        "memory_gb": lambda: memory_gb(_text(root / "proc/meminfo")),
        "net_mbps": lambda: net_mbps(_text(path) for path in sorted((root / "sys/class/net").glob("*/speed"))),
    }


def _cores() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _text(path: Path) -> str:
    try:
        return path.read_text("utf-8", "replace")
    except OSError:  # The file is missing, or cannot be read (a link that is down).
        return ""
