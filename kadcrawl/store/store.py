"""What a peer knows of the cells it holds, its own and those it backs up for others.

Owns history (every key ever accepted or learned of), frontier (the PENDING ones, with their text), site clocks,
robots.txt rules and what else a peer keeps by name. Whether a cell may be crawled here is not for the store to know.
It keeps a tally of every cell in memory, always equal to what a scan of the tables would give, so that cells are
compared, and a peer starts, without reading what is in them. Called by the crawl and peer rooms on the loop's thread;
reads only single rows and bounded windows, whatever is stored. How writes become durable: journal.py.

A record only moves up: unknown, pending, done, and perhaps pending again in the next round (schema.py), whoever brings
the news; only `forget_cell` takes it away. A store that was begun with a period keeps no record of what is done but a
fingerprint, which expires (`seen_cells`): then a key is unknown again.
"""

from collections.abc import Callable, Iterable
from pathlib import Path

from kadcrawl.errors import StorageError
from kadcrawl.keys import ID_BYTES, SITE_BYTES, Cell, Key, anchor, cell_of, check_cell, id_bytes
from kadcrawl.store.bloom.cell_filters import EncodedFilter, ExpiringFilters
from kadcrawl.store.bloom.expiring_filter import ExpiringFilter, Period
from kadcrawl.store.cell_digest import DIGEST_BYTES, EMPTY, CellDigest, digest_records
from kadcrawl.store.frontier_entry import FrontierEntry
from kadcrawl.store.journal import sync_files
from kadcrawl.store.schema import DONE, PENDING, STATE_MAX, finished, is_pending
from kadcrawl.store.site_table import SiteRecords
from kadcrawl.store.visit import Visit

__all__ = ["DONE", "PENDING", "Store"]

ENTRY_COLUMNS = "depth, seq, key, site, url, hops, tries, due"
ENTRY_TYPES = (int, int, bytes, str, str, int, int, float)

KEYS_MAX = 2**53
"""Of one cell; more than was ever written."""

SITES_COUNTED_MAX = 50_000
"""Sites whose keys are counted in memory: some 10 MB. At the next one the counts are begun anew."""

_BEYOND_SITE = b"\xff" * (ID_BYTES - SITE_BYTES) + b"\0"
"""What follows a site's hash in the least bytes greater than all its keys."""


