"""The profile of a machine: invalid powers are refused, readable powers are measured, and declared powers win."""

import time
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest

from kadcrawl.balance.machine_benchmark import benchmark_clock_ghz, benchmark_net_mbps, system_memory_gb
from kadcrawl.balance.machine_profile import (
    PROBE_BYTES,
    PROBE_FILE,
    PROFILE_MOST,
    MachineProfile,
    check_declared,
    clock_ghz,
    disk_mbps,
    measure_profile,
    memory_gb,
    net_mbps,
    undetected,
)
from kadcrawl.errors import ConfigError

ONE = {"cores": 4, "clock_ghz": 2.4, "memory_gb": 4.0, "net_mbps": 18.0, "disk_mbps": 18.0}
CPUINFO = "processor\t: 0\ncpu MHz\t\t: 1999.998\ncache size\t: 1 KB\n\nprocessor\t: 1\ncpu MHz\t\t: 2600.000\n"
MEMINFO = "MemTotal:        4194304 kB\nMemFree:          123456 kB\n"


def machine(
    root: Path, *, cpuinfo: str = CPUINFO, meminfo: str = MEMINFO, speeds: tuple[str, ...] = ("1000\n",)
) -> Path:
    (root / "proc").mkdir(parents=True)
    (root / "proc/cpuinfo").write_text(cpuinfo)
    (root / "proc/meminfo").write_text(meminfo)
    for number, speed in enumerate(speeds):
        (root / f"sys/class/net/eth{number}").mkdir(parents=True)
        (root / f"sys/class/net/eth{number}/speed").write_text(speed)
    return root


def seconds() -> Iterator[float]:
    return (0.5 * tick for tick in count())


@pytest.mark.parametrize("name", PROFILE_MOST)
def test_a_power_is_above_0_and_at_most_what_is_possible(name: str) -> None:
    most = int(PROFILE_MOST[name]) if name == "cores" else PROFILE_MOST[name]
    assert most == getattr(MachineProfile(**(ONE | {name: most})), name)  # type: ignore[arg-type]
    for wrong in (most + 1, 0, -1, float("nan"), float("inf"), True, "4", None):
        with pytest.raises(ConfigError, match=name):
            MachineProfile(**(ONE | {name: wrong}))  # type: ignore[arg-type]


def test_there_is_no_half_core() -> None:
    with pytest.raises(ConfigError, match="cores"):
        MachineProfile(**(ONE | {"cores": 1.5}))  # type: ignore[arg-type]


def test_the_vector_is_in_the_papers_order() -> None:
    assert (1.0, 2.0, 3.0, 4.0, 5.0) == MachineProfile(1, 2, 3, 4, 5).vector


def test_what_the_machine_tells_is_read() -> None:
    assert 2.6 == clock_ghz(CPUINFO)
    assert 4.0 == memory_gb(MEMINFO)
    assert 1000.0 == net_mbps(["-1\n", "100\n", "1000\n", ""])


def test_what_it_does_not_tell_is_none() -> None:
    assert clock_ghz("processor : 0\nBogoMIPS : 48.00\n") is None
    assert clock_ghz("cpu MHz : 1.2.3\n") is None
    assert memory_gb("") is None
    assert net_mbps(["-1\n", "unknown"]) is None
    assert net_mbps([]) is None


def test_the_disk_is_written_to_and_left_as_it_was(tmp_path: Path) -> None:
    ticks = seconds()
    (tmp_path / PROBE_FILE).write_text("left by a process that was killed")
    assert PROBE_BYTES * 8 / 1e6 / 0.5 == disk_mbps(tmp_path, lambda: next(ticks))
    assert [] == list(tmp_path.iterdir())


def test_a_disk_that_takes_no_time_tells_nothing(tmp_path: Path) -> None:
    assert disk_mbps(tmp_path, lambda: 1.0) is None


def test_a_machine_is_measured(tmp_path: Path) -> None:
    ticks = seconds()
    found = measure_profile(tmp_path, lambda: next(ticks), root=machine(tmp_path / "root"))
    assert (2.6, 4.0, 1000.0) == (found.clock_ghz, found.memory_gb, found.net_mbps)
    assert found.cores >= 1


def test_what_is_declared_is_not_measured(tmp_path: Path) -> None:
    def never() -> float:
        raise AssertionError("the disk is declared, and not to be measured")

    assert MachineProfile(**ONE) == measure_profile(tmp_path, never, ONE, tmp_path / "no machine")  # type: ignore[arg-type]


def test_a_benchmark_stands_for_a_power_that_the_machine_does_not_tell(tmp_path: Path) -> None:
    arm = machine(tmp_path / "root", cpuinfo="BogoMIPS : 48.00\n", speeds=("-1\n",))
    ticks = (0.01 * tick for tick in count())
    found = measure_profile(tmp_path, lambda: next(ticks), root=arm)
    ticks = (0.01 * tick for tick in count())
    assert benchmark_clock_ghz(lambda: next(ticks)) == pytest.approx(found.clock_ghz)
    ticks = (0.01 * tick for tick in count())
    assert benchmark_net_mbps(lambda: next(ticks)) == pytest.approx(found.net_mbps)


def test_a_benchmark_is_within_the_bounds(tmp_path: Path) -> None:
    found = measure_profile(tmp_path, time.perf_counter, root=machine(tmp_path / "root", meminfo="", speeds=()))
    assert found.net_mbps <= PROFILE_MOST["net_mbps"]
    assert found.memory_gb == system_memory_gb()


def test_what_neither_the_machine_nor_a_benchmark_tells_must_be_declared(tmp_path: Path) -> None:
    root = machine(tmp_path / "root", speeds=("-1\n",))
    with pytest.raises(ConfigError, match="net_mbps: declare it"):
        measure_profile(tmp_path, lambda: 0.0, root=root)
    with pytest.raises(ConfigError, match="no power 'net'"):
        measure_profile(tmp_path, lambda: 0.0, {"net": 1.0}, root)


def test_what_is_declared_is_checked_by_name_and_range() -> None:
    declared = check_declared({"cores": 4.0, "net_mbps": 18.5})
    assert {"cores": 4, "net_mbps": 18.5} == declared
    assert isinstance(declared["cores"], int)
    for wrong in (
        {"net": 1.0},
        {"net_mbps": 0.0},
        {"cores": 1.5},
        {"cores": float("inf")},
        {"disk_mbps": float("nan")},
    ):
        with pytest.raises(ConfigError):
            check_declared(wrong)


def test_what_this_machine_does_not_tell_is_named(tmp_path: Path) -> None:
    assert ["clock_ghz", "memory_gb", "net_mbps"] == undetected({}, tmp_path)
    assert ["memory_gb"] == undetected({"clock_ghz": 1.0, "net_mbps": 1.0}, tmp_path)
