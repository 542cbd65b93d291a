"""The table of the health of proxies, so that a restart does not verify all proxies anew.

A row has the name of a pool and a fingerprint of a proxy (crawl/proxies/health_memory.py). So the table shows neither
an address nor a password.

Tests: tests/crawl/proxies/test_health_memory.py
"""

from collections.abc import Collection
from typing import NamedTuple

from kadcrawl.store.journal import Journal


class SavedHealth(NamedTuple):
    """The health of a proxy as it is journaled. Instants are wall-clock seconds."""

    alive: int
    """1 if the proxy was verified, 0 if it was dead."""
    fails: int
    """Verifications failed in a row."""
    success: float
    seconds: float
    page_at: float
    checked_at: float
    check_at: float
    """The time of the next verification."""


_COLUMNS = ", ".join(SavedHealth._fields)
_TYPES = (int, int, float, float, float, float, float)


class ProxyHealthTable:
    """The journaled health of the proxies of one peer."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal

    def get(self, pool: str, proxy: bytes) -> SavedHealth | None:
        """Return the health of the proxy with this fingerprint, or None if there is none."""
        select = f"SELECT {_COLUMNS} FROM proxy_health WHERE pool=? AND proxy=?"
        row = self._journal.row(_TYPES, select, (pool, proxy))
        return SavedHealth._make(row) if row else None

    def put(self, pool: str, proxy: bytes, health: SavedHealth) -> None:
        """Journal the health of a proxy."""
        insert = "INSERT OR REPLACE INTO proxy_health VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"
        self._journal.write(insert, (pool, proxy, *health))

    def keep_only(self, pool: str, proxies: Collection[bytes]) -> None:
        """Drop the rows of all other proxies of a pool."""
        rows = list(self._journal.rows((bytes,), "SELECT proxy FROM proxy_health WHERE pool=?", (pool,)))
        for (proxy,) in rows:
            if proxy not in proxies:
                self._journal.write("DELETE FROM proxy_health WHERE pool=? AND proxy=?", (pool, proxy))

    def keep_pools(self, pools: Collection[str]) -> None:
        """Drop the rows of all other pools."""
        for (pool,) in list(self._journal.rows((str,), "SELECT DISTINCT pool FROM proxy_health")):
            if pool not in pools:
                self._journal.write("DELETE FROM proxy_health WHERE pool=?", (pool,))
