"""The journal of a peer: one SQLite file, two files of lines, and the group commit that makes promises durable.

Every write joins the open transaction at once. The next commit makes it durable, at most `commit_spacing_s` later, or
five times as late for a peer that has time (`durable`). A crash loses only writes after the last commit, and nobody was
promised those. A failure of the disk loses the same writes, and the journal then refuses every further write. A failed
journal is closed and opened again, never repaired in place. The journal does not know the meaning of its tables: the
tables of `Store` do. Only the loop's thread uses a journal.

Files and database agree after a crash because the database leads. WARC bytes beyond the journaled length are cut off
(crawl/output/outputs.py), and lines of committed transactions are written again (line_log.py).

Tests: tests/store/test_store.py
"""

import asyncio
import contextlib
import os
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from io import BytesIO
from math import inf
from pathlib import Path
from typing import Any

from kadcrawl.errors import DiskFullError, StartError, StorageError
from kadcrawl.settings.limits import Limits
from kadcrawl.store.disk_faults import advice, is_disk_full, write_fault
from kadcrawl.store.lean_commits import LeanCommits
from kadcrawl.store.line_log import KEPT_BYTES, MOVE_AWAY, LineLog
from kadcrawl.store.log_parts import has_log
from kadcrawl.store.log_roller import PARTS_OF, LogRoller, known_index
from kadcrawl.store.lost_files import LostFiles
from kadcrawl.store.migration import OPENED, bring_up_to_date
from kadcrawl.store.schema import SCHEMA_VERSION
from kadcrawl.store.statement_cache import drop_statements
from kadcrawl.store.wal import Wal
from kadcrawl.system.event import Event
from kadcrawl.system.file_names import JOURNAL, PAGE_LOG

UNREADABLE = (sqlite3.Error, UnicodeError, MemoryError)
"""The exceptions that Python's SQLite module raises for a damaged file.

A damaged size may ask for more memory than the machine has, and text that cannot be decoded is quoted in the error."""

USUAL_LIMITS = Limits()
PAGE_BYTES = 4096
"""Size of a page of a new journal, in bytes: SQLite's own. Each table and index takes one at least."""
SMALL_PAGE_BYTES = 1024
"""Size of a page of a new journal where many peers share the memory of a process."""
HAS_TIME_TIMES = 5
"""Factor on the spacing between two commits of a peer that has time. A crash repeats the pages in between."""
RECORD_LOG = "records.jsonl"
_OTHER_TYPE = "a value is of another type than was written"

UNSYNCED_BYTES = KEPT_BYTES
"""Bytes at the end of a log that need not be on disk yet, as the outbox has their lines: one sync for many commits."""

ROW_BYTES = 2048
"""Bytes of page lines from which a row of the outbox is full: some rows for each page of the database."""

CommitStep = Callable[[], Iterable[int]]
"""A function that runs right before each commit and returns the file descriptors to sync with that commit."""


def _never() -> bool:
    return False


def sync_files(fds: Iterable[int]) -> None:
    """Make the contents of these files durable. Raises OSError."""
    for fd in fds:
        os.fdatasync(fd)


