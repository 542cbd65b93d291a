"""`kadcrawl vacuum` gives the free pages of the journals of a crawl at rest back to the disk.

Tests: tests/cli/commands/test_vacuum.py
"""

import shutil
from contextlib import closing
from pathlib import Path

import click
import cloup

from kadcrawl.cli.directory_arguments import directories_argument
from kadcrawl.cli.exits import DONE, told
from kadcrawl.errors import ConfigError
from kadcrawl.system.directory_lock import held_still
from kadcrawl.system.file_names import JOURNAL

ROOM_FACTOR = 2
"""Free bytes needed for each byte that stays: SQLite writes the journal to a temporary file and to the WAL."""


@cloup.command(short_help="Give free pages of journals back to the disk.")
@directories_argument
@told
def vacuum(directories: tuple[Path, ...]) -> int:
    """Make the journals in DIR... (of a crawl, or of a peer) as small as their rows.

    A journal keeps the room of rows that are gone, and uses it again. So this is worth its time only after a crawl had
    far more pending URLs than now. No peer of DIR may run meanwhile. If it is broken off, nothing has changed. From
    then on, peers that run on DIR give back what is free beyond a quarter of the journal, a little at a time. A journal
    with few free pages keeps them. The map of pages for that makes a journal without free pages a little larger.
    """
    from kadcrawl.cli.local.resting import directories_without_copies

    for directory in directories:
        journals = [path for peer in directories_without_copies(directory) if (path := peer / JOURNAL).is_file()]
        if not journals:
            raise ConfigError(f"{directory} has no journal: name the directory of a crawl, or of a peer")
        for journal in journals:
            with held_still(journal.parent) as is_still:
                if not is_still:
                    raise ConfigError(f"a peer is running in {journal.parent}: stop it first")
                before = _vacuum(journal)
            now = journal.stat().st_size
            click.echo(f"{journal}: {before:,} bytes before, {now:,} now{_why_no_smaller(before, now)}")
    return DONE


def _why_no_smaller(before: int, now: int) -> str:
    """Return the words about a journal that has not become smaller, or an empty text."""
    if now < before:
        return ""
    by_map = ". Its new map of pages takes the difference: by it, its peer gives free pages back from now on"
    return f"; there was nothing to give back{by_map if now > before else ''}"


def _vacuum(journal: Path) -> int:
    """Write a journal anew without its free pages. Return its bytes before, with those in its WAL.

    Raises ConfigError.
    """
    import sqlite3  # Not at the top: the completion of a command loads this module.

    try:
        with closing(sqlite3.connect(journal, isolation_level=None)) as db:
            pages, free, size = (
                db.execute(f"PRAGMA {name}").fetchone()[0] for name in ("page_count", "freelist_count", "page_size")
            )
            needed, there = ROOM_FACTOR * (pages - free) * size, shutil.disk_usage(journal.parent).free
            if there < needed:
                raise ConfigError(f"{journal} needs {needed:,} free bytes, and there are {there:,}: make room first")
            db.execute("PRAGMA auto_vacuum=INCREMENTAL")  # From the next VACUUM on, the file has a map of its pages.
            db.execute("VACUUM")
            db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            return int(pages * size)
    except sqlite3.Error as error:
        raise ConfigError(f"cannot vacuum {journal}: {error}; `kadcrawl check-data` says what is wrong") from None
