"""The check of data finds each kind of damage, and nothing else."""

import gzip
import json
import re
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import msgspec
import pytest

from fuzz.data_directories import IDS, DataPeer, make
from kadcrawl.cli.data_check.data_check import DataReport, check_data
from kadcrawl.cli.doctor.directory_probes import directory_findings
from kadcrawl.crawl.output.gzip_member import member_at
from kadcrawl.link.wire.leaf_messages import leaf_contact
from kadcrawl.link.wire.leave_messages import Departed
from kadcrawl.link.wire.messages import PeerCounters


def checked(directory: Path) -> DataReport:
    return check_data(directory, lambda path, part: None)


def kinds(report: DataReport) -> list[str]:
    """Return kind, file name and count of the findings, with a mark for a problem."""
    return [
        f"{'!' if each.outcome == 'problem' else ''}{each.kind} {Path(each.path).name} {each.count}"
        for each in report.findings
    ]


def warc_of(peer: Path) -> Path:
    (path,) = (peer / "warc").iterdir()
    return path


def edit(path: Path, change: Callable[[bytes], bytes]) -> None:
    path.write_bytes(change(path.read_bytes()))


def lines_changed(change: Callable[[list[bytes]], list[bytes]]) -> Callable[[Path], None]:
    return lambda peer: edit(peer / "pages.jsonl", lambda old: b"".join(change(old.splitlines(keepends=True))))


def page_changed(**fields: object) -> Callable[[Path], None]:
    """Change fields of the second page line of a peer."""

    def change(lines: list[bytes]) -> list[bytes]:
        lines[1] = json.dumps(json.loads(lines[1]) | fields).encode() + b"\n"
        return lines

    return lines_changed(change)


def sql(*statements: str) -> Callable[[Path], None]:
    def run(peer: Path) -> None:
        with closing(sqlite3.connect(peer / "peer.sqlite")) as journal, journal:
            for statement in statements:
                journal.execute(statement)

    return run


def members(path: Path) -> list[int]:
    """Return the offsets of the records of a WARC file, and its end."""
    ends = [0]
    with path.open("rb", buffering=0) as file:
        while (member := member_at(file, ends[-1])) is not None:
            ends.append(member.end)
    return ends


def flipped_in_record(peer: Path) -> None:
    """Flip a byte in the third record, a response."""
    path = warc_of(peer)
    begin, end = members(path)[3:5]
    at = (begin + end) // 2
    edit(path, lambda old: old[:at] + bytes((old[at] ^ 1,)) + old[at + 1 :])


def other_content(peer: Path) -> None:
    """Exchange the last response for a whole record of the same length with another body, but the same digests."""
    path = warc_of(peer)
    begin, end, _ = members(path)[-3:]
    whole = gzip.decompress(path.read_bytes()[begin:end])
    body = whole.index(b"<p>")
    packed = bytearray(gzip.compress(whole[:body] + bytes(len(whole) - body - 4) + b"\r\n\r\n", mtime=0))
    packed[3] |= 8  # A file name in the header of the member takes any number of bytes.
    packed[10:10] = b"x" * (end - begin - len(packed) - 1) + b"\0"
    edit(path, lambda old: old[:begin] + bytes(packed) + old[end:])


@pytest.mark.parametrize("is_finished", [True, False])
def test_nothing_is_wrong_with_a_crawl_in_order(tmp_path: Path, is_finished: bool) -> None:
    make(tmp_path, is_finished=is_finished)
    report = checked(tmp_path)
    assert [] == report.findings
    assert (2, 12 if is_finished else 9) == (len(report.peers), report.page_lines)
    assert [] == [each for each in checked(tmp_path / "peer-1").findings if each.outcome == "problem"]


SIX_PAGES = PeerCounters(pages=6, done=6)


def make_with_leaf(directory: Path, *, is_leaf_known: bool, counters: PeerCounters = SIX_PAGES) -> Path:
    """Make the directory of a swarm of a peer and a leaf, and return that of the leaf.

    With `is_leaf_known` the leaf has said goodbye to the peer, with these counters.
    """
    make(directory, is_finished=True)
    peer, leaf = directory / "peer-1", directory / "leaf"
    (directory / "peer-2").rename(leaf)
    (leaf / "address").unlink()
    sql(
        "UPDATE meta SET name='leaf_id' WHERE name='node_id'",
        "DELETE FROM meta WHERE name='contacts'",
        "DELETE FROM history",
        "DELETE FROM cell",
    )(leaf)
    sql("DELETE FROM meta WHERE name='contacts'")(peer)
    if is_leaf_known:
        departed = msgspec.msgpack.encode([Departed(leaf_contact(IDS[1]), counters)]).hex()
        sql(f"INSERT INTO meta VALUES ('departed', x'{departed}')")(peer)
    return leaf


