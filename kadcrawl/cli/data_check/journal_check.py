"""The check of a journal: SQLite's own check, and the invariants of the tables (store/schema.py).

Tests: tests/cli/data_check/test_data_check.py
"""

import sqlite3
from collections.abc import Iterator
from contextlib import closing, suppress
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from kadcrawl.cli.data_check.catalog import Catalog
from kadcrawl.cli.data_check.data_finding import REPAIR, DataFinding, Report, damage
from kadcrawl.cli.local.resting import peer_id
from kadcrawl.crawl.output.counters import Counters
from kadcrawl.crawl.scope.partitioner import Partitioner
from kadcrawl.errors import ConfigError
from kadcrawl.keys import ID_BYTES, SITE_BYTES, Cell, Key, cell_of
from kadcrawl.link.wire.messages import Contact
from kadcrawl.peer.membership.departed import journaled_departed
from kadcrawl.settings.job import Job
from kadcrawl.store.cell_digest import DIGEST_BYTES, EMPTY, CellDigest
from kadcrawl.store.journal import UNREADABLE, faults_in, said
from kadcrawl.store.line_log import MOVE_AWAY
from kadcrawl.store.migration import OPENED
from kadcrawl.store.schema import SCHEMA_VERSION, STATE_MAX, is_pending
from kadcrawl.system.file_names import JOURNAL
from kadcrawl.system.plural import plural

BATCH = 10_000
"""Rows that are entered into the catalog at a time."""
STEPS = 1_000_000
"""Steps of SQLite between two reports: some hundredths of a second."""
FAULTS_MAX = 10
"""Faults of a database after which SQLite stops its search."""


@dataclass(slots=True)
class JournalFacts:
    """The facts of a journal that other checks need."""

    is_readable: bool = False
    job: Job | None = None
    node_id: bytes = b""
    contacts: list[Contact] = field(default_factory=list)
    """The other peers that the peer knew, and the peers and leaves that left and had finished URLs."""
    warc: tuple[str, int] | None = None
    """The WARC file that was written last, with its length."""
    lines: int | None = None
    """Number of finished URLs that the peer counted, each with a page line."""

    @property
    def partitioner(self) -> Partitioner | None:
        """The partitioner of the job, or None if the job is unknown."""
        return None if self.job is None else Partitioner(self.job.partition, self.job.bits)


def opened(path: Path) -> sqlite3.Connection:
    """Open a journal that no process uses, to be read only. Damaged texts are read as far as possible."""
    # A journal that was closed well can be read without the files that SQLite needs for a log of changes.
    is_closed = not path.with_name(f"{path.name}-wal").exists()
    journal = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro{'&immutable=1' if is_closed else ''}", uri=True)
    journal.text_factory = lambda text: text.decode(errors="replace")
    return journal


def check_journal(directory: Path, catalog: Catalog, report: Report) -> tuple[JournalFacts, list[DataFinding]]:
    """Enter the keys of a journal into the catalog. Return the facts that other checks need, and the findings."""
    path = directory / JOURNAL
    facts = JournalFacts()
    findings: list[DataFinding] = []
    try:
        with closing(opened(path)) as journal:
            journal.set_progress_handler(lambda: report(path, None), STEPS)
            findings += _check_file(path, journal)
            if not findings:
                _read_facts(directory, journal, facts)
                findings += _check_rows(path, journal, facts, catalog, report)
                facts.is_readable = True
    except msgspec.MsgspecError as error:
        findings.append(damage("journal", path, 1, f"a value is damaged: {error}", MOVE_AWAY))
    except UNREADABLE as error:
        findings.append(damage("journal", path, 1, f"it cannot be read: {said(error)}", MOVE_AWAY))
    return facts, findings


def _check_file(path: Path, journal: sqlite3.Connection) -> list[DataFinding]:
    (version,) = journal.execute("PRAGMA user_version").fetchone()
    if version == 0 and not journal.execute("SELECT 1 FROM sqlite_master").fetchall():
        return [damage("journal", path, 1, "it is empty", MOVE_AWAY)]
    if version != SCHEMA_VERSION:
        other = f"it is of another version of kadcrawl (journal {version}, not {SCHEMA_VERSION})"
        anew = "go on with the crawl by this version, which changes the journal, and check it then"
        return [damage("journal_version", path, 1, other, anew if version in OPENED else "check it with that version")]
    faults = faults_in(str(text) for (text,) in journal.execute(f"PRAGMA integrity_check({FAULTS_MAX})"))
    if not faults:
        return []
    more = " or more" if len(faults) >= FAULTS_MAX else ""
    places = f" at {len(faults)} places{more}, first" if len(faults) > 1 else ""
    return [damage("journal", path, len(faults), f"SQLite finds damage{places}: {faults[0]}", MOVE_AWAY)]


