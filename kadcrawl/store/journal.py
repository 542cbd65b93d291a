"""The journal: one SQLite file and two files of lines per peer, and the group commit that makes promises true.

Writes join the open transaction at once and become durable together, at most `commit_spacing_s` later (`durable`).
A crash forgets what was written since the last commit, which nobody was promised, and nothing else; so does a disk
that fails, after which every write is refused. A failed journal is closed and opened anew, never repaired in place.
`Store` builds on it and knows what the tables mean; nothing here does. Used on the loop's thread only.

Files and database agree after a crash because the database leads: WARC bytes beyond the journaled length are cut off
(crawl/output/outputs.py), lines whose commit is on disk are written again (line_log.py).

Tests: tests/store/test_store.py
"""

import asyncio
import contextlib
import errno
import os
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from kadcrawl.errors import DiskFullError, StartError, StorageError
from kadcrawl.store.line_log import LineLog
from kadcrawl.store.schema import RECORD_OUTBOX, SCHEMA, SCHEMA_VERSION
from kadcrawl.system.file_names import JOURNAL
from kadcrawl.system.min_interval import MinInterval

UNREADABLE = (sqlite3.Error, UnicodeError, MemoryError)
"""What SQLite's module raises for a file that is not what was written: a size in it may be one nobody has memory for,
and what cannot be decoded is quoted."""
CHECKPOINT_BYTES = 16 * 1024 * 1024
"""WAL size at which its pages are moved into the database, off the loop's thread."""


def nothing_to_flush() -> Iterable[int]:
    return ()


def sync_files(fds: Iterable[int]) -> None:
    """Make the contents of these files durable. Raises OSError."""
    for fd in fds:
        os.fdatasync(fd)


