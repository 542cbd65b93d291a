"""The repair of data: torn ends, damaged lines, wrong counts, and URLs that are to be fetched again.

Journals are written through the store, as a peer writes them. A journal that SQLite finds damaged is left alone.

Tests: tests/cli/data_check/test_data_repair.py
"""

import asyncio
import os
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path

import msgspec

from kadcrawl.cli.data_check.data_check import DataReport, check_data
from kadcrawl.cli.data_check.data_finding import DataFinding, Report
from kadcrawl.cli.data_check.line_check import PAGES, RECORDS, is_good, lines_of
from kadcrawl.cli.data_check.warc_filler import fill_gaps
from kadcrawl.cli.local.retry_at_rest import again_at_rest
from kadcrawl.crawl.output.cdxj import INDEX_SUFFIX, WARC_SUFFIX, write_index
from kadcrawl.crawl.output.outputs import WARC_DIRECTORY, offsets_in
from kadcrawl.crawl.output.warc_end import close_torn
from kadcrawl.keys import Cell, Key, cell_of
from kadcrawl.peer.directory import Directory
from kadcrawl.store.cell_digest import DIGEST_BYTES, EMPTY, CellDigest
from kadcrawl.store.line_log import TORN
from kadcrawl.store.store import Store

LOGS = {PAGES: "outbox", RECORDS: "record_outbox"}
"""The files of lines, and the tables that journal their last lines."""


def repair_data(found: DataReport, report: Report) -> tuple[DataReport, list[DataFinding]]:
    """Mend what can be mended of these findings. Return the findings that are left, and those that are gone.

    No peer may run in the directory. Raises StartError, StorageError and OSError.
    """
    for peer in found.peers:
        if found.has_good_journal(peer):
            _repair_ends(peer)
    left = check_data(found.directory, report, with_urls=True)
    is_changed = False
    for finding in left.findings:
        path = Path(finding.path)
        peer = path.parent
        if finding.kind == "damaged_record":
            with closing(Directory(peer.parent)):
                is_changed = fill_gaps(path, left.warc_end(path)) or is_changed
        if finding.kind == "warc_index":
            for _ in write_index(path.with_name(path.name.removesuffix(INDEX_SUFFIX) + WARC_SUFFIX)):
                pass
            is_changed = True
        if not left.has_good_journal(peer):
            continue
        if finding.kind == "damaged_line":
            _cut_damaged_lines(peer, path.name)
            is_changed = True
        elif finding.kind == "cell_count":
            _count_cells(peer, left.cell_bits)
            is_changed = True
    if left.incomplete_urls and all(map(left.has_good_journal, left.peers)):
        again_at_rest(left.peers, sorted(left.incomplete_urls))
        is_changed = True
    if is_changed:
        left = check_data(found.directory, report)
    places = {(finding.kind, finding.path) for finding in left.findings}
    return left, [finding for finding in found.findings if (finding.kind, finding.path) not in places]


def _repair_ends(peer: Path) -> None:
    """Mend the ends of the files of a peer, as the peer itself does at its start."""
    with closing(Directory(peer)), closing(Store(peer, 0.0)) as store:
        journaled = store.meta.read("warc", msgspec.json.Decoder(tuple[str, int]).decode)
        if journaled is not None and (path := peer / WARC_DIRECTORY / journaled[0]).is_file():
            end = close_torn(path, journaled[1], offsets_in(journaled[0], store.journal.last_page_lines()))
            if end:
                store.meta.set("warc", msgspec.json.encode((journaled[0], end)))
            else:  # The next start begins a new file.
                store.journal.write("DELETE FROM meta WHERE name='warc'", ())
        asyncio.run(store.journal.commit())


def _cut_damaged_lines(peer: Path, file: str) -> None:
    """Write a file of lines anew without its damaged lines, which another file keeps."""
    path = peer / file
    new = path.with_name(f".{file}.new")
    with closing(Directory(peer)):
        with path.open("rb") as old, new.open("wb") as good, open(f"{path}{TORN}", "ab") as torn:
            for line in lines_of(old):
                if is_good(file, line):
                    good.write(line)
                else:
                    torn.write(line if line.endswith(b"\n") else line + b"\n")
            for written in (good, torn):
                written.flush()
                os.fsync(written.fileno())
        with closing(Store(peer, 0.0)) as store:  # The places of the journaled lines are those of the old file.
            store.journal.write(f"DELETE FROM {LOGS[file]}", ())
            asyncio.run(store.journal.commit())
        new.replace(path)


def _count_cells(peer: Path, cell_bits: int) -> None:
    """Count the records of all cells of a peer anew."""
    with closing(Directory(peer)), closing(Store(peer, 0.0)) as store:
        cells = digests_of(store.journal.rows((bytes, int), "SELECT key, state FROM history"), cell_bits)
        store.journal.write("DELETE FROM cell", ())
        for cell, digest in cells.items():
            row = (cell, digest.keys, digest.pending, digest.digest.to_bytes(DIGEST_BYTES, "big"))
            store.journal.write("INSERT INTO cell VALUES (?, ?, ?, ?)", row)
        asyncio.run(store.journal.commit())


def digests_of(records: Iterable[tuple[bytes, int]], cell_bits: int) -> dict[Cell, CellDigest]:
    """Return the digests of the cells with these (key, state)."""
    cells: dict[Cell, CellDigest] = {}
    for raw, state in records:
        key = Key(raw)
        cell = cell_of(key, cell_bits)
        cells[cell] = cells.get(cell, EMPTY).changed(key, None, state)
    return cells
