"""The place and the first bytes of a gzip member are read from a file of members, unless it is torn or damaged."""

import gzip
from io import FileIO
from itertools import pairwise
from pathlib import Path
from random import Random

from kadcrawl.crawl.output.gzip_member import CHUNK_BYTES, member_at

RECORDS = [b"first", Random(1).randbytes(3 * CHUNK_BYTES), b"last" * CHUNK_BYTES]


def file_of(path: Path, *records: bytes) -> list[int]:
    """Write a member for each record, and return the offsets of their begins, and the end."""
    members = [gzip.compress(record) for record in records]
    path.write_bytes(b"".join(members))
    return [sum(map(len, members[:count])) for count in range(len(members) + 1)]


def test_each_member_has_its_place_and_no_head_unless_wanted(tmp_path: Path) -> None:
    offsets = file_of(tmp_path / "a", *RECORDS)
    with FileIO(tmp_path / "a") as file:
        for begin, end in pairwise(offsets):
            assert (begin, end, b"") == member_at(file, begin)
        whole = member_at(file, offsets[1], lambda head: True)
        assert whole is not None
        assert RECORDS[1] == whole.head
        some = member_at(file, offsets[2], lambda head: len(head) < 10)
        assert some is not None
        assert 10 <= len(some.head) <= CHUNK_BYTES
        assert RECORDS[2].startswith(some.head)


def test_a_torn_or_damaged_member_is_none(tmp_path: Path) -> None:
    offsets = file_of(tmp_path / "a", *RECORDS)
    content = (tmp_path / "a").read_bytes()
    (tmp_path / "torn").write_bytes(content[: offsets[2] - 1])
    (tmp_path / "damaged").write_bytes(content[:200] + bytes(64) + content[264:])
    with FileIO(tmp_path / "torn") as file:
        assert member_at(file, offsets[1]) is None
        assert member_at(file, offsets[2] - 1) is None, "the end of the file"
    with FileIO(tmp_path / "damaged") as file:
        assert member_at(file, offsets[1]) is None
        assert member_at(file, offsets[1] + 1) is None, "no member begins there"
