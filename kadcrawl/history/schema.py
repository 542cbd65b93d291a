"""The tables of a peer's SQLite file.

Invariant, at every commit: `frontier` has a row exactly for each `history` row in state PENDING, and `cell` has a row
exactly for each cell with history, which says what a scan of that cell would find (see tally.py).
"""

PENDING, DONE = 1, 2
"""The states of a key. They only grow: two histories of one cell merge by taking the larger of each key."""

SCHEMA_VERSION = 2

SCHEMA = f"""
CREATE TABLE meta(name TEXT PRIMARY KEY, value BLOB) WITHOUT ROWID;
CREATE TABLE history(key BLOB PRIMARY KEY, state INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE frontier(
    seq INTEGER PRIMARY KEY, key BLOB NOT NULL, site TEXT NOT NULL, url TEXT NOT NULL,
    depth INTEGER NOT NULL, hops INTEGER NOT NULL, tries INTEGER NOT NULL, due REAL NOT NULL);
CREATE INDEX frontier_by_site ON frontier(site, depth, seq);
CREATE UNIQUE INDEX frontier_by_key ON frontier(key);
CREATE TABLE cell(
    cell INTEGER PRIMARY KEY, keys INTEGER NOT NULL, pending INTEGER NOT NULL, digest BLOB NOT NULL);
CREATE TABLE site(site TEXT PRIMARY KEY, not_before REAL NOT NULL, delay_s REAL NOT NULL) WITHOUT ROWID;
CREATE TABLE robots(origin TEXT PRIMARY KEY, rules BLOB NOT NULL, fetched_at REAL NOT NULL) WITHOUT ROWID;
CREATE TABLE outbox(place INTEGER PRIMARY KEY, line BLOB NOT NULL);
PRAGMA user_version = {SCHEMA_VERSION};
"""
