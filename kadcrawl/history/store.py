"""The journal: one SQLite file per peer, and the group commit that makes promises true.

Owns identity, job, history (every key ever accepted), frontier (the PENDING ones, with their text), site clocks,
robots.txt rules and the outbox of page lines. Writes join the open transaction at once and become durable together,
at most `commit_interval_s` later (`durable`). A crash forgets what was written since the last commit, which nobody
was promised, and nothing else; so does a disk that fails, after which every write is refused. Called by the crawl and
peer rooms on the loop's thread; reads only single rows and bounded windows, whatever is stored.

Files and database agree after a crash because the database leads: WARC bytes beyond the journaled length are cut off
(crawl/outputs.py), page lines whose commit is on disk are written again (page_log.py).
"""

import asyncio
import contextlib
import os
import sqlite3
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from kadcrawl.errors import StartError, StorageError
from kadcrawl.history.entry import Entry
from kadcrawl.history.page_log import PageLog
from kadcrawl.keys import ID_BYTES, Key

PENDING, DONE = 1, 2

SCHEMA_VERSION = 1
CHECKPOINT_BYTES = 16 * 1024 * 1024
"""WAL size at which its pages are moved into the database, off the loop's thread."""

SCHEMA = f"""
CREATE TABLE meta(name TEXT PRIMARY KEY, value BLOB) WITHOUT ROWID;
CREATE TABLE history(key BLOB PRIMARY KEY, state INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE frontier(
    seq INTEGER PRIMARY KEY, key BLOB NOT NULL, site TEXT NOT NULL, url TEXT NOT NULL,
    depth INTEGER NOT NULL, hops INTEGER NOT NULL, tries INTEGER NOT NULL, due REAL NOT NULL);
CREATE INDEX frontier_by_site ON frontier(site, depth, seq);
CREATE UNIQUE INDEX frontier_by_key ON frontier(key);
CREATE TABLE site(site TEXT PRIMARY KEY, not_before REAL NOT NULL, delay_s REAL NOT NULL) WITHOUT ROWID;
CREATE TABLE robots(origin TEXT PRIMARY KEY, rules BLOB NOT NULL, fetched_at REAL NOT NULL) WITHOUT ROWID;
CREATE TABLE outbox(place INTEGER PRIMARY KEY, line BLOB NOT NULL);
PRAGMA user_version = {SCHEMA_VERSION};
"""

ENTRY_COLUMNS = "depth, seq, key, site, url, hops, tries, due"


def nothing_to_flush() -> Iterable[int]:
    return ()


def sync_files(fds: Iterable[int]) -> None:
    """Make the contents of these files durable. Raises OSError."""
    for fd in fds:
        os.fdatasync(fd)


