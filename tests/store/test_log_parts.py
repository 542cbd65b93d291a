"""Logs roll into parts: no line is lost or doubled, wherever a crash falls, and old parts may go."""

import asyncio
import gzip
import hashlib
import json
import shutil
from pathlib import Path

import pytest

from kadcrawl.errors import StorageError
from kadcrawl.store import line_log
from kadcrawl.store.log_parts import (
    PartIndex,
    decoded_index,
    encoded_index,
    has_log,
    index_of,
    log_files,
    log_lines,
    part_path,
    stored_index,
)
from kadcrawl.store.store import Store
from tests.support.stores import accept, opened, written

PAGES = "pages.jsonl"
FULL = 300
"""Bytes of a part: six lines or so."""


def dated(number: int) -> bytes:
    return json.dumps({"number": number, "fetched_at": f"2026-01-01T00:00:{number:02}Z"}).encode() + b"\n"


async def fill(store: Store, numbers: range) -> None:
    """Finish these URLs, each in a commit of its own, with two records each."""
    for number in numbers:
        store.finish(accept(store, number), dated(number), b"%d:0\n%d:1\n" % (number, number))
        await store.journal.commit()


async def settle(store: Store) -> None:
    """Commit until all parts are described."""
    for number in range(1000):
        store.meta.set("x", b"%d" % number)
        await store.journal.commit()
        parts = [part for log in store.journal._logs.values() for part in log.index.parts]
        if all(part.lines is not None for part in parts):
            return
        await asyncio.sleep(0)
    raise AssertionError("the parts are not described")


@pytest.fixture
async def rolled(tmp_path: Path) -> Path:
    """A directory with three parts or more, closed."""
    store = opened(tmp_path, pages_bytes_max=FULL)
    await fill(store, range(20))
    await settle(store)
    store.close()
    assert len(index_of(tmp_path / PAGES).parts) >= 3
    return tmp_path


def names(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.glob("pages*"))


async def test_a_full_log_is_closed_as_a_part_that_the_index_describes(rolled: Path) -> None:
    index = stored_index(rolled / PAGES)
    assert index is not None
    assert [f"pages-0000{number}.jsonl" for number in range(1, len(index.parts) + 1)] == [p.file for p in index.parts]
    lines = [*log_lines(rolled / PAGES)]
    assert [*map(dated, range(20))] == lines
    end = 0
    for part in index.parts:
        content = (rolled / part.file).read_bytes()
        assert content == b"".join(lines)[part.begin : part.end]
        assert (end, len(content)) == (part.begin, part.bytes)
        assert hashlib.sha256(content).hexdigest() == part.sha256
        times = [json.loads(line)["fetched_at"] for line in content.splitlines()]
        assert (len(times), times[0], times[-1]) == (part.lines, part.first, part.last)
        assert FULL <= part.bytes < FULL + 100
        end = part.end
    assert [b"%d:%d\n" % (number, each) for number in range(20) for each in range(2)] == [
        *log_lines(rolled / "records.jsonl")
    ]


@pytest.mark.parametrize("goes", ["moved", "removed", "compressed"])
async def test_old_parts_may_go_while_the_peer_runs(tmp_path: Path, goes: str) -> None:
    store = opened(tmp_path, pages_bytes_max=FULL)
    await fill(store, range(20))
    await settle(store)
    index = index_of(tmp_path / PAGES)
    for part in index.parts:
        file = tmp_path / part.file
        if goes == "moved":
            shutil.move(file, tmp_path / f"elsewhere-{part.file}")
        elif goes == "removed":
            file.unlink()
        else:
            file.with_name(file.name + ".gz").write_bytes(gzip.compress(file.read_bytes()))
            file.unlink()
    await fill(store, range(20, 32))
    store.close()
    store = opened(tmp_path, pages_bytes_max=FULL)
    await fill(store, range(32, 40))
    store.close()
    gone = sum(part.lines or 0 for part in index.parts)
    assert [*range(0 if goes == "compressed" else gone, 40)] == written(tmp_path)
    assert index.parts == index_of(tmp_path / PAGES).parts[: len(index.parts)]


