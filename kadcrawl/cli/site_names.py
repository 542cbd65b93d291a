"""The names of sites that a shell completes: those with pending URLs in the directory of --data.

Nothing is asked over the network, so a completion takes some milliseconds.

Tests: tests/cli/commands/test_site.py
"""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import click

from kadcrawl.cli.targets import directories
from kadcrawl.system.file_names import JOURNAL

ROWS_READ_MAX = 20_000
"""Pending URLs of one directory that are looked at."""
NAMES_MAX = 100
"""Names that a completion offers."""


def complete_sites(context: click.Context, _: click.Parameter, incomplete: str) -> list[str]:
    """Return the names of sites that begin with a text."""
    data = context.params.get("data") or Path("crawl-data")
    names = {
        name for directory in directories(Path(data)) for name in _pending(directory) if name.startswith(incomplete)
    }
    return sorted(names)[:NAMES_MAX]


def _pending(directory: Path) -> Iterator[str]:
    import sqlite3  # Not at the top: every command loads this module.

    from kadcrawl.store.journal import UNREADABLE

    path = directory / JOURNAL
    query = f"SELECT DISTINCT site FROM (SELECT site FROM frontier WHERE site<>'' LIMIT {ROWS_READ_MAX})"
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as journal:
            yield from (name for (name,) in journal.execute(query))
    except UNREADABLE:
        return
