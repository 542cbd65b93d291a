"""Damaged bytes of WARC files give way to notes, which other readers accept."""

from pathlib import Path

import pytest
from warcio.archiveiterator import ArchiveIterator

from fuzz.data_directories import make
from kadcrawl.cli.data_check.data_check import check_data
from kadcrawl.cli.data_check.data_repair import repair_data
from kadcrawl.cli.data_check.warc_filler import fill_gaps
from kadcrawl.crawl.output.gzip_member import member_at


def _silent(path: Path, part: float | None) -> None:
    """Report nothing."""


def warc_of(directory: Path) -> tuple[Path, list[int]]:
    """Return a WARC file of a new crawl, and the offsets of its records, the end included."""
    make(directory, is_finished=True)
    (path,) = (directory / "peer-1" / "warc").iterdir()
    offsets = [0]
    with path.open("rb", buffering=0) as file:
        while (member := member_at(file, offsets[-1])) is not None:
            offsets.append(member.end)
    return path, offsets


def types(path: Path) -> list[str]:
    """Return the types of the records of a valid WARC file."""
    with path.open("rb") as stream:
        found = []
        for record in ArchiveIterator(stream, check_digests="raise"):
            record.raw_stream.read()
            found.append(record.rec_type)
    return found


@pytest.mark.parametrize(("first", "last"), [(0, 1), (3, 4), (3, 6), (11, 13)])
def test_a_note_takes_the_place_of_damaged_records(tmp_path: Path, first: int, last: int) -> None:
    path, offsets = warc_of(tmp_path)
    before, expected = path.read_bytes(), types(path)
    begin, end = offsets[first], offsets[last]
    damaged = bytes(byte ^ 0x55 for byte in before[begin:end])
    path.write_bytes(before[:begin] + damaged + before[end:])
    assert fill_gaps(path, len(before))
    assert [*expected[:first], "metadata", *expected[last:]] == types(path)
    assert (before[:begin], before[end:]) == (path.read_bytes()[:begin], path.read_bytes()[end:])
    assert damaged == path.with_name(f"{path.name}.torn").read_bytes()
    assert not fill_gaps(path, len(before)), "all is well now"


def test_bytes_that_are_too_few_stay(tmp_path: Path) -> None:
    path, offsets = warc_of(tmp_path)
    before = path.read_bytes()
    path.write_bytes(before[: offsets[2]] + b"?" * 40 + before[offsets[2] :])
    after = path.read_bytes()
    assert not fill_gaps(path, len(after))
    assert after == path.read_bytes()


def test_the_repair_of_a_flipped_bit_fetches_the_page_again(tmp_path: Path) -> None:
    path, offsets = warc_of(tmp_path)
    content = bytearray(path.read_bytes())
    content[(offsets[3] + offsets[4]) // 2] ^= 1
    path.write_bytes(content)
    left, gone = repair_data(check_data(tmp_path, _silent), _silent)
    assert [] == left.findings
    assert {"damaged_record", "lost_record"} == {finding.kind for finding in gone}
    assert "metadata" == types(path)[3]
