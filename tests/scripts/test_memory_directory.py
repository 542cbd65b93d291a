"""The files of the tests are in memory where there is room for them, and where nobody chose another directory."""

import os
import tempfile
from pathlib import Path
from types import SimpleNamespace

import pytest

from scripts import memory_directory
from scripts.memory_directory import ROOM_BYTES, has_room, memory_free


@pytest.fixture
def free(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """A file system with room for the files, and memory for them."""
    found = SimpleNamespace(f_bavail=ROOM_BYTES // 4096, f_frsize=4096)
    monkeypatch.setattr(os, "statvfs", lambda path: found)
    monkeypatch.setattr(memory_directory, "memory_free", lambda: ROOM_BYTES)
    monkeypatch.delenv("TMPDIR", raising=False)
    monkeypatch.setattr(tempfile, "tempdir", "/usual")
    return found


def test_a_directory_in_memory_with_room_is_taken(tmp_path: Path, free: SimpleNamespace) -> None:
    assert tmp_path == memory_directory.directory(tmp_path)


def test_a_small_file_system_in_memory_is_left_alone(tmp_path: Path, free: SimpleNamespace) -> None:
    free.f_bavail -= 1
    assert Path("/usual") == memory_directory.directory(tmp_path)


def test_a_machine_with_little_memory_keeps_its_files_on_the_disk(tmp_path: Path, free: SimpleNamespace) -> None:
    assert has_room(tmp_path, ROOM_BYTES)
    assert not has_room(tmp_path, ROOM_BYTES - 1)


def test_a_system_without_such_a_directory_has_its_usual_one(tmp_path: Path, free: SimpleNamespace) -> None:
    assert Path("/usual") == memory_directory.directory(tmp_path / "missing")


def test_a_chosen_directory_stays(tmp_path: Path, free: SimpleNamespace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    assert tmp_path == memory_directory.directory(tmp_path / "other")


def test_the_free_memory_is_what_the_kernel_tells(tmp_path: Path) -> None:
    info = tmp_path / "meminfo"
    info.write_text("MemTotal:       4000 kB\nMemAvailable:    3000 kB\n")
    assert 3000 * 1024 == memory_free(info)
    assert 0 == memory_free(tmp_path / "missing")


def test_the_command_prints_one_directory_that_exists(capsys: pytest.CaptureFixture[str]) -> None:
    memory_directory.main()
    assert Path(capsys.readouterr().out.rstrip("\n")).is_dir()
