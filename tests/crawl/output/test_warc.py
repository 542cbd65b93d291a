"""Test that WARC files are whole, valid and found again after any interruption. Warcio and fastwarc judge."""

import base64
import errno
import gzip
import hashlib
import io
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from io import FileIO
from pathlib import Path
from random import Random
from uuid import RFC_4122, UUID

import pytest
from warcio.archiveiterator import ArchiveIterator
from warcio.checker import Checker

from kadcrawl.crawl.fetch.result import FetchError, FetchResult
from kadcrawl.crawl.output import warc
from kadcrawl.crawl.output.warc import Original, WarcWriter, warc_name
from tests.support.sites.fetched_page import PAGE

NAME = "kadcrawl-test-01234567"
FIRST = f"{NAME}-00001.warc.gz"
SECOND = f"{NAME}-00002.warc.gz"
THIRD = f"{NAME}-00003.warc.gz"
FOURTH = f"{NAME}-00004.warc.gz"

NOISE = Random(1).randbytes(50_000)
GZIPPED = ((b"Content-Type", b"text/html"), (b"Content-Encoding", b"gzip"))
VARIED = [
    PAGE,
    replace(PAGE, url="http://127.0.0.1:8000/empty", body=b""),
    replace(PAGE, url="http://127.0.0.1:8000/404", status=404, reason="Not Found", body=b"no"),
    replace(PAGE, url="http://127.0.0.1:8000/noreason", reason="", http_version="1.0"),
    replace(PAGE, url="http://127.0.0.1:8000/oddreason", reason="\udcff"),
    replace(PAGE, url="http://127.0.0.1:8000/binary", headers=(), body=NOISE),
    replace(PAGE, url="http://127.0.0.1:8000/gzip", headers=GZIPPED, body=gzip.compress(b"hello", mtime=0)),
    replace(
        PAGE,
        url="http://127.0.0.1:8000/chunked",
        headers=((b"Content-Type", b"text/html"), (b"transfer-encoding", b"chunked")),
        body=b"5\r\nthis only looks like chunks\r\n0\r\n\r\n",
    ),
    replace(
        PAGE,
        url="http://127.0.0.1:8000/gzipchunked",
        headers=(*GZIPPED, (b"Transfer-Encoding", b"chunked")),
        body=gzip.compress(b"hello" * 9_999, mtime=0),
    ),
    replace(
        PAGE, url="http://127.0.0.1:8000/cut", error=FetchError.BODY_TOO_LARGE, headers=((b"Content-Length", b"99"),)
    ),
    replace(PAGE, url="http://[::1]:8000/six", address="::1"),
]

Opened = Callable[..., WarcWriter]


@pytest.fixture
def open_warc(tmp_path: Path) -> Opened:
    def open_writer(
        committed: tuple[str, int] | None = None,
        bytes_max: int = 10**9,
        seed: int = 1,
        directory: Path = tmp_path,
        lost: Callable[[Path, Path], None] = lambda lost, new: None,
    ) -> WarcWriter:
        return WarcWriter.open(
            directory,
            NAME,
            committed,
            info={"software": "kadcrawl/0.1", "isPartOf": "a test"},
            bytes_max=bytes_max,
            random=Random(seed),
            now=lambda: 0.0,
            lost=lost,
        )

    return open_writer


def file_names(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir())


def warc_records(path: Path) -> list[tuple[str, str | None, bytes]]:
    """Return type, URL and block (for a response only its body, as stored) of each record."""
    with path.open("rb") as stream:
        return [
            (record.rec_type, record.rec_headers.get_header("WARC-Target-URI"), record.raw_stream.read())
            for record in ArchiveIterator(stream, check_digests="raise")
        ]


def response_urls(path: Path) -> list[str | None]:
    return [url for kind, url, _ in warc_records(path) if kind == "response"]


def warcio_accepts(path: Path) -> bool:
    class Command:
        inputs = (str(path),)
        verbose = False

    return bool(Checker(Command()).process_all() == 0)


def fastwarc_accepts(path: Path) -> bool:
    command = [sys.executable, "-m", "fastwarc.cli", "check", "--verify-payloads", "--quiet", str(path)]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


def assert_sound(path: Path) -> None:
    assert warcio_accepts(path)
    assert fastwarc_accepts(path)