@pytest.mark.parametrize("is_leaf_known", [True, False])
def test_the_lines_of_a_leaf_count_whatever_its_directory_is_called(tmp_path: Path, is_leaf_known: bool) -> None:
    leaf = make_with_leaf(tmp_path, is_leaf_known=is_leaf_known)
    report = checked(tmp_path)
    assert [] == report.findings
    assert ([tmp_path / "peer-1", leaf], 12) == (sorted(report.peers, reverse=True), report.page_lines)
    (leaf / "peer.sqlite").write_bytes(b"no journal" * 1000)
    assert "!journal peer.sqlite 1" in kinds(checked(tmp_path)), "no directory that was moved aside"


@pytest.mark.parametrize("counters", [SIX_PAGES, PeerCounters(done=6, failed={"connect_error": 6})])
def test_lines_of_a_leaf_that_is_elsewhere_are_no_problem(tmp_path: Path, counters: PeerCounters) -> None:
    shutil.rmtree(make_with_leaf(tmp_path, is_leaf_known=True, counters=counters))
    assert [f"url_without_line {tmp_path.name} 6"] == kinds(report := checked(tmp_path))
    assert not report.is_whole, "a repair would have the pages of the leaf fetched again"


DAMAGED_LINE = "!damaged_line pages.jsonl 1"
NO_RECORD = "record_of_no_page records.jsonl 1"
URL_LOST = "!url_without_line data 1"
LOST_LINE = ["missing_line pages.jsonl 1", URL_LOST]
WARC = "kadcrawl-crawl-01010101-00001.warc.gz"
DAMAGES: dict[str, tuple[Callable[[Path], object], list[str]]] = {
    "torn line": (
        lines_changed(lambda lines: [*lines[:-1], lines[-1][:-9]]),
        ["!torn_line pages.jsonl 1", "record_of_no_page records.jsonl 1", *LOST_LINE],
    ),
    "no JSON": (lines_changed(lambda lines: [lines[0], b"{\n", *lines[1:]]), ["!damaged_line pages.jsonl 1"]),
    "zeros": (lines_changed(lambda lines: [lines[0], bytes(9), *lines[1:]]), [DAMAGED_LINE, NO_RECORD, URL_LOST]),
    "another URL": (page_changed(url="http://a.example/other"), [DAMAGED_LINE, NO_RECORD, URL_LOST]),
    "no URL": (page_changed(url="nonsense"), [DAMAGED_LINE, NO_RECORD, URL_LOST]),
    "a short key": (page_changed(key="00"), [DAMAGED_LINE, NO_RECORD, URL_LOST]),
    "a large number": (page_changed(visit=2**70), [DAMAGED_LINE, NO_RECORD, URL_LOST]),
    "a negative number": (page_changed(offset=-1), [DAMAGED_LINE, NO_RECORD, URL_LOST]),
    "another type": (page_changed(status="200"), [DAMAGED_LINE, NO_RECORD, URL_LOST]),
    "a wrong offset": (page_changed(offset=7), [f"!lost_record {WARC} 1"]),
    "a wrong digest": (page_changed(digest="sha1:x"), ["!other_record pages.jsonl 1"]),
    "another status": (page_changed(status=300), ["!other_record pages.jsonl 1"]),
    "no status": (page_changed(status=None), ["!other_record pages.jsonl 1"]),
    "another time": (
        page_changed(fetched_at="2026-01-02T03:04:05.001Z"),
        ["!other_record pages.jsonl 1", "!lost_record_line records.jsonl 1"],
    ),
    "no time": (page_changed(fetched_at="2026-01-02T03:04:05Z"), [DAMAGED_LINE, NO_RECORD, URL_LOST]),
    "a missing record line": (page_changed(records=3), ["!lost_record_line records.jsonl 1"]),
    "a moved WARC file": (page_changed(warc="warc/moved.warc.gz"), ["moved_warc moved.warc.gz 1"]),
    "a path out of the directory": (page_changed(warc="../peer-2/address"), ["moved_warc address 1"]),
    "a line twice": (lines_changed(lambda lines: [*lines, lines[0]]), ["!repeated_line pages.jsonl 1"]),
    "no line": (lines_changed(lambda lines: lines[1:]), [NO_RECORD, *LOST_LINE]),
    "no record lines": (
        lambda peer: edit(peer / "records.jsonl", lambda old: old[: old.index(b"\n") + 1]),
        ["!lost_record_line records.jsonl 4"],
    ),
    "no record line": (
        lambda peer: edit(peer / "records.jsonl", lambda old: old + b"{}\n"),
        ["!damaged_line records.jsonl 1"],
    ),
    "a torn WARC": (
        lambda peer: edit(warc_of(peer), lambda old: old[:-3]),
        [f"!short_warc {WARC} 1", f"!damaged_record {WARC} 1"],
    ),
    "bytes behind the WARC": (lambda peer: edit(warc_of(peer), lambda old: old + b"rest"), [f"warc_rest {WARC} 1"]),
    "a bit in a record": (flipped_in_record, [f"!damaged_record {WARC} 1", f"!lost_record {WARC} 1"]),
    "another content": (other_content, [f"!unsound_record {WARC} 1"]),
    "no WARC": (lambda peer: warc_of(peer).unlink(), [f"moved_warc {WARC} 1", f"moved_warc {WARC} 6"]),
    "wrong counts": (sql("UPDATE cell SET pending=0, keys=keys+1"), ["!cell_count peer.sqlite 2"]),
    "an impossible state": (
        sql("UPDATE history SET state=0 WHERE key=(SELECT min(key) FROM history)"),
        ["!journal_row peer.sqlite 1", "!cell_count peer.sqlite 1"],
    ),
    "a pending URL without its text": (
        sql("UPDATE history SET state=1 WHERE key=(SELECT min(key) FROM history)"),
        ["!cell_count peer.sqlite 1", "!journal_row peer.sqlite 1"],
    ),
    "a text without its state": (
        sql(
            "INSERT INTO frontier(site_hash, depth, seq, url_hash, site, url, hops, tries, due, trail)"
            " VALUES (x'00', 0, 99, x'00', '', '', 0, 0, 0, x'')"
        ),
        ["!journal_row peer.sqlite 1", "!journal_row peer.sqlite 1"],
    ),
    "no job": (sql("UPDATE meta SET value=x'00' WHERE name='job'"), ["!journal peer.sqlite 1"]),
    "another version": (sql("PRAGMA user_version=2"), ["!journal_version peer.sqlite 1"]),
    "an empty journal": (lambda peer: edit(peer / "peer.sqlite", lambda old: b""), ["!journal peer.sqlite 1"]),
    "half a journal": (
        lambda peer: edit(peer / "peer.sqlite", lambda old: old[: len(old) // 2]),
        ["!journal peer.sqlite 1"],
    ),
    "no journal": (lambda peer: (peer / "peer.sqlite").unlink(), ["!journal peer.sqlite 1"]),
    "results alone": (lambda peer: keep_results(peer), ["journal peer.sqlite 1"]),
    "no address": (lambda peer: (peer / "address").write_bytes(b"\xff"), ["address address 1"]),
    "no swarm key": (lambda peer: secret(peer / "swarm.key"), ["!key swarm.key 1"]),
    "no peer key": (lambda peer: secret(peer / "peer.key"), ["!key peer.key 1"]),
    "no batches": (lambda peer: (peer / "batches.jsonl").write_bytes(b"\xff\n"), ["batches batches.jsonl 1"]),
}


def keep_results(peer: Path) -> None:
    for name in ("peer.sqlite", "address"):
        (peer / name).unlink()


def secret(path: Path) -> None:
    path.write_bytes(b"\xff")
    path.chmod(0o600)


@pytest.mark.parametrize("name", DAMAGES)
def test_each_damage_is_found(tmp_path: Path, name: str) -> None:
    damage, expected = DAMAGES[name]
    make(tmp_path / "data", is_finished=True)
    damage(tmp_path / "data" / "peer-1")
    assert expected == kinds(checked(tmp_path / "data"))


def test_a_visit_that_two_peers_finished_is_a_note(tmp_path: Path) -> None:
    make(tmp_path, is_finished=True)
    line = (tmp_path / "peer-2" / "pages.jsonl").read_bytes().splitlines(keepends=True)[0]
    changed = json.dumps(json.loads(line) | {"ms": 7, "records": 0, "warc": None, "offset": None}).encode() + b"\n"
    edit(tmp_path / "peer-1" / "pages.jsonl", lambda old: old + changed)
    assert [f"twice {tmp_path.name} 1"] == kinds(checked(tmp_path))


def test_lines_of_peers_elsewhere_are_not_missed(tmp_path: Path) -> None:
    make(tmp_path, is_finished=True)
    assert ["url_without_line peer-2 6"] == kinds(checked(tmp_path / "peer-2"))
    edit(tmp_path / "peer-2" / "pages.jsonl", lambda old: old[old.index(b"\n") + 1 :])
    assert "!missing_line pages.jsonl 1" in kinds(checked(tmp_path / "peer-2"))


def test_a_page_to_be_fetched_again_lacks_nothing(tmp_path: Path) -> None:
    make(tmp_path, is_finished=True)
    with closing(DataPeer(tmp_path / "peer-1", 0)) as peer:
        visit = next(peer.store.visits.failed())
        assert peer.store.retry(visit.key, 1) is not None
        peer.commit()
    assert [] == checked(tmp_path).findings


def test_the_reading_is_reported_in_parts(tmp_path: Path) -> None:
    make(tmp_path, is_finished=True)
    told: list[tuple[str, float | None]] = []
    check_data(tmp_path, lambda path, part: told.append((path.name, part)))
    assert any(name.endswith(".warc.gz") and part is not None and 0 < part <= 1 for name, part in told)


def rolled(directory: Path) -> Path:
    """Make a crawl whose page logs have parts, and return the directory of the first peer."""
    make(directory, is_finished=True, pages_bytes_max=700)
    peer = directory / "peer-1"
    assert (peer / "pages-00002.jsonl").exists()
    assert (peer / "records-00001.jsonl").exists()
    return peer


def test_nothing_is_wrong_with_logs_in_parts(tmp_path: Path) -> None:
    peer = rolled(tmp_path)
    assert ([], 12) == (checked(tmp_path).findings, checked(tmp_path).page_lines)
    for part in [*peer.glob("pages-0*"), *peer.glob("records-0*")]:
        part.with_name(f"{part.name}.gz").write_bytes(gzip.compress(part.read_bytes()))
        part.unlink()
    assert ([], 12) == (checked(tmp_path).findings, checked(tmp_path).page_lines)


def test_parts_that_were_moved_away_are_notes(tmp_path: Path) -> None:
    peer = rolled(tmp_path)
    lines = (peer / "pages-00001.jsonl").read_bytes().count(b"\n")
    records = (peer / "records-00001.jsonl").read_bytes().count(b"\n")
    (peer / "pages-00001.jsonl").unlink()
    (peer / "records-00001.jsonl").unlink()
    report = check_data(tmp_path, lambda path, part: None, with_urls=True)
    moved = [f"moved_log pages-00001.jsonl {lines}", f"moved_log records-00001.jsonl {records}"]
    assert [*moved, f"url_without_line {tmp_path.name} {lines}"] == kinds(report)
    assert (12, set()) == (report.page_lines, report.incomplete_urls)


@pytest.mark.parametrize("damage", ["flipped", "cut", "damaged gzip"])
def test_a_part_that_has_changed_is_a_problem(tmp_path: Path, damage: str) -> None:
    part = rolled(tmp_path) / "pages-00001.jsonl"
    content = part.read_bytes()
    if damage == "flipped":
        part.write_bytes(content.replace(b'"links":0', b'"links":1', 1))
    elif damage == "cut":
        part.write_bytes(content[:-7])
    else:
        part.with_name(f"{part.name}.gz").write_bytes(gzip.compress(content)[:-9])
        part.unlink()
    first, *_ = kinds(checked(tmp_path))
    assert first in ("!changed_part pages-00001.jsonl 1", "!changed_part pages-00001.jsonl.gz 1")


def test_a_damaged_index_is_a_note(tmp_path: Path) -> None:
    peer = rolled(tmp_path)
    (peer / "pages.parts.json").write_bytes(b"{")
    report = checked(tmp_path)
    assert (["log_index pages.parts.json 1"], 12) == (kinds(report), report.page_lines)


def test_a_fault_that_sqlite_names_is_one_line(tmp_path: Path) -> None:
    make(tmp_path, is_finished=True)
    path = tmp_path / "peer-1" / "peer.sqlite"
    with closing(sqlite3.connect(path)) as journal:
        (root,) = journal.execute("SELECT rootpage FROM sqlite_master WHERE name='history'").fetchone()
        (size,) = journal.execute("PRAGMA page_size").fetchone()
    cells = (root - 1) * size + 12  # The places of the last cells of the page.
    edit(path, lambda old: old[:cells] + b"\xff" * 4 + old[cells + 4 :])
    with closing(sqlite3.connect(path)) as journal:
        ((first,), *_) = journal.execute("PRAGMA integrity_check(10)").fetchall()
    assert first.startswith("*** in database main ***\n")
    (finding,) = (each for each in checked(tmp_path).findings if each.kind == "journal")
    assert re.fullmatch(r"SQLite finds damage at \d+ places( or more)?, first: [^*\n]+", finding.said)
    (seen,) = directory_findings(tmp_path)
    assert re.fullmatch(r".*peer\.sqlite is damaged: [^*\n]+", seen.said)
