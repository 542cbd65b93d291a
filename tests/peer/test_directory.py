"""Test that the new directory of a start that was refused is removed, and that any other stays."""

from pathlib import Path

import pytest

from kadcrawl import Config, Job, Peer
from kadcrawl.errors import ConfigError, StartError
from kadcrawl.peer.directory import Directory
from kadcrawl.system.file_names import JOURNAL, LOCK


def config(data: Path) -> Config:
    return Config(data=data, port=0, host="127.0.0.1")


async def refused(data: Path, error: Exception, more: Path | None = None) -> None:
    """Open a peer that ends with an error before it begins, and write one file more meanwhile."""

    async def run() -> None:
        async with Peer(config(data), Job()):
            assert (data / JOURNAL).exists()
            if more is not None:
                more.write_text("mine")
            raise error

    with pytest.raises(type(error)):
        await run()


@pytest.mark.parametrize("error", [StartError("nobody answers"), ConfigError("no such site")])
async def test_a_peer_whose_start_was_refused_leaves_no_new_directory(tmp_path: Path, error: Exception) -> None:
    await refused(tmp_path / "a" / "b", error)
    assert [] == list(tmp_path.iterdir())


async def test_a_peer_that_was_opened_or_broken_off_leaves_its_directory(tmp_path: Path) -> None:
    async with Peer(config(tmp_path / "opened"), Job()):
        pass
    await refused(tmp_path / "broken-off", ValueError("of the caller"))
    assert all((tmp_path / name / JOURNAL).exists() for name in ("opened", "broken-off"))


async def test_a_peer_that_began_leaves_its_directory_also_if_it_fails(tmp_path: Path) -> None:
    async def run() -> None:
        async with Peer(config(tmp_path / "a"), Job()) as peer:
            await peer.begin()
            raise StartError("of the caller")

    with pytest.raises(StartError, match="of the caller"):
        await run()
    await refused(tmp_path / "a", StartError("nobody answers"))
    assert (tmp_path / "a" / JOURNAL).exists()


async def test_a_failed_start_leaves_files_of_others_and_a_directory_that_was_there(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "of-another").mkdir()
    (tmp_path / "of-another" / "notes.txt").write_text("mine")
    for name in ("empty", "of-another", "new"):
        more = tmp_path / "new" / "notes.txt" if name == "new" else None
        await refused(tmp_path / name, StartError("nobody answers"), more)
    assert [] == list((tmp_path / "empty").iterdir())
    assert (tmp_path / "of-another" / "notes.txt").exists()
    assert ["notes.txt"] == [path.name for path in (tmp_path / "new").iterdir()]


def test_a_second_process_neither_uses_nor_removes_the_directory(tmp_path: Path) -> None:
    first = Directory(tmp_path / "a")
    with pytest.raises(StartError, match="another peer is running"):
        Directory(tmp_path / "a")
    assert (tmp_path / "a" / LOCK).exists()
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

    other[0].close()
    monkeypatch.setattr(Directory, "_locked", after_the_other)
    mine = Directory(tmp_path / "a")
    monkeypatch.undo()
    with pytest.raises(StartError, match="another peer is running"):
        Directory(tmp_path / "a")
    mine.close()