def _read_facts(directory: Path, journal: sqlite3.Connection, facts: JournalFacts) -> None:
    """Read the facts. Raises MsgspecError for a damaged value."""
    meta: dict[str, bytes] = dict(journal.execute("SELECT name, value FROM meta WHERE typeof(value)='blob'"))
    decode = msgspec.json.decode
    facts.job = decode(meta["job"], type=Job) if "job" in meta else None
    facts.warc = decode(meta["warc"], type=tuple[str, int]) if "warc" in meta else None
    facts.lines = decode(meta["totals"], type=Counters).done if "totals" in meta else None
    with suppress(ConfigError):  # The check of the key names its damage.
        facts.node_id = peer_id(directory, meta)
    if "contacts" in meta:
        facts.contacts = msgspec.msgpack.decode(meta["contacts"], type=list[Contact])
    # A peer that only finished failed URLs has lines too.
    left = ((one.contact, one.counters) for one in journaled_departed(meta.get("departed")))
    facts.contacts += [contact for contact, counters in left if counters.pages or counters.done]


def _check_rows(
    path: Path, journal: sqlite3.Connection, facts: JournalFacts, catalog: Catalog, report: Report
) -> Iterator[DataFinding]:
    """Enter the keys into the catalog, and yield the findings about the tables."""
    cells: dict[Cell, CellDigest] = {}
    impossible = 0
    bits = facts.job.bits if facts.job is not None else None
    (total,) = journal.execute("SELECT count(*) FROM history").fetchone()
    rows: list[tuple[bytes, bool]] = []
    count = 0
    for key, state in journal.execute("SELECT key, state FROM history ORDER BY key"):
        count += 1
        if not isinstance(key, bytes) or len(key) != ID_BYTES or not _is_state(state):
            impossible += 1
            continue
        rows.append((key, not is_pending(state)))
        if bits is not None:
            cell = cell_of(Key(key), bits)
            cells[cell] = cells.get(cell, EMPTY).changed(Key(key), None, state)
        if len(rows) >= BATCH:
            catalog.add_known(rows)
            rows.clear()
            report(path, count / total)
    catalog.add_known(rows)
    catalog.add_urls(journal.execute("SELECT url, key FROM visit"))
    if impossible:
        bad = plural(impossible, "row of the history is", "rows of the history are")
        yield damage("journal_row", path, impossible, f"{bad} impossible", MOVE_AWAY)
    if facts.job is not None:
        yield from _compare_cells(path, journal, cells, facts.job.history == "exact")
    yield from _check_frontier(path, journal, facts.partitioner)


def _is_state(state: object) -> bool:
    return isinstance(state, int) and 1 <= state <= STATE_MAX


def _compare_cells(
    path: Path, journal: sqlite3.Connection, cells: dict[Cell, CellDigest], is_exact: bool
) -> Iterator[DataFinding]:
    """Yield a finding if the counts of cells differ from the rows. Fingerprints of done keys are not counted again."""
    wrong = 0
    counted = {}
    for cell, keys, pending, digest in journal.execute("SELECT cell, keys, pending, digest FROM cell"):
        is_digest = isinstance(digest, bytes) and len(digest) == DIGEST_BYTES
        counted[cell] = CellDigest(keys, pending, int.from_bytes(digest, "big") if is_digest else -1)
    for cell in cells.keys() | counted.keys():
        rows, row = cells.get(cell, EMPTY), counted.get(cell, EMPTY)
        wrong += row != rows if is_exact else row.pending != rows.pending
    if wrong:
        yield damage("cell_count", path, wrong, f"{plural(wrong, 'cell')} are counted wrongly", f"{REPAIR}")


def _check_frontier(path: Path, journal: sqlite3.Connection, partitioner: Partitioner | None) -> Iterator[DataFinding]:
    """Yield the findings about pending URLs: each has a row in the history and a row in the frontier."""
    (without_history,) = journal.execute(
        "SELECT count(*) FROM frontier f LEFT JOIN history h ON h.key=CAST(site_hash || url_hash AS BLOB) "
        "AND h.depth=f.depth AND h.seq=f.seq WHERE coalesce(state, 2) % 2 = 0"
    ).fetchone()
    (without_url,) = journal.execute(
        f"SELECT count(*) FROM history h LEFT JOIN frontier f ON site_hash=substr(key, 1, {SITE_BYTES}) "
        "AND f.depth=h.depth AND f.seq=h.seq WHERE state % 2 = 1 AND url IS NULL"
    ).fetchone()
    if without_history or without_url:
        alone = without_history + without_url
        said_ = f"{plural(alone, 'pending URL is', 'pending URLs are')} in one of two tables only"
        yield damage("journal_row", path, alone, said_, MOVE_AWAY)
    if partitioner is not None:
        others = sum(
            (location := partitioner.locate_offered(str(url))) is None or location.key != of_site + of_url
            for of_site, of_url, url in journal.execute("SELECT site_hash, url_hash, url FROM frontier")
        )
        if others:
            urls = plural(others, "pending URL has", "pending URLs have")
            yield damage("journal_row", path, others, f"{urls} the key of another URL", MOVE_AWAY)
