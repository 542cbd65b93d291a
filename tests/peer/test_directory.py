"""Test that a directory stays if a peer began in it, and is removed if it was made for nothing."""

from pathlib import Path

import pytest

from kadcrawl import Config, Job, Peer
from kadcrawl.errors import StartError
from kadcrawl.peer.directory import Directory
from kadcrawl.system.file_names import JOURNAL, LOCK


def config(data: Path) -> Config:
    return Config(data=data, port=0, host="127.0.0.1")


async def test_a_peer_that_never_began_leaves_no_directory(tmp_path: Path) -> None:
    async with Peer(config(tmp_path / "a" / "b"), Job()):
        assert (tmp_path / "a" / "b" / JOURNAL).exists()
    assert [] == list(tmp_path.iterdir())


async def test_a_peer_that_began_leaves_its_directory_also_if_it_fails(tmp_path: Path) -> None:
    async def run() -> None:
        async with Peer(config(tmp_path / "a"), Job()) as peer:
            await peer.begin()
            raise ValueError("of the caller")

    with pytest.raises(ValueError, match="of the caller"):
        await run()
    async with Peer(config(tmp_path / "a"), Job()):
        pass
    assert (tmp_path / "a" / JOURNAL).exists()


async def test_a_failed_start_leaves_files_of_others_and_a_directory_that_was_there(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "of-another").mkdir()
    (tmp_path / "of-another" / "notes.txt").write_text("mine")
    for name in ("empty", "of-another", "new"):
        async with Peer(config(tmp_path / name), Job()):
            if name == "new":
                (tmp_path / "new" / "notes.txt").write_text("mine")
    assert [] == list((tmp_path / "empty").iterdir())
    assert (tmp_path / "of-another" / "notes.txt").exists()
    assert ["notes.txt"] == [path.name for path in (tmp_path / "new").iterdir()]


def test_a_second_process_neither_uses_nor_removes_the_directory(tmp_path: Path) -> None:
    first = Directory(tmp_path / "a")
    with pytest.raises(StartError, match="another peer is running"):
        Directory(tmp_path / "a")
    assert (tmp_path / "a" / LOCK).exists()
    first.is_used = True
    first.close()
    assert (tmp_path / "a" / LOCK).exists()


def test_a_lock_that_another_process_removed_is_no_lock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The other process had the lock, and gave it back after this one had opened the file."""
    locked, other = Directory._locked, [Directory(tmp_path / "a")]

    def after_the_other(self: Directory) -> int:
        fd = locked(self)
        if other:
            (tmp_path / "a" / LOCK).unlink()
            other.pop()
        return fd

    other[0].is_used = True
    other[0].close()
    monkeypatch.setattr(Directory, "_locked", after_the_other)
    mine = Directory(tmp_path / "a")
    monkeypatch.undo()
    with pytest.raises(StartError, match="another peer is running"):
        Directory(tmp_path / "a")
    mine.close()
