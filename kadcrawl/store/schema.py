"""The tables of a peer's SQLite file, and the states of a key.

A key goes through rounds: in each it is first to be fetched, then finished. Its state is one number that only grows:
1 and 2 in the first round, 3 and 4 in the second, and so on; so two histories of one cell merge by taking the larger of
each key. Without a recrawl there is one round.

Invariant, at every commit: `frontier` has a row exactly for each `history` row that is pending, `cell` has a row
exactly for each cell with history, which says what a scan of that cell would find (see cell_digest.py), and each key
beyond its first round has a row in `visit` (visit.py).

Tests: tests/store/test_store.py
"""

PENDING, DONE = 1, 2
"""The states of a key in its first round."""


STATE_MAX = 2**53
"""The last one: what a message can tell. No page lives to see it, but a peer that lies may name it."""


def is_pending(state: int) -> bool:
    """Return whether a key in this state is to be fetched."""
    return state % 2 == PENDING


def finished(state: int) -> int:
    """Return the state in which the round of this state ends."""
    return state + state % 2


def round_of(state: int) -> int:
    """Return how many rounds were over before that of this state."""
    return (state - 1) // 2


SCHEMA_VERSION = 3

SCHEMA = f"""
CREATE TABLE meta(name TEXT PRIMARY KEY, value BLOB) WITHOUT ROWID;
CREATE TABLE history(key BLOB PRIMARY KEY, state INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE frontier(
    seq INTEGER PRIMARY KEY, key BLOB NOT NULL, site TEXT NOT NULL, url TEXT NOT NULL,
    depth INTEGER NOT NULL, hops INTEGER NOT NULL, tries INTEGER NOT NULL, due REAL NOT NULL);
CREATE INDEX frontier_by_site ON frontier(site, depth, seq);
CREATE UNIQUE INDEX frontier_by_key ON frontier(key);
CREATE TABLE visit(
    key BLOB PRIMARY KEY, cell INTEGER NOT NULL, site TEXT NOT NULL, url TEXT NOT NULL, depth INTEGER NOT NULL,
    due REAL, period_s REAL NOT NULL, etag TEXT NOT NULL, last_modified TEXT NOT NULL, digest TEXT NOT NULL,
    captured TEXT NOT NULL, gone INTEGER NOT NULL) WITHOUT ROWID;
CREATE INDEX visit_by_due ON visit(cell, due);
CREATE TABLE cell(
    cell INTEGER PRIMARY KEY, keys INTEGER NOT NULL, pending INTEGER NOT NULL, digest BLOB NOT NULL);
CREATE TABLE site(site TEXT PRIMARY KEY, not_before REAL NOT NULL, delay_s REAL NOT NULL) WITHOUT ROWID;
CREATE TABLE robots(origin TEXT PRIMARY KEY, rules BLOB NOT NULL, fetched_at REAL NOT NULL) WITHOUT ROWID;
CREATE TABLE outbox(place INTEGER PRIMARY KEY, line BLOB NOT NULL);
PRAGMA user_version = {SCHEMA_VERSION};
"""

RECORD_OUTBOX = "CREATE TABLE IF NOT EXISTS record_outbox(place INTEGER PRIMARY KEY, line BLOB NOT NULL)"
"""As `outbox`, for records.jsonl. Not in the schema, so that directories made before there were records go on."""
