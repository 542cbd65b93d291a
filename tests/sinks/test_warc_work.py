"""WARC files reach a place whole, under their names: finished ones at once, the last one at the end."""

import sqlite3
from contextlib import closing
from pathlib import Path
from random import Random
from uuid import uuid4

import fsspec
import msgspec
import pytest

from kadcrawl.crawl.output.cdxj import index_of
from kadcrawl.sinks.destinations import DirectoryDestination, RemoteDestination, destination_of
from kadcrawl.sinks.sink import OneCall, SinkError
from kadcrawl.sinks.sink_names import parse
from kadcrawl.sinks.warc_work import CHUNK_BYTES, WarcWork
from kadcrawl.system.daemon_threads import DaemonThreadExecutor


class Peer:
    """A peer's directory with WARC files and a journal that knows of them."""

    def __init__(self, path: Path) -> None:
        self.path = path
        (path / "warc").mkdir(parents=True)

    def file(self, number: int) -> Path:
        return self.path / f"warc/kadcrawl-a-{number:05}.warc.gz"

    def add(self, number: int, size: int = 100) -> bytes:
        data = Random(number).randbytes(size)
        self.file(number).write_bytes(data)
        return data

    def journal(self, number: int, length: int) -> None:
        with closing(sqlite3.connect(self.path / "peer.sqlite")) as db, db:
            db.execute("CREATE TABLE IF NOT EXISTS meta (name TEXT PRIMARY KEY, value BLOB)")
            value = msgspec.json.encode((self.file(number).name, length))
            db.execute("INSERT OR REPLACE INTO meta VALUES ('warc', ?)", (value,))


@pytest.fixture
def peer(tmp_path: Path) -> Peer:
    return Peer(tmp_path / "peer-1")


