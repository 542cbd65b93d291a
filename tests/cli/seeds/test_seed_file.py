"""Seeds are read line by line, from files of any length and from pipes, and reading goes on at any place."""

import gzip
import os
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import pytest

from kadcrawl.cli.seeds import seed_file
from kadcrawl.cli.seeds.seed_file import EXAMPLES_MAX, LINE_BYTES_MAX, SeedBatch, SeedFile
from kadcrawl.errors import ConfigError
from kadcrawl.link.wire.seed_messages import STREAM_CHARS_MAX, STREAM_URLS_MAX
from tests.cli.seeds.conftest import OpenSeeds


def file_of(directory: Path, content: bytes | str, name: str = "seeds") -> str:
    path = directory / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return str(path)


def batches(seeds: SeedFile) -> Iterator[SeedBatch]:
    while (batch := seeds.next_batch()) is not None:
        yield batch


def urls(seeds: SeedFile) -> list[str]:
    return [url for batch in batches(seeds) for url in batch.urls]


def numbered(count: int) -> str:
    return "".join(f"http://h{number}.example/\n" for number in range(count))


@pytest.mark.parametrize("packed", [False, True])
def test_each_line_with_a_url_is_a_seed(packed: bool, tmp_path: Path, open_seeds: OpenSeeds) -> None:
    text = "\ufeffhttp://a.example\n\n# a comment\n  http://b.example/#x  \r\nhttp://a.example/\nhttp://c.example/"
    content = text.encode()
    seeds = open_seeds(file_of(tmp_path, gzip.compress(content) if packed else content))
    assert ["http://a.example/", "http://b.example/", "http://c.example/"] == urls(seeds)
    assert (len(content), 6, 0) == (seeds.offset, seeds.lines, seeds.bad)


def test_lines_that_are_no_urls_are_counted_and_the_first_are_named(tmp_path: Path, open_seeds: OpenSeeds) -> None:
    text = b"http://a.example/\nnonsense\nftp://b.example/\n\xff\xfe\n" + b"x\n" * 50
    seeds = open_seeds(file_of(tmp_path, text))
    assert ["http://a.example/"] == urls(seeds)
    assert (53, EXAMPLES_MAX) == (seeds.bad, len(seeds.examples))
    assert seeds.examples[0].startswith("line 2: 'nonsense' has no scheme")
    assert seeds.examples[1].startswith("line 3: 'ftp://b.example/' cannot be crawled")
    assert "line 4: no text in UTF-8" == seeds.examples[2]


@pytest.mark.parametrize("end", ["\n", ""])
@pytest.mark.parametrize("length", [LINE_BYTES_MAX, 5 * LINE_BYTES_MAX + 7])
def test_a_line_without_end_costs_no_memory_and_nothing_else(
    length: int, end: str, tmp_path: Path, open_seeds: OpenSeeds
) -> None:
    before, after = "http://a.example/\n", "http://b.example/\n" if end else ""
    text = before + "x" * length + end + after
    seeds = open_seeds(file_of(tmp_path, text))
    assert ["http://a.example/", "http://b.example/"][: 2 if end else 1] == urls(seeds)
    assert (len(text), 3 if end else 2, 1) == (seeds.offset, seeds.lines, seeds.bad)


@pytest.mark.parametrize("packed", [False, True])
def test_a_hundred_thousand_lines_come_in_batches_and_from_any_place(
    packed: bool, tmp_path: Path, open_seeds: OpenSeeds
) -> None:
    text = numbered(100_000).encode()
    path = file_of(tmp_path, gzip.compress(text, 1) if packed else text)
    seeds, places, count = open_seeds(path), [(0, 0)], 0
    for batch in batches(seeds):
        assert 0 < len(batch.urls) <= STREAM_URLS_MAX
        count += len(batch.urls)
        places.append((batch.offset, batch.lines))
    assert (100_000, 100_000, len(text)) == (count, seeds.lines, seeds.offset)
    offset, lines = places[len(places) // 2]
    again = open_seeds(path)
    again.skip_to(offset, lines)
    rest = urls(again)
    assert (f"http://h{lines}.example/", 100_000) == (rest[0], lines + len(rest))


@pytest.mark.parametrize("packed", [False, True])
def test_a_file_costs_the_memory_of_a_batch(packed: bool, tmp_path: Path, open_seeds: OpenSeeds) -> None:
    """The first batches have as many URLs as there may be, and the others as many characters."""
    short = 2 * STREAM_URLS_MAX
    text = (numbered(short) + "".join(f"http://h.example/{n:01000}\n" for n in range(10_000))).encode()
    path = file_of(tmp_path, gzip.compress(text, 1) if packed else text)
    tracemalloc.start()
    seeds = open_seeds(path)
    sizes = [len(batch.urls) for batch in batches(seeds)]
    _, peak_bytes = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert (short + 10_000, STREAM_URLS_MAX) == (sum(sizes), max(sizes))
    assert peak_bytes < 4_000_000 < len(text), "a batch, and no more of the file"


def test_long_urls_close_a_batch(tmp_path: Path, open_seeds: OpenSeeds) -> None:
    seeds = open_seeds(file_of(tmp_path, "".join(f"http://a.example/{n:08000}\n" for n in range(300))))
    sizes = [sum(map(len, batch.urls)) for batch in batches(seeds)]
    assert max(sizes) <= STREAM_CHARS_MAX + seed_file.CHUNK_BYTES
    assert len(sizes) >= 3


def test_a_slow_pipe_is_not_waited_for_to_fill_a_batch(tmp_path: Path, open_seeds: OpenSeeds) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = os.open(pipe, os.O_RDWR)
    os.write(writer, b"http://a.example/\nhttp://b.exam")
    seeds = open_seeds(pipe)
    assert b"" == seeds.input, "a pipe cannot be read again"
    first = seeds.next_batch()
    os.write(writer, b"ple/\n")
    second = seeds.next_batch()
    os.close(writer)
    assert first is not None
    assert second is not None
    assert [["http://a.example/"], ["http://b.example/"]] == [first.urls, second.urls]
    assert seeds.next_batch() is None
    seeds.close()


def test_a_file_is_known_again_until_it_changes(tmp_path: Path, open_seeds: OpenSeeds) -> None:
    path = file_of(tmp_path, numbered(10_000))
    first = open_seeds(path).input
    assert first == open_seeds(path).input != b""
    os.utime(path, ns=(0, os.stat(path).st_mtime_ns + 1))
    assert first != open_seeds(path).input


def test_what_cannot_be_read_is_said(tmp_path: Path, open_seeds: OpenSeeds) -> None:
    with pytest.raises(ConfigError, match=r"cannot read seeds from .*missing: No such file or directory"):
        open_seeds(str(tmp_path / "missing"))
    with pytest.raises(ConfigError, match="cannot read seeds from"):
        open_seeds(str(tmp_path))
    torn = open_seeds(file_of(tmp_path, gzip.compress(numbered(50_000).encode())[:-500]))
    with pytest.raises(ConfigError, match=r"cannot read seeds from .*seeds: "):
        urls(torn)
    broken = open_seeds(file_of(tmp_path, b"\x1f\x8bnonsense", "broken"))
    with pytest.raises(ConfigError, match=r"cannot read seeds from .*broken: "):
        urls(broken)
