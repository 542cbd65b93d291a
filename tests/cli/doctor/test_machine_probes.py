"""The probes read the machine as it is, and leave no trace on its disk."""

import fcntl
import importlib.metadata
import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from kadcrawl.cli.doctor.check_result import CheckOutcome
from kadcrawl.cli.doctor.libraries import loading_findings
from kadcrawl.cli.doctor.machine_probes import (
    available_memory,
    clock_is_synchronized,
    disk_facts,
    file_limits,
    file_system,
    loading_error,
    nearest_directory,
    requirements,
)


def test_the_disk_is_tried_where_the_directory_will_be_and_nothing_is_left(tmp_path: Path) -> None:
    facts = disk_facts(tmp_path / "not" / "there")
    assert str(tmp_path) == facts.place
    assert facts.free_bytes > 0
    assert facts.sync_s is not None
    assert facts.sync_s >= 0
    assert (None, None) == (facts.write_error, facts.lock_error)
    assert [] == list(tmp_path.iterdir())


def test_a_disk_that_cannot_sync_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(descriptor: int) -> None:
        raise OSError(22, "Invalid argument")

    monkeypatch.setattr(os, "fdatasync", broken)
    facts = disk_facts(tmp_path)
    assert (None, "Invalid argument") == (facts.sync_s, facts.write_error)


def test_a_disk_that_cannot_lock_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(descriptor: int, operation: int) -> None:
        raise OSError(37, "No locks available")

    monkeypatch.setattr(fcntl, "flock", broken)
    facts = disk_facts(tmp_path)
    assert (None, "No locks available") == (facts.write_error, facts.lock_error)
    assert facts.sync_s is not None


def test_the_nearest_directory_of_a_file_is_the_one_it_is_in(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert tmp_path == nearest_directory(tmp_path / "file")
    assert tmp_path == nearest_directory(tmp_path)


def test_the_file_system_is_that_of_the_innermost_mount(tmp_path: Path) -> None:
    mounts = tmp_path / "mountinfo"
    inner = tmp_path / "my data"
    (inner / "deep").mkdir(parents=True)
    quoted = str(inner).replace(" ", "\\040")
    mounts.write_text(
        "22 1 8:1 / / rw - ext4 /dev/sda1 rw\n"
        f"23 22 0:41 / {quoted} rw,relatime shared:1 - tmpfs tmpfs rw\n"
        f"24 22 0:42 / {quoted} rw,relatime shared:1 - nfs4 host:/x rw\n"
        f"25 22 0:43 / {quoted}er rw - xfs x rw\n"
    )
    assert "nfs4" == file_system(inner / "deep", mounts)
    assert "ext4" == file_system(tmp_path, mounts)
    assert file_system(tmp_path, tmp_path / "missing") is None


@pytest.mark.parametrize(
    ("meminfo", "limit", "current", "expected"),
    [
        ("MemTotal: 9 kB\nMemAvailable:    2048 kB\n", None, None, 2048 * 1024),
        ("MemAvailable:    2048 kB\n", "max\n", "5\n", 2048 * 1024),
        ("MemAvailable:    2048 kB\n", "1000000\n", "400000\n", 600_000),
        ("MemAvailable:    2048 kB\n", "1000\n", "4000\n", 0),
        ("MemTotal: 9 kB\n", None, None, None),
        (None, None, None, None),
    ],
)
def test_free_memory_is_what_the_system_and_the_control_group_allow(
    tmp_path: Path, meminfo: str | None, limit: str | None, current: str | None, expected: int | None
) -> None:
    for name, text in (("proc/meminfo", meminfo), ("sys/fs/cgroup/memory.max", limit)):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        if text is not None:
            (tmp_path / name).write_text(text)
    if current is not None:
        (tmp_path / "sys/fs/cgroup/memory.current").write_text(current)
    assert expected == available_memory(tmp_path)


def test_the_modules_of_a_peer_load_all_required_libraries() -> None:
    script = (
        "import sys\n"
        "from kadcrawl.cli.doctor.machine_probes import loading_error\n"
        "assert loading_error() is None\n"
        "print(*{name.partition('.')[0] for name in sys.modules})\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    found = requirements()
    assert found is not None
    needed = {
        canonicalize_name(one.name)
        for one in map(Requirement, found[0])
        if one.marker is None or one.marker.evaluate({"extra": ""})
    }
    modules = importlib.metadata.packages_distributions()
    loaded = {package for module in done.stdout.split() for package in map(canonicalize_name, modules.get(module, ()))}
    of_the_command = {"click", "cloup", "packaging", "platformdirs", "rich", "uvloop"}
    assert set() == needed - loaded - of_the_command


def test_a_library_that_does_not_load_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "kadcrawl_broken_library.py").write_text("raise OSError('libc.so is too old')")
    monkeypatch.syspath_prepend(tmp_path)
    assert "OSError: libc.so is too old" == loading_error(["json", "kadcrawl_broken_library"])
    (finding,) = loading_findings("OSError: libc.so is too old")
    assert finding.outcome is CheckOutcome.PROBLEM
    assert [] == loading_findings(None)


def test_the_limits_on_open_files_are_those_of_the_process(monkeypatch: pytest.MonkeyPatch) -> None:
    assert resource.getrlimit(resource.RLIMIT_NOFILE) == file_limits()
    monkeypatch.setattr(resource, "getrlimit", lambda which: (1024, resource.RLIM_INFINITY))
    assert (1024, -1) == file_limits()


def test_the_system_tells_whether_a_time_server_keeps_its_clock() -> None:
    assert clock_is_synchronized() in (True, False, None)
