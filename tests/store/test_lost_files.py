"""Files of lines that a person removes or moves under a running peer: all later lines are in a new file."""

import asyncio
import hashlib
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from kadcrawl.errors import StorageError
from kadcrawl.store import line_log
from kadcrawl.store.log_parts import PartIndex, index_of, log_lines, source_of, stored_index
from kadcrawl.store.lost_files import NAMED_MAX, LostFiles
from kadcrawl.store.store import Store
from tests.support.sinks.delivery import deliver
from tests.support.sinks.readers import in_sqlite
from tests.support.stores import accept, key, opened, written

PAGES = "pages.jsonl"
RECORDS = "records.jsonl"


def page(number: int) -> bytes:
    return json.dumps({"key": f"{number:040x}", "number": number}).encode() + b"\n"


def records(number: int) -> bytes:
    return b"".join(json.dumps({"key": f"{number:040x}:{each}"}).encode() + b"\n" for each in range(2))


async def fill(store: Store, numbers: range) -> None:
    """Finish these URLs, each in a commit of its own, with two records each."""
    for number in numbers:
        store.finish(accept(store, number), page(number), records(number))
        await store.journal.commit()


def remove(path: Path) -> None:
    path.unlink()


def move(path: Path) -> None:
    path.rename(path.with_name(f"kept-{path.name}"))


def rotate(path: Path) -> None:
    """Move a file and make an empty one, as logrotate does."""
    move(path)
    path.touch()


def move_to_the_name_of_a_part(path: Path) -> None:
    path.rename(path.with_name(f"{path.stem}-00001{path.suffix}"))


@pytest.mark.parametrize("lose", [remove, move, rotate, move_to_the_name_of_a_part])
async def test_all_later_lines_are_in_a_new_file(tmp_path: Path, lose: Callable[[Path], None]) -> None:
    store = opened(tmp_path)
    await fill(store, range(10))
    source, size = source_of(tmp_path / PAGES), (tmp_path / PAGES).stat().st_size
    for name in (PAGES, RECORDS):
        lose(tmp_path / name)
    await fill(store, range(10, 20))
    first = 0 if lose is move_to_the_name_of_a_part else 10
    assert [*range(first, 20)] == written(tmp_path)
    assert b"".join(map(records, range(first, 20))) == b"".join(log_lines(tmp_path / RECORDS))
    index = stored_index(tmp_path / PAGES)
    assert index is not None
    assert (source, [size]) == (index.source, [part.end for part in index.parts])
    for number in range(1000):  # A thread reads the lost file once more.
        store.meta.set("x", b"%d" % number)
        await store.journal.commit()
        if all(part.lines is not None for log in store.journal._logs.values() for part in log.index.parts):
            break
        await asyncio.sleep(0)
    (lost,) = index_of(tmp_path / PAGES).parts
    assert (size, 10, hashlib.sha256(b"".join(map(page, range(10)))).hexdigest()) == (
        lost.bytes,
        lost.lines,
        lost.sha256,
    )
    warning = store.journal.lost_files.take()
    assert warning is not None
    assert f"{tmp_path / RECORDS} was removed or moved" in warning
    assert store.journal.lost_files.take() is None
    store.close()
    store = opened(tmp_path)
    await fill(store, range(20, 30))
    assert [*range(first, 30)] == written(tmp_path)
    store.close()
    store = opened(tmp_path)
    (tmp_path / PAGES).unlink()
    await fill(store, range(30, 35))
    assert [*range(10 if first == 0 else 0), *range(30, 35)] == written(tmp_path)
    store.close()


async def test_a_person_hears_of_all_lost_files_together(tmp_path: Path) -> None:
    store = opened(tmp_path)
    for first in (0, 10):
        await fill(store, range(first, first + 10))
        for name in (PAGES, RECORDS):
            (tmp_path / name).unlink()
    await fill(store, range(20, 23))
    warning = store.journal.lost_files.take() or ""
    assert [1, 1] == [warning.count(f"{tmp_path / name} was removed or moved") for name in (PAGES, RECORDS)]
    assert store.journal.lost_files.take() is None
    store.close()


