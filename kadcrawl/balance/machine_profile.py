"""What a peer can do: its powers as the paper counts them (P2 2.1), declared by its owner or measured when it starts.

`MachineProfile` is a checked value, so what another peer declares may be put into one as it comes. `measure` reads this
machine (Linux's /proc and /sys; elsewhere what cannot be read must be declared) and blocks for about a second, by
writing to the disk: call it in a thread, once.
"""

import os
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import astuple, dataclass, fields, replace
from math import isfinite
from pathlib import Path

from kadcrawl.errors import ConfigError

PROFILE_MOST = {"cores": 4096.0, "clock_ghz": 100.0, "memory_gb": 1e6, "net_mbps": 1e7, "disk_mbps": 1e7}
"""Far above any machine: what is above is nonsense, and would bend the prediction for all."""
PROBE_BYTES = 16 << 20
"""Written to the disk to see how fast it is: enough to be seen by the clock, little enough to wait for."""
CHUNK_BYTES = 1 << 20
PROBE_FILE = "probe"
"""Its file: one name, so that what a killed process left is written over by the next."""


@dataclass(frozen=True, slots=True)
class MachineProfile:
    """A peer's powers; raises ConfigError (a ValueError) unless each is a number above 0 and at most its `MOST`."""

    cores: int
    clock_ghz: float
    memory_gb: float
    net_mbps: float
    """Megabits in a second, down."""
    disk_mbps: float
    """Megabits in a second, written and on the disk."""

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
        """In the order of the paper's input layer, which the number of URLs ends."""
        return tuple(float(power) for power in astuple(self))


_ANY = MachineProfile(1, 1.0, 1.0, 1.0, 1.0)


def check_declared(declared: Mapping[str, float]) -> dict[str, float]:
    """Return the powers an owner declares, by name. Raises ConfigError for what is no power, or out of range."""
    powers: dict[str, float] = {}
    for name, power in declared.items():
        if name not in PROFILE_MOST:
            raise ConfigError(f"there is no power {name!r}: declare {', '.join(PROFILE_MOST)}")
        whole = name == "cores" and isfinite(power) and power == int(power)
        powers[name] = int(power) if whole else power
        replace(_ANY, **{name: powers[name]})  # type: ignore[arg-type]  # looks at it
    return powers


def clock_ghz(cpuinfo: str) -> float | None:
    """Return the clock of the fastest core in the text of /proc/cpuinfo; None if it does not say (as on ARM)."""
    return (
        max((float(mhz) for mhz in re.findall(r"^cpu MHz\s*:\s*(\d+(?:\.\d+)?)\s*$", cpuinfo, re.M)), default=0.0) / 1e3
        or None
    )


def memory_gb(meminfo: str) -> float | None:
    """Return the memory in the text of /proc/meminfo, in units of 2^30 bytes; None if it does not say."""
    found = re.search(r"^MemTotal:\s*(\d+) kB$", meminfo, re.M)
    return int(found[1]) / (1 << 20) if found else None


def net_mbps(speeds: Iterable[str]) -> float | None:
    """Return the fastest of the texts of /sys/class/net/*/speed; None if no link says (virtual ones say -1)."""
    return float(max((int(speed) for speed in speeds if re.fullmatch(r"\d+\s*", speed)), default=0)) or None


def disk_mbps(directory: Path, clock: Callable[[], float]) -> float | None:
    """Write a file, force it to the disk, remove it, and return how fast that was by `clock` (seconds).

    It is in `directory`, which must be this process's own. None if it took no time by that clock. Raises OSError as
    the disk does.
    """
    chunk = os.urandom(CHUNK_BYTES)  # Nothing a file system could compress.
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
    """Return the powers that are neither declared nor told by this machine, the disk's aside."""
    return [name for name, probe in _probes(root).items() if name not in declared and probe() is None]


def measure_profile(
    directory: Path, clock: Callable[[], float], declared: Mapping[str, float] | None = None, root: Path = Path("/")
) -> MachineProfile:
    """Return this machine's powers; what is `declared` (by the names in `MachineProfile`) is not measured.

    Args:
        directory: on the disk to be measured.
        clock: seconds that run evenly.
        declared: wins over what the machine says: a link is rarely as fast as its card.
        root: where /proc and /sys are.

    Raises:
        ConfigError: a power is declared that is none, or is out of range, or can neither be read here nor was declared.
        OSError: the disk does not take the probe.
    """
    powers: dict[str, float | None] = {**check_declared(declared or {})}
    probes = _probes(root)
    probes["disk_mbps"] = lambda: disk_mbps(directory, clock)
    for name, probe in probes.items():
        if name not in powers:
            powers[name] = probe()
        if powers[name] is None:
            raise ConfigError(f"this machine does not tell its {name}: declare it")
    return MachineProfile(**powers)  # type: ignore[arg-type]


def _probes(root: Path) -> dict[str, Callable[[], float | None]]:
    """Return what asks the machine, by power."""
    return {
        "cores": _cores,
        "clock_ghz": lambda: clock_ghz(_text(root / "proc/cpuinfo")),
        "memory_gb": lambda: memory_gb(_text(root / "proc/meminfo")),
        "net_mbps": lambda: net_mbps(_text(path) for path in sorted((root / "sys/class/net").glob("*/speed"))),
    }


def _cores() -> int:
    """Return how many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _text(path: Path) -> str:
    try:
        return path.read_text("utf-8", "replace")
    except OSError:  # Not there, or (a link that is down) not to be read.
        return ""