def test_warcio_and_fastwarc_accept_every_kind_of_answer(open_warc: Opened, tmp_path: Path) -> None:
    writer = open_warc()
    for fetched in VARIED:
        writer.write(fetched)
    writer.close()
    assert_sound(tmp_path / FIRST)
    kinds = [(kind, url) for kind, url, _ in warc_records(tmp_path / FIRST)]
    pairs = [(kind, fetched.url) for fetched in VARIED for kind in ("response", "request")]
    assert kinds == [("warcinfo", None), *pairs]


@pytest.mark.parametrize(
    ("fetched", "how"),
    [(PAGE, "identical-payload-digest"), (replace(PAGE, status=304, body=b"", content=b""), "server-not-modified")],
)
def test_a_page_that_is_as_it_was_gets_a_revisit_record(
    open_warc: Opened, tmp_path: Path, fetched: FetchResult, how: str
) -> None:
    writer = open_warc()
    place = writer.write(PAGE)
    again = writer.write(fetched, Original(place.payload_digest, place.date))
    writer.close()
    assert warcio_accepts(tmp_path / FIRST)
    with (tmp_path / FIRST).open("rb") as stream:
        stream.seek(again.offset)
        record = next(iter(ArchiveIterator(stream)))
        block = record.raw_stream.read()
    fields = dict(record.rec_headers.headers)
    assert ("revisit", f"http://netpreserve.org/warc/1.1/revisit/{how}") == (record.rec_type, fields["WARC-Profile"])
    assert (PAGE.url, place.date) == (fields["WARC-Refers-To-Target-URI"], fields["WARC-Refers-To-Date"])
    assert place.payload_digest == fields["WARC-Payload-Digest"] == again.payload_digest
    assert str(fetched.status) == record.http_headers.get_statuscode()
    assert (b"", [PAGE.url]) == (block, response_urls(tmp_path / FIRST))


@pytest.mark.parametrize("accepts", [warcio_accepts, fastwarc_accepts])
def test_the_judges_notice_a_flipped_bit(open_warc: Opened, tmp_path: Path, accepts: Callable[[Path], bool]) -> None:
    writer = open_warc()
    writer.write(PAGE)
    writer.close()
    plain = bytearray(gzip.decompress((tmp_path / FIRST).read_bytes()))
    bad = tmp_path / "bad.warc"
    bad.write_bytes(plain)
    assert accepts(bad)
    plain[plain.index(b"<p>hello")] ^= 1
    bad.write_bytes(plain)
    assert not accepts(bad)


@pytest.mark.parametrize("fetched", VARIED, ids=lambda fetched: fetched.url.rpartition("/")[2])
def test_a_record_keeps_the_body_byte_for_byte(open_warc: Opened, tmp_path: Path, fetched: FetchResult) -> None:
    writer = open_warc()
    writer.write(fetched)
    writer.close()
    assert [block for _, _, block in warc_records(tmp_path / FIRST)][1:] == [fetched.body, b""]


def test_a_place_leads_to_its_record_alone(open_warc: Opened, tmp_path: Path) -> None:
    writer = open_warc()
    places = [writer.write(fetched) for fetched in VARIED]
    writer.close()
    for fetched, place in zip(VARIED, places, strict=True):
        with (tmp_path / place.file).open("rb") as stream:
            stream.seek(place.offset)
            member = stream.read(place.length)
        (record,) = ArchiveIterator(io.BytesIO(member))
        assert record.rec_type == "response"
        assert record.rec_headers.get_header("WARC-Target-URI") == fetched.url
        assert record.rec_headers.get_header("WARC-Payload-Digest") == place.payload_digest


def test_the_blocks_are_what_went_over_the_wire(open_warc: Opened, tmp_path: Path) -> None:
    writer = open_warc()
    writer.write(PAGE)
    writer.close()
    plain = gzip.decompress((tmp_path / FIRST).read_bytes())
    assert PAGE.request_head + b"\r\n\r\n" in plain
    assert (
        b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nX-Odd: \xe9\xff\r\nx-odd: again\r\n\r\n<p>hello</p>\r\n\r\n"
    ) in plain