def test_a_person_hears_of_the_latest_lost_files_if_there_are_many() -> None:
    lost = LostFiles()
    for number in range(NAMED_MAX + 2):
        lost.note(Path(f"{number}.warc.gz"), Path(f"{number + 1}.warc.gz"))
    warning = lost.take() or ""
    assert [*range(2, NAMED_MAX + 2)] == [n for n in range(NAMED_MAX + 2) if f"{n}.warc.gz was removed" in warning]


async def test_no_line_is_lost_that_was_written_after_the_last_look(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = opened(tmp_path)
    await fill(store, range(10))
    append = line_log.LineLog.append

    def lose_and_append(self: line_log.LineLog, lines: bytes) -> None:
        (tmp_path / PAGES).unlink(missing_ok=True)
        append(self, lines)

    with monkeypatch.context() as patch:
        patch.setattr(line_log.LineLog, "append", lose_and_append)
        await fill(store, range(10, 11))
    await fill(store, range(11, 15))
    assert [*range(10, 15)] == written(tmp_path)
    store.close()


async def test_a_file_that_lies_there_instead_is_set_aside(tmp_path: Path) -> None:
    store = opened(tmp_path)
    for first in (0, 10):
        await fill(store, range(first, first + 10))
        (tmp_path / PAGES).unlink()
        (tmp_path / PAGES).write_bytes(b"of a person %d\n" % first)
    await fill(store, range(20, 23))
    assert [*range(20, 23)] == written(tmp_path)
    assert [b"of a person 0\n", b"of a person 10\n"] == [
        (tmp_path / f"{PAGES}.other-{number}").read_bytes() for number in (1, 2)
    ]
    store.close()


async def test_an_empty_file_that_goes_needs_no_part(tmp_path: Path) -> None:
    store = opened(tmp_path)
    (tmp_path / PAGES).unlink()
    await fill(store, range(3))
    assert [*range(3)] == written(tmp_path)
    assert PartIndex(source_of(tmp_path / PAGES)).parts == index_of(tmp_path / PAGES).parts
    store.close()


async def test_a_directory_that_goes_stops_the_peer(tmp_path: Path) -> None:
    store = opened(tmp_path)
    await fill(store, range(3))
    tmp_path.rename(tmp_path.with_name("gone"))
    with pytest.raises(StorageError, match="was moved or removed while its peer ran"):
        await fill(store, range(3, 4))
    store.close()


@pytest.mark.parametrize("lose", [remove, move, rotate])
@pytest.mark.parametrize("step", ["is_lost", "write_index", "set_aside", "_write", "sync_paths", "append"])
async def test_a_crash_while_a_log_begins_anew_loses_and_doubles_no_later_line(
    tmp_path: Path, lose: Callable[[Path], None], step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = opened(tmp_path)
    await fill(store, range(10))
    lose(tmp_path / PAGES)

    def crash(*_: object) -> None:
        raise OSError("power cut")

    with monkeypatch.context() as patch:
        patch.setattr(line_log if step in ("set_aside", "sync_paths") else line_log.LineLog, step, crash)
        with pytest.raises(StorageError):
            await fill(store, range(10, 11))
    store.close()
    store = opened(tmp_path)
    done = 11 if step == "append" else 10
    assert (store.state(key(10)) is not None) == (done == 11)
    await fill(store, range(done, 20))
    store.close()
    numbers = written(tmp_path)
    assert [*range(numbers[0], 20)] == numbers
    assert numbers[0] in (0, 10)


async def test_a_sink_gets_all_later_lines_once(tmp_path: Path) -> None:
    directory, name = tmp_path / "peer-1", f"sqlite:{tmp_path / 'out.db'}"
    directory.mkdir()
    store = opened(directory)
    await fill(store, range(5))
    await deliver(directory, name)
    await fill(store, range(5, 8))
    (directory / PAGES).unlink()
    await fill(store, range(8, 12))
    deliveries = await deliver(directory, name)
    assert (0, []) == (deliveries.lag, deliveries.shortfalls)
    found, counts = in_sqlite(tmp_path / "out.db")
    assert {*range(5), *range(8, 12)} == {document["number"] for document in found["pages"].values()}
    assert set(counts.values()) == {1}
    store.close()
    store = opened(directory)
    await fill(store, range(12, 14))
    store.close()
    await deliver(directory, name)
    assert {*range(5), *range(8, 14)} == {d["number"] for d in in_sqlite(tmp_path / "out.db")[0]["pages"].values()}