class Store(SiteRecords):
    """One peer's records. Every method that writes raises StorageError; after that the store can only be closed."""

    def __init__(
        self, directory: Path, commit_spacing_s: float, sync: Callable[[Iterable[int]], None] = sync_files
    ) -> None:
        """Open or make the files in `directory`, repairing what a crash left. Raises StartError.

        `sync` makes the files of these descriptors durable; it is called in the loop's executor.
        """
        super().__init__(directory, commit_spacing_s, sync)
        self.cells: dict[Cell, CellDigest] = {}
        """The tally of every cell that holds anything; to be read only."""
        self.pending = 0
        """PENDING records of all cells."""
        self.on_changed: Callable[[Cell, Key], None] = lambda cell, key: None
        """Called after each change of a record: of its state, its retry state or its depth."""
        self.expiring_filters: ExpiringFilters | None = None
        """The fingerprints of what is done, in place of its keys."""
        self._cell_bits = 0
        try:
            self._seq: int = self._row((int,), "SELECT coalesce(max(seq), 0) FROM frontier")[0]
        except StorageError:
            self.close()
            raise
        self._site_keys: dict[bytes, int] = {}
        """How many records there are of a site, by its hash, once that was asked."""
        self._uncommitted: set[Cell] = set()
        """Cells whose row in the table is older than their tally."""

    def begin(self, cell_bits: int, period: Period | None = None, now: Callable[[], float] | None = None) -> None:
        """Take up the cells journaled by earlier runs, before the first record: the job, and so its cells, is known.

        With a `period` of `now`'s seconds only fingerprints are kept of what is done.
        """
        assert not self._cell_bits, "a store begins once"
        self._cell_bits = cell_bits
        if period is not None:
            assert now is not None, "a period has a clock"
            self.expiring_filters = ExpiringFilters(period, now, self._write, self._rows)
        for cell, keys, pending, digest in self._rows((int, int, int, bytes), "SELECT * FROM cell"):
            if not (0 <= cell < 1 << cell_bits and 0 <= pending <= keys <= KEYS_MAX and len(digest) == DIGEST_BYTES):
                raise self.damaged("a cell cannot hold what it says")
            self.cells[Cell(cell)] = CellDigest(keys, pending, int.from_bytes(digest, "big"))
            self.pending += pending
        self.take_up_visits()
        for cell in list(self.cells):
            self.expire(cell)

    def check(self, cell: int) -> None:
        """Raise NoSuchCellError unless the job has such a cell."""
        check_cell(cell, self._cell_bits)

    def cell_of(self, key: Key) -> Cell:
        """Return the cell a key lies in."""
        assert self._cell_bits, "a store begins before its first record"
        return cell_of(key, self._cell_bits)

    # --- one record ----------------------------------------------------------------------------------------------

    def state(self, key: Key) -> int | None:
        """Return the state of a key (see schema.py), or None for a key never met, or not within the period."""
        row = self._row((int,), "SELECT state FROM history WHERE key=?", (key,))
        if row is None and self._is_seen(key):
            return DONE
        return row[0] if row else None

    def entry(self, key: Key) -> FrontierEntry | None:
        """Return the frontier entry of a PENDING key."""
        row = self._row(ENTRY_TYPES, f"SELECT {ENTRY_COLUMNS} FROM frontier WHERE key=?", (key,))
        return FrontierEntry._make(row) if row else None

    def latest(self, entry: FrontierEntry) -> FrontierEntry:
        """Return the entry as it stands now: its depth may have been shortened."""
        return self.entry(entry.key) or entry

    def accept(
        self,
        key: Key,
        site: str,
        url: str,
        depth: int,
        hops: int,
        tries: int = 0,
        due: float = 0,
        *,
        even_seen: bool = False,
    ) -> FrontierEntry | None:
        """Journal a URL as PENDING and return its entry; None if the key was met before.

        With `even_seen` only if it is known to be PENDING: whoever keeps a copy has what its owner has, whose
        fingerprints may be mistaken about other keys.
        """
        assert len(key) == ID_BYTES, "a key has 20 bytes"
        if not even_seen and self._is_seen(key):
            return None
        if not self._write("INSERT OR IGNORE INTO history VALUES (?, ?)", (key, PENDING)):
            return None
        entry = self._put_into_frontier(key, site, url, depth, hops, tries, due)
        self._changed(key, None, PENDING)
        return entry

    def finish(
        self, entry: FrontierEntry, line: bytes, records: bytes = b"", visit: Visit | None = None, rounds: int = 0
    ) -> bool:
        """Journal the URL as done in this round, with its page line and the lines of its records; False if it was.

        A key forgotten meanwhile is done as well, after so many `rounds` before: the page was fetched, and somebody
        may still have to learn it. `visit` says when it will be fetched again, and what it was like.
        """
        self._write("INSERT INTO outbox VALUES (?, ?)", (self._page_log.stage(line), line))
        if records:
            self._write("INSERT INTO record_outbox VALUES (?, ?)", (self._record_log.stage(records), records))
        state = self.state(entry.key)
        if state is not None and not is_pending(state):
            return False
        if visit is not None:
            self._keep_visit(self.cell_of(entry.key), visit)
        if self.expiring_filters is not None:
            return self.learn_done(entry.key)
        done = DONE + 2 * rounds if state is None else finished(state)
        self._write("INSERT OR REPLACE INTO history VALUES (?, ?)", (entry.key, done))
        self._write("DELETE FROM frontier WHERE key=?", (entry.key,))
        self._changed(entry.key, state, done)
        return True

    def learn_done(self, key: Key) -> bool:
        """Journal that this key is done in its first round, by whomever; False if that was known."""
        assert len(key) == ID_BYTES, "a key has 20 bytes"
        if self.expiring_filters is not None:
            return self._see(self.expiring_filters, key)
        if self._write("UPDATE history SET state=? WHERE key=? AND state=?", (DONE, key, PENDING)):
            self._write("DELETE FROM frontier WHERE key=?", (key,))
            self._changed(key, PENDING, DONE)
            return True
        if self._write("INSERT OR IGNORE INTO history VALUES (?, ?)", (key, DONE)):
            self._changed(key, None, DONE)
            return True
        return False

    # --- the next rounds -----------------------------------------------------------------------------------------

    def begin_round(self, key: Key) -> FrontierEntry | None:
        """Journal a page that is due as pending in its next round, and return its entry; None if it is not to come."""
        state, visit = self.state(key), self.visit(key)
        if state is None or is_pending(state) or visit is None or visit.due is None or state >= STATE_MAX:
            return None
        self._write("UPDATE history SET state=? WHERE key=?", (state + 1, key))
        self._write("UPDATE visit SET due=NULL WHERE key=?", (key,))
        entry = self._put_into_frontier(key, visit.site, visit.url, visit.depth, 0, 0, 0.0)
        self._changed(key, state, state + 1)
        return entry

    def hasten(self, key: Key, due: float) -> bool:
        """Let a page that is done come round at this wall-clock second already; False if it is pending or due sooner.

        Its state stays as it is, so other holders are not told: to them the page is due when it was.
        """
        state = self.state(key)
        if state is None or is_pending(state):
            return False
        return self._write("UPDATE visit SET due=?2 WHERE key=?1 AND (due IS NULL OR due>?2)", (key, due)) > 0

    def learn_visit(self, visit: Visit, state: int, tries: int, due: float) -> FrontierEntry | None:
        """Another holder knows of this visit, and the key in this state: of two states the later one wins.

        Of a pending one `tries` and `due` are its retry state. Return the new entry if it has become pending here.
        """
        key = visit.key
        before = self.state(key)
        if before is not None and before >= state:
            return None
        self._write("INSERT OR REPLACE INTO history VALUES (?, ?)", (key, state))
        self._keep_visit(self.cell_of(key), visit._replace(due=None) if is_pending(state) else visit)
        entry = None
        if is_pending(state):
            if before is not None and is_pending(before):
                self._write("DELETE FROM frontier WHERE key=?", (key,))
            entry = self._put_into_frontier(key, visit.site, visit.url, visit.depth, 0, tries, due)
        else:
            self._write("DELETE FROM frontier WHERE key=?", (key,))
        self._changed(key, before, state)
        return entry

    # --- retries, depths -----------------------------------------------------------------------------------------

    def shorten(self, key: Key, depth: int) -> bool:
        """A URL was met again: keep the smaller depth. Return whether that changed anything of a pending one.

        At the next visit to a page its links are followed again, as more of them may be within the depth.
        """
        if self.has_visits:
            self._write(
                "UPDATE visit SET depth=?2, etag='', last_modified='', digest='' WHERE key=?1 AND depth>?2",
                (key, depth),
            )
        return self._update(key, "UPDATE frontier SET depth=?2 WHERE key=?1 AND depth>?2", depth)

    def postpone(self, entry: FrontierEntry) -> None:
        """Journal the entry's new `tries` and `due`, unless it is no longer PENDING."""
        self._update(entry.key, "UPDATE frontier SET tries=?2, due=?3 WHERE key=?1", entry.tries, entry.due)

    def merge_tries(self, key: Key, tries: int, due: float) -> bool:
        """Another holder knows this retry state of a PENDING URL: the one with more tries wins.

        Return whether that changed anything.
        """
        return self._update(key, "UPDATE frontier SET tries=?2, due=?3 WHERE key=?1 AND tries<?2", tries, due)

    def put_off(self, key: Key, due: float) -> None:
        """Leave a PENDING URL for somebody else to finish until this wall-clock second; others are told nothing."""
        self._write("UPDATE frontier SET due=?2 WHERE key=?1 AND due<?2", (key, due))

    # --- cells ---------------------------------------------------------------------------------------------------

    def records(self, cell: Cell, first: bytes, count: int) -> list[tuple[Key, int]]:
        """Return up to `count` (key, state) of a cell with key >= `first`, in key order; b"" begins with the cell.

        What follows a `key` begins with `key + b"\\0"`.
        """
        begin, end = self._bounds(cell)
        rows = self._rows(
            (bytes, int),
            "SELECT key, state FROM history WHERE key BETWEEN ? AND ? ORDER BY key LIMIT ?",
            (max(begin, first), end, count),
        )
        return list(rows)

    def digest_between(self, cell: Cell, first: bytes, before: bytes | None) -> CellDigest:
        """Return the tally of a cell's records with `first` <= key < `before`; b"" and None mean the cell's ends.

        Reads them one by one, some half a million in a second.
        """
        begin, end = self._bounds(cell)
        return digest_records(
            self._rows(
                (bytes, int),
                "SELECT key, state FROM history WHERE key>=? AND key<?",
                (max(begin, first), end + b"\0" if before is None else min(end + b"\0", before)),
            )
        )

    def sites(self, cell: Cell, after: bytes, count: int) -> list[tuple[bytes, str]]:
        """Return up to `count` sites of a cell with PENDING URLs, in order of their hash.

        Each is a (hash, site) whose 12-byte hash is above `after`: b"" begins with the cell, the last hash returned
        goes on from there.
        """
        begin, end = self._bounds(cell)
        if after:
            begin = max(begin, after + _BEYOND_SITE)
        found: list[tuple[bytes, str]] = []
        while len(found) < count:
            select = "SELECT key, site FROM frontier WHERE key BETWEEN ? AND ? ORDER BY key LIMIT 1"
            row = self._row((bytes, str), select, (begin, end))
            if row is None:
                break
            site_hash = row[0][:SITE_BYTES]
            found.append((site_hash, row[1]))
            begin = site_hash + _BEYOND_SITE
        return found

    def site_keys(self, site_hash: bytes) -> int:
        """Return how many URLs of a site are known, given its 12-byte hash.

        It is the records themselves that are counted, so whoever holds the site's cell knows the same. They are read
        when first asked for, some 20 million in a second, and the count follows every change from then on.
        """
        known = self._site_keys.get(site_hash)
        if known is None:
            if len(self._site_keys) >= SITES_COUNTED_MAX:
                self._site_keys.clear()
            select = "SELECT count(*) FROM history WHERE key>=? AND key<?"
            known = self._site_keys[site_hash] = self._row((int,), select, (site_hash, site_hash + _BEYOND_SITE))[0]
        return known

    def window(self, site: str, count: int) -> list[FrontierEntry]:
        """Return the first `count` PENDING entries of a site, breadth first."""
        select = f"SELECT {ENTRY_COLUMNS} FROM frontier WHERE site=? ORDER BY depth, seq LIMIT ?"
        return [FrontierEntry._make(row) for row in self._rows(ENTRY_TYPES, select, (site, count))]

    def forget_cell(self, cell: Cell, count: int) -> int:
        """Delete up to `count` records of a cell, which others hold now; return how many are left."""
        self._refuse_if_failed()
        gone = self.records(cell, b"", count)
        if self.expiring_filters is not None and len(gone) < count:
            self._change_filters(cell, self.expiring_filters.forget)
        if gone:
            for table in self._tables:
                self._write(f"DELETE FROM {table} WHERE key BETWEEN ? AND ?", (gone[0][0], gone[-1][0]))
            self._site_keys.clear()
            self._keep(cell, self.cells.get(cell, EMPTY).minus(digest_records(gone)))
        return self.cells.get(cell, EMPTY).keys

    def forget(self, key: Key) -> None:
        """Delete one record, which its owner has."""
        assert self.expiring_filters is None, "no fingerprint can be taken out again"
        state = self.state(key)
        if state is not None:
            cell = self.cell_of(key)
            for table in self._tables:
                self._write(f"DELETE FROM {table} WHERE key=?", (key,))
            self._site_keys.clear()
            self._keep(cell, self.cells.get(cell, EMPTY).minus(digest_records([(key, state)])))

    # --- fingerprints --------------------------------------------------------------------------------------------

    def expire(self, cell: Cell) -> None:
        """Forget what of a cell was done longer ago than the period."""
        if self.expiring_filters is not None and cell in self.expiring_filters:
            self._change_filters(cell, self.expiring_filters.expire)

    def join_epoch_filters(
        self, cell: Cell, epoch_filters: Iterable[EncodedFilter], *, adopt: bool
    ) -> list[ExpiringFilter]:
        """Take up what another holder of a cell knows as done (`ExpiringFilters.join`); return what of it was news.

        What is PENDING here may be in it and is still to be learned of.
        """
        seen = self.expiring_filters
        news: list[ExpiringFilter] = []
        if seen is not None:
            self._change_filters(cell, lambda cell: news.extend(seen.join(cell, epoch_filters, adopt=adopt)))
        return news

    def _is_seen(self, key: Key) -> bool:
        return self.expiring_filters is not None and self.expiring_filters.has(self.cell_of(key), key)

    def _see(self, filters: ExpiringFilters, key: Key) -> bool:
        """Journal that a key is done, as a fingerprint; False if that was known."""
        cell = self.cell_of(key)
        was_seen = filters.has(cell, key)
        was_pending = self._write("DELETE FROM history WHERE key=?", (key,)) > 0
        if was_seen and not was_pending:
            return False
        if was_pending:
            self._write("DELETE FROM frontier WHERE key=?", (key,))
        if was_seen:
            # A slice that has come from elsewhere speaks of it already.
            self._keep(cell, self.cells.get(cell, EMPTY).minus(digest_records([(key, PENDING)])))
            self.on_changed(cell, key)
        else:
            filters.add(cell, key)
            self._changed(key, PENDING if was_pending else None, DONE)
        return True

    def _change_filters(self, cell: Cell, change: Callable[[Cell], object]) -> None:
        """Let the tally follow what is done to the slices of a cell."""
        assert self.expiring_filters is not None, "there are slices"
        before = self.expiring_filters.digest(cell)
        change(cell)
        after = self.expiring_filters.digest(cell)
        tally = self.cells.get(cell, EMPTY)
        if before != after:
            keys = tally.keys - before.keys + after.keys
            self._keep(cell, CellDigest(keys, tally.pending, tally.digest ^ before.digest ^ after.digest))

    # --- changes -------------------------------------------------------------------------------------------------

    @property
    def _tables(self) -> tuple[str, ...]:
        """Those with records by key."""
        return ("frontier", "history", "visit") if self.has_visits else ("frontier", "history")

    def _put_into_frontier(
        self, key: Key, site: str, url: str, depth: int, hops: int, tries: int, due: float
    ) -> FrontierEntry:
        self._seq += 1
        entry = FrontierEntry(depth, self._seq, key, site, url, hops, tries, due)
        self._write(f"INSERT INTO frontier({ENTRY_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?)", entry)
        return entry

    def _changed(self, key: Key, before: int | None, after: int) -> None:
        """A record's state changed: let the tally follow, and tell."""
        cell = self.cell_of(key)
        self._keep(cell, self.cells.get(cell, EMPTY).changed(key, before, after))
        if before is None and (site_hash := key[:SITE_BYTES]) in self._site_keys:
            self._site_keys[site_hash] += 1
        self.on_changed(cell, key)

    def _update(self, key: Key, statement: str, *values: float) -> bool:
        """Change a PENDING record in anything but its state, and tell if it did change."""
        changed = self._write(statement, (key, *values)) > 0
        if changed:
            self.on_changed(self.cell_of(key), key)
        return changed

    def _keep(self, cell: Cell, digest: CellDigest) -> None:
        self.pending += digest.pending - self.cells.get(cell, EMPTY).pending
        if digest.keys:
            self.cells[cell] = digest
        else:
            self.cells.pop(cell, None)
        self._uncommitted.add(cell)

    def _before_commit(self) -> None:
        """Journal the tallies that changed, in the transaction that holds the records they speak of."""
        rows = [
            (cell, tally.keys, tally.pending, tally.digest.to_bytes(DIGEST_BYTES, "big"))
            for cell, tally in ((cell, self.cells.get(cell, EMPTY)) for cell in sorted(self._uncommitted))
        ]
        self._db.executemany("INSERT OR REPLACE INTO cell VALUES (?, ?, ?, ?)", rows)
        self._db.executemany("DELETE FROM cell WHERE cell=?", [(cell,) for cell, keys, *_ in rows if not keys])
        self._uncommitted.clear()
        if self.expiring_filters is not None:
            self.expiring_filters.before_commit()

    def _bounds(self, cell: Cell) -> tuple[bytes, bytes]:
        """Return the first and the last key of a cell."""
        bits = self._cell_bits
        return id_bytes(anchor(cell, bits)), id_bytes(anchor(Cell(cell + 1), bits) - 1)