def test_the_records_headers_say_what_when_and_where_from(open_warc: Opened, tmp_path: Path) -> None:
    writer = open_warc()
    writer.write(PAGE)
    writer.close()
    with (tmp_path / FIRST).open("rb") as stream:
        info, response, request = (dict(record.rec_headers.headers) for record in ArchiveIterator(stream))
    assert (info["WARC-Filename"], info["WARC-Type"]) == (FIRST, "warcinfo")
    assert info["WARC-Date"] == "1970-01-01T00:00:00.000000Z"
    assert response["WARC-Date"] == request["WARC-Date"] == "2026-01-02T03:04:05.000067Z"
    assert response["WARC-IP-Address"] == request["WARC-IP-Address"] == "127.0.0.1"
    assert request["WARC-Concurrent-To"] == response["WARC-Record-ID"]
    assert "WARC-Truncated" not in response
    assert len({info["WARC-Record-ID"], response["WARC-Record-ID"], request["WARC-Record-ID"]}) == 3


def test_an_unknown_address_is_not_claimed(open_warc: Opened, tmp_path: Path) -> None:
    writer = open_warc()
    writer.write(replace(PAGE, address=""))
    writer.close()
    with (tmp_path / FIRST).open("rb") as stream:
        assert all(record.rec_headers.get_header("WARC-IP-Address") is None for record in ArchiveIterator(stream))


@pytest.mark.parametrize(
    ("failure", "expected"),
    [
        (FetchError.BODY_TOO_LARGE, "length"),
        (FetchError.NO_MEMORY, "length"),
        (FetchError.INFLATED_NO_MEMORY, None),
        (FetchError.IDLE, "time"),
        (FetchError.TOO_SLOW, "time"),
        (FetchError.TIMEOUT, "time"),
        (FetchError.TRUNCATED, "disconnect"),
        (FetchError.PROTOCOL, "unspecified"),
        (FetchError.BAD_ENCODING, None),
        (FetchError.INFLATED_TOO_LARGE, None),
    ],
)
def test_an_incomplete_body_is_marked_truncated(
    open_warc: Opened, tmp_path: Path, failure: FetchError, expected: str | None
) -> None:
    writer = open_warc()
    writer.write(replace(PAGE, error=failure))
    writer.close()
    with (tmp_path / FIRST).open("rb") as stream:
        response = list(ArchiveIterator(stream))[1]
    assert response.rec_headers.get_header("WARC-Truncated") == expected


def test_chunked_framing_that_is_gone_is_not_claimed(open_warc: Opened, tmp_path: Path) -> None:
    writer = open_warc()
    writer.write(VARIED[8])
    writer.close()
    with (tmp_path / FIRST).open("rb") as stream:
        for record in ArchiveIterator(stream):
            if record.rec_type == "response":
                assert record.http_headers.get_header("Transfer-Encoding") is None
                assert record.http_headers.get_header("X-Crawl-Transfer-Encoding") == "chunked"
                assert record.content_stream().read() == b"hello" * 9_999


def test_record_ids_come_from_the_given_chance(open_warc: Opened, tmp_path: Path) -> None:
    def ids(seed: int) -> list[str]:
        writer = open_warc(seed=seed)
        writer.write(PAGE)
        writer.close()
        with (tmp_path / writer.position[0]).open("rb") as stream:
            return [record.rec_headers.get_header("WARC-Record-ID") for record in ArchiveIterator(stream)]

    first, same, other = ids(1), ids(1), ids(2)
    assert first == same
    assert not set(first) & set(other)


def test_record_ids_are_random_uuids(open_warc: Opened) -> None:
    writer = open_warc()
    ids = {UUID(writer._record_id().removeprefix("<urn:uuid:").removesuffix(">")) for _ in range(20)}
    writer.close()
    assert 20 == len(ids)
    assert {(4, RFC_4122)} == {(one.version, one.variant) for one in ids}


@pytest.mark.parametrize("block", [b"", b"page", bytes(range(256))])
def test_a_digest_is_the_base32_of_its_sha1(block: bytes) -> None:
    assert "sha1:" + base64.b32encode(hashlib.sha1(block).digest()).decode() == warc.digest_of(block)


