"""The ends of pages.jsonl and records.jsonl after damage that a crash of the process alone cannot do."""

import json
import os
import sqlite3
from collections.abc import Callable, Iterable
from contextlib import closing
from pathlib import Path

import pytest

from kadcrawl.errors import StartError
from kadcrawl.store.journal import ROW_BYTES
from kadcrawl.store.line_log import KEPT_BYTES, LINE_BYTES_MAX, LineLog
from kadcrawl.store.store import Store
from kadcrawl.system.file_names import JOURNAL
from tests.support.stores import accept, line, opened, written

PAGES = "pages.jsonl"


async def filled(directory: Path, numbers: range, pad: int = 0) -> None:
    """Finish these URLs, each in a commit of its own, with lines that are `pad` bytes longer, and close the store."""
    store = opened(directory)
    for number in numbers:
        store.finish(accept(store, number), padded(number, pad), b"%d:0\n%d:1\n" % (number, number))
        await store.journal.commit()
    store.close()


def padded(number: int, pad: int) -> bytes:
    return json.dumps({"number": number, "pad": "x" * pad}).encode() + b"\n" if pad else line(number)


@pytest.mark.parametrize("file", [PAGES, "records.jsonl"])
@pytest.mark.parametrize("cut", [1, 2, 9, 40])
async def test_a_torn_end_is_written_again_at_its_place(tmp_path: Path, file: str, cut: int) -> None:
    await filled(tmp_path, range(8))
    whole = (tmp_path / file).read_bytes()
    (tmp_path / file).write_bytes(whole[:-cut])
    opened(tmp_path).close()
    assert whole == (tmp_path / file).read_bytes()
    await filled(tmp_path, range(8, 10))
    assert [*range(10)] == written(tmp_path)


