"""The table of peers, with as many columns as a terminal has room for.

Tests: tests/cli/view/test_table.py, tests/cli/view/live/test_picture.py
"""

import shutil
import sys
from collections.abc import Sequence
from dataclasses import replace

from kadcrawl.cli.say import say
from kadcrawl.cli.view.addresses import shown
from kadcrawl.cli.view.live.layout import TextColumn, fitting, table_lines
from kadcrawl.link.wire.leaf_messages import is_leaf
from kadcrawl.link.wire.messages import Contact, PeerRow
from kadcrawl.link.wire.unresolved import still_failed_at

ROWS_SHOWN_MAX = 20
"""Limit on the peers in a table: those with the most pages are shown."""
FILE_WIDTH = 200
"""Columns of a table that goes to a file: enough for all of it."""
ADDRESS_FROM = 72
"""Columns of a terminal from which peers are shown with their addresses."""


def print_rows(rows: Sequence[PeerRow]) -> None:
    """Print the table once, on standard output."""
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else FILE_WIDTH
    for line in table_lines(fitting(peer_columns(rows, ROWS_SHOWN_MAX + 1, width), width)):
        say(line)


def peer_columns(rows: Sequence[PeerRow], count: int, width: int) -> list[TextColumn]:
    """Return the table of peers, in at most this many rows, for a terminal of this width."""
    by_pages = sorted(rows, key=lambda row: -row.counters.pages)
    others = len(rows) - count + 1 if len(rows) > count else 0
    some = by_pages[: len(rows) - others]
    # Over all peers, as a URL that failed at one may have been retried by another.
    failed = still_failed_at([row.counters for row in by_pages])[: len(some)]
    columns = [
        TextColumn("peer", [_name(row.contact, with_address=width >= ADDRESS_FROM) for row in some], is_text=True),
        TextColumn("state", [row.state_text for row in some], 7, is_text=True),
        TextColumn("pages", [f"{row.counters.pages:,}" for row in some], 9),
        TextColumn("MB", [f"{row.counters.bytes / 1e6:,.1f}" for row in some], 2),
        TextColumn("pending", [f"{row.pending:,}" for row in some], 8),
    ]
    if any(row.lent or row.borrowed for row in rows):
        columns.append(TextColumn("on loan", [_loans(row) for row in some], 4))
    columns += [
        TextColumn("in flight", [f"{row.in_flight:,}" for row in some], 3),
        TextColumn("failed", [f"{urls:,}" for urls in failed], 6),
        TextColumn("messages", [f"{row.counters.peer_messages:,}" for row in some], 1),
    ]
    if any(row.lag for row in rows):
        columns.append(TextColumn("for sinks", [_size(row.lag) for row in some], 5))
    if not others:
        return columns
    first = f"... and {others} more"
    return [replace(column, cells=[*column.cells, "" if number else first]) for number, column in enumerate(columns)]


def _name(contact: Contact, *, with_address: bool) -> str:
    name = contact.id.hex()[:8]
    return name if is_leaf(contact) or not with_address else f"{name}@{shown(contact.address)}"


def _loans(row: PeerRow) -> str:
    """Return how many URLs the peer has out with others, and how many of others it has in."""
    return ", ".join(f"{count} {where}" for count, where in ((row.lent, "out"), (row.borrowed, "in")) if count)


def _size(count: int) -> str:
    """Return so many bytes in a unit that a person reads."""
    return f"{count / 1e6:.1f} MB" if count >= 100_000 else f"{count / 1e3:.1f} kB"