def test_an_unanswered_request_is_the_callers_mistake(open_warc: Opened) -> None:
    writer = open_warc()
    with pytest.raises(ValueError, match="no answer"):
        writer.write(replace(PAGE, status=None))
    writer.close()


@pytest.mark.parametrize(
    ("job", "peer", "expected"),
    [
        ("docs", "0123456789abcdef", "kadcrawl-docs-01234567"),
        ("../../etc/passwd", "01234567", "kadcrawl-.._.._etc_passwd-01234567"),
        ("크롤 one\n", "01234567", "kadcrawl-_one_-01234567"),
        ("x" * 500, "01234567", "kadcrawl-" + "x" * 100 + "-01234567"),
    ],
)
def test_file_names_are_safe(job: str, peer: str, expected: str) -> None:
    assert warc_name(job, peer) == expected


def test_a_name_that_is_not_safe_is_the_callers_mistake(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="warc_name"):
        WarcWriter.open(tmp_path, "../x", None, info={}, bytes_max=1, random=Random(1), now=lambda: 0.0)


def test_a_file_ends_before_it_exceeds_its_size(open_warc: Opened, tmp_path: Path) -> None:
    writer = open_warc(bytes_max=120_000)
    noise = replace(PAGE, body=NOISE)
    places = [writer.write(noise) for _ in range(5)]
    writer.close()
    assert [place.file for place in places] == [FIRST, FIRST, SECOND, SECOND, THIRD]
    assert file_names(tmp_path) == [FIRST, SECOND, THIRD]
    for path in tmp_path.iterdir():
        assert path.stat().st_size <= 120_000
        assert warc_records(path)[0][0] == "warcinfo"
        assert_sound(path)


def test_the_size_itself_is_allowed_and_one_byte_more_is_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(warc, "_warc_date", lambda at: "2026-01-02T03:04:05.000000Z")

    def second_page_goes_to(directory: str, bytes_max: int) -> tuple[str, int]:
        writer = WarcWriter.open(
            tmp_path / directory, NAME, None, info={}, bytes_max=bytes_max, random=Random(1), now=lambda: 0.0
        )
        writer.write(PAGE)
        file = writer.write(PAGE).file
        writer.close()
        return file, writer.position[1]

    file, size = second_page_goes_to("roomy", 10**9)
    assert file == FIRST
    assert second_page_goes_to("just", size) == (FIRST, size)
    assert second_page_goes_to("less", size - 1)[0] == SECOND


def test_a_record_larger_than_a_file_gets_a_file_of_its_own(open_warc: Opened, tmp_path: Path) -> None:
    writer = open_warc(bytes_max=1_000)
    places = [writer.write(replace(PAGE, body=NOISE)) for _ in range(2)]
    writer.close()
    assert [place.file for place in places] == [FIRST, SECOND]


def test_what_is_flushed_is_in_the_file(open_warc: Opened, tmp_path: Path) -> None:
    writer = open_warc()
    assert warc_records(tmp_path / FIRST)[0][0] == "warcinfo"
    writer.write(PAGE)
    writer.flush()
    file, length = writer.position
    assert (tmp_path / file).stat().st_size == length
    assert response_urls(tmp_path / file) == [PAGE.url]
    writer.close()


def test_a_file_that_ended_stays_open_until_the_next_flush(open_warc: Opened) -> None:
    """A thread that syncs the file may still use its descriptor."""
    writer = open_warc(bytes_max=1_000)
    writer.write(PAGE)
    writer.flush()
    ended = FileIO(writer.fileno(), closefd=False)
    writer.write(replace(PAGE, body=NOISE))
    assert writer.position[0] == SECOND
    ended.seek(0)
    writer.flush()
    with pytest.raises(OSError, match="Bad file descriptor"):
        ended.seek(0)
    writer.close()