async def test_lines_stay_whole_when_the_file_lost_more_than_the_journal_keeps(tmp_path: Path) -> None:
    await filled(tmp_path, range(200), pad=1_000)
    whole = (tmp_path / PAGES).read_bytes()
    (tmp_path / PAGES).write_bytes(whole[: len(whole) // 4 + 7])
    for _ in range(2):
        opened(tmp_path).close()  # Not committed: the second time finds the lines written and the places old.
    await filled(tmp_path, range(200, 202), pad=1_000)
    await filled(tmp_path, range(202, 204), pad=1_000)
    numbers = written(tmp_path)
    kept = [number for number in numbers if number >= 100]
    assert numbers == sorted(set(numbers)), "each line is there once, in order"
    assert [*range(kept[0], 204)] == kept
    assert kept[0] <= 200 - KEPT_BYTES // 1_100
    assert 48 <= len(numbers) - len(kept) <= 50, "the first quarter"
    assert b'{"number": ' in (tmp_path / f"{PAGES}.torn").read_bytes()


async def test_a_missing_file_begins_with_the_lines_that_the_journal_keeps(tmp_path: Path) -> None:
    await filled(tmp_path, range(200), pad=1_000)
    (tmp_path / PAGES).unlink()
    await filled(tmp_path, range(200, 201), pad=1_000)
    numbers = written(tmp_path)
    assert [*range(numbers[0], 201)] == numbers
    assert numbers[0] < 200


async def test_an_incomplete_line_that_the_journal_does_not_have_is_set_aside(tmp_path: Path) -> None:
    await filled(tmp_path, range(3))
    for torn in (b'{"number"', b'{"num'):
        with (tmp_path / PAGES).open("ab") as log:
            log.write(line(77) + torn)
        opened(tmp_path).close()
    assert [0, 1, 2, 77, 77] == written(tmp_path)
    assert b'{"number"\n{"num\n' == (tmp_path / f"{PAGES}.torn").read_bytes()


async def test_a_lost_newline_before_the_journaled_lines_comes_back(tmp_path: Path) -> None:
    await filled(tmp_path, range(100), pad=1_000)
    whole = (tmp_path / PAGES).read_bytes()
    store = opened(tmp_path)
    (first,) = store.journal.row((int,), "SELECT min(place) FROM outbox")
    store.close()
    (tmp_path / PAGES).write_bytes(whole[: first - 1] + b"?" + whole[first:])
    opened(tmp_path).close()
    assert whole == (tmp_path / PAGES).read_bytes()


async def test_lines_are_synced_together_and_none_is_lost_before(tmp_path: Path) -> None:
    synced: list[int] = []

    def sync(fds: Iterable[int]) -> None:
        synced.extend(os.fstat(fd).st_ino for fd in fds)

    store, path = opened(tmp_path, sync), tmp_path / PAGES
    for number in range(130):
        store.finish(accept(store, number), padded(number, 1_000))
        await store.journal.commit()
    store.close()
    assert 2 == synced.count(path.stat().st_ino), "once for each 64 KiB"
    with closing(sqlite3.connect(tmp_path / JOURNAL)) as journal:
        (first,) = journal.execute("SELECT min(place) FROM outbox").fetchone()
    path.write_bytes(path.read_bytes()[:first])  # The machine crashed, and had written nothing more to the disk.
    opened(tmp_path).close()
    assert [*range(130)] == written(tmp_path)


async def test_lines_that_an_earlier_run_did_not_sync_stay_in_the_outbox(tmp_path: Path) -> None:
    path, synced = tmp_path / PAGES, [0]

    def sync(fds: Iterable[int]) -> None:
        synced.extend(os.fstat(fd).st_size for fd in fds if os.fstat(fd).st_ino == path.stat().st_ino)

    store = opened(tmp_path, sync)
    for number in range(130):
        store.finish(accept(store, number), padded(number, 1_000))
    await store.journal.commit()
    store.close()
    again = opened(tmp_path, sync)
    again.meta.set("x", b"1")
    await again.journal.commit()
    again.close()
    path.write_bytes(path.read_bytes()[: synced[-1]])  # The machine crashed.
    opened(tmp_path).close()
    assert [*range(130)] == written(tmp_path)


@pytest.mark.parametrize(("size", "left"), [(LINE_BYTES_MAX - 1, 0), (LINE_BYTES_MAX + 1, LINE_BYTES_MAX + 2)])
def test_bytes_without_any_newline_are_read_up_to_a_limit(tmp_path: Path, size: int, left: int) -> None:
    path = tmp_path / "x.jsonl"
    path.write_bytes(bytes(size))
    log = LineLog(path, ())
    assert left == log.length == path.stat().st_size
    log.stage(b"{}\n")
    log.append(log.staged())
    log.close()
    assert path.read_bytes().endswith(b"\0\n{}\n" if left else b"{}\n")


def test_only_the_end_of_a_long_file_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "x.jsonl"
    path.write_bytes(b'{"a": 1}\n' * 100_000 + b'{"a"')
    read: list[int] = []

    def pread(fd: int, count: int, place: int, pread: Callable[[int, int, int], bytes] = os.pread) -> bytes:
        read.append(count)
        return pread(fd, count, place)

    monkeypatch.setattr("kadcrawl.store.line_log.os.pread", pread)
    LineLog(path, ()).close()
    assert sum(read) <= 2 * 64 * 1024
    assert path.stat().st_size == 900_000


@pytest.mark.parametrize("statement", ["UPDATE outbox SET place=place+1 WHERE place>0", "UPDATE outbox SET line=x'00'"])
async def test_damaged_journaled_lines_are_refused(tmp_path: Path, statement: str) -> None:
    await filled(tmp_path, range(3))
    store = opened(tmp_path)
    store.journal.write(statement, ())
    await store.journal.commit()
    store.close()
    with pytest.raises(StartError, match="damaged"):
        Store(tmp_path, 0.0)


@pytest.mark.parametrize("what", ["empty", "not there"])
async def test_a_lost_journal_beside_page_lines_is_refused(what: str, tmp_path: Path) -> None:
    await filled(tmp_path, range(3))
    (tmp_path / "peer.sqlite").unlink() if what == "not there" else (tmp_path / "peer.sqlite").write_bytes(b"")
    with pytest.raises(StartError, match=f"it is {what}, although pages have been fetched; move this directory away"):
        Store(tmp_path, 0.0)
    (tmp_path / PAGES).write_bytes(b"")
    Store(tmp_path, 0.0).close()


async def test_a_row_of_the_outbox_has_some_lines_and_each_is_found_again(tmp_path: Path) -> None:
    store = opened(tmp_path)
    for number in range(100):
        store.finish(accept(store, number), padded(number, 500))
    store.finish(accept(store, 100), padded(100, 5 * ROW_BYTES))
    lines = store.journal.last_page_lines()
    await store.journal.commit()
    assert lines == store.journal.last_page_lines() == (tmp_path / PAGES).read_bytes().splitlines(keepends=True)
    sizes = [size for (size,) in store.journal.rows((int,), "SELECT length(line) FROM outbox ORDER BY place")]
    assert 10 < len(sizes) < 50
    assert max(sizes[:-1]) < 2 * ROW_BYTES
    store.close()
    path = tmp_path / PAGES
    path.write_bytes(path.read_bytes()[:10_100])  # The machine crashed within a line, and within a row.
    opened(tmp_path).close()
    assert [*range(101)] == written(tmp_path)