@pytest.fixture(params=["directory", "memory"])
def target(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    # The memory outlives a test, whose temporary directory may have the name of an earlier one.
    return f"{tmp_path}/archive" if request.param == "directory" else f"memory://{uuid4().hex}/archive"


def warc_work(peer: Peer, target: str, kind: str = "warc") -> WarcWork:
    name = parse(f"{kind}:{target}")
    return WarcWork(peer.path, name, destination_of(name), OneCall(DaemonThreadExecutor()))


def files_at(target: str) -> dict[int, bytes]:
    """Return the contents of the files at the target, by number."""
    system, root = fsspec.core.url_to_fs(target)
    if not system.exists(root):
        return {}
    return {int(name[-13:-8]): system.cat(name) for name in system.ls(root, detail=False)}


async def test_finished_files_go_at_once_and_the_last_one_at_the_end(peer: Peer, target: str) -> None:
    files = {number: peer.add(number, CHUNK_BYTES * number + 7) for number in (1, 2, 3)}
    files[4] = peer.add(4)
    peer.journal(3, 50)  # The fourth was begun, and the journal does not know it yet.
    each = warc_work(peer, target)
    assert [True, True, False] == [await each.step(False) for _ in range(3)]
    assert {1: files[1], 2: files[2]} == files_at(target)
    assert each.lag == 0
    assert [True, False] == [await each.step(True) for _ in range(2)]
    assert {1: files[1], 2: files[2], 3: files[3][:50]} == files_at(target)
    assert (each.lacking, each.done) == ("", "3 WARC files")
    # A later run goes on in it.
    peer.journal(3, 60)
    again = warc_work(peer, target)
    assert [True, False] == [await again.step(True) for _ in range(2)]
    assert files_at(target)[3] == files[3][:60]


async def test_moved_files_are_removed_once_they_arrived_but_not_the_last_one(peer: Peer, target: str) -> None:
    files = {number: peer.add(number) for number in (1, 2)}
    peer.journal(2, 100)
    each = warc_work(peer, target, "warc-move")
    while await each.step(True):
        pass
    assert files == files_at(target)
    assert [False, True] == [peer.file(number).exists() for number in (1, 2)]
    assert [True, False] == [index_of(peer.file(number)).exists() for number in (1, 2)]
    peer.add(1)  # As if killed before it was removed.
    assert not await warc_work(peer, target, "warc-move").step(False)
    assert not peer.file(1).exists()


@pytest.mark.parametrize("size", [10, 100, 3 * CHUNK_BYTES])
@pytest.mark.parametrize("kind", ["warc", "warc-move"])
async def test_an_archive_of_the_same_name_is_neither_replaced_nor_taken_for_a_copy(
    peer: Peer, target: str, kind: str, size: int
) -> None:
    ours = {number: peer.add(number) for number in (1, 2, 3)}
    peer.journal(4, 100)
    other = Random("another crawl").randbytes(size)
    destination = destination_of(parse(f"warc:{target}"))
    destination.write(peer.file(1).name, lambda: [other])
    each = warc_work(peer, target, kind)
    assert [True, True] == [await each.step(False) for _ in range(2)]  # The others go on.
    with pytest.raises(SinkError, match=r"kadcrawl-a-00001\.warc\.gz is there already.* not overwritten: move it away"):
        await each.step(False)
    assert {1: other, 2: ours[2], 3: ours[3]} == files_at(target)
    assert peer.file(1).read_bytes() == ours[1]
    assert (each.lacking, each.done) == ("1 WARC file", "2 WARC files")
    # It goes on once a person has moved the other archive.
    system, root = fsspec.core.url_to_fs(target)
    system.rm(f"{root}/{peer.file(1).name}")
    await each.close()
    assert [True, False] == [await each.step(False) for _ in range(2)]
    assert ours == files_at(target)


async def test_an_upload_never_shortens_a_file_that_a_later_state_of_the_peer_has_sent(peer: Peer, target: str) -> None:
    data = peer.add(1)
    peer.journal(1, 100)
    assert await warc_work(peer, target).step(True)
    peer.journal(1, 60)  # As from a backup.
    each = warc_work(peer, target)
    with pytest.raises(SinkError, match="longer or with other contents"):
        await each.step(True)
    peer.file(1).write_bytes(data[:60] + Random(7).randbytes(80))
    peer.journal(1, 140)  # It went on in another way.
    with pytest.raises(SinkError, match="longer or with other contents"):
        await each.step(True)
    assert {1: data} == files_at(target)


async def test_half_an_upload_is_none(peer: Peer, target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    data = peer.add(1, 3 * CHUNK_BYTES)
    peer.journal(2, 10)
    each = warc_work(peer, target)
    with monkeypatch.context() as patch:

        def broken(self: WarcWork, file: object) -> object:
            yield data[:CHUNK_BYTES]
            raise ConnectionError("the net is down")

        patch.setattr(WarcWork, "_chunks", broken)
        with pytest.raises(ConnectionError):
            await each.step(False)
    assert not [name for name in destination_of(each.name).sizes("") if name == peer.file(1).name]
    assert each.lacking == "1 WARC file"
    await each.close()
    assert await each.step(False)
    assert files_at(target)[1] == data or len(files_at(target)) == 2


async def test_a_file_that_arrives_shorter_is_not_removed(
    peer: Peer, target: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    peer.add(1)
    peer.journal(2, 10)
    each = warc_work(peer, target, "warc-move")
    with monkeypatch.context() as patch:
        patch.setattr(WarcWork, "_chunks", lambda self, file: [b"short"])
        with pytest.raises(SinkError, match="did not arrive whole"):
            await each.step(False)
    assert peer.file(1).exists()
    assert await each.step(False)
    assert not peer.file(1).exists()


async def test_without_a_journal_all_files_are_whole_and_none_is_removed(peer: Peer, target: str) -> None:
    files = {number: peer.add(number) for number in (1, 2)}
    each = warc_work(peer, target, "warc-move")
    while await each.step(True):
        pass
    assert files == files_at(target)
    assert all(peer.file(number).exists() for number in files)


@pytest.mark.parametrize("kind", ["directory", "memory"])
def test_places_hold_whole_files_in_folders(kind: str, tmp_path: Path) -> None:
    place = (
        DirectoryDestination(tmp_path / "p") if kind == "directory" else RemoteDestination(f"memory://{uuid4().hex}/p")
    )
    assert place.sizes("pages") == {}
    place.write("pages/a", lambda: [b"12", b"3"])
    place.write("pages/b", lambda: [])
    place.write("records/a", lambda: [b"1"])
    place.write("pages/a", lambda: [b"12345"])
    assert place.sizes("pages") == {"a": 5, "b": 0}
    assert (b"234", b"5", b"") == tuple(
        place.read(*each) for each in [("pages/a", 1, 4), ("pages/a", 4, 9), ("pages/b", 0, 9)]
    )

    def broken() -> object:
        yield b"1"
        raise ConnectionError

    with pytest.raises(ConnectionError):
        place.write("pages/a", broken)  # type: ignore[arg-type]
    assert place.sizes("pages") == {"a": 5, "b": 0}
