"""The table of visits: what the store keeps of pages that are fetched again (see visit.py).

Every holder of a cell has its visits, but only its owner asks which are due. Rows are written in the transaction that
changes the state of their key, by `Store`; nothing here changes a state.
"""

from kadcrawl.keys import Cell, Key
from kadcrawl.store.journal import Journal
from kadcrawl.store.visit import Visit

_COLUMNS = "key, site, url, depth, due, period_s, etag, last_modified, digest, captured, gone"
_SELECTED = _COLUMNS.replace("due", "coalesce(due, -1.0)")
_TYPES = (bytes, str, str, int, float, float, str, str, str, str, int)


class Visits(Journal):
    """The visits of one peer's records."""

    has_visits = False
    """Whether there are any: most jobs fetch a page once, and are to pay nothing for those that do not."""

    def take_up_visits(self) -> None:
        """See whether an earlier run has left some."""
        self.has_visits = self._row((int,), "SELECT 1 FROM visit LIMIT 1") is not None

    def visit(self, key: Key) -> Visit | None:
        """Return what is known of the last visit to a page."""
        if not self.has_visits:
            return None
        row = self._row(_TYPES, f"SELECT {_SELECTED} FROM visit WHERE key=?", (key,))
        visit: Visit | None = Visit._make(row) if row else None
        return visit._replace(due=None) if visit and visit.due is not None and visit.due < 0 else visit

    def next_visit(self, cell: Cell) -> float | None:
        """Return the wall-clock second at which the first page of a cell is due; None if none will be."""
        if not self.has_visits:
            return None
        row = self._row((float,), "SELECT due FROM visit WHERE cell=? AND due>=0 ORDER BY due LIMIT 1", (cell,))
        return row[0] if row else None

    def due_visits(self, cell: Cell, now: float, count: int) -> list[Key]:
        """Return up to `count` keys of a cell whose pages are due at this wall-clock second, the longest due first."""
        select = "SELECT key FROM visit WHERE cell=? AND due>=0 AND due<=? ORDER BY due LIMIT ?"
        rows = self._rows((bytes,), select, (cell, now, count))
        return [Key(row[0]) for row in rows]

    def _keep_visit(self, cell: Cell, visit: Visit) -> None:
        self.has_visits = True
        self._write(
            f"INSERT OR REPLACE INTO visit(cell, {_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (cell, *visit),
        )
