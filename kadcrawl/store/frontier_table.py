"""The frontier table: one row with the text of each PENDING URL.

`Store` inserts and deletes rows in the transaction that changes the state of their key. The row of a key is found by
the depth and the sequence number in its row of `history`, so `Store` deletes a row before it changes the state. All
reads are of single rows or of bounded windows.

Tests: tests/store/test_frontier_table.py, tests/store/test_store.py, tests/replication/test_cells.py
"""

from collections.abc import Callable, Sequence
from math import inf
from typing import Any

from kadcrawl.keys import SITE_BYTES, Key, site_hash
from kadcrawl.store.frontier_entry import FrontierEntry
from kadcrawl.store.journal import Journal
from kadcrawl.store.meta_table import MetaTable
from kadcrawl.store.schema import DONE, PENDING

_COLUMNS = "depth, seq, site_hash, url_hash, site, url, hops, tries, due, trail, drop_order"
ENTRY_COLUMNS = "f.depth, f.seq, site_hash, url_hash, site, url, hops, tries, due, trail, drop_order"
ENTRY_TYPES = (int, int, bytes, bytes, str, str, int, int, float, bytes, int)
JOINED = f"history h JOIN frontier f ON f.site_hash=substr(h.key, 1, {SITE_BYTES}) AND f.depth=h.depth AND f.seq=h.seq"
"""The entries of PENDING keys, beside their records."""
_ROW_OF_KEY = "(site_hash, depth, seq) = (SELECT ?2, depth, seq FROM history WHERE key=?1)"

_GET = (
    f"SELECT {ENTRY_COLUMNS} FROM history h JOIN frontier f ON f.site_hash=?2 AND f.depth=h.depth AND f.seq=h.seq "
    "WHERE h.key=?1"
)
_WINDOW = f"SELECT {ENTRY_COLUMNS} FROM frontier f WHERE site_hash=? AND seq<=? AND due<=? ORDER BY depth, seq LIMIT ?"
_DROPPED = f"SELECT {ENTRY_COLUMNS} FROM frontier f WHERE site_hash=? AND drop_order<? ORDER BY depth, seq LIMIT ?"
INSERT = f"INSERT INTO frontier({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
_DELETE = f"DELETE FROM frontier WHERE {_ROW_OF_KEY}"
DELETE_AT = "DELETE FROM frontier WHERE site_hash=? AND depth=? AND seq=?"
ACCEPT = "INSERT OR IGNORE INTO history VALUES (?, ?, ?, ?)"
"""The statement for the record of a new key: key, state, depth, number."""
FINISH = "UPDATE history SET state=?, depth=NULL, seq=NULL WHERE key=? AND state=? AND depth=? AND seq=?"
_PLACE = "SELECT state, coalesce(depth, -1), coalesce(seq, -1) FROM history WHERE key=?"
_DELETE_BETWEEN = (
    f"DELETE FROM frontier WHERE (site_hash, depth, seq) IN (SELECT substr(key, 1, {SITE_BYTES}), depth, seq "
    "FROM history WHERE key BETWEEN ? AND ? AND seq NOT NULL)"
)
_SHORTEN = (
    "UPDATE frontier SET depth=?3 "
    "WHERE (site_hash, depth, seq) = (SELECT ?2, depth, seq FROM history WHERE key=?1 AND depth>?3)"
)
"""The record of a key tells its depth, so the entry is looked up only if it changes. Most links were met before."""
_SET_TRIES = f"UPDATE frontier SET tries=?3, due=?4 WHERE {_ROW_OF_KEY}"
_PUT_OFF = f"UPDATE frontier SET due=?3 WHERE {_ROW_OF_KEY} AND due<?3"

Place = tuple[int, int]
"""The depth and the sequence number in the record of a PENDING key, by which the entry is found."""
SEQ_MAX = 2**63 - 1
"""Limit on the number of an entry: that of a column of the journal."""
SEQ_RESERVED = 10_000
"""Number of sequence numbers that one write reserves: after a crash the next run begins above all of them."""


