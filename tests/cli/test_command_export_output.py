"""`kadcrawl export` to the standard output: JSON lines as they are, CSV with the columns of the tables, no noise."""

import csv
import gzip
import json
import shutil
import subprocess
from io import StringIO
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from fuzz import data_directories
from kadcrawl.cli.app import main
from kadcrawl.cli.commands import export
from kadcrawl.sinks.tables import TABLES
from kadcrawl.store.log_parts import LogPart, PartIndex, encoded_index, index_path, part_path, source_of
from tests.support.sinks.peer_directory import Directory
from tests.support.swarm.command import KADCRAWL

PAGES = (3, 5)
"""The pages of each peer."""


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Give a directory with two peers. The last line of one has no end yet."""
    (tmp_path / "data").mkdir()
    for number, pages in enumerate(PAGES, 1):
        peer = Directory(tmp_path / "data" / f"peer-{number}")
        peer.write(pages, 1)
    with (tmp_path / "data" / "peer-2" / "pages.jsonl").open("ab") as log:
        log.write(b'{"key":"cut')
    return tmp_path / "data"


def run(*arguments: object) -> Result:
    done = CliRunner().invoke(main, ["export", *map(str, arguments)])
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    return done


PART_LINES = 4


@pytest.fixture
def rolled(tmp_path: Path) -> Path:
    """Give the page log of a peer with three closed parts and a present file of a line."""
    (tmp_path / "data" / "peer-1").mkdir(parents=True)
    log, parts, end = tmp_path / "data" / "peer-1" / "pages.jsonl", [], 0
    for number in (1, 2, 3):
        file = part_path(log, number)
        file.write_bytes(b"".join(page(f"{number}-{line}") for line in range(PART_LINES)))
        parts.append(LogPart(file.name, end, file.stat().st_size, PART_LINES))
        end += file.stat().st_size
    index_path(log).write_bytes(encoded_index(PartIndex(source_of(part_path(log, 1)), tuple(parts))))
    log.write_bytes(page("last"))
    return log


def page(key: str) -> bytes:
    return json.dumps({"key": key, "url": f"http://a.example/{key}", "status": 200}).encode() + b"\n"


@pytest.mark.parametrize("name", ["a backup", "peer-2.bak"])
def test_the_lines_of_a_copy_beside_the_peers_come_once(tmp_path: Path, name: str) -> None:
    data_directories.make(tmp_path, is_finished=True)
    before = run(tmp_path, "--to", "-").stdout
    peer, copy = tmp_path / "peer-2", tmp_path / name
    shutil.copytree(peer, copy)
    assert before == run(tmp_path, "--to", "-").stdout
    more = page("fetched after the copy was made")
    with (peer / "pages.jsonl").open("ab") as log:
        log.write(more)
    assert before + more.decode() == run(tmp_path, "--to", "-").stdout
    with (copy / "pages.jsonl").open("ab") as log:
        log.write(page("only in the directory that was moved aside"))
    lines = run(tmp_path, "--to", "-").stdout
    assert "only in the directory that was moved aside" in lines
    assert more.decode() in lines


@pytest.mark.parametrize("place", ["-", "csv:-"])
def test_closed_parts_that_are_not_here_are_said_with_their_lines(rolled: Path, place: str) -> None:
    lines = run(rolled.parent.parent, "--to", place).stdout.splitlines()
    part_path(rolled, 2).unlink()
    packed = gzip.compress(part_path(rolled, 3).read_bytes())
    part_path(rolled, 3).unlink()
    part_path(rolled, 3).with_suffix(".jsonl.gz").write_bytes(packed)
    done = run(rolled.parent.parent, "--to", place)
    assert done.stdout.splitlines() == [line for line in lines if "/2-" not in line]
    assert (done.exit_code, done.stderr) == (0, "kadcrawl: 4 lines left out: 1 closed part is not here\n")


@pytest.mark.parametrize("place", ["-", "csv:-"])
@pytest.mark.parametrize("packed", [False, True])
def test_a_cut_part_is_an_error_after_the_lines_before_it(rolled: Path, place: str, packed: bool) -> None:
    part = part_path(rolled, 2)
    content = part.read_bytes()
    if packed:
        part.unlink()
        part, content = part.with_suffix(".jsonl.gz"), gzip.compress(content)
    part.write_bytes(content[: len(content) // 2])
    done = run(rolled.parent.parent, "--to", place)
    assert done.exit_code == 2
    assert f"kadcrawl: {part} is damaged: " in done.stderr
    assert "copy it from a backup, or move it away. The lines before it were written" in done.stderr
    assert "/1-3" in done.stdout
    assert "/3-" not in done.stdout


def test_a_directory_is_written_once_whatever_its_spellings(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(data)
    (data / "latest").symlink_to(data / "peer-1")
    done = run(data, "peer-1", data / "peer-2" / ".." / "peer-1", "--to", "-")
    assert len(done.stdout.splitlines()) == sum(PAGES)


def test_a_log_without_a_present_file_is_exported(rolled: Path, tmp_path: Path) -> None:
    rolled.unlink()
    for directory in (rolled.parent, rolled.parent.parent):
        done = run(directory, "--to", "-")
        assert (done.exit_code, len(done.stdout.splitlines())) == (0, 3 * PART_LINES)
    done = run(rolled.parent, "--to", f"jsonl:{tmp_path}/out")
    assert f"{3 * PART_LINES} lines to jsonl:" in done.stdout


@pytest.mark.parametrize("is_indexed", [True, False])
def test_a_sink_without_a_damaged_part_says_so(
    rolled: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_indexed: bool
) -> None:
    monkeypatch.setattr(export, "EXPORT_STALL_S", 0.1)
    packed = gzip.compress(part_path(rolled, 2).read_bytes())
    part_path(rolled, 2).unlink()
    part_path(rolled, 2).with_suffix(".jsonl.gz").write_bytes(packed[: len(packed) // 2])
    if not is_indexed:
        index_path(rolled).unlink()
    sink = f"jsonl:{tmp_path}/out"
    done = run(rolled.parent.parent, "--to", sink)
    assert done.exit_code == 4
    why = f"OSError: {part_path(rolled, 2)}.gz is damaged: "
    assert f"kadcrawl: the sink {sink} lacks an unknown number of pages" in done.stderr
    assert why in done.stderr


@pytest.mark.parametrize("place", ["-", "jsonl:-"])
def test_json_lines_are_those_of_the_logs(data: Path, place: str) -> None:
    done = run(data, "--to", place)
    whole = b"".join((data / f"peer-{number}" / "pages.jsonl").read_bytes() for number in (1, 2))
    assert (done.exit_code, done.stdout_bytes, done.stderr) == (0, whole.removesuffix(b'{"key":"cut'), "")
    records = run(data, "--to", place, "--records")
    assert ["record" in json.loads(line) for line in records.stdout.splitlines()] == [True, True]


def test_csv_has_the_columns_of_the_tables(data: Path) -> None:
    for table, options, rows in (("pages", [], sum(PAGES)), ("records", ["--records"], 2)):
        header, *found = csv.reader(StringIO(run(data, "--to", "csv:-", *options).stdout))
        assert header == [column.name for column in TABLES[table]]
        assert len(found) == rows
        lines = [json.loads(line) for line in run(data, "--to", "-", *options).stdout.splitlines()]
        assert [line["key"] for line in lines] == [row[0] for row in found]


@pytest.mark.parametrize("odd", ['a,"b"\nc\r', "a\rb", "a\nb", "\r", "\n", '"', ","])
def test_commas_quotes_and_newlines_stay_in_their_field(data: Path, odd: str) -> None:
    log = data / "peer-1" / "pages.jsonl"
    log.write_text(json.dumps({"key": "k", "url": "http://a/", "detail": odd, "status": 200}) + "\nno document\n")
    done = run(data / "peer-1", "--to", "csv:-")
    (found,) = csv.DictReader(StringIO(done.stdout_bytes.decode(), newline=""))
    assert (found["detail"], found["status"], found["mime"]) == (odd, "200", "")
    assert (done.exit_code, done.stderr) == (0, "kadcrawl: 1 line left out: no documents of pages\n")


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["--to", "-", "--to", "csv:-"], "a place of its own"),
        (["--to", "-", "--to", "sqlite:a.db"], "a place of its own"),
        (["--to", "sqlite:a.db", "--records"], "--records is for the standard output"),
        (["--to", "pages.csv"], "csv:PLACE"),
        (["--to", "xml:-"], "csv:PLACE"),
        (["--to", "parquet:-"], "jsonl:- and csv:-"),
    ],
)
def test_what_cannot_be_done_is_said(data: Path, arguments: list[str], why: str) -> None:
    done = run(data, *arguments)
    assert (done.exit_code, done.stdout) == (2, "")
    assert why in " ".join(done.stderr.split()), done.stderr


@pytest.mark.parametrize("place", ["-", "csv:-"])
def test_a_closed_pipe_ends_quietly(data: Path, place: str) -> None:
    line = (data / "peer-1" / "pages.jsonl").read_bytes().splitlines(keepends=True)[0]
    (data / "peer-1" / "pages.jsonl").write_bytes(line * 20_000)  # More than a pipe holds.
    command = subprocess.Popen(
        [KADCRAWL, "export", str(data), "--to", place], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert command.stdout is not None
    assert command.stderr is not None
    command.stdout.readline()
    command.stdout.close()
    assert (command.stderr.read(), command.wait(60)) == (b"", 0)
    command.stderr.close()