@pytest.mark.parametrize("step", ["rename", "sync_paths", "write_index", "close"])
async def test_a_crash_while_a_log_rolls_loses_and_doubles_no_line(
    tmp_path: Path, step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = opened(tmp_path, pages_bytes_max=FULL)
    await fill(store, range(10))  # The first part is closed.

    def crash(*_: object) -> None:
        raise OSError("power cut")

    with monkeypatch.context() as patch:
        if step == "rename":
            patch.setattr(Path, "rename", crash)
        elif step == "sync_paths":
            patch.setattr(line_log, "sync_paths", crash)
        elif step == "write_index":
            patch.setattr(line_log.LineLog, "write_index", crash)
        last = 10
        try:
            for last in range(10, 18):
                await fill(store, range(last, last + 1))
        except StorageError:
            pass
        else:
            assert step == "close"
            last = 18
    store.close()
    store = opened(tmp_path, pages_bytes_max=FULL)
    known = written(tmp_path)
    assert [*range(len(known))] == known, "each line once"
    assert len(known) >= last
    await fill(store, range(len(known), 30))
    await settle(store)
    store.close()
    assert [*range(30)] == written(tmp_path)
    assert stored_index(tmp_path / PAGES) == index_of(tmp_path / PAGES)


@pytest.mark.parametrize("damage", [None, b"", b"{", b'{"source":"","parts":[]}', b'{"parts":[{"file":"x"}]}'])
async def test_a_lost_index_is_written_anew_by_the_next_start(rolled: Path, damage: bytes | None) -> None:
    path = rolled / "pages.parts.json"
    whole = path.read_bytes()
    (rolled / "pages-00001.jsonl").unlink()  # Only the journal knows of it then.
    path.unlink()
    if damage is not None:
        path.write_bytes(damage)
    store = opened(rolled, pages_bytes_max=10**6)
    store.meta.set("x", b"1")
    await store.journal.commit()
    store.close()
    assert whole == path.read_bytes()


async def test_a_file_in_the_place_of_a_part_is_left_alone(tmp_path: Path) -> None:
    store = opened(tmp_path, pages_bytes_max=FULL)
    await fill(store, range(2))
    (tmp_path / "pages-00001.jsonl").write_bytes(b"mine\n")
    await fill(store, range(2, 20))
    store.close()
    assert b"mine\n" == (tmp_path / "pages-00001.jsonl").read_bytes()
    assert [*map(dated, range(20))] == (tmp_path / PAGES).read_bytes().splitlines(keepends=True)


async def test_a_reader_gets_a_file_once_that_rolls_while_it_reads(tmp_path: Path) -> None:
    store = opened(tmp_path, pages_bytes_max=FULL)
    await fill(store, range(10))
    read: list[bytes] = []
    for file in log_files(tmp_path / PAGES):
        if len(read) == 0:
            await fill(store, range(10, 20))  # The present file becomes a part now.
        read += file.read().splitlines(keepends=True)
    store.close()
    assert [*map(dated, range(20))] == read


async def test_a_reader_misses_no_part_while_the_log_has_no_present_file(tmp_path: Path) -> None:
    store = opened(tmp_path, pages_bytes_max=FULL)
    await fill(store, range(10))
    store.close()
    read: list[bytes] = []
    for file in log_files(tmp_path / PAGES):
        if len(read) == 0:
            # The log is rolling: its file has another name, and the next is not there yet.
            (tmp_path / PAGES).rename(part_path(tmp_path / PAGES, len(index_of(tmp_path / PAGES).parts) + 1))
        read += file.read().splitlines(keepends=True)
    assert [*map(dated, range(10))] == read


async def test_a_damaged_compressed_part_ends_early(rolled: Path) -> None:
    part = rolled / "pages-00001.jsonl"
    packed = gzip.compress(part.read_bytes())
    (rolled / "pages-00001.jsonl.gz").write_bytes(packed[: len(packed) // 2])
    part.unlink()
    numbers = written_whole(rolled)
    assert numbers[-1] == 19
    assert sorted(set(numbers)) == numbers


def written_whole(directory: Path) -> list[int]:
    lines = [line for line in log_lines(directory / PAGES) if line.endswith(b"\n")]
    return [json.loads(line)["number"] for line in lines]


async def test_an_emptied_journal_beside_parts_is_refused(rolled: Path) -> None:
    (rolled / PAGES).write_bytes(b"")
    assert has_log(rolled / PAGES)
    assert not has_log(rolled / "other.jsonl")


async def test_an_index_is_read_as_it_was_written(rolled: Path) -> None:
    index = index_of(rolled / PAGES)
    assert index == decoded_index(rolled / PAGES, encoded_index(index))
    assert PartIndex() == decoded_index(rolled / PAGES, encoded_index(PartIndex()))
    swapped = PartIndex(index.source, index.parts[::-1])
    assert decoded_index(rolled / PAGES, encoded_index(swapped)) is None
