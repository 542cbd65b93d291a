"""WARC files that lost their end are closed as valid files."""

import gzip
from dataclasses import replace
from io import FileIO
from pathlib import Path
from random import Random

import pytest
from warcio.archiveiterator import ArchiveIterator

from kadcrawl.crawl.output import warc_end
from kadcrawl.crawl.output.gzip_member import member_at
from kadcrawl.crawl.output.outputs import Outputs
from kadcrawl.crawl.output.warc import WarcWriter
from kadcrawl.crawl.output.warc_end import CHUNK_BYTES, close_torn, last_whole_end
from kadcrawl.settings.limits import Limits
from tests.support.sites.fetched_page import PAGE
from tests.support.stores import accept, opened

NAME = "kadcrawl-test-01234567"
FIRST, SECOND = f"{NAME}-00001.warc.gz", f"{NAME}-00002.warc.gz"
RANDOM = Random(7)
BODIES = [b"short", RANDOM.randbytes(50_000), b"", RANDOM.randbytes(2 * CHUNK_BYTES), b"a" * 3_000_000]


def write(directory: Path, committed: tuple[str, int] | None = None) -> tuple[tuple[str, int], list[int]]:
    """Write a record for each body to the archive. Return its position, and the ends of the members."""
    writer = WarcWriter.open(directory, NAME, committed, info={}, bytes_max=10**9, random=Random(1), now=lambda: 0.0)
    for body in BODIES:
        writer.write(replace(PAGE, body=body))
    writer.close()
    ends, end = [], 0
    with FileIO(directory / writer.position[0]) as file:
        while (following := member_at(file, end)) is not None:
            ends.append(end := following.end)
    return writer.position, ends


def records(path: Path) -> int:
    """Return the number of records of a valid WARC file. Raise an error for an invalid file."""
    with path.open("rb") as stream:
        return sum(bool(record.raw_stream.read()) + 1 for record in ArchiveIterator(stream, check_digests="raise"))


@pytest.mark.parametrize("is_known", [False, True])
def test_a_torn_file_is_cut_after_its_last_whole_record(tmp_path: Path, is_known: bool) -> None:
    (_, length), ends = write(tmp_path)
    whole = (tmp_path / FIRST).read_bytes()
    assert length == len(whole) == ends[-1]
    cuts = [*(end + off for end in ends for off in (-1, 1, 5, 30, 200)), length // 2, length // 3]
    for cut in sorted(cut for cut in cuts if ends[0] < cut < length):
        (tmp_path / FIRST).write_bytes(whole[:cut])
        close_torn(tmp_path / FIRST, length, ends[:4] if is_known else ())
        assert max(end for end in ends if end <= cut) == (tmp_path / FIRST).stat().st_size
        records(tmp_path / FIRST)


def test_the_crawl_goes_on_in_a_new_file(tmp_path: Path) -> None:
    position, ends = write(tmp_path)
    with (tmp_path / FIRST).open("r+b") as file:
        file.truncate(ends[-2] + 100)
    assert SECOND == write(tmp_path, position)[0][0]
    assert ends[-2] == (tmp_path / FIRST).stat().st_size
    assert records(tmp_path / FIRST) < records(tmp_path / SECOND)


def test_offsets_that_lead_to_no_record_are_not_believed(tmp_path: Path) -> None:
    (_, length), ends = write(tmp_path)
    with (tmp_path / FIRST).open("r+b") as file:
        file.truncate(ends[3] + 10)
    close_torn(tmp_path / FIRST, length, [ends[1] + 1, ends[3] + 2, 10**9])
    assert ends[3] == (tmp_path / FIRST).stat().st_size


def test_an_archive_in_a_body_is_not_taken_for_a_record_of_the_file(tmp_path: Path) -> None:
    inner = gzip.compress(b"WARC/1.1\r\nWARC-Type: response\r\n\r\n")
    writer = WarcWriter.open(tmp_path, NAME, None, info={}, bytes_max=10**9, random=Random(1), now=lambda: 0.0)
    place = writer.write(replace(PAGE, body=RANDOM.randbytes(1000) + inner + RANDOM.randbytes(9000)))
    writer.close()
    with (tmp_path / FIRST).open("r+b") as file:
        file.truncate(place.offset + place.length - 10)
    close_torn(tmp_path / FIRST, writer.position[1], [place.offset])
    assert place.offset == (tmp_path / FIRST).stat().st_size


@pytest.mark.parametrize("content", [b"", b"no archive", b"\x1f\x8b\x08" * 50_000])
def test_a_file_without_any_record_stays_as_it_is(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / FIRST
    path.write_bytes(content)
    close_torn(path, 10**6, [0, 5])
    assert content == path.read_bytes()


def test_the_search_has_a_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (_, length), _ = write(tmp_path)
    with (tmp_path / FIRST).open("ab") as file:
        file.write(bytes(2 * CHUNK_BYTES))
    size = (tmp_path / FIRST).stat().st_size
    monkeypatch.setattr(warc_end, "SEARCHED_BYTES_MAX", CHUNK_BYTES)
    close_torn(tmp_path / FIRST, size + 1, ())
    assert size == (tmp_path / FIRST).stat().st_size
    monkeypatch.undo()
    close_torn(tmp_path / FIRST, size + 1, ())
    assert length == (tmp_path / FIRST).stat().st_size


def test_a_member_followed_by_other_bytes_ends_the_walk(tmp_path: Path) -> None:
    (_, length), ends = write(tmp_path)
    with (tmp_path / FIRST).open("ab") as file:
        file.write(b"\0\1\2")
    with FileIO(tmp_path / FIRST) as file:
        assert length == last_whole_end(file, ends[1], length + 3)


async def test_the_lost_pages_are_counted_from_the_last_page_lines(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    def outputs() -> Outputs:
        return Outputs(tmp_path, NAME, {}, "00", store, Limits(), Random(1), lambda: 0.0)

    store = opened(tmp_path)
    first = outputs()
    for number, body in enumerate(BODIES):
        place = first.keep(replace(PAGE, body=body))
        assert place is not None
        last = place.offset
        store.finish(accept(store, number), b'{"warc":"warc/%b","offset":%d}\n' % (place.file.encode(), place.offset))
    first.flush()
    await store.journal.commit()
    first.close()
    store.close()
    path = tmp_path / "warc" / FIRST
    with path.open("r+b") as file:
        file.truncate(last - 5)
    store = opened(tmp_path)
    outputs().close()
    store.close()
    assert "disk.warc_torn" in caplog.text
    assert "pages=1" in caplog.text
    assert records(path)
