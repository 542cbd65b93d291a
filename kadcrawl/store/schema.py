"""The tables of a peer's SQLite file, and the states of a key.

A key goes through rounds, and in each round it is first pending, then done. Its state is one number that only grows: 1
and 2 in the first round, 3 and 4 in the second, and so on. So two histories of one cell merge by the larger state of
each key. Without a recrawl, and without an order to retry what failed, there is one round.

Three invariants hold at every commit. `frontier` has exactly one row for each `history` row that is pending, and the
`depth` and `seq` of both are equal. `cell` has exactly one row for each cell with history, equal to a scan of that cell
(cell_digest.py). Each key beyond its first round has a row in `visit` (visit.py), and so has each key that failed.

The first 12 bytes of a key are the hash of its site (keys.py). So the primary key of `frontier` sorts the rows of a
site breadth first, and `history` says where the row of a key is. No index is needed beside them.

Tests: tests/store/test_store.py
"""

PENDING, DONE = 1, 2
"""The states of a key in its first round."""


STATE_MAX = 2**53
"""The largest state: the limit of a message. No page ever gets there, but a peer may lie."""


def is_pending(state: int) -> bool:
    """Return whether a key in this state waits to be fetched."""
    return state % 2 == PENDING


def finished(state: int) -> int:
    """Return the done state of the round of this state."""
    return state + state % 2


def round_of(state: int) -> int:
    """Return the number of rounds before the round of this state."""
    return (state - 1) // 2


SCHEMA_VERSION = 4

FRONTIER = """
CREATE TABLE frontier(
    site_hash BLOB NOT NULL, depth INTEGER NOT NULL, seq INTEGER NOT NULL, url_hash BLOB NOT NULL, site TEXT NOT NULL,
    url TEXT NOT NULL, hops INTEGER NOT NULL, tries INTEGER NOT NULL, due REAL NOT NULL, trail BLOB NOT NULL,
    PRIMARY KEY(site_hash, depth, seq)) WITHOUT ROWID;
"""
"""The statement that makes the table of PENDING URLs. `site` is empty if the site is the URL."""

SCHEMA = f"""
CREATE TABLE meta(name TEXT PRIMARY KEY, value BLOB) WITHOUT ROWID;
CREATE TABLE history(key BLOB PRIMARY KEY, state INTEGER NOT NULL, depth INTEGER, seq INTEGER) WITHOUT ROWID;
{FRONTIER}
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

SEED_REACH = "CREATE TABLE IF NOT EXISTS seed_reach(id BLOB PRIMARY KEY, fingerprints BLOB NOT NULL)"
"""The statement that makes the table of segments (reach_table.py), for older directories too."""

RECORD_OUTBOX = "CREATE TABLE IF NOT EXISTS record_outbox(place INTEGER PRIMARY KEY, line BLOB NOT NULL)"
"""The statement that makes the outbox of records.jsonl.

It is not part of the schema, so that directories made before there were records still open."""

BACK_OFF = """
CREATE TABLE IF NOT EXISTS back_off(
    site TEXT PRIMARY KEY, cell INTEGER NOT NULL, refusals INTEGER NOT NULL, wait_s REAL NOT NULL,
    status INTEGER NOT NULL, until REAL NOT NULL, version INTEGER NOT NULL) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS back_off_by_cell ON back_off(cell);
"""
"""The statements that make the table of sites that refuse requests, for directories of all releases."""
COOKIES = """
CREATE TABLE IF NOT EXISTS cookies(
    site TEXT PRIMARY KEY, cell INTEGER NOT NULL, jar BLOB NOT NULL, version INTEGER NOT NULL) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS cookies_by_cell ON cookies(cell);
"""
"""The statements that make the table of the cookies of sites, for directories of all releases."""
PROXY_HEALTH = """
CREATE TABLE IF NOT EXISTS proxy_health(
    pool TEXT, proxy BLOB, alive INTEGER NOT NULL, fails INTEGER NOT NULL, success REAL NOT NULL, seconds REAL NOT NULL,
    page_at REAL NOT NULL, checked_at REAL NOT NULL, check_at REAL NOT NULL, PRIMARY KEY(pool, proxy)) WITHOUT ROWID;
"""
"""The statement that makes the table of the health of proxies, for directories of all releases."""
ADDED_COLUMNS = (
    ("frontier", "drop_order", "INTEGER NOT NULL DEFAULT 0"),
    ("visit", "failed", "TEXT NOT NULL DEFAULT ''"),
    ("visit", "retry_order", "INTEGER NOT NULL DEFAULT 0"),
    ("visit", "answer", "TEXT NOT NULL DEFAULT ''"),
)
"""The columns (table, name, definition) that directories of earlier releases lack. They get them when opened."""
ADDED_INDEXES = "CREATE INDEX IF NOT EXISTS visit_by_failure ON visit(cell, key) WHERE failed<>''"
