"""The table of visits: the facts that a store keeps of pages that may be fetched again (visit.py).

Every holder of a cell has the visits of that cell, but only the owner asks for due ones. `Store` writes a row in the
transaction that changes the state of its key. This table changes no state.
"""

from collections.abc import Iterator
from typing import Any

from kadcrawl.keys import Cell, Key
from kadcrawl.store.journal import Journal
from kadcrawl.store.visit import Visit

_COLUMNS = (
    "key, site, url, depth, due, period_s, etag, last_modified, digest, captured, gone, failed, retry_order, answer"
)
_SELECTED = _COLUMNS.replace("due", "coalesce(due, -1.0)")
_TYPES = (bytes, str, str, int, float, float, str, str, str, str, int, str, int, str)


class VisitTable:
    """The visits of one peer's records."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self.used = False
        """True if the table has rows. Most jobs fetch each page once, and must not pay for visits."""
        self.last_order = 0
        """Stamp of the latest order to retry that this peer knows, or 0."""

    def load(self) -> None:
        """Find out whether an earlier run has left visits."""
        self.used = self._journal.row((int,), "SELECT 1 FROM visit LIMIT 1") is not None

    def get(self, key: Key) -> Visit | None:
        """Return the last visit to a page, or None."""
        if not self.used:
            return None
        row = self._journal.row(_TYPES, f"SELECT {_SELECTED} FROM visit WHERE key=?", (key,))
        return _visit(row) if row else None

    def next_due(self, cell: Cell) -> float | None:
        """Return the wall-clock second at which the first page of a cell is due, or None."""
        if not self.used:
            return None
        select = "SELECT due FROM visit WHERE cell=? AND due>=0 ORDER BY due LIMIT 1"
        row = self._journal.row((float,), select, (cell,))
        return row[0] if row else None

    def due_keys(self, cell: Cell, now: float, count: int) -> list[Key]:
        """Return up to `count` keys of a cell whose pages are due at this wall-clock second, the longest due first."""
        select = "SELECT key FROM visit WHERE cell=? AND due>=0 AND due<=? ORDER BY due LIMIT ?"
        rows = self._journal.rows((bytes,), select, (cell, now, count))
        return [Key(row[0]) for row in rows]

    def due_after(self, cell: Cell, after: tuple[float, bytes], now: float, count: int) -> list[tuple[float, Key]]:
        """Return up to `count` (due second, key) of the due pages of a cell that follow a place in their order."""
        select = "SELECT due, key FROM visit WHERE cell=? AND (due, key)>(?, ?) AND due<=? ORDER BY due, key LIMIT ?"
        rows = self._journal.rows((float, bytes), select, (cell, *after, now, count))
        return [(due, Key(key)) for due, key in rows]

    def know_order(self, stamp: int) -> None:
        """Note that this peer knows an order to retry: pages that fail from now on are newer than it."""
        self.last_order = max(self.last_order, stamp)

    def failed_keys(self, cell: Cell, after: bytes, count: int) -> list[Key]:
        """Return up to `count` keys of a cell whose last visit failed, in order, from the first key above `after`."""
        if not self.used:
            return []
        select = "SELECT key FROM visit WHERE cell=? AND failed<>'' AND key>? ORDER BY key LIMIT ?"
        return [Key(row[0]) for row in self._journal.rows((bytes,), select, (cell, after, count))]

    def failed(self) -> Iterator[Visit]:
        """Yield all failed visits, for a person who asks while no crawl runs."""
        for row in self._journal.rows(_TYPES, f"SELECT {_SELECTED} FROM visit WHERE failed<>''"):
            yield _visit(row)

    # --- for `Store` -----------------------------------------------------------------------------------------------

    def put(self, cell: Cell, visit: Visit) -> None:
        """Journal a visit in place of an earlier visit to the same page."""
        self.used = True
        self._journal.write(
            f"INSERT OR REPLACE INTO visit(cell, {_COLUMNS}) VALUES (?{', ?' * len(_TYPES)})",
            (cell, *visit),
        )

    def begin_round(self, key: Key, order: int) -> None:
        """Journal that a page is neither due nor failed any more, because its next round has begun by this order."""
        self._journal.write("UPDATE visit SET due=NULL, failed='', retry_order=?2 WHERE key=?1", (key, order))

    def hasten(self, key: Key, due: float) -> bool:
        """Journal an earlier due time of a page, in wall-clock seconds. Return False if it is due sooner already."""
        statement = "UPDATE visit SET due=?2 WHERE key=?1 AND (due IS NULL OR due>?2)"
        return self._journal.write(statement, (key, due)) > 0

    def shorten(self, key: Key, depth: int) -> None:
        """Journal a smaller depth of a page, and forget its body, so that its next visit follows the links again."""
        self._journal.write(
            "UPDATE visit SET depth=?2, etag='', last_modified='', digest='' WHERE key=?1 AND depth>?2", (key, depth)
        )


def _visit(row: Any) -> Visit:
    visit = Visit._make(row)
    return visit._replace(due=None) if visit.due is not None and visit.due < 0 else visit
