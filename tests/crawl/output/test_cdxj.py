"""The index of a WARC file names the place of each response, in the order in which replay tools search."""

import gzip
import json
import os
import subprocess
import sys
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from random import Random

import pytest

from kadcrawl.crawl.output import cdxj
from kadcrawl.crawl.output.cdxj import index_lines, index_of, is_indexed, write_index
from kadcrawl.crawl.output.warc import Original, WarcWriter
from tests.support.sites.fetched_page import PAGE


def archive(directory: Path, pages: int) -> Path:
    """Write so many pages, and a revisit, into a WARC file."""
    writer = WarcWriter.open(
        directory, "kadcrawl-test", None, info={}, bytes_max=10**9, random=Random(1), now=lambda: 0.0
    )
    for number in range(pages):
        writer.write(replace(PAGE, url=f"https://www.example.org/{number * 7919 % 1000}?b=1&a={number}"))
    writer.write(PAGE, Original("sha1:" + 32 * "A", "2026-01-01T00:00:00Z"))
    writer.close()
    (path,) = directory.glob("*.warc.gz")
    return path


def indexed(warc: Path) -> list[bytes]:
    for _ in write_index(warc):
        pass
    return index_of(warc).read_bytes().splitlines(keepends=True)


def test_each_line_leads_to_its_record(tmp_path: Path) -> None:
    warc = archive(tmp_path, 5)
    lines = indexed(warc)
    assert 6 == len(lines)
    assert sorted(lines) == lines
    for line in lines:
        key, time, text = line.decode().split(" ", 2)
        entry = json.loads(text)
        assert key.startswith(("org,example)/", "1,0,0,127:8000)/a"))
        assert (14, warc.name) == (len(time), entry["filename"])
        begin, length = int(entry["offset"]), int(entry["length"])
        record = gzip.decompress(warc.read_bytes()[begin : begin + length]).decode(errors="replace")
        assert f"WARC-Target-URI: {entry['url']}\r\n" in record
        assert f"WARC-Payload-Digest: sha1:{entry['digest']}\r\n" in record
    assert 1 == sum(b'"mime":"warc/revisit"' in line for line in lines)


@pytest.mark.skipif(find_spec("pywb") is None, reason="pywb is not installed on this Python")
def test_the_index_is_that_of_pywb(tmp_path: Path) -> None:
    warc = archive(tmp_path, 3)
    program = "from pywb.indexer.cdxindexer import main; main()"
    theirs = subprocess.run(
        [sys.executable, "-c", program, "-j", "-s", str(warc)], check=True, capture_output=True
    ).stdout.splitlines()
    split = [[line.split(b" ", 2) for line in lines] for lines in (theirs, indexed(warc))]
    first, second = [[(key, time, json.loads(text)) for key, time, text in lines] for lines in split]
    assert first == second


def test_the_lines_of_a_large_file_are_sorted_in_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    warc = archive(tmp_path, 50)
    expected = sorted(line for line in index_lines(warc) if line is not None)
    monkeypatch.setattr(cdxj, "RUN_LINES", 7)
    assert expected == indexed(warc)


def test_an_index_that_is_given_up_in_the_middle_leaves_nothing(tmp_path: Path) -> None:
    warc = archive(tmp_path, 5)
    before = sorted(tmp_path.iterdir())
    steps = write_index(warc)
    for _ in range(13):  # All records, and the first line.
        next(steps)
    steps.close()
    assert before == sorted(tmp_path.iterdir())
    assert not is_indexed(warc)


def test_an_index_older_than_its_file_is_none(tmp_path: Path) -> None:
    warc = archive(tmp_path, 1)
    indexed(warc)
    assert is_indexed(warc)
    later = index_of(warc).stat().st_mtime + 1
    os.utime(warc, (later, later))
    assert not is_indexed(warc)


def test_bytes_that_are_no_record_are_passed_over(tmp_path: Path) -> None:
    warc = archive(tmp_path, 4)
    whole = indexed(warc)
    second = sorted(int(json.loads(line.split(b" ", 2)[2])["offset"]) for line in whole)[1]
    data = warc.read_bytes()
    warc.write_bytes(data[:second] + bytes(40) + data[second + 40 : -20])
    left = indexed(warc)
    assert len(whole) - 1 == len(left)
    assert set(left) < set(whole)
