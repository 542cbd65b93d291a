"""Test that a log is read by whole lines, in bounded batches, with any bytes at its end."""

from pathlib import Path

import pytest

from kadcrawl.sinks import log_reader
from kadcrawl.sinks.batch import BatchSize
from kadcrawl.sinks.log_reader import LogReader

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
