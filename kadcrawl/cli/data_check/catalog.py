"""The catalog: what the files of all peers of a directory say, in a temporary database, to be compared.

Each peer has a number. Lines and digests are represented by hashes of 64 bits: among a million, two agree by chance in
one of ten million directories.

Tests: tests/cli/data_check/test_data_check.py
"""

import sqlite3
from collections.abc import Iterable
from typing import NamedTuple

import xxhash

from kadcrawl.cli.view.repeats import RecurringVisits

_SCHEMA = """
PRAGMA journal_mode=OFF;
PRAGMA synchronous=OFF;
PRAGMA cache_size=-65536;
CREATE TABLE known(key BLOB PRIMARY KEY, done INTEGER NOT NULL, url TEXT) WITHOUT ROWID;
CREATE TABLE page(peer INTEGER, key BLOB, visit INTEGER, line INTEGER, records INTEGER, at INTEGER, url TEXT,
    digest INTEGER, status INTEGER, file TEXT, place INTEGER);
CREATE TABLE record(peer INTEGER, key BLOB, at INTEGER);
CREATE TABLE archived(peer INTEGER, file TEXT, place INTEGER, key BLOB, url TEXT, digest INTEGER,
    status INTEGER, at INTEGER,
    PRIMARY KEY(peer, file, place)) WITHOUT ROWID;
BEGIN;
"""
_INDEXES = """
CREATE INDEX IF NOT EXISTS page_by_key ON page(key, visit);
CREATE INDEX IF NOT EXISTS record_by_key ON record(key, at);
CREATE INDEX IF NOT EXISTS archived_by_key ON archived(key);
"""
_WITHOUT_LINE = "known.done AND NOT EXISTS (SELECT 1 FROM page WHERE page.key=known.key)"
_IS_LAST = (
    "NOT EXISTS (SELECT 1 FROM page later WHERE later.key=page.key AND later.visit>page.visit) "
    "AND NOT EXISTS (SELECT 1 FROM known WHERE known.key=page.key AND NOT known.done)"
)
"""The line is about the last visit to its URL, and no further visit is to come."""
_WITHOUT_ARCHIVE = (
    "NOT EXISTS (SELECT 1 FROM archived WHERE peer=page.peer AND file=page.file AND archived.place=page.place) "
    f"AND {_IS_LAST}"
)
_WITHOUT_RECORDS = (
    "page.records>(SELECT count(*) FROM record WHERE record.key=page.key AND record.at=page.at "
    f"AND record.peer=page.peer) AND {_IS_LAST}"
)


class PageFact(NamedTuple):
    """A page line, as the catalog has it."""

    key: bytes
    visit: int
    line: int
    """Hash of the line."""
    records: int
    at: int
    """Time of the visit, in milliseconds since 1970."""
    url: str
    digest: int
    """Hash of the digest."""
    status: int | None
    file: str | None
    place: int | None


class ArchivedFact(NamedTuple):
    """A record of a WARC file, as the catalog has it."""

    place: int
    key: bytes
    """Key of the URL, or empty if it is unknown."""
    url: str
    digest: int
    status: int | None
    """Status of the response, or None if it cannot be read."""
    at: int | None
    """Date of the record in milliseconds since 1970, or None if it cannot be read."""


