"""Test that a peer of the same user is joined by its address alone, and that nothing else is believed of addresses."""

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from kadcrawl.cli.own_peers import directory_at, note_peer
from kadcrawl.system.directory_lock import is_running
from tests.support.swarm.command import ended, interrupted, kadcrawl, start

ADDRESS = ("127.0.0.1", 4160)
FILE = "kadcrawl/peers/127.0.0.1:4160"


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give the test a state directory of its own."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path / "state"


@contextmanager
def running(directory: Path) -> Iterator[Path]:
    """Hold the lock of a directory, as a peer does."""
    directory.mkdir(exist_ok=True)
    with (directory / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield directory


def test_a_peer_is_found_by_its_address_while_it_runs(tmp_path: Path) -> None:
    with running(tmp_path / "one") as one:
        note_peer(ADDRESS, one)
        assert one == directory_at(ADDRESS)
        assert one == directory_at(("localhost", 4160))
        assert directory_at(("127.0.0.1", 4161)) is None
        assert is_running(one)
    assert directory_at(ADDRESS) is None
    assert not is_running(one)
    assert not is_running(tmp_path / "none")


def test_the_file_is_for_the_user_alone_and_holds_no_key(tmp_path: Path, state: Path) -> None:
    note_peer(ADDRESS, tmp_path / "one")
    assert str(tmp_path / "one") == (state / FILE).read_text()
    assert (0o600, 0o700) == tuple(path.stat().st_mode & 0o777 for path in (state / FILE, (state / FILE).parent))


@pytest.mark.parametrize("what", ["file", "directory"])
def test_what_others_can_write_is_not_believed(what: str, tmp_path: Path, state: Path) -> None:
    with running(tmp_path / "one") as one:
        note_peer(ADDRESS, one)
        path = state / FILE if what == "file" else (state / FILE).parent
        path.chmod(0o777)
        assert directory_at(ADDRESS) is None


def test_what_another_user_owns_is_not_believed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with running(tmp_path / "one") as one:
        note_peer(ADDRESS, one)
        monkeypatch.setattr(os, "geteuid", lambda: 12345)
        assert directory_at(ADDRESS) is None


@pytest.mark.parametrize("content", [b"", b"one", b"/no/such/place", b"\xff\0" * 9_000])
def test_a_file_without_a_directory_names_none(
    content: bytes, tmp_path: Path, state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with running(tmp_path / "one"):
        note_peer(ADDRESS, tmp_path / "one")
        (state / FILE).write_bytes(content)
        assert directory_at(ADDRESS) is None


def test_a_link_is_not_followed(tmp_path: Path, state: Path) -> None:
    with running(tmp_path / "one") as one:
        note_peer(ADDRESS, one)
        (state / FILE).rename(tmp_path / "moved")
        (state / FILE).symlink_to(tmp_path / "moved")
        assert directory_at(ADDRESS) is None


def test_the_files_of_ended_peers_are_removed_by_the_next(tmp_path: Path, state: Path) -> None:
    note_peer(("127.0.0.1", 1), tmp_path / "ended")
    with running(tmp_path / "one") as one, running(tmp_path / "two") as two:
        note_peer(("127.0.0.1", 2), one)
        note_peer(("127.0.0.1", 3), two)
        assert ["127.0.0.1:2", "127.0.0.1:3"] == sorted(path.name for path in (state / FILE).parent.iterdir())


def test_without_a_place_for_state_a_peer_runs_all_the_same(tmp_path: Path, state: Path) -> None:
    state.write_text("no directory")
    note_peer(ADDRESS, tmp_path / "one")
    assert directory_at(ADDRESS) is None


async def test_join_needs_the_address_alone_on_the_machine_of_the_peer(tmp_path: Path, state: Path) -> None:
    env = {"KADCRAWL_KEY": "", "XDG_STATE_HOME": str(state)}
    one = await start("start", "--listen", "127.0.0.1:0", env=env, directory=tmp_path)
    assert one.stderr is not None
    await one.stderr.readuntil(b"others join with: kadcrawl ")
    arguments = (await one.stderr.readline()).decode().split()
    assert ["join", "--bootstrap"] == arguments[:-1]
    two = await start(*arguments, env=env, directory=tmp_path)
    assert two.stderr is not None
    said = (await two.stderr.readline()).decode()
    assert f"the key is that of your peer in {tmp_path / 'crawl-data'}; this peer is in crawl-data-2\n" in said
    await two.stderr.readuntil(b"others join with")
    status = await kadcrawl("status", "--data", str(tmp_path / "crawl-data-2"), "--json", env=env)
    assert 2 == len(json.loads(status.out)["peers"])
    assert 11 == (await interrupted(two)).code
    # The same command goes on in the same directory.
    again = await start(*arguments, env=env, directory=tmp_path)
    assert again.stderr is not None
    assert b"this peer is in crawl-data-2" in await again.stderr.readline()
    await again.stderr.readuntil(b"others join with")
    assert not (tmp_path / "crawl-data-3").exists()
    stranger = await start(*arguments, env=env | {"XDG_STATE_HOME": str(tmp_path / "another")}, directory=state)
    refused = await ended(stranger)
    assert (2, True) == (refused.code, "this peer needs the swarm's key" in refused.err)
    for process in (again, one):
        assert 11 == (await interrupted(process)).code