def test_held_back_records_are_bounded(open_warc: Opened, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(warc, "PENDING_BYTES_MAX", 60_000)
    writer = open_warc()
    for _ in range(5):
        writer.write(replace(PAGE, body=NOISE))
        assert writer.position[1] - (tmp_path / FIRST).stat().st_size < 60_000 + 60_000
    writer.close()
    assert len(response_urls(tmp_path / FIRST)) == 5


@pytest.mark.parametrize("seed", range(20))
def test_after_a_crash_the_file_goes_on_from_the_journal(open_warc: Opened, tmp_path: Path, seed: int) -> None:
    """The crash leaves any part of the data after the last commit in the file, or junk."""
    random = Random(seed)
    writer = open_warc(seed=seed)
    kept = random.sample(VARIED, random.randrange(len(VARIED)))
    for fetched in kept:
        writer.write(fetched)
    writer.flush()
    committed = writer.position
    for fetched in random.sample(VARIED, 5):
        writer.write(fetched)
    writer.close()
    path = tmp_path / FIRST
    whole = path.read_bytes()
    path.write_bytes(whole[: random.randint(committed[1], len(whole))] + random.randbytes(random.randrange(99)))

    writer = open_warc(committed, seed=seed + 1)
    assert writer.position == committed
    place = writer.write(PAGE)
    writer.close()
    assert (place.file, place.offset) == committed
    assert path.read_bytes()[: committed[1]] == whole[: committed[1]]
    assert response_urls(path) == [fetched.url for fetched in (*kept, PAGE)]
    assert_sound(path)


def test_after_a_crash_files_the_journal_does_not_know_are_removed(open_warc: Opened, tmp_path: Path) -> None:
    writer = open_warc(bytes_max=1_500)
    writer.write(PAGE)
    writer.flush()
    committed = writer.position
    for _ in range(2):
        writer.write(replace(PAGE, body=NOISE))
    writer.close()
    for other in ("pages.jsonl", f"{NAME}9-00007.warc.gz", f"{NAME}-00007.warc"):
        (tmp_path / other).touch()
    assert SECOND in file_names(tmp_path)
    open_warc(committed).close()
    assert file_names(tmp_path) == [FIRST, f"{NAME}-00007.warc", f"{NAME}9-00007.warc.gz", "pages.jsonl"]
    assert (tmp_path / FIRST).stat().st_size == committed[1]


@pytest.mark.parametrize(
    ("committed", "expected"),
    [
        (None, THIRD),
        ((THIRD, 500), FOURTH),
        ((FIRST, 10**6), THIRD),
        ((FIRST, 0), THIRD),
        ((FIRST, -1), THIRD),
        (("../" + FIRST, 10), THIRD),
        (("other.warc.gz", 10), THIRD),
        (("", 1), THIRD),
    ],
)
def test_without_a_matching_journal_nothing_is_removed(
    open_warc: Opened, tmp_path: Path, committed: tuple[str, int] | None, expected: str
) -> None:
    writer = open_warc(bytes_max=1_000)
    for _ in range(2):
        writer.write(replace(PAGE, body=NOISE))
    writer.close()
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    writer = open_warc(committed)
    assert writer.write(PAGE).file == expected
    writer.close()
    assert {name: (tmp_path / name).read_bytes() for name in before} == before
    assert_sound(tmp_path / expected)


@pytest.mark.parametrize("left", [(), (f"{NAME}-00001.cdxj", f"{NAME}-00002.cdxj")])
@pytest.mark.parametrize("renamed", [False, True])
def test_a_file_that_was_moved_away_gives_its_name_to_no_other(
    open_warc: Opened, tmp_path: Path, left: tuple[str, ...], renamed: bool
) -> None:
    writer = open_warc(bytes_max=1_000)
    for _ in range(2):
        writer.write(replace(PAGE, body=NOISE))
    writer.close()
    file, length = writer.position
    assert file == SECOND
    for path in tmp_path.iterdir():
        path.unlink()
    for name in left:
        (tmp_path / name).touch()
    writer = open_warc((file.replace("test", "earlier") if renamed else file, length))
    assert writer.write(PAGE).file == THIRD
    writer.close()
    assert file_names(tmp_path) == sorted([*left, THIRD])


def test_the_index_of_a_file_that_was_moved_away_keeps_its_name_used(open_warc: Opened, tmp_path: Path) -> None:
    for name in (f"{NAME}-00001.cdxj", f"{NAME}-00002.cdxj"):
        (tmp_path / name).touch()
    writer = open_warc()
    assert writer.write(PAGE).file == THIRD
    writer.close()


class FullDisk(FileIO):
    """A file on a disk with `room` bytes left, in all files together."""

    room = 10**9

    def write(self, data: memoryview) -> int:  # type: ignore[override]
        if FullDisk.room == 0:
            raise OSError(errno.ENOSPC, "No space left on device")
        count = super().write(data[: FullDisk.room])
        FullDisk.room -= count
        return count


def test_a_full_disk_loses_nothing_and_leaves_no_half_record(
    open_warc: Opened, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(warc, "FileIO", FullDisk)
    monkeypatch.setattr(FullDisk, "room", 60_000)
    writer = open_warc()
    first, second = (replace(PAGE, url=f"http://127.0.0.1/{name}", body=NOISE) for name in ("1", "2"))
    writer.write(first)
    writer.flush()
    committed = writer.position
    writer.write(second)
    for _ in range(2):
        with pytest.raises(OSError, match="No space left") as raised:
            writer.flush()
        assert raised.value.errno == errno.ENOSPC
        assert (tmp_path / FIRST).stat().st_size == committed[1]
        assert_sound(tmp_path / FIRST)
    FullDisk.room = 10**9
    writer.write(PAGE)
    writer.close()
    assert response_urls(tmp_path / FIRST) == [first.url, second.url, PAGE.url]
    assert_sound(tmp_path / FIRST)


def test_a_write_that_meets_a_full_disk_adds_nothing(
    open_warc: Opened, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(warc, "FileIO", FullDisk)
    monkeypatch.setattr(warc, "PENDING_BYTES_MAX", 1)
    monkeypatch.setattr(FullDisk, "room", 1_000)
    writer = open_warc()
    writer.write(replace(PAGE, body=NOISE))
    position = writer.position
    with pytest.raises(OSError, match="No space left"):
        writer.write(PAGE)
    assert writer.position == position
    FullDisk.room = 10**9
    assert writer.write(PAGE).offset == position[1]
    writer.close()
    assert len(response_urls(tmp_path / FIRST)) == 2


def test_an_unwritable_place_is_an_os_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(OSError, match="file"):
        WarcWriter.open(tmp_path / "file", NAME, None, info={}, bytes_max=1, random=Random(1), now=lambda: 0.0)


def test_closing_twice_is_closing_once(open_warc: Opened) -> None:
    writer = open_warc()
    writer.close()
    writer.close()


@pytest.mark.parametrize("goes", ["removed", "moved", "with its directory"])
def test_records_follow_in_the_next_file_when_a_person_takes_the_present_one(
    open_warc: Opened, tmp_path: Path, goes: str
) -> None:
    lost: list[tuple[Path, Path]] = []
    directory = tmp_path / "warc"
    writer = open_warc(directory=directory, lost=lambda *names: lost.append(names))
    first = writer.write(PAGE)
    writer.flush()
    second = writer.write(PAGE)  # Held back.
    if goes == "removed":
        (directory / FIRST).unlink()
    elif goes == "moved":
        (directory / FIRST).rename(tmp_path / "kept.warc.gz")
    else:
        shutil.rmtree(directory)
    third = writer.write(PAGE)
    writer.flush()
    assert [FIRST, FIRST, SECOND] == [place.file for place in (first, second, third)]
    assert [(directory / FIRST, directory / SECOND)] == lost
    assert file_names(directory) == [SECOND]
    assert_sound(directory / SECOND)
    assert (SECOND, (directory / SECOND).stat().st_size) == writer.position
    if goes == "moved":
        assert_sound(tmp_path / "kept.warc.gz")
        assert [PAGE.url] * 2 == response_urls(tmp_path / "kept.warc.gz")
    writer.close()


def test_after_a_crash_a_file_that_followed_a_lost_one_ends_with_a_whole_record(
    open_warc: Opened, tmp_path: Path
) -> None:
    writer = open_warc()
    writer.write(PAGE)
    writer.flush()
    committed = writer.position
    (tmp_path / FIRST).unlink()
    writer.write(PAGE)
    writer.flush()
    whole = writer.position[1]
    writer.close()
    with (tmp_path / SECOND).open("ab") as file:
        file.write((tmp_path / SECOND).read_bytes()[-100:])  # The kill tore the next batch.
    writer = open_warc(committed)
    assert writer.write(PAGE).file == THIRD
    writer.close()
    assert (tmp_path / SECOND).stat().st_size == whole
    assert_sound(tmp_path / SECOND)