class FrontierTable:
    """The frontier entries of one peer."""

    def __init__(self, journal: Journal, meta: MetaTable) -> None:
        """Raises StorageError if the table, or the last reserved number, is damaged."""
        self._journal = journal
        self._meta = meta
        self._seq = self._reserved = meta.read("frontier_seq", int) or 0
        self.drop_order = 0
        """Stamp of the latest order to drop URLs that this peer knows, or 0."""
        journal.row((int,), "SELECT 1 FROM frontier LIMIT 1")

    @property
    def last_seq(self) -> int:
        """The number of the entry that arrived last."""
        return self._seq

    def get(self, key: Key) -> FrontierEntry | None:
        """Return the entry of a PENDING key, or None."""
        row = self._journal.row(ENTRY_TYPES, _GET, (key, key[:SITE_BYTES]))
        return entry_of(row) if row else None

    def window(self, site: str, count: int, last_seq: int = SEQ_MAX, due: float = inf) -> list[FrontierEntry]:
        """Return the first `count` entries of a site, breadth first, that arrived up to number `last_seq` and are due
        by a wall-clock second.
        """
        values = (site_hash(site), last_seq, due, count)
        return [entry_of(row) for row in self._journal.rows(ENTRY_TYPES, _WINDOW, values)]

    def pending_of(self, site_hash: bytes, most: int) -> int:
        """Return the number of entries of a site, counted up to `most`."""
        select = "SELECT count(*) FROM (SELECT 1 FROM frontier WHERE site_hash=? LIMIT ?)"
        row = self._journal.row((int,), select, (site_hash, most))
        return int(row[0]) if row else 0

    def know_order(self, stamp: int) -> None:
        """Note that this peer knows an order to drop URLs. It does not apply to URLs that become PENDING later."""
        self.drop_order = max(self.drop_order, stamp)

    def dropped(self, site_hash: bytes, stamp: int, count: int) -> list[FrontierEntry]:
        """Return up to `count` entries of a site, breadth first, that an order to drop with this stamp applies to."""
        return [entry_of(row) for row in self._journal.rows(ENTRY_TYPES, _DROPPED, (site_hash, stamp, count))]

    def keys_from(self, entry: FrontierEntry, count: int) -> list[Key]:
        """Return the keys of up to `count` entries of the entry's site, breadth first, from this entry on."""
        select = (
            "SELECT site_hash, url_hash FROM frontier WHERE site_hash=? AND (depth, seq)>=(?, ?) "
            "ORDER BY depth, seq LIMIT ?"
        )
        rows = self._journal.rows((bytes, bytes), select, (entry.key[:SITE_BYTES], entry.depth, entry.seq, count))
        return [Key(of_site + of_url) for of_site, of_url in rows]

    def has_between(self, first: FrontierEntry, last: FrontierEntry) -> bool:
        """Return whether the site has an entry after the first and before the last of these."""
        select = "SELECT 1 FROM frontier WHERE site_hash=? AND (depth, seq)>(?, ?) AND (depth, seq)<(?, ?) LIMIT 1"
        values = (first.key[:SITE_BYTES], first.depth, first.seq, last.depth, last.seq)
        return self._journal.row((int,), select, values) is not None

    def sites(self, begin: bytes, end: bytes, count: int) -> list[tuple[bytes, str]]:
        """Return up to `count` (hash, site) of the sites with entries whose hashes lie from `begin` to `end`."""
        found: list[tuple[bytes, str]] = []
        while len(found) < count:
            select = (
                "SELECT site_hash, site, url FROM frontier WHERE site_hash>=? AND site_hash<=? "
                "ORDER BY site_hash LIMIT 1"
            )
            row = self._journal.row((bytes, str, str), select, (begin, end))
            if row is None:
                break
            found.append((row[0], row[1] or row[2]))
            begin = row[0] + b"\0"
        return found

    def new_entry(
        self,
        key: Key,
        site: str,
        url: str,
        depth: int,
        hops: int,
        tries: int,
        due: float,
        trail: bytes = b"",
        drop_order: int | None = None,
    ) -> FrontierEntry:
        """Return an entry that is the last in order of arrival. `insert` journals it.

        `drop_order` is None for a URL that becomes PENDING here.
        """
        order = self.drop_order if drop_order is None else drop_order
        return FrontierEntry(depth, self._seq + 1, key, site, url, hops, tries, due, trail, order)

    def insert(self, entry: FrontierEntry) -> None:
        """Journal a new entry, before any other is made."""
        self._seq = entry.seq
        if self._seq > self._reserved:
            self._reserved = self._seq + SEQ_RESERVED
            self._meta.set("frontier_seq", b"%d" % self._reserved)
        depth, seq, key, site, url, hops, tries, due, trail, order = entry
        site = "" if site == url else site
        row = (depth, seq, key[:SITE_BYTES], key[SITE_BYTES:], site, url, hops, tries, due, trail, order)
        self._journal.write(INSERT, row)

    def delete(self, key: Key) -> None:
        self._journal.write(_DELETE, (key, key[:SITE_BYTES]))

    def place(self, key: Key) -> tuple[int | None, Place]:
        """Return the state of a key, None for an unknown key, and the place of its entry."""
        state, depth, seq = self._journal.row((int, int, int), _PLACE, (key,)) or (None, -1, -1)
        return state, (depth, seq)

    def finish(self, entry: FrontierEntry) -> bool:
        """Journal an entry's key as done, and delete the entry: two statements, without a read.

        Returns False, and changes nothing, unless the key is in its first round and the entry at its place.
        """
        key, depth, seq = entry.key, entry.depth, entry.seq
        if not self._journal.write(FINISH, (DONE, key, PENDING, depth, seq)):
            return False
        self._journal.write(DELETE_AT, (key[:SITE_BYTES], depth, seq))
        return True

    def leave(
        self,
        key: Key,
        place: Place,
        listeners: Sequence[Callable[[FrontierEntry], None]],
    ) -> None:
        """Delete the entry at this place, as its key is done, and tell the listeners the entry."""
        if listeners:
            entry = self.get(key)
            if entry is not None:
                for listener in listeners:
                    listener(entry)
        self._journal.write(DELETE_AT, (key[:SITE_BYTES], *place))

    def delete_between(self, first: Key, last: Key) -> None:
        """Delete the entries of the keys from `first` to `last`."""
        self._journal.write(_DELETE_BETWEEN, (first, last))

    def shorten(self, key: Key, depth: int) -> bool:
        """Journal a smaller depth of a PENDING URL. Return False if the depth is no smaller."""
        if not self._journal.write(_SHORTEN, (key, key[:SITE_BYTES], depth)):
            return False
        self._journal.write("UPDATE history SET depth=?2 WHERE key=?1", (key, depth))
        return True

    def set_tries(self, key: Key, tries: int, due: float, *, if_more: bool = False) -> bool:
        """Journal the retry state of a PENDING URL, with `if_more` only if it has more tries. Return if so."""
        statement = f"{_SET_TRIES} AND tries<?3" if if_more else _SET_TRIES
        return self._journal.write(statement, (key, key[:SITE_BYTES], tries, due)) > 0

    def put_off(self, key: Key, due: float) -> None:
        """Journal a later due time of a PENDING URL, in wall-clock seconds."""
        self._journal.write(_PUT_OFF, (key, key[:SITE_BYTES], due))


def entry_of(row: Any) -> FrontierEntry:
    """Return the entry of a row of `ENTRY_COLUMNS`."""
    depth, seq, of_site, of_url, site, url, hops, tries, due, trail, order = row
    return FrontierEntry(depth, seq, Key(of_site + of_url), site or url, url, hops, tries, due, trail, order)
