"""Test the last figures of the peers of a local crawl, of which some may have died."""

import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from kadcrawl.cli.local.child import Child
from kadcrawl.cli.local.last_rows import last_rows
from kadcrawl.cli.local.protocol import Assignment
from kadcrawl.cli.local.resting import rows_at_rest
from kadcrawl.cli.view.summary import add_up
from kadcrawl.crawl.output.counters import Counters
from kadcrawl.keys import Cell, anchor, id_bytes
from kadcrawl.link.wire.messages import Contact, PeerCounters, PeerRow
from kadcrawl.link.wire.peer_state import PeerState
from kadcrawl.settings.job import Job
from kadcrawl.system.file_names import JOURNAL
from tests.support.swarm.at_rest import directory_at_rest

JOB = replace(Job(seeds=("http://a.example/",)), cell_bits=Job().bits)
CELL, KNOWN = Cell(7), 41
OWNER, BACKUP = (id_bytes(anchor(CELL, JOB.bits) ^ distance) for distance in (1, 2))


async def launch(assignment: Assignment) -> None:
    raise AssertionError("no peer is started")


def told(node_id: bytes, *, urls: int, done: int, pending: int) -> PeerRow:
    return PeerRow(
        contact=Contact(node_id, "127.0.0.1", 4160),
        state=PeerState.CRAWLING,
        pending=pending,
        in_flight=0,
        uptime_s=1,
        counters=PeerCounters(urls=urls, done=done, pages=done),
        allowance=3,
        granted=5,
    )


async def ended_peer(data: Path, row: PeerRow, *, urls: int, done: int, pending: int) -> Child:
    """Return a peer that has ended. Its journal has other figures than its last row, and 41 known URLs in one cell."""
    number = len(list(data.iterdir())) + 1
    directory = await directory_at_rest(data / f"peer-{number}", job=JOB, node_id=row.contact.id)
    counters = Counters()
    counters.urls, counters.done, counters.pages = urls, done, done
    with closing(sqlite3.connect(directory / JOURNAL, isolation_level=None)) as journal:
        write = "INSERT OR REPLACE INTO meta VALUES (?, ?)"
        journal.executemany(write, [("totals", counters.to_bytes()), ("pages_begun", b"2")])
        journal.execute("INSERT INTO cell VALUES (?, ?, ?, ?)", (CELL, KNOWN, pending, bytes(16)))
    child = Child(number, directory, launch, data / "log", 2)  # type: ignore[arg-type]
    child.row = row
    return child


async def test_pending_urls_of_a_dead_peer_count_once_with_those_of_the_peers_that_took_them_over(
    tmp_path: Path,
) -> None:
    # The dead peer told its first row only. The other peer has its URLs since, and finished 11 of them.
    dead = await ended_peer(tmp_path, told(OWNER, urls=1, done=0, pending=1), urls=KNOWN, done=1, pending=40)
    alive = await ended_peer(tmp_path, told(BACKUP, urls=0, done=11, pending=29), urls=0, done=11, pending=29)
    dead.dead = True
    rows, _, unreadable = last_rows([dead, alive], tmp_path, JOB)
    summary = add_up(rows, None, JOB)
    assert not unreadable
    assert (KNOWN, 12) == (summary.urls_found, summary.urls_done)
    assert {OWNER: 0, BACKUP: 29} == {row.contact.id: row.pending for row in rows}
    # The row of a crashed peer has the pages that it had begun as its grant, and no allowance.
    assert (2, 0) == next((row.granted, row.allowance) for row in rows if row.contact.id == OWNER)
    at_rest, _, _ = rows_at_rest([dead.directory, alive.directory], JOB, 0.0)
    assert summary.urls_found == add_up(at_rest, None, JOB).urls_found, "as `kadcrawl summary` tells it"


@pytest.mark.parametrize("is_dead", [True, False])
async def test_a_peer_without_a_readable_journal_keeps_the_figures_that_it_told(tmp_path: Path, is_dead: bool) -> None:
    child = await ended_peer(tmp_path, told(OWNER, urls=30, done=2, pending=28), urls=KNOWN, done=12, pending=29)
    (child.directory / JOURNAL).write_bytes(b"no journal")
    child.dead = is_dead
    rows, _, unreadable = last_rows([child], tmp_path, JOB)
    assert not unreadable, "its figures are not missing"
    assert [(30, 2, 0 if is_dead else 28)] == [(row.counters.urls, row.counters.done, row.pending) for row in rows]


async def test_the_journals_of_peers_that_ended_well_are_not_read(tmp_path: Path) -> None:
    row = told(OWNER, urls=30, done=2, pending=28)
    child = await ended_peer(tmp_path, row, urls=KNOWN, done=12, pending=29)
    rows, orders, unreadable = last_rows([child], tmp_path, JOB)
    assert ([row], (), ()) == (rows, orders, unreadable)
