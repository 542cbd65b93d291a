"""The repair of data mends what can be mended, and the crawl goes on with the rest."""

import json
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from fuzz.data_directories import DataPeer, make
from kadcrawl.cli.data_check.data_check import DataReport, check_data
from kadcrawl.cli.data_check.data_finding import DataFinding
from kadcrawl.cli.data_check.data_repair import repair_data
from kadcrawl.crawl.output.cdxj import index_of, write_index


def repaired(directory: Path) -> tuple[DataReport, list[DataFinding]]:
    return repair_data(check_data(directory, _silent), _silent)


def _silent(path: Path, part: float | None) -> None:
    """Report nothing."""


def edit(path: Path, change: Callable[[bytes], bytes]) -> None:
    path.write_bytes(change(path.read_bytes()))


def warc_of(peer: Path) -> Path:
    (path,) = (peer / "warc").iterdir()
    return path


def only_first(peer: Path, lines: int) -> None:
    """Leave the first lines of pages.jsonl, and nothing in the outbox, as if they were lost long ago."""
    edit(peer / "pages.jsonl", lambda old: b"".join(old.splitlines(keepends=True)[:lines]))
    with closing(DataPeer(peer, 0)) as opened:
        opened.store.journal.write("DELETE FROM outbox", ())
        opened.commit()
    edit(peer / "pages.jsonl", lambda old: b"".join(old.splitlines(keepends=True)[:lines]))


def test_a_torn_end_is_mended(tmp_path: Path) -> None:
    make(tmp_path, is_finished=True)
    pages = tmp_path / "peer-1" / "pages.jsonl"
    whole = pages.read_bytes()
    pages.write_bytes(whole[:-5])
    left, gone = repaired(tmp_path)
    assert ([], whole) == (left.findings, pages.read_bytes())
    assert {"torn_line", "url_without_line"} <= {each.kind for each in gone}


def test_a_short_warc_ends_with_its_last_whole_record_and_its_pages_are_fetched_again(tmp_path: Path) -> None:
    make(tmp_path, is_finished=True)
    peer = tmp_path / "peer-1"
    lines = [json.loads(line) for line in (peer / "pages.jsonl").read_bytes().splitlines()]
    edit(warc_of(peer), lambda old: old[: lines[-2]["offset"] + 3])
    left, gone = repaired(tmp_path)
    assert [] == left.findings
    assert {"short_warc", "damaged_record", "lost_record"} == {each.kind for each in gone}
    assert lines[-2]["offset"] == warc_of(peer).stat().st_size
    with closing(DataPeer(peer, 0)) as opened:
        assert [8, 10] == opened.pending()
        for number in opened.pending():
            opened.fetch(number)
        opened.commit()
    assert ["warc"] == sorted({path.parent.name for path in peer.rglob("*.warc.gz")})
    after = check_data(tmp_path, _silent)
    assert [] == after.findings
    assert 14 == after.page_lines


@pytest.mark.parametrize("damaged", [b"{\n", b'{"url": "http', bytes(100) + b"\n", b"\xff\xfe\n{}\n"])
def test_damaged_lines_are_moved_away(tmp_path: Path, damaged: bytes) -> None:
    make(tmp_path, is_finished=True)
    peer = tmp_path / "peer-1"
    lines = (peer / "pages.jsonl").read_bytes().splitlines(keepends=True)
    only_first(peer, 4)
    edit(peer / "pages.jsonl", lambda old: lines[0] + damaged + b"".join(lines[2:]))
    left, gone = repaired(tmp_path)
    assert ["record_of_no_page", "missing_line"] == [each.kind for each in left.findings]
    assert {"damaged_line"} <= {each.kind for each in gone}
    kept = (peer / "pages.jsonl").read_bytes().splitlines(keepends=True)
    assert lines[0] == kept[0]
    assert set(kept) <= set(lines)
    assert damaged.splitlines()[0] in (peer / "pages.jsonl.torn").read_bytes()
    with closing(DataPeer(peer, 0)) as opened:
        assert 2 in opened.pending(), "its line is lost, so it is fetched again"
        opened.fetch(2)
        opened.commit()
    assert (peer / "pages.jsonl").read_bytes().startswith(b"".join(kept))