class Store:
    """One peer's SQLite file, its page log, and the commit that ties them together."""

    def __init__(
        self, directory: Path, commit_interval_s: float, sync: Callable[[Iterable[int]], None] = sync_files
    ) -> None:
        """Open or make the files in `directory`, repairing what a crash left. Raises StartError.

        `sync` makes the files of these descriptors durable; it is called in the loop's executor.
        """
        self._sync = sync
        self.path = directory / "peer.sqlite"
        self.flush: Callable[[], Iterable[int]] = nothing_to_flush
        """Called before each commit: hand other files to the system, journal their lengths, return their fds."""
        self._commit_interval_s = commit_interval_s
        try:
            self._db = self._open()
            self._page_log = PageLog(
                directory / "pages.jsonl", self._db.execute("SELECT place, line FROM outbox ORDER BY place")
            )
            self._wal_fd = os.open(f"{self.path}-wal", os.O_RDONLY)
        except (sqlite3.Error, OSError) as error:
            raise StartError(f"cannot open the journal {self.path}: {error}") from None
        self.pending: int = self._db.execute("SELECT count(*) FROM frontier").fetchone()[0]
        self._seq: int = self._db.execute("SELECT coalesce(max(seq), 0) FROM frontier").fetchone()[0]
        self._synced_place = self._page_log.length
        self._waiting: list[asyncio.Future[None]] = []
        self._dirty = asyncio.Event()
        self._committing = asyncio.Lock()
        self._checkpointed = False
        self._failed: str | None = None
        """Why nothing can be written any more."""

    # --- history and frontier ------------------------------------------------------------------------------------

    def state(self, key: Key) -> int | None:
        """Return PENDING, DONE, or None for a key never met."""
        row = self._db.execute("SELECT state FROM history WHERE key=?", (key,)).fetchone()
        return row[0] if row else None

    def accept(
        self, key: Key, site: str, url: str, depth: int, hops: int, tries: int = 0, due: float = 0
    ) -> Entry | None:
        """Journal a URL as PENDING and return its entry; None if the key was met before."""
        added = self._write("INSERT OR IGNORE INTO history VALUES (?, ?)", (key, PENDING)).rowcount
        if not added:
            return None
        self._seq += 1
        entry = Entry(depth, self._seq, key, site, url, hops, tries, due)
        self._write(f"INSERT INTO frontier({ENTRY_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?)", entry)
        self.pending += 1
        return entry

    def shorten(self, key: Key, depth: int) -> None:
        """A PENDING URL was met again: keep the smaller depth."""
        self._write("UPDATE frontier SET depth=? WHERE key=? AND depth>?", (depth, key, depth))

    def postpone(self, entry: Entry) -> None:
        """Journal the entry's new `tries` and `due`."""
        self._write("UPDATE frontier SET tries=?, due=? WHERE seq=?", (entry.tries, entry.due, entry.seq))

    def finish(self, entry: Entry, line: bytes) -> bool:
        """Journal the URL as DONE together with its page line; False if it was DONE before."""
        first = self._write("UPDATE history SET state=? WHERE key=? AND state=?", (DONE, entry.key, PENDING)).rowcount
        self.pending -= self._write("DELETE FROM frontier WHERE seq=?", (entry.seq,)).rowcount
        self._write("INSERT INTO outbox VALUES (?, ?)", (self._page_log.stage(line), line))
        return first == 1

    def window(self, site: str, count: int) -> list[Entry]:
        """Return the first `count` PENDING entries of a site, breadth first."""
        rows = self._db.execute(
            f"SELECT {ENTRY_COLUMNS} FROM frontier WHERE site=? ORDER BY depth, seq LIMIT ?", (site, count)
        )
        return [Entry._make(row) for row in rows]

    def next_site(self, after: str) -> str | None:
        """Return the first site in alphabetical order beyond `after` that has PENDING URLs."""
        row = self._db.execute("SELECT site FROM frontier WHERE site>? ORDER BY site LIMIT 1", (after,)).fetchone()
        return row[0] if row else None

    # --- ranges that move ----------------------------------------------------------------------------------------

    def keys_from(self, first: bytes, before: bytes | None, count: int) -> list[tuple[Key, int]]:
        """Return up to `count` (key, state) with first <= key < before, in key order; `before` None for no end."""
        rows = self._db.execute(
            "SELECT key, state FROM history WHERE key>=?1 AND (?2 IS NULL OR key<?2) ORDER BY key LIMIT ?3",
            (first, before, count),
        )
        return rows.fetchall()

    def count_between(self, first: bytes, before: bytes | None) -> int:
        """Return how many keys are stored with first <= key < before."""
        row = self._db.execute(
            "SELECT count(*) FROM history WHERE key>=?1 AND (?2 IS NULL OR key<?2)", (first, before)
        ).fetchone()
        return int(row[0])

    def sites_between(self, first: bytes, before: bytes | None) -> list[str]:
        """Return the sites with PENDING URLs whose key is in the range, in alphabetical order."""
        rows = self._db.execute(
            "SELECT DISTINCT site FROM frontier WHERE key>=?1 AND (?2 IS NULL OR key<?2) ORDER BY site",
            (first, before),
        )
        return [row[0] for row in rows]

    def entry(self, key: Key) -> Entry | None:
        """Return the frontier entry of a PENDING key."""
        row = self._db.execute(f"SELECT {ENTRY_COLUMNS} FROM frontier WHERE key=?", (key,)).fetchone()
        return Entry._make(row) if row else None

    def latest(self, entry: Entry) -> Entry:
        """Return the entry as it stands now: its depth may have been shortened."""
        return self.entry(entry.key) or entry

    def learn_done(self, key: Key) -> None:
        """Journal that this key was finished by somebody else."""
        assert len(key) == ID_BYTES, "a key has 20 bytes"
        self._write("INSERT OR REPLACE INTO history VALUES (?, ?)", (key, DONE))
        self.pending -= self._write("DELETE FROM frontier WHERE key=?", (key,)).rowcount

    def forget(self, entry: Entry) -> None:
        """Drop a PENDING entry that its new owner has acknowledged."""
        self._write("DELETE FROM history WHERE key=? AND state=?", (entry.key, PENDING))
        self.pending -= self._write("DELETE FROM frontier WHERE seq=?", (entry.seq,)).rowcount

    # --- sites, robots, meta -------------------------------------------------------------------------------------

    def site(self, site: str) -> tuple[float, float] | None:
        """Return the journaled (wall-clock second before which it must not be asked, delay in seconds) of a site."""
        row = self._db.execute("SELECT not_before, delay_s FROM site WHERE site=?", (site,)).fetchone()
        return (row[0], row[1]) if row else None

    def set_site(self, site: str, not_before: float, delay_s: float) -> None:
        self._write("INSERT OR REPLACE INTO site VALUES (?, ?, ?)", (site, not_before, delay_s))

    def robots(self, origin: str) -> tuple[bytes, float] | None:
        """Return the journaled (rules, wall-clock second of the fetch) of an origin."""
        row = self._db.execute("SELECT rules, fetched_at FROM robots WHERE origin=?", (origin,)).fetchone()
        return (row[0], row[1]) if row else None

    def set_robots(self, origin: str, rules: bytes, fetched_at: float) -> None:
        self._write("INSERT OR REPLACE INTO robots VALUES (?, ?, ?)", (origin, rules, fetched_at))

    def meta(self, name: str) -> bytes | None:
        row = self._db.execute("SELECT value FROM meta WHERE name=?", (name,)).fetchone()
        return row[0] if row else None

    def set_meta(self, name: str, value: bytes) -> None:
        self._write("INSERT OR REPLACE INTO meta VALUES (?, ?)", (name, value))

    # --- commits -------------------------------------------------------------------------------------------------

    def durable(self) -> asyncio.Future[None]:
        """Return a future that is done when all written so far is on disk. Raises StorageError."""
        self._refuse_if_failed()
        future = asyncio.get_running_loop().create_future()
        self._waiting.append(future)
        self._dirty.set()
        return future

    async def run(self) -> None:
        """Commit, as long as there is something to commit, every `commit_interval_s`; until cancelled."""
        while True:
            await self._dirty.wait()
            await asyncio.sleep(self._commit_interval_s)
            await self.commit()

    async def commit(self) -> None:
        """Make everything written so far durable, then release those who wait for it. Raises StorageError."""
        async with self._committing:
            waiting, self._waiting = self._waiting, []
            try:
                self._refuse_if_failed()
                await self._commit()
            except (OSError, sqlite3.Error, StorageError) as error:
                failure = self._fail(error)
                for future in waiting:
                    if not future.done():
                        future.set_exception(failure)
                        future.exception()  # Retrieved here: the one who waits may be gone already.
                raise failure from error
            for future in waiting:
                if not future.done():
                    future.set_result(None)

    async def _commit(self) -> None:
        fds = [*self.flush(), self._page_log.fd, self._wal_fd]
        self._dirty.clear()
        self._db.execute("DELETE FROM outbox WHERE place<?", (self._synced_place,))
        lines, appended = self._page_log.staged(), self._page_log.length
        self._db.execute("COMMIT")
        if self._checkpointed:
            # Only the few frames since the bulk was moved are left, so this is short, and the WAL starts anew.
            self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            self._checkpointed = False
        self._db.execute("BEGIN")
        loop = asyncio.get_running_loop()
        await loop.run_in_executor(None, self._sync, fds)
        self._synced_place = appended
        self._page_log.append(lines)
        if os.fstat(self._wal_fd).st_size > CHECKPOINT_BYTES:
            await loop.run_in_executor(None, _checkpoint, self.path)
            self._checkpointed = True

    def _write(self, statement: str, values: Sequence[object]) -> sqlite3.Cursor:
        """Write within the open transaction. Raises StorageError."""
        self._refuse_if_failed()
        try:
            cursor = self._db.execute(statement, values)
        except sqlite3.Error as error:
            raise self._fail(error) from error
        if cursor.rowcount:
            self._dirty.set()
        return cursor

    def _fail(self, error: Exception) -> StorageError:
        """Let nothing be written from now on: SQLite may have ended the transaction, and half of it must not stay."""
        if self._failed is None:
            self._failed = f"cannot write to {self.path.parent}: {error}; make room and start again"
            with contextlib.suppress(sqlite3.Error):
                self._db.rollback()
        return StorageError(self._failed)

    def _refuse_if_failed(self) -> None:
        if self._failed is not None:
            raise StorageError(self._failed)

    def close(self) -> None:
        """Close the files; whatever was not committed before is forgotten, as in a crash."""
        self._db.close()
        self._page_log.close()
        os.close(self._wal_fd)

    def _open(self) -> sqlite3.Connection:
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
        db.execute("BEGIN")


def _checkpoint(path: Path) -> None:
    with contextlib.closing(sqlite3.connect(path, timeout=1.0)) as db:
        db.execute("PRAGMA wal_checkpoint(PASSIVE)")
