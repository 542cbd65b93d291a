"""The table of visits: the facts that a store keeps of pages that will be fetched again (visit.py).

Every holder of a cell has the visits of that cell, but only the owner asks for due ones. `Store` writes a row in the
transaction that changes the state of its key. This table changes no state.
"""

from kadcrawl.keys import Cell, Key
from kadcrawl.store.journal import Journal
from kadcrawl.store.visit import Visit

_COLUMNS = "key, site, url, depth, due, period_s, etag, last_modified, digest, captured, gone"
_SELECTED = _COLUMNS.replace("due", "coalesce(due, -1.0)")
_TYPES = (bytes, str, str, int, float, float, str, str, str, str, int)


class VisitTable:
    """The visits of one peer's records."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self.used = False
        """True if the table has rows. Most jobs fetch each page once, and must not pay for visits."""

    def load(self) -> None:
        """Find out whether an earlier run has left visits."""
        self.used = self._journal.row((int,), "SELECT 1 FROM visit LIMIT 1") is not None

    def get(self, key: Key) -> Visit | None:
        """Return the last visit to a page, or None."""
        if not self.used:
            return None
        row = self._journal.row(_TYPES, f"SELECT {_SELECTED} FROM visit WHERE key=?", (key,))
        visit: Visit | None = Visit._make(row) if row else None
        return visit._replace(due=None) if visit and visit.due is not None and visit.due < 0 else visit

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

    # --- for `Store` -----------------------------------------------------------------------------------------------

    def put(self, cell: Cell, visit: Visit) -> None:
        """Journal a visit in place of an earlier visit to the same page."""
        self.used = True
        self._journal.write(
            f"INSERT OR REPLACE INTO visit(cell, {_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (cell, *visit),
        )

    def clear_due(self, key: Key) -> None:
        """Journal that a page is due no more, because its next round has begun."""
        self._journal.write("UPDATE visit SET due=NULL WHERE key=?", (key,))

    def hasten(self, key: Key, due: float) -> bool:
        """Journal an earlier due time of a page, in wall-clock seconds. Return False if it is due sooner already."""
        statement = "UPDATE visit SET due=?2 WHERE key=?1 AND (due IS NULL OR due>?2)"
        return self._journal.write(statement, (key, due)) > 0

    def shorten(self, key: Key, depth: int) -> None:
        """Journal a smaller depth of a page, and forget its body, so that its next visit follows the links again."""
        self._journal.write(
            "UPDATE visit SET depth=?2, etag='', last_modified='', digest='' WHERE key=?1 AND depth>?2", (key, depth)
        )
