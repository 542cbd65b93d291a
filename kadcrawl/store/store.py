"""The records of the cells that a peer holds: its own cells, and cells that it backs up for other peers.

`Store` owns the history (the state of every key ever accepted or learned of) and the frontier (the text of the PENDING
keys). Other facts are in tables beside it: `store.sites`, `store.visits`, `store.reach`, `store.meta`. `store.scan`
reads the records of a cell. The store does not know which cells may be crawled here. It keeps a digest of every cell
in memory (cell_digest_table.py). Writes become durable through `store.journal` (journal.py). Other rooms call the store
on the loop's thread. It reads only single rows and bounded windows, however much is stored.

The state of a record only grows, whichever peer reports it: unknown, pending, done, and perhaps pending again in the
next round (schema.py). Only `forget_cell` and `forget` remove records. A store that began with a period keeps only a
fingerprint of a done key. The fingerprint expires (bloom/), and then the key is unknown again.
"""

from collections.abc import Callable, Iterable
from math import inf
from pathlib import Path

from kadcrawl.errors import StorageError
from kadcrawl.keys import ID_BYTES, SITE_BYTES, Cell, Key, cell_of, check_cell
from kadcrawl.settings.limits import Limits
from kadcrawl.store.bloom.cell_filters import EncodedFilter, ExpiringFilters
from kadcrawl.store.bloom.expiring_filter import ExpiringFilter, Period
from kadcrawl.store.bloom.fingerprints import Fingerprints
from kadcrawl.store.cell_digest import digest_records
from kadcrawl.store.cell_digest_table import CellDigestTable
from kadcrawl.store.cell_scan import CellScan
from kadcrawl.store.events import StoreEvents
from kadcrawl.store.frontier_entry import FrontierEntry
from kadcrawl.store.frontier_table import ACCEPT, SEQ_MAX, FrontierTable
from kadcrawl.store.journal import USUAL_LIMITS, Journal, sync_files
from kadcrawl.store.meta_table import MetaTable, SavedTime
from kadcrawl.store.proxy_health_table import ProxyHealthTable
from kadcrawl.store.reach_table import ReachTable
from kadcrawl.store.schema import DONE, PENDING, STATE_MAX, finished, is_pending, round_of
from kadcrawl.store.site_key_counts import SiteKeyCounts
from kadcrawl.store.site_table import SiteTable
from kadcrawl.store.visit import Visit
from kadcrawl.store.visit_table import VisitTable

__all__ = ["DONE", "PENDING", "Store"]


