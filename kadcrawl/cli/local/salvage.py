"""The parent of a local crawl reads the directory of a dead peer once the peer's process has ended.

This module is loaded only then: the parent does without SQLite as long as no peer dies.
"""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from kadcrawl.store.journal import UNREADABLE
from kadcrawl.system.file_names import JOURNAL


def is_broken(directory: Path) -> bool:
    """Return whether the journal is there, and damaged."""
    if not (directory / JOURNAL).exists():
        return False
    try:
        with closing(_open(directory)) as journal:
            return bool(journal.execute("PRAGMA quick_check(1)").fetchall() != [("ok",)])
    except UNREADABLE:
        return True


def pending_urls(directory: Path) -> Iterator[str]:
    """Yield the URLs the peer knew and had not seen finished, as far as they can be read."""
    try:
        with closing(_open(directory)) as journal:
            for (url,) in journal.execute("SELECT url FROM frontier WHERE typeof(url)='text'"):
                yield url
    except UNREADABLE:
        return


def _open(directory: Path) -> sqlite3.Connection:
    return sqlite3.connect(f"{(directory / JOURNAL).absolute().as_uri()}?mode=rw", uri=True)
