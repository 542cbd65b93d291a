"""The last figures of the peers of a local crawl: as they told them, or as their journals have them.

Tests: tests/cli/local/test_last_rows.py, tests/cli/test_command_left_behind.py
"""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from kadcrawl.cli.local.child import Child
from kadcrawl.cli.targets import is_set_aside, peer_directories
from kadcrawl.link.wire.messages import PeerRow
from kadcrawl.link.wire.order_messages import StandingOrder
from kadcrawl.settings.job import Job
from kadcrawl.system.clock import wall

if TYPE_CHECKING:
    from kadcrawl.cli.local.resting import UnreadableJournal


def last_rows(
    children: Sequence[Child], data: Path, job: Job
) -> "tuple[Sequence[PeerRow], Sequence[StandingOrder], Sequence[UnreadableJournal]]":
    """Return the rows of all peers once none runs, the orders in the journals read, and journals without figures.

    The journals of peers without a row are read: they ended before they told any, or their directories were moved
    aside. If a peer has died, the journals of all are read. The last row of the dead peer is out of date, and the
    others may have its pending URLs, so only all journals together tell how many are pending.
    """
    told = {child.directory: child.row for child in children if child.row is not None}
    dead = {child.directory for child in children if child.dead}
    silent = [child.directory for child in children if dead or child.row is None]
    silent += [directory for directory in peer_directories(data) if is_set_aside(directory, data)]
    if not silent:
        return list(told.values()), (), ()
    from kadcrawl.cli.local.resting import rows_at_rest  # Not at the top: it loads the journal.

    rows, orders, unreadable = rows_at_rest(silent, job, wall())
    journaled = {row.contact.id: row for row in rows}
    last = []
    for directory, row in told.items():
        found = journaled.pop(row.contact.id, None)
        if directory in dead:
            last.append(found or replace(row, pending=0))
        else:
            last.append(row if found is None else replace(row, pending=found.pending))
    return [*journaled.values(), *last], orders, [one for one in unreadable if one.directory not in told]