def test_lost_lines_are_fetched_again_by_the_records_in_the_archive(tmp_path: Path) -> None:
    make(tmp_path, is_finished=True)
    peer = tmp_path / "peer-1"
    only_first(peer, 2)
    left, gone = repaired(tmp_path)
    assert ["record_of_no_page", "missing_line"] == [each.kind for each in left.findings]
    assert "url_without_line" in {each.kind for each in gone}
    for number, name in enumerate(("peer-1", "peer-2")):
        with closing(DataPeer(tmp_path / name, number)) as opened:
            assert [4, 6, 8, 10] == opened.pending(), "all holders know"


def test_wrong_counts_are_counted_anew(tmp_path: Path) -> None:
    make(tmp_path, is_finished=False)
    with closing(DataPeer(tmp_path / "peer-1", 0)) as opened:
        before = dict(opened.store.cells)
        opened.store.journal.write("UPDATE cell SET keys=keys+3, digest=zeroblob(16)", ())
        opened.store.journal.write("INSERT INTO cell VALUES (7, 1, 1, zeroblob(16))", ())
        opened.commit()
    left, gone = repaired(tmp_path)
    assert ([], ["cell_count"]) == (left.findings, [each.kind for each in gone])
    with closing(DataPeer(tmp_path / "peer-1", 0)) as opened:
        assert before == opened.store.cells


def test_a_damaged_journal_is_left_alone(tmp_path: Path) -> None:
    make(tmp_path, is_finished=True)
    edit(tmp_path / "peer-1" / "peer.sqlite", lambda old: old[: len(old) // 2])
    edit(tmp_path / "peer-2" / "pages.jsonl", lambda old: old[:-5])
    before = {path: path.read_bytes() for path in (tmp_path / "peer-1").iterdir() if path.is_file()}
    left, gone = repaired(tmp_path)
    assert "journal" in {each.kind for each in left.findings}
    assert "torn_line" in {each.kind for each in gone}
    assert before == {path: path.read_bytes() for path in (tmp_path / "peer-1").iterdir() if path.is_file()}


def test_after_an_emptied_warc_the_crawl_begins_a_new_file(tmp_path: Path) -> None:
    make(tmp_path, is_finished=True)
    peer = tmp_path / "peer-1"
    warc_of(peer).write_bytes(b"")
    left, _ = repaired(tmp_path)
    assert [] == left.findings
    with closing(DataPeer(peer, 0)) as opened:
        for number in opened.pending():
            opened.fetch(number)
        opened.commit()
    assert [] == check_data(tmp_path, _silent).findings
    assert 2 == len(list((peer / "warc").iterdir()))


def test_an_index_that_differs_from_its_finished_file_is_written_anew(tmp_path: Path) -> None:
    make(tmp_path, is_finished=True)
    peer = tmp_path / "peer-1"
    warc = warc_of(peer)
    for _ in write_index(warc):
        pass
    with closing(DataPeer(peer, 0)) as opened:
        opened.store.journal.write("DELETE FROM meta WHERE name='warc'", ())  # As if a later file was begun.
        opened.commit()
    for later in (path for path in (peer / "warc").iterdir() if path not in (warc, index_of(warc))):
        later.unlink()
    whole = index_of(warc).read_bytes()
    for torn in (whole[:-5], b"".join(reversed(whole.splitlines(keepends=True))), b"\xff" + whole[1:]):
        index_of(warc).write_bytes(torn)
        assert {"warc_index"} <= {each.kind for each in check_data(tmp_path, _silent).findings}
        _, gone = repaired(tmp_path)
        assert ["warc_index"] == [each.kind for each in gone]
        assert whole == index_of(warc).read_bytes()
