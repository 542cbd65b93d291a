"""Test that a log is read by whole lines, in bounded batches, with any bytes at its end."""

import gzip
from pathlib import Path

import pytest

from kadcrawl.sinks import log_reader
from kadcrawl.sinks.batch import BatchSize
from kadcrawl.sinks.log_reader import LogReader
from kadcrawl.store.log_parts import index_of, log_lines
from tests.support.stores import accept, line, opened

ALL = BatchSize(lines_max=100, bytes_max=10_000, wait_s=0.0)


@pytest.fixture
def log_path(tmp_path: Path) -> Path:
    return tmp_path / "pages.jsonl"


@pytest.mark.parametrize(
    ("data", "offset", "size", "lines", "end"),
    [
        (b"a\nbb\n", 0, ALL, [b"a\n", b"bb\n"], 5),
        (b"a\nbb\n", 2, ALL, [b"bb\n"], 5),
        (b"a\nbb", 0, ALL, [b"a\n"], 2),
        (b"a\nbb\nc\n", 0, ALL._replace(lines_max=2), [b"a\n", b"bb\n"], 5),
        (b"a\nbb\nc\n", 0, ALL._replace(bytes_max=3), [b"a\n", b"bb\n"], 5),
        (b"a\nbb\nc\n", 0, ALL._replace(bytes_max=2), [b"a\n"], 2),
        (b"\n\na\n", 0, ALL, [b"\n", b"\n", b"a\n"], 4),
        (b"a\n0123456789\nb\n", 0, ALL, [b"a\n", b"", b"b\n"], 15),
        (b"a\n01234567890123456789", 0, ALL, [b"a\n"], 2),
        (b"0123456\n", 0, ALL, [b"0123456\n"], 8),
        (b"01234567\n", 0, ALL, [b""], 9),
    ],
)
def test_batches(
    log_path: Path,
    data: bytes,
    offset: int,
    size: BatchSize,
    lines: list[bytes],
    end: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(log_reader, "LOG_LINE_BYTES_MAX", 8)
    log_path.write_bytes(data)
    batch = LogReader("pages", log_path).read(offset, size)
    assert batch is not None
    assert (lines, offset, end) == (batch.lines, batch.first, batch.end)


@pytest.mark.parametrize("data", [None, b"", b"half a line"])
def test_nothing_is_read_before_a_line_is_whole(log_path: Path, data: bytes | None) -> None:
    if data is not None:
        log_path.write_bytes(data)
    log = LogReader("pages", log_path)
    assert log.read(0, ALL) is None
    assert log.source() is None
    assert log.lines_after(0) == 0


def test_a_log_is_told_by_its_first_line(log_path: Path, tmp_path: Path) -> None:
    log_path.write_bytes(b"first\n")
    source = LogReader("pages", log_path).source()
    log_path.write_bytes(b"first\nsecond\n")
    assert source == LogReader("pages", log_path).source()
    log_path.write_bytes(b"other\nsecond\n")
    assert source != LogReader("pages", log_path).source()


def test_a_mark_stands_where_a_line_begins(log_path: Path) -> None:
    log_path.write_bytes(b"ab\nc\n")
    log = LogReader("pages", log_path)
    assert [0, 3, 5] == [offset for offset in range(-1, 8) if log.begins_line(offset)]
    assert [2, 1, 0] == [log.lines_after(offset) for offset in (0, 3, 5)]


async def rolled(directory: Path, numbers: range) -> None:
    """Write these lines into a log of several parts, as a peer does."""
    store = opened(directory, pages_bytes_max=300)
    for number in numbers:
        store.finish(accept(store, number), line(number) * 5)
        await store.journal.commit()
    store.close()


def delivered(log: LogReader, offset: int = 0) -> tuple[list[bytes], int]:
    """Return all lines that batches of two lines bring from an offset on, and the end."""
    lines: list[bytes] = []
    while (batch := log.read(log.next_here(offset), ALL._replace(lines_max=2))) is not None:
        assert batch.first >= offset
        lines += batch.lines
        offset = batch.end
    return lines, offset


@pytest.mark.parametrize("packed", [False, True])
async def test_a_log_is_read_over_all_its_parts(log_path: Path, packed: bool) -> None:
    await rolled(log_path.parent, range(30))
    whole = [*log_lines(log_path)]
    log = LogReader("pages", log_path)
    source = log.source()
    if packed:
        for part in index_of(log_path).parts:
            file = log_path.with_name(part.file)
            file.with_name(f"{part.file}.gz").write_bytes(gzip.compress(file.read_bytes()))
            file.unlink()
    lines, end = delivered(log)
    assert whole == lines
    assert sum(map(len, whole)) == end == log.size()
    starts = {sum(map(len, whole[:count])) for count in range(len(whole) + 1)}
    begins = [offset for offset in range(end + 1) if log.begins_line(offset)]
    assert sorted(starts) == begins
    assert [len(whole) - 7, 0] == [log.lines_after(sum(map(len, whole[:7]))), log.lines_after(end)]
    await rolled(log_path.parent, range(30, 60))
    assert source == log.source() == LogReader("pages", log_path).source()
    assert [*log_lines(log_path)][len(whole) :] == delivered(log, end)[0]
    log.close()


async def test_parts_that_are_elsewhere_are_passed_over_and_counted(log_path: Path) -> None:
    await rolled(log_path.parent, range(30))
    log, again = LogReader("pages", log_path), LogReader("pages", log_path)
    source = log.source()
    first, second, third, *_ = index_of(log_path).parts
    for part in (first, third):
        log_path.with_name(part.file).unlink()
    assert (first.end, third.end) == (log.next_here(0), log.next_here(third.begin + 5))
    assert second.begin + 1 == log.next_here(second.begin + 1)
    assert log.begins_line(third.begin + 5)
    lines, end = delivered(log)
    assert [*log_lines(log_path)] == lines
    assert end == log.size()
    assert source == again.source()


async def test_a_damaged_compressed_part_is_an_error_that_names_it(log_path: Path) -> None:
    await rolled(log_path.parent, range(30))
    part = log_path.with_name("pages-00001.jsonl")
    packed = gzip.compress(part.read_bytes())
    part.with_name("pages-00001.jsonl.gz").write_bytes(packed[: len(packed) // 2])
    part.unlink()
    with pytest.raises(OSError, match=r"pages-00001\.jsonl\.gz is damaged.*; copy it from a backup, or move it away"):
        delivered(LogReader("pages", log_path))


async def test_a_cut_part_is_an_error_that_names_it(log_path: Path) -> None:
    await rolled(log_path.parent, range(30))
    part = log_path.with_name("pages-00002.jsonl")
    content = part.read_bytes()
    part.write_bytes(content[:-1])
    with pytest.raises(
        OSError, match=r"pages-00002\.jsonl is damaged: .* its .* bytes are there; copy it from a backup"
    ):
        delivered(LogReader("pages", log_path))
    part.write_bytes(content)
    assert [*log_lines(log_path)] == delivered(LogReader("pages", log_path))[0]