class Store:
    """The records of one peer. After a write has raised StorageError, the store can only be closed."""

    def __init__(
        self,
        directory: Path,
        commit_spacing_s: float,
        sync: Callable[[Iterable[int]], None] = sync_files,
        limits: Limits = USUAL_LIMITS,
        page_bytes: int | None = None,
    ) -> None:
        """Open or make the files in `directory` as `Journal` does, and repair damage of a crash. Raises StartError."""
        self.journal = Journal(directory, commit_spacing_s, sync, limits, page_bytes)
        self._filters_bytes_max = limits.filters_bytes_max
        self.events = StoreEvents()
        self.meta = MetaTable(self.journal)
        self.saved_time = SavedTime(self.journal, self.meta)
        self.reach = ReachTable(self.journal, self.meta)
        self.sites = SiteTable(self.journal, self.events)
        self.visits = VisitTable(self.journal)
        self.proxy_health = ProxyHealthTable(self.journal)
        self.expiring_filters: ExpiringFilters | None = None
        """The fingerprints of done keys, if the store keeps no done keys."""
        self._fingerprints: Fingerprints | None = None
        self._cell_bits = 0
        self._digests = CellDigestTable(self.journal)
        self.cells = self._digests.cells
        """The digest of every cell with records. Read only."""
        self.scan = CellScan(self.journal)
        self.site_keys = SiteKeyCounts(self.journal)
        try:
            self.frontier = FrontierTable(self.journal, self.meta)
        except StorageError:
            self.close()
            raise
        self._write = self.journal.write  # Bound once, because each page needs dozens of these calls.
        self._row = self.journal.row

    def begin(self, cell_bits: int, period: Period | None = None, now: Callable[[], float] | None = None) -> None:
        """Load the cells of earlier runs, once the job and so `cell_bits` is known, before the first record.

        With a `period`, in seconds of `now`, the store keeps only fingerprints of done keys.
        """
        assert not self._cell_bits, "a store begins once"
        self._cell_bits = cell_bits
        if period is not None:
            assert now is not None, "a period has a clock"
            journal = self.journal
            self.expiring_filters = ExpiringFilters(period, now, journal.write, journal.rows, self._filters_bytes_max)
            self._fingerprints = Fingerprints(self.expiring_filters, self.journal, self._digests)
        self.scan.begin(cell_bits)
        self._digests.load(cell_bits)
        self.visits.load()
        for cell in list(self.cells):
            self.expire(cell)

    def close(self) -> None:
        """Close the files, and lose all uncommitted writes as a crash does."""
        self.journal.close()

    @property
    def keeps_keys(self) -> bool:
        """True if the store keeps the keys of done pages, so that it can forget them."""
        return self.expiring_filters is None

    @property
    def pending(self) -> int:
        """Number of PENDING records in all cells."""
        return self._digests.pending

    def check(self, cell: int) -> None:
        """Raise NoSuchCellError unless the job has such a cell."""
        check_cell(cell, self._cell_bits)

    def cell_of(self, key: Key) -> Cell:
        """Return the cell of a key."""
        assert self._cell_bits, "a store begins before its first record"
        return cell_of(key, self._cell_bits)

    # --- one record ----------------------------------------------------------------------------------------------

    def state(self, key: Key) -> int | None:
        """Return the state of a key (see schema.py), or None for a key that is unknown or has expired."""
        row = self._row((int,), "SELECT state FROM history WHERE key=?", (key,))
        if row is None and self._has_fingerprint(key):
            return DONE
        return row[0] if row else None

    def rounds(self, key: Key) -> int:
        """Return the number of rounds before the round of a key, 0 for an unknown key."""
        return round_of(self.state(key) or PENDING)

    def last_visit(self, key: Key) -> Visit | None:
        """Return the last visit to a page, or None."""
        return self.visits.get(key)

    def entry(self, key: Key) -> FrontierEntry | None:
        """Return the frontier entry of a PENDING key."""
        return self.frontier.get(key)

    def latest(self, entry: FrontierEntry) -> FrontierEntry:
        """Return the stored version of an entry, whose depth may be smaller."""
        return self.frontier.get(entry.key) or entry

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
        trail: bytes = b"",
        drop_order: int | None = None,
    ) -> FrontierEntry | None:
        """Journal a URL as PENDING and return its entry, or None for a known key.

        `even_seen` ignores the fingerprints, which may be wrong about the key. A backup uses it, because it keeps the
        records of the owner.
        """
        assert len(key) == ID_BYTES, "a key has 20 bytes"
        if not even_seen and self._has_fingerprint(key):
            return None
        entry = self.frontier.new_entry(key, site, url, depth, hops, tries, due, trail, drop_order)
        if not self._write(ACCEPT, (key, PENDING, depth, entry.seq)):
            return None
        self.frontier.insert(entry)
        self._changed(key, None, PENDING)
        return entry

    def finish(
        self, entry: FrontierEntry, line: bytes, records: bytes = b"", visit: Visit | None = None, rounds: int = 0
    ) -> bool:
        """Journal a URL as done in this round, with its page line and record lines.

        A key that was forgotten meanwhile becomes done too, after `rounds` earlier rounds, because the page was fetched
        and other peers may still have to learn so. `visit` describes a page that may be fetched again. Returns False if
        the URL was done before.
        """
        self._write_lines(line, records)
        return self.finish_elsewhere(entry.key, visit, rounds, entry)

    def finish_for_owner(self, key: Key, line: bytes, records: bytes) -> bool:
        """Journal the lines of a page, and leave its fingerprint to the owner of its cell.

        Returns False if the URL is known as done here.
        """
        self._write_lines(line, records)
        return not self._has_fingerprint(key)

    def finish_elsewhere(
        self, key: Key, visit: Visit | None, rounds: int = 0, known: FrontierEntry | None = None
    ) -> bool:
        """Journal a URL as done in this round, as `finish` does, without lines: another peer has written them.

        `known` is its entry, if the caller has it.
        """
        if self.expiring_filters is not None:
            state = self.state(key)
            return (state is None or is_pending(state)) and self.learn_done(key)
        if known is not None and visit is None and self.frontier.finish(known):
            for listener in self.events.page_done:
                listener(known)
            self._changed(key, PENDING, DONE)
            return True
        state, place = self.frontier.place(key)
        if state is not None and not is_pending(state):
            return False
        if visit is not None:
            self.visits.put(self.cell_of(key), visit)
        done = DONE + 2 * rounds if state is None else finished(state)
        if state is not None:
            is_plain = done == DONE and visit is None  # The record has nothing but the key.
            self.frontier.leave(key, place, self.events.page_done if is_plain else ())
        self._write("INSERT OR REPLACE INTO history VALUES (?, ?, NULL, NULL)", (key, done))
        self._changed(key, state, done)
        return True

    def learn_done(self, key: Key) -> bool:
        """Journal that a key is done in its first round, here or elsewhere. Return False if that was known."""
        assert len(key) == ID_BYTES, "a key has 20 bytes"
        if self.expiring_filters is not None:
            return self._add_fingerprint(self.expiring_filters, key)
        state, place = self.frontier.place(key)
        if state == PENDING:
            self.frontier.leave(key, place, self.events.page_done)
        elif state is not None:
            return False
        self._write("INSERT OR REPLACE INTO history VALUES (?, ?, NULL, NULL)", (key, DONE))
        self._changed(key, state, DONE)
        return True

    def announce(self, key: Key) -> None:
        """Report a record as changed to the listeners, although it has not changed."""
        cell = self.cell_of(key)
        for listener in self.events.record_changed:
            listener(cell, key)

    # --- the next rounds -----------------------------------------------------------------------------------------

    def begin_round(self, key: Key) -> FrontierEntry | None:
        """Journal a due page as pending in its next round.

        Returns its entry, or None if no round is to come.
        """
        visit = self.visits.get(key)
        return None if visit is None or visit.due is None else self._begin_round(visit, visit.order)

    def retry(self, key: Key, order: int) -> FrontierEntry | None:
        """Journal a failed page as pending in its next round, by an order with this stamp.

        Returns its entry, or None if the page did not fail.
        """
        visit = self.visits.get(key)
        return None if visit is None or not visit.failed else self._begin_round(visit, order)

    def fetch_again(self, visit: Visit, order: int) -> FrontierEntry | None:
        """Journal a done page as pending in its next round, by an order with this stamp, as `retry` does.

        `visit` describes the page if no visit to it is kept.
        """
        assert self.expiring_filters is None, "a fingerprint has no next round"
        known = self.visits.get(visit.key)
        if known is None:
            state = self.state(visit.key)
            if state is None or is_pending(state):
                return None
            self.visits.put(self.cell_of(visit.key), visit)
        return self._begin_round(known or visit, order, (known or visit).order)

    def _begin_round(self, visit: Visit, order: int, known_order: int = -1) -> FrontierEntry | None:
        key, state = visit.key, self.state(visit.key)
        if state is None or is_pending(state) or state >= STATE_MAX or order <= known_order:
            return None
        entry = self.frontier.new_entry(key, visit.site, visit.url, visit.depth, 0, 0, 0.0)
        self._put_pending(entry, state + 1)
        self.visits.begin_round(key, order)
        self._changed(key, state, state + 1)
        return entry

    def hasten(self, key: Key, due: float) -> bool:
        """Make a done page due at this wall-clock second. Return False if it is pending, or due sooner already.

        The state stays the same, so other holders do not learn of it. For them the page stays due at the old time.
        """
        state = self.state(key)
        if state is None or is_pending(state):
            return False
        return self.visits.hasten(key, due)

    def learn_visit(
        self, visit: Visit, state: int, tries: int, due: float, drop_order: int = 0
    ) -> FrontierEntry | None:
        """Journal a visit and its key's state from another holder, if the state is later than here.

        `tries` and `due` are the retry state of a pending key. Returns the new entry if the key has become pending.
        """
        key = visit.key
        before = self.state(key)
        if before is not None and before >= state:
            return None
        if before is not None and is_pending(before):
            self.frontier.delete(key)
        self.visits.put(self.cell_of(key), visit._replace(due=None, failed="") if is_pending(state) else visit)
        entry = None
        if is_pending(state):
            entry = self.frontier.new_entry(key, visit.site, visit.url, visit.depth, 0, tries, due, b"", drop_order)
            self._put_pending(entry, state)
        else:
            self._write("INSERT OR REPLACE INTO history VALUES (?, ?, NULL, NULL)", (key, state))
        self._changed(key, before, state)
        return entry

    # --- retries, depths -----------------------------------------------------------------------------------------

    def shorten(self, key: Key, depth: int) -> bool:
        """Keep the smaller depth of a URL that was met again. Return whether a pending entry has changed.

        The next visit to a done page follows its links again, because more of them may be within the depth.
        """
        if self.visits.used:
            self.visits.shorten(key, depth)
        if not self.frontier.shorten(key, depth):
            return False
        self.announce(key)
        for listener in self.events.depth_shortened:
            listener(key, depth)
        return True

    def postpone(self, entry: FrontierEntry) -> None:
        """Journal the entry's new `tries` and `due`, unless it is no longer PENDING."""
        if self.frontier.set_tries(entry.key, entry.tries, entry.due):
            self.announce(entry.key)

    def merge_tries(self, key: Key, tries: int, due: float) -> bool:
        """Journal the retry state of a PENDING URL from another holder, if it has more tries.

        Returns whether the entry has changed.
        """
        changed = self.frontier.set_tries(key, tries, due, if_more=True)
        if changed:
            self.announce(key)
        return changed

    def put_off(self, key: Key, due: float) -> None:
        """Leave a PENDING URL to another peer until this wall-clock second, without an event for the listeners."""
        self.frontier.put_off(key, due)

    # --- cells ---------------------------------------------------------------------------------------------------

    def pending_sites(self, cell: Cell, after: bytes, count: int) -> list[tuple[bytes, str]]:
        """Return up to `count` (hash, site) of a cell's sites with PENDING URLs, in order of their 12-byte hash.

        All hashes are above `after`: `b""` begins with the cell, the last returned hash continues after it.
        """
        begin, end = (bound[:SITE_BYTES] for bound in self.scan.bounds(cell))
        return self.frontier.sites(max(begin, after + b"\0") if after else begin, end, count)

    def window(self, site: str, count: int, last_seq: int = SEQ_MAX, due: float = inf) -> list[FrontierEntry]:
        """Return the first `count` PENDING entries of a site by number `last_seq` and due by `due`, breadth first."""
        return self.frontier.window(site, count, last_seq, due)

    def forget_cell(self, cell: Cell, count: int) -> int:
        """Delete up to `count` records of a cell that other peers hold now. Return the number of records left."""
        self.journal.refuse_if_failed()
        gone = self.scan.records(cell, b"", count)
        if self._fingerprints is not None and len(gone) < count:
            self._fingerprints.forget(cell)
        if gone:
            self._delete(cell, gone)
        self.sites.forget_cookies(cell)
        return self._digests.get(cell).keys

    def forget(self, key: Key) -> None:
        """Delete one record that its owner has."""
        assert self.expiring_filters is None, "a fingerprint cannot be removed"
        state = self.state(key)
        if state is not None:
            self._delete(self.cell_of(key), [(key, state)])

    # --- fingerprints --------------------------------------------------------------------------------------------

    def expire(self, cell: Cell) -> None:
        """Forget the fingerprints of a cell that are older than the period."""
        if self._fingerprints is not None:
            self._fingerprints.expire(cell)

    def join_epoch_filters(self, cell: Cell, filters: Iterable[EncodedFilter], *, adopt: bool) -> list[ExpiringFilter]:
        """Join the epoch filters of another holder of a cell (`ExpiringFilters.join`). Return the news.

        A key that is PENDING here may be in the filters. It stays pending until the other holder names it.
        """
        return [] if self._fingerprints is None else self._fingerprints.join(cell, filters, adopt=adopt)

    def _has_fingerprint(self, key: Key) -> bool:
        return self.expiring_filters is not None and self.expiring_filters.has(self.cell_of(key), key)

    def _add_fingerprint(self, filters: ExpiringFilters, key: Key) -> bool:
        """Journal the fingerprint of a done key. Return False if the key was known as done."""
        cell = self.cell_of(key)
        was_done = filters.has(cell, key)
        state, place = self.frontier.place(key)
        was_pending = state is not None
        if was_done and not was_pending:
            return False
        if was_pending:
            self.frontier.leave(key, place, () if was_done else self.events.page_done)
            self._write("DELETE FROM history WHERE key=?", (key,))
        if was_done:
            # An epoch filter from another holder has the key already.
            self._digests.put(cell, self._digests.get(cell).minus(digest_records([(key, PENDING)])))
            self.announce(key)
        else:
            filters.add(cell, key)
            self._changed(key, PENDING if was_pending else None, DONE)
        return True

    def _write_lines(self, line: bytes, records: bytes) -> None:
        self.journal.write_page_line(line)
        if records:
            self.journal.write_record_lines(records)

    # --- changes -------------------------------------------------------------------------------------------------

    def _delete(self, cell: Cell, records: list[tuple[Key, int]]) -> None:
        """Delete these records, which are all records of a cell from the first of them to the last."""
        self.frontier.delete_between(records[0][0], records[-1][0])
        for table in ("history", "visit") if self.visits.used else ("history",):
            self._write(f"DELETE FROM {table} WHERE key BETWEEN ? AND ?", (records[0][0], records[-1][0]))
        self.site_keys.clear()
        self._digests.put(cell, self._digests.get(cell).minus(digest_records(records)))

    def _changed(self, key: Key, before: int | None, after: int) -> None:
        """Update the digest and the counts after a change of a record's state, and call the listeners."""
        cell = self.cell_of(key)
        self._digests.change(cell, key, before, after)
        if before is None:
            self.site_keys.add(key)
        for listener in self.events.record_changed:
            listener(cell, key)

    def _put_pending(self, entry: FrontierEntry, state: int) -> None:
        """Journal a new entry, and the pending state of its key."""
        self._write("INSERT OR REPLACE INTO history VALUES (?, ?, ?, ?)", (entry.key, state, entry.depth, entry.seq))
        self.frontier.insert(entry)