class Journal:
    """The files of one peer, and the commit that ties them together."""

    def __init__(
        self,
        directory: Path,
        commit_spacing_s: float,
        sync: Callable[[Iterable[int]], None] = sync_files,
        limits: Limits = USUAL_LIMITS,
        page_bytes: int | None = None,
    ) -> None:
        """Open or make the files in `directory`, and repair the damage of a crash. Raises StartError.

        `sync` makes the files of the given descriptors durable. The loop's executor calls it. Of the `limits`, those
        on files of lines and on SQLite's memory count. `page_bytes` is the size of the pages of a new journal, by
        default `PAGE_BYTES`.
        """
        self._page_bytes = page_bytes or PAGE_BYTES
        self._sync = sync
        self._cache_bytes = limits.journal_cache_bytes
        self.path = directory / JOURNAL
        self._commit_steps: list[CommitStep] = []
        self._spacing_s = commit_spacing_s
        self._has_time: Callable[[], bool] = _never
        self._begun_at = -inf
        """Loop second at which the last commit in turn began."""
        self._failure: StorageError | None = None
        """The reason for which every write is refused from now on."""
        self._end: StorageError | None = None
        """The reason for which a closed journal refuses every write, unless it failed before."""
        with contextlib.ExitStack() as opened:
            try:
                self._db = self._open()
                opened.callback(self._db.close)
                self._page_log = self._open_log(directory / PAGE_LOG, "outbox", made=True)
                opened.callback(self._page_log.close)
                self._record_log = self._open_log(directory / RECORD_LOG, "record_outbox")
                opened.callback(self._record_log.close)
                self._wal = Wal(self.path)
                self._note_moved("outbox", self._page_log)
                self._note_moved("record_outbox", self._record_log)
            except (*UNREADABLE, OSError, StorageError) as error:
                why = self.damaged(said(error)) if _is_damage(error) else error
                then = f"; {advice(error)}" if is_disk_full(error) else ""
                raise StartError(f"cannot open the journal {self.path}: {said(why)}{then}") from None
            opened.pop_all()  # They stay open.
        self._cursor = self._db.cursor()
        """The cursor of statements that end at once. A connection keeps 80 bytes for each cursor that it ever had."""
        self._lean = LeanCommits(self._cursor, self.path) if self._page_bytes < PAGE_BYTES else None
        self._logs = {"outbox": self._page_log, "record_outbox": self._record_log}
        """The line logs by the table that journals their lines."""
        self._page_rows: list[tuple[int, bytes]] = []
        """The (place, line) pairs that wait for the next commit."""
        self._kept_from = dict.fromkeys(self._logs, 0)
        """The place before which each outbox has no lines any more, as far as this run knows."""
        self.lost_files = LostFiles()
        self._roller = LogRoller(self._logs.values(), limits.pages_bytes_max, sync, self.lost_files)
        self._writes = 0
        """Number of changes written so far."""
        self._on_disk = 0
        """Number of those changes that are durable."""
        self._waiting: list[tuple[int, asyncio.Future[None]]] = []
        """Pairs of a number of changes and the future that waits until so many are durable."""
        self._dirty = Event()
        self._committing = asyncio.Lock()

    # --- commits -------------------------------------------------------------------------------------------------

    def before_commit(self, step: CommitStep) -> None:
        """Call `step` before each commit, after the steps added earlier. A step may write."""
        self._commit_steps.append(step)

    def take_time(self, has_time: Callable[[], bool]) -> None:
        """Multiply the spacing between two commits by `HAS_TIME_TIMES` while `has_time` returns True."""
        self._has_time = has_time

    def durable(self) -> asyncio.Future[None]:
        """Return a future that is done when every write so far is on disk. Raises StorageError."""
        self.refuse_if_failed()
        future = asyncio.get_running_loop().create_future()
        if self._on_disk == self._writes:
            future.set_result(None)
        else:
            # A commit of these writes may be under way. If not, each write has already asked for a commit.
            self._waiting.append((self._writes, future))
        return future

    async def run(self) -> None:
        """Commit whenever writes are waiting, no more often than the spacing allows, until cancelled."""
        time = asyncio.get_running_loop().time
        while True:
            await self._dirty.wait()
            spacing_s = self._spacing_s * (HAS_TIME_TIMES if self._has_time() else 1)
            await asyncio.sleep(max(0.0, self._begun_at + spacing_s - time()))
            self._begun_at = time()
            await self.commit()

    async def commit(self) -> None:
        """Make every write so far durable, then release the futures of `durable`. Raises StorageError."""
        async with self._committing:
            try:
                self.refuse_if_failed()
                self._on_disk = await self._commit()
            except (*UNREADABLE, OSError, StorageError) as error:
                failure = self._fail(error)
                for _, future in self._waiting:
                    if not future.done():
                        future.set_exception(failure)
                        future.exception()  # Retrieved here, because the waiting task may be gone already.
                self._waiting.clear()
                raise failure from error
            except asyncio.CancelledError:
                self._dirty.set()  # The next commit makes these writes durable and releases the futures.
                raise
            still = []
            for writes, future in self._waiting:
                if writes > self._on_disk:
                    still.append((writes, future))
                elif not future.done():
                    future.set_result(None)
            self._waiting = still

    @property
    def has_failed(self) -> bool:
        """True if every write is refused from now on."""
        return self._failure is not None

    def file_bytes(self) -> tuple[int, int]:
        """Return the size of the database and the size of its WAL. Raises OSError."""
        return self.path.stat().st_size, self._wal.size

    def forget_start(self) -> None:
        """Free the statements and pages that only the start has needed. SQLite reads them again if need be."""
        self._cursor.execute("PRAGMA shrink_memory")
        drop_statements(self._db)

    def close(self) -> None:
        """Close the files, and lose all uncommitted writes as a crash does."""
        self._end = StorageError(f"the peer of {self.path.parent} has ended: enter another Peer for that directory")
        with contextlib.suppress(sqlite3.ProgrammingError):  # It was closed before.
            self._cursor.close()  # The statement of a failed read would keep the file open.
        self._db.close()
        self._roller.stop()
        for log in self._logs.values():
            log.close()
        self._wal.close()

    async def _commit(self) -> int:
        """Commit and sync, then return the number of writes that are durable now."""
        for name, index in self._roller.step():
            self._db.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (name, index))
        logs = [log for log in self._logs.values() if log.fd is not None and log.length - log.synced >= UNSYNCED_BYTES]
        fds = [
            *(fd for step in self._commit_steps for fd in step()),
            *(log.fd for log in logs if log.fd is not None),
            self._wal.fd,
        ]
        self._dirty.clear()
        self._write_page_rows()
        for outbox, log in self._logs.items():
            if (kept_from := log.synced - KEPT_BYTES) > self._kept_from[outbox]:
                self._db.execute(f"DELETE FROM {outbox} WHERE place<?", (kept_from,))
                self._kept_from[outbox] = kept_from
        lines = [(log, log.staged()) for log in self._logs.values()]
        lengths = [(log, log.length) for log in logs]
        writes = self._writes
        self._cursor.execute("COMMIT")
        self._wal.restart(self._db)
        if self._lean is not None:
            self._lean.free(writes - self._on_disk)
        self._cursor.execute("BEGIN")
        loop = asyncio.get_running_loop()
        await loop.run_in_executor(None, self._sync, fds)
        for log, synced in lengths:
            log.mark_synced(synced)
        for log, staged in lines:
            log.append(staged)
        if self._wal.is_large:
            await loop.run_in_executor(None, self._wal.checkpoint)
        return writes

    # --- the open transaction --------------------------------------------------------------------------------------

    def write(self, statement: str, values: Sequence[object]) -> int:
        """Write within the open transaction, and return the number of rows changed. Raises StorageError."""
        if self._failure is not None:  # As `refuse_if_failed`, without a call for each of the dozens of a page.
            self.refuse_if_failed()
        try:
            changed = self._cursor.execute(statement, values).rowcount
        except (*UNREADABLE, OverflowError) as error:  # OverflowError if a stored number to count on is damaged.
            raise self._fail(error) from error
        if changed:
            self._writes += 1
            self._dirty.set()
        return changed

    def write_in_commit(self, statement: str, rows: Sequence[Sequence[object]]) -> None:
        """Write several rows from a commit step. `commit` turns the sqlite3.Error into a StorageError."""
        self._cursor.executemany(statement, rows)

    def write_page_line(self, line: bytes) -> None:
        """Journal a line of pages.jsonl, with its newline. Raises StorageError.

        The next commit writes many lines as one row.
        """
        self.refuse_if_failed()
        self._page_rows.append((self._page_log.stage(line), line))
        self._writes += 1
        self._dirty.set()

    def write_record_lines(self, lines: bytes) -> None:
        """Journal lines of records.jsonl, with their newlines. Raises StorageError."""
        self.write("INSERT INTO record_outbox VALUES (?, ?)", (self._record_log.stage(lines), lines))

    def last_page_lines(self) -> list[bytes]:
        """Return the last lines of pages.jsonl, those that the journal still has. Raises StorageError."""
        self._write_page_rows()
        return [line for _, line in self._journaled("outbox")]

    def rows(self, types: tuple[type, ...], statement: str, values: Sequence[object] = ()) -> Iterator[Any]:
        """Yield the rows of a query, each a tuple of these types.

        SQLite itself does not enforce column types. Raises StorageError for a row that is visibly damaged.
        """
        try:
            for row in self._db.execute(statement, values):
                yield self._checked(types, row)
        except UNREADABLE as error:
            raise self.damaged(said(error)) from error

    def all_rows(self, types: tuple[type, ...], statement: str, values: Sequence[object] = ()) -> list[Any]:
        """Return all rows of a query, as `rows` does, for a third of the work. The caller bounds their number."""
        try:
            rows = self._cursor.execute(statement, values).fetchall()
        except UNREADABLE as error:
            raise self.damaged(said(error)) from error
        for column, type_ in zip(zip(*rows, strict=True), types, strict=True) if rows else ():
            if set(map(type, column)) != {type_}:
                raise self.damaged(_OTHER_TYPE)
        return rows

    def row(self, types: tuple[type, ...], statement: str, values: Sequence[object] = ()) -> Any:
        """Return the first row of a query as `rows` does, or None if the query has no row."""
        try:
            row = self._db.execute(statement, values).fetchone()
        except UNREADABLE as error:
            raise self.damaged(said(error)) from error
        return None if row is None else self._checked(types, row)

    def _checked(self, types: tuple[type, ...], row: tuple[object, ...]) -> tuple[object, ...]:
        if tuple(map(type, row)) != types:
            raise self.damaged(_OTHER_TYPE)
        return row

    def _journaled(self, outbox: str) -> Iterator[tuple[int, bytes]]:
        """Yield the (place, line) pairs in an outbox."""
        for place, lines in self.rows((int, bytes), f"SELECT place, line FROM {outbox} ORDER BY place"):
            for line in BytesIO(lines):
                yield place, line
                place += len(line)

    def _open_log(self, path: Path, outbox: str, *, made: bool = False) -> LineLog:
        """Open a log with its parts, as the journal and the files have them."""
        row = self.row((bytes,), "SELECT value FROM meta WHERE name=?", (PARTS_OF + path.name,))
        return LineLog(path, self._journaled(outbox), made=made, index=known_index(path, row[0] if row else None))

    def _note_moved(self, outbox: str, log: LineLog) -> None:
        """Journal the new places of lines that a shortened file has elsewhere now."""
        if log.moved is not None:
            self._db.execute(f"DELETE FROM {outbox}")
            self._db.executemany(f"INSERT INTO {outbox} VALUES (?, ?)", log.moved)

    def _write_page_rows(self) -> None:
        """Write the lines of the outbox that wait, as rows of some KB."""
        if not self._page_rows:
            return
        rows: list[tuple[int, bytes]] = []
        waiting, self._page_rows = self._page_rows, []
        begin = 0
        for at, (place, line) in enumerate(waiting, 1):
            if at == len(waiting) or place + len(line) - waiting[begin][0] >= ROW_BYTES:
                rows.append((waiting[begin][0], b"".join(line for _, line in waiting[begin:at])))
                begin = at
        self._db.executemany("INSERT INTO outbox VALUES (?, ?)", rows)

    # --- failures ------------------------------------------------------------------------------------------------

    def damaged(self, why: str) -> StorageError:
        """Return the error for a value that differs from the value written, and refuse all writes from now on."""
        if self._failure is None:
            text = f"the journal in {self.path.parent} is damaged: {why}; {MOVE_AWAY}"
            self._failure = self._end or StorageError(text)
        return StorageError(*self._failure.args)

    def refuse_if_failed(self) -> None:
        """Raise the StorageError of the first failure, if the journal has failed."""
        if self._failure is not None:
            raise type(self._failure)(*self._failure.args)

    def _fail(self, error: Exception) -> StorageError:
        """Refuse all writes from now on, and return the error to raise.

        SQLite may have ended the transaction, and half of a transaction must not stay.
        """
        if self._failure is None:
            if _is_damage(error) or self._end is not None:
                self.damaged(said(error))
            else:
                kind = DiskFullError if is_disk_full(error) else StorageError
                directory = self.path.parent
                self._failure = kind(write_fault(f"cannot write to {directory}: {said(error)}", error, directory))
            with contextlib.suppress(*UNREADABLE):
                self._db.rollback()
        assert self._failure is not None, "it was set"
        return type(self._failure)(*self._failure.args)

    # --- opening -------------------------------------------------------------------------------------------------

    def _open(self) -> sqlite3.Connection:
        # The journal holds the job, and so the credentials of its proxies. SQLite gives its other files the same mode.
        is_there = self.path.exists()
        if not (is_there and self.path.stat().st_size) and has_log(self.path.with_name(PAGE_LOG)):
            # Else the peer would fetch all pages again, and nobody would be told.
            raise self.damaged(f"it is {'empty' if is_there else 'not there'}, although pages have been fetched")
        os.close(os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
        for path in self.path.parent.glob(f"{self.path.name}*"):
            path.chmod(0o600)
        db = sqlite3.connect(self.path, isolation_level=None, check_same_thread=False, cached_statements=64)
        try:
            self._prepare(db)
        except BaseException:
            db.close()
            raise
        return db

    def _prepare(self, db: sqlite3.Connection) -> None:
        (version,) = db.execute("PRAGMA user_version").fetchone()
        if version not in OPENED:
            raise StartError(
                f"{self.path} was written by another version of kadcrawl (journal {version}, not {SCHEMA_VERSION}); "
                "use that version, or another directory (--data)"
            )
        # A script leaves no statements in the cache of statements. The size of a page of a file that has pages stays.
        # `sync_files` syncs commits outside the loop's thread, so SQLite itself only syncs around checkpoints.
        db.executescript(
            f"PRAGMA page_size={self._page_bytes}; PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL; "
            "PRAGMA wal_autocheckpoint=0"
        )
        bring_up_to_date(db, version)
        # SQLite has allocated the first 20 pages of its cache at once. They are freed with the last page, for which a
        # cache of 1 KiB has no room. A cache that has a page allocates each further page by itself.
        cache_kib = max(1, self._cache_bytes // 1024)
        db.executescript(f"PRAGMA cache_size=-1; BEGIN; PRAGMA schema_version; PRAGMA cache_size=-{cache_kib}")


def said(error: Exception) -> str:
    """Return the text of an error of the journal's files. MemoryError has none of its own."""
    return str(error) or "reading needs more memory than the machine has, perhaps because the file is damaged"


def faults_in(check: Iterable[str]) -> list[str]:
    """Return the faults in the results of SQLite's check of a file, each in one line. A sound file has none.

    A result may have several lines, the first of which names the database.
    """
    lines = (line.strip() for result in check for line in result.splitlines())
    return [line for line in lines if line and line != "ok" and not line.startswith("*** in database ")]


def _is_damage(error: Exception) -> bool:
    """Return whether an error means that bytes of a file differ from those written."""
    if isinstance(error, sqlite3.Error):
        return getattr(error, "sqlite_errorcode", 0) & 0xFF in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
    return isinstance(error, UnicodeError | MemoryError | OverflowError)