class Journal:
    """The files of one peer and the commit that ties them together."""

    def __init__(
        self, directory: Path, commit_spacing_s: float, sync: Callable[[Iterable[int]], None] = sync_files
    ) -> None:
        """Open or make the files in `directory`, repairing what a crash left. Raises StartError.

        `sync` makes the files of these descriptors durable; it is called in the loop's executor.
        """
        self._sync = sync
        self.path = directory / JOURNAL
        self.flush: Callable[[], Iterable[int]] = nothing_to_flush
        """Called before each commit: hand other files to the system, journal their lengths, return their fds."""
        self._min_interval = MinInterval(commit_spacing_s)
        self._failure: StorageError | None = None
        """Why nothing can be written any more."""
        with contextlib.ExitStack() as opened:
            try:
                self._db = self._open()
                opened.callback(self._db.close)
                self._page_log = LineLog(directory / "pages.jsonl", self._journaled("outbox"), made=True)
                opened.callback(self._page_log.close)
                self._record_log = LineLog(directory / "records.jsonl", self._journaled("record_outbox"))
                opened.callback(self._record_log.close)
                self._wal_fd = os.open(f"{self.path}-wal", os.O_RDONLY)
            except (*UNREADABLE, OSError, StorageError) as error:
                raise StartError(f"cannot open the journal {self.path}: {said(error)}") from None
            opened.pop_all()  # They stay open.
        self._logs = {"outbox": self._page_log, "record_outbox": self._record_log}
        """By the table their lines are journaled in."""
        self._writes = 0
        """Changes so far."""
        self._on_disk = 0
        """How many of them are durable."""
        self._waiting: list[tuple[int, asyncio.Future[None]]] = []
        """How many must be, and who waits for it."""
        self._dirty = asyncio.Event()
        self._committing = asyncio.Lock()
        self._checkpointed = False

    def durable(self) -> asyncio.Future[None]:
        """Return a future that is done when all written so far is on disk. Raises StorageError."""
        self._refuse_if_failed()
        future = asyncio.get_running_loop().create_future()
        if self._on_disk == self._writes:
            future.set_result(None)
        else:
            # Perhaps it is being committed just now; if not, each write has asked for a commit.
            self._waiting.append((self._writes, future))
        return future

    async def run(self) -> None:
        """Commit whenever there is something to commit, at the spacing at most; until cancelled."""
        time = asyncio.get_running_loop().time
        while True:
            await self._dirty.wait()
            await asyncio.sleep(self._min_interval.wait_s(time()))
            await self.commit()

    async def commit(self) -> None:
        """Make everything written so far durable, then release those who wait for it. Raises StorageError."""
        async with self._committing:
            try:
                self._refuse_if_failed()
                self._on_disk = await self._commit()
            except (*UNREADABLE, OSError, StorageError) as error:
                failure = self._fail(error)
                for _, future in self._waiting:
                    if not future.done():
                        future.set_exception(failure)
                        future.exception()  # Retrieved here: the one who waits may be gone already.
                self._waiting.clear()
                raise failure from error
            except asyncio.CancelledError:
                self._dirty.set()  # The next commit makes it durable and tells them.
                raise
            still = []
            for writes, future in self._waiting:
                if writes > self._on_disk:
                    still.append((writes, future))
                elif not future.done():
                    future.set_result(None)
            self._waiting = still

    def close(self) -> None:
        """Close the files; whatever was not committed before is forgotten, as in a crash."""
        self._db.close()
        for log in self._logs.values():
            log.close()
        os.close(self._wal_fd)

    def _before_commit(self) -> None:
        """Write what is only written once per commit."""

    async def _commit(self) -> int:
        """Commit and sync; return how many writes that made durable."""
        logs = [log.fd for log in self._logs.values() if log.fd is not None]
        fds = [*self.flush(), *logs, self._wal_fd]
        self._before_commit()
        self._dirty.clear()
        for outbox, log in self._logs.items():
            self._db.execute(f"DELETE FROM {outbox} WHERE place<?", (log.synced,))
        lines = [(log, log.staged(), log.length) for log in self._logs.values()]
        writes = self._writes
        self._db.execute("COMMIT")
        if self._checkpointed:
            # Only the few frames since the bulk was moved are left, so this is short, and the WAL starts anew.
            self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            self._checkpointed = False
        self._db.execute("BEGIN")
        loop = asyncio.get_running_loop()
        await loop.run_in_executor(None, self._sync, fds)
        for log, staged, synced in lines:
            log.synced = synced
            log.append(staged)
        if os.fstat(self._wal_fd).st_size > CHECKPOINT_BYTES:
            await loop.run_in_executor(None, _checkpoint, self.path)
            self._checkpointed = True
        return writes

    def _write(self, statement: str, values: Sequence[object]) -> int:
        """Write within the open transaction; return the number of rows changed. Raises StorageError."""
        self._refuse_if_failed()
        try:
            changed = self._db.execute(statement, values).rowcount
        except (*UNREADABLE, OverflowError) as error:  # The latter if a number to go on from is damaged.
            raise self._fail(error) from error
        if changed:
            self._writes += 1
            self._dirty.set()
        return changed

    def _rows(self, types: tuple[type, ...], statement: str, values: Sequence[object] = ()) -> Iterator[Any]:
        """Yield the rows of a query, each a tuple of these types, which SQLite itself does not see to.

        Raises StorageError for what is damaged on the disk, as far as that shows.
        """
        try:
            for row in self._db.execute(statement, values):
                yield self._checked(types, row)
        except UNREADABLE as error:
            raise self.damaged(said(error)) from error

    def _row(self, types: tuple[type, ...], statement: str, values: Sequence[object] = ()) -> Any:
        """Return the first row of a query as `_rows` does, or None if there is none."""
        try:
            row = self._db.execute(statement, values).fetchone()
        except UNREADABLE as error:
            raise self.damaged(said(error)) from error
        return None if row is None else self._checked(types, row)

    def _checked(self, types: tuple[type, ...], row: tuple[object, ...]) -> tuple[object, ...]:
        if tuple(map(type, row)) != types:
            raise self.damaged("a value is of another type than was written")
        return row

    def _journaled(self, outbox: str) -> Iterator[tuple[int, bytes]]:
        """Yield the (place, line) pairs in an outbox."""
        return self._rows((int, bytes), f"SELECT place, line FROM {outbox} ORDER BY place")

    def damaged(self, why: str) -> StorageError:
        """Return that what is read is not what was written; nothing is written any more, as it would build on that."""
        if self._failure is None:
            self._failure = StorageError(
                f"the journal in {self.path.parent} is damaged: {why}; begin anew with another directory (--data), "
                "as other peers have copies of what was in this one"
            )
        return StorageError(*self._failure.args)

    def _fail(self, error: Exception) -> StorageError:
        """Let nothing be written from now on: SQLite may have ended the transaction, and half of it must not stay."""
        if self._failure is None:
            kind = DiskFullError if is_disk_full(error) else StorageError
            self._failure = kind(f"cannot write to {self.path.parent}: {said(error)}; make room and start again")
            with contextlib.suppress(*UNREADABLE):
                self._db.rollback()
        return type(self._failure)(*self._failure.args)

    def _refuse_if_failed(self) -> None:
        if self._failure is not None:
            raise type(self._failure)(*self._failure.args)

    def _open(self) -> sqlite3.Connection:
        # The job is in it, and with that the credentials of its proxies. What SQLite adds has the same mode.
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
        if version not in (0, SCHEMA_VERSION):
            raise StartError(f"{self.path} was written by another version of kadcrawl (journal {version})")
        db.execute("PRAGMA journal_mode=WAL")
        # Commits are synced by `sync_files`, off the loop's thread; SQLite itself then only syncs around checkpoints.
        db.execute("PRAGMA synchronous=NORMAL")
        db.execute("PRAGMA wal_autocheckpoint=0")
        db.execute("PRAGMA cache_size=-32768")
        if version == 0:
            db.executescript(f"BEGIN; {SCHEMA} COMMIT;")
        db.execute(RECORD_OUTBOX)
        db.execute("BEGIN")


def said(error: Exception) -> str:
    """Return what an error of the journal's files says, as one of memory says nothing."""
    return str(error) or "more memory is needed than there is, as a damaged file may ask"


def is_disk_full(error: Exception) -> bool:
    """Return whether an error of a file or of SQLite means that there is no room left."""
    if isinstance(error, sqlite3.Error):
        # Errors of Python's own, such as a closed connection, have no code.
        return getattr(error, "sqlite_errorcode", 0) == sqlite3.SQLITE_FULL
    return isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT)


def _checkpoint(path: Path) -> None:
    with contextlib.closing(sqlite3.connect(path, timeout=1.0)) as db:
        db.execute("PRAGMA wal_checkpoint(PASSIVE)")
