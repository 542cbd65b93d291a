"""The changes that bring a journal of an earlier release to the tables of this release.

Each change is one transaction: after a crash in the middle of it the journal is as the earlier release left it.

Tests: tests/store/test_migration.py
"""

import sqlite3
from contextlib import closing

from kadcrawl.keys import SITE_BYTES
from kadcrawl.store.schema import (
    ADDED_COLUMNS,
    ADDED_INDEXES,
    BACK_OFF,
    COOKIES,
    FRONTIER,
    PROXY_HEALTH,
    RECORD_OUTBOX,
    SCHEMA,
    SCHEMA_VERSION,
    SEED_REACH,
)

BY_ROWID = 3
"""The version of the journal in which the frontier had a number for each row, and two indexes."""
OPENED = (0, BY_ROWID, SCHEMA_VERSION)
"""The versions that this release opens. A new file has version 0."""

_SORT_FRONTIER = f"""
BEGIN;
ALTER TABLE history ADD COLUMN depth INTEGER;
ALTER TABLE history ADD COLUMN seq INTEGER;
UPDATE history SET depth=f.depth, seq=f.seq FROM frontier f WHERE f.key=history.key AND state%2=1;
ALTER TABLE frontier RENAME TO frontier_by_rowid;
{FRONTIER}
INSERT INTO frontier SELECT substr(key, 1, {SITE_BYTES}), depth, seq, substr(key, {SITE_BYTES + 1}),
    CASE site WHEN url THEN '' ELSE site END, url, hops, tries, due, {{trail}} FROM frontier_by_rowid
    ORDER BY substr(key, 1, {SITE_BYTES}), depth, seq;
INSERT OR REPLACE INTO meta
    SELECT 'frontier_seq', CAST(CAST(coalesce(max(seq), 0) AS TEXT) AS BLOB) FROM frontier_by_rowid;
DROP TABLE frontier_by_rowid;
PRAGMA user_version = {SCHEMA_VERSION};
COMMIT;
"""


_ADDED_TABLES = (RECORD_OUTBOX, BACK_OFF, COOKIES, PROXY_HEALTH, SEED_REACH)
_NEW = "\n".join(
    [
        f"BEGIN; {SCHEMA}",
        *(f"{table};" for table in _ADDED_TABLES),
        *(f"ALTER TABLE {table} ADD COLUMN {name} {definition};" for table, name, definition in ADDED_COLUMNS),
        f"{ADDED_INDEXES}; COMMIT;",
    ]
)
"""The script that makes all tables of a new journal. One transaction: each takes as long as all statements together."""


def bring_up_to_date(db: sqlite3.Connection, version: int) -> None:
    """Make or change the tables of a journal of one of the `OPENED` versions. Raises sqlite3.Error."""
    if version == 0:
        db.executescript(_NEW)
        return
    if version == BY_ROWID:
        db.executescript(_SORT_FRONTIER.format(trail="trail" if "trail" in _columns(db, "frontier") else "x''"))
    for script in _ADDED_TABLES:
        db.executescript(script)
    for table, name, definition in ADDED_COLUMNS:
        if name not in _columns(db, table):
            db.execute(f"ALTER TABLE {table} ADD COLUMN {name} {definition}")
    db.execute(ADDED_INDEXES)


def _columns(db: sqlite3.Connection, table: str) -> set[str]:
    # A cursor that a damaged name leaves open would keep the file open.
    with closing(db.execute("SELECT name FROM pragma_table_info(?)", (table,))) as names:
        return {name for (name,) in names}
