"""`ReplicationEvents` lists the listeners by which the parts of replication hear of each other.

The parts emit events and know no listener, so none of them needs another part that is built later. `Cells` builds one
object for all parts; the peer adds the listeners of other rooms.

Tests: tests/replication/test_replicator.py, tests/replication/test_holder_side.py
"""

from collections.abc import Callable
from dataclasses import dataclass, field

from kadcrawl.keys import Cell
from kadcrawl.link.wire.messages import Contact


@dataclass(slots=True)
class ReplicationEvents:
    """The listeners of one peer's replication. Add to the lists. Listeners run at once and must not raise."""

    cell_due: list[Callable[[Cell], None]] = field(default_factory=list)
    """Listeners to a cell that this peer owns and should sync."""
    cell_taken_over: list[Callable[[Cell, Contact], None]] = field(default_factory=list)
    """Listeners to a peer that takes a cell over, if no nearer peer is known."""
    copy_differs: list[Callable[[Contact, Cell], None]] = field(default_factory=list)
    """Listeners to a peer whose copy of a cell has another digest than expected."""
    peer_unreachable: list[Callable[[Contact], None]] = field(default_factory=list)
    """Listeners to a peer that cannot be reached any more, or that does not keep up."""
    records_forgotten: list[Callable[[], None]] = field(default_factory=list)
    """Listeners to the deletion of records, after which no work may be left."""
    cell_opened: list[Callable[[Cell], None]] = field(default_factory=list)
    """Listeners to a cell that may be crawled from now on."""
    cell_closed: list[Callable[[Cell], None]] = field(default_factory=list)
    """Listeners to a cell that may not be crawled any more."""