class Catalog:
    """The facts of all peers of a directory."""

    def __init__(self) -> None:
        self._db = sqlite3.connect("", isolation_level=None)  # A file without a name, gone with the connection.
        self._db.executescript(_SCHEMA)

    def close(self) -> None:
        self._db.close()

    def add_known(self, keys: Iterable[tuple[bytes, bool]]) -> None:
        """Enter the keys of a journal, each with whether its URL is finished, and not pending again."""
        # A URL that one holder knows as pending is still to be fetched, or another holder will say otherwise.
        self._db.executemany(
            "INSERT INTO known(key, done) VALUES (?, ?) ON CONFLICT DO UPDATE SET done=min(done, excluded.done)", keys
        )

    def add_urls(self, urls: Iterable[tuple[str, bytes]]) -> None:
        """Enter URLs of known keys, each with its key."""
        self._db.executemany("UPDATE known SET url=? WHERE key=?", urls)

    def add_pages(self, peer: int, pages: Iterable[PageFact]) -> None:
        """Enter page lines of a peer."""
        self._db.executemany(
            "INSERT INTO page VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", ((peer, *page) for page in pages)
        )

    def add_records(self, peer: int, records: Iterable[tuple[bytes, int]]) -> None:
        """Enter the page keys of record lines, each with the time of the visit in milliseconds."""
        self._db.executemany("INSERT INTO record VALUES (?, ?, ?)", ((peer, *record) for record in records))

    def add_archived(self, peer: int, file: str, records: Iterable[ArchivedFact]) -> None:
        """Enter the records of a WARC file."""
        rows = ((peer, file, *record) for record in records)
        self._db.executemany("INSERT OR IGNORE INTO archived VALUES (?, ?, ?, ?, ?, ?, ?, ?)", rows)

    def index(self) -> None:
        """Prepare the comparisons, once all facts are in."""
        self._db.executescript(_INDEXES)

    # --- comparisons -----------------------------------------------------------------------------------------------

    def repeated_lines(self, peer: int) -> int:
        """Return how many lines of a peer are there once more, byte by byte."""
        return self._number(
            "SELECT coalesce(sum(n - 1), 0) FROM (SELECT count(*) n FROM page WHERE peer=? GROUP BY key, line)", peer
        )

    def finished_twice(self, recurring: RecurringVisits | None) -> int:
        """Return how many lines are about a visit that another line is about too, equal lines aside.

        `recurring` tells the visits of a job whose lines do not number them.
        """
        if recurring is not None:
            lines = "SELECT DISTINCT key, at, line FROM page"
            return recurring.repeats(self._db.execute(f"SELECT key, at FROM ({lines}) ORDER BY key, at"))
        return self._number(
            "SELECT coalesce(sum(n - 1), 0) FROM (SELECT count(DISTINCT line) n FROM page GROUP BY key, visit)"
        )

    def without_line(self) -> int:
        """Return how many URLs are finished in a journal and have no page line."""
        return self._number(f"SELECT count(*) FROM known WHERE {_WITHOUT_LINE}")

    def unknown_pages(self) -> int:
        """Return how many page lines have a key that no journal knows."""
        return self._number("SELECT count(*) FROM page WHERE NOT EXISTS (SELECT 1 FROM known WHERE key=page.key)")

    def files_named(self, peer: int) -> dict[str, int]:
        """Return the WARC files that the page lines of a peer name, each with the number of its lines."""
        rows = self._db.execute(
            "SELECT file, count(*) FROM page WHERE peer=? AND file IS NOT NULL GROUP BY file", (peer,)
        )
        return dict(rows.fetchall())

    def without_archive(self, peer: int, file: str) -> int:
        """Return how many last page lines name a place in a WARC file at which no record is."""
        return self._number(f"SELECT count(*) FROM page WHERE peer=? AND file=? AND {_WITHOUT_ARCHIVE}", peer, file)

    def other_archived(self, peer: int) -> int:
        """Return how many page lines differ from their WARC record in URL, digest, status or date."""
        return self._number(
            "SELECT count(*) FROM page JOIN archived USING (peer, file, place) "
            "WHERE peer=? AND (page.url<>archived.url OR page.digest<>archived.digest "
            "OR page.status IS NOT archived.status OR page.at IS NOT archived.at)",
            peer,
        )

    def without_records(self, peer: int) -> int:
        """Return how many last page lines count more records than there are."""
        return self._number(f"SELECT count(*) FROM page WHERE peer=? AND records>0 AND {_WITHOUT_RECORDS}", peer)

    def records_of_no_page(self, peer: int) -> int:
        """Return how many record lines have no page line."""
        return self._number(
            "SELECT count(*) FROM record WHERE peer=? AND NOT EXISTS (SELECT 1 FROM page WHERE page.key=record.key)",
            peer,
        )

    def incomplete_urls(
        self, files_here: Iterable[tuple[int, str]], *, are_lines_here: bool, are_records_here: bool
    ) -> set[str]:
        """Return the URLs, as far as they are known, that lack a page line, a WARC record or a record line.

        `files_here` are the peers and names of the WARC files that may be searched. `are_lines_here` says that no peer
        elsewhere has page lines, and `are_records_here` that no record lines are elsewhere.
        """
        lines = [
            (f"SELECT url FROM known WHERE url IS NOT NULL AND {_WITHOUT_LINE}", ()),
            (f"SELECT archived.url FROM archived JOIN known USING (key) WHERE {_WITHOUT_LINE}", ()),
        ]
        queries: list[tuple[str, tuple[int, str] | tuple[()]]] = [
            *(lines if are_lines_here else ()),
            *(((f"SELECT url FROM page WHERE records>0 AND {_WITHOUT_RECORDS}", ()),) if are_records_here else ()),
            *((f"SELECT url FROM page WHERE peer=? AND file=? AND {_WITHOUT_ARCHIVE}", file) for file in files_here),
        ]
        return {url for query, values in queries for (url,) in self._db.execute(query, values)}

    def _number(self, query: str, *values: object) -> int:
        (number,) = self._db.execute(query, values).fetchone()
        return int(number)


def hashed(text: str | bytes) -> int:
    """Return the hash of a text, as a number that SQLite can keep."""
    return xxhash.xxh3_64_intdigest(text if isinstance(text, bytes) else text.encode()) - (1 << 63)
