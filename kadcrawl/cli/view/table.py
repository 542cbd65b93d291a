"""The table of peers on a terminal, live if wanted. Only this file loads `rich`, which takes a while."""

from collections.abc import Sequence

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from kadcrawl.cli.options import shown
from kadcrawl.link.wire.leaf_messages import is_leaf
from kadcrawl.link.wire.messages import Contact, PeerRow

ROWS_SHOWN_MAX = 20
"""Limit on the peers in a table: those with the most pages are shown."""
FILE_WIDTH = 200
"""Columns of a table that goes to a file: enough for all of it."""


class LiveTable:
    """A line and a table at the foot of the terminal's standard error, both renewed in place."""

    def __init__(self) -> None:
        self._console = Console(stderr=True, highlight=False)
        self._live = Live(console=self._console, refresh_per_second=4, transient=True)

    def start(self) -> None:
        self._live.start()

    def stop(self) -> None:
        """Take the table away."""
        self._live.stop()

    def say(self, text: str) -> None:
        """Print a sentence above it."""
        self._console.print(text, markup=False, soft_wrap=True)

    def update(self, line: str, rows: Sequence[PeerRow]) -> None:
        self._live.update(Group(Text(line, style="bold"), _table(rows)))


def print_rows(rows: Sequence[PeerRow]) -> None:
    """Print the table once, on standard output."""
    console = Console()
    if not console.is_terminal:
        console = Console(width=FILE_WIDTH)
    console.print(_table(rows), crop=False, soft_wrap=not console.is_terminal)


def _table(rows: Sequence[PeerRow]) -> Table:
    table = Table(box=None, pad_edge=False)
    table.add_column("peer", no_wrap=True)
    table.add_column("state")
    lends = any(row.lent or row.borrowed for row in rows)
    for name in ("pages", "MB", "pending", *(["on loan"] if lends else []), "in flight", "failed", "messages"):
        table.add_column(name, justify="right")
    if lags := any(row.lag for row in rows):
        table.add_column("for sinks", justify="right")
    for row in sorted(rows, key=lambda row: -row.counters.pages)[:ROWS_SHOWN_MAX]:
        counters = row.counters
        table.add_row(
            Text(_name(row.contact)),  # [::1] is no markup.
            Text(row.state_text),
            str(counters.pages),
            f"{counters.bytes / 1e6:.1f}",
            str(row.pending),
            *([_loans(row)] if lends else []),
            str(row.in_flight),
            str(sum(counters.failed.values())),
            str(counters.peer_messages),
            *([_size(row.lag)] if lags else []),
        )
    if len(rows) > ROWS_SHOWN_MAX:
        table.add_row(f"... and {len(rows) - ROWS_SHOWN_MAX} more", *[""] * (len(table.columns) - 1))
    return table


def _name(contact: Contact) -> str:
    name = contact.id.hex()[:8]
    return name if is_leaf(contact) else f"{name}@{shown(contact.address)}"


def _loans(row: PeerRow) -> str:
    """Return how many URLs the peer has out with others, and how many of others it has in."""
    return ", ".join(f"{count} {where}" for count, where in ((row.lent, "out"), (row.borrowed, "in")) if count)


def _size(count: int) -> str:
    """Return so many bytes in a unit that a person reads."""
    return f"{count / 1e6:.1f} MB" if count >= 100_000 else f"{count / 1e3:.1f} kB"
