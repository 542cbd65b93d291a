"""The events of a store: other parts of a peer add listeners and hear of each change.

Listeners run at once, within the open transaction, in the order in which they were added.

Tests: tests/replication/test_cells.py
"""

from collections.abc import Callable
from dataclasses import dataclass, field

from kadcrawl.keys import Cell, Key
from kadcrawl.store.frontier_entry import FrontierEntry


@dataclass(frozen=True, slots=True)
class StoreEvents:
    """The listeners of one store. Add to the lists."""

    record_changed: list[Callable[[Cell, Key], None]] = field(default_factory=list)
    """Listeners to each change of a record: of its state, its retry state or its depth."""
    page_done: list[Callable[[FrontierEntry], None]] = field(default_factory=list)
    """Listeners to each pending URL that is done in its first round and has no visit. They hear its last entry, before
    `record_changed`."""
    depth_shortened: list[Callable[[Key, int], None]] = field(default_factory=list)
    """Listeners to each smaller depth of a pending URL, called with its key and depth."""
    site_changed: list[Callable[[str], None]] = field(default_factory=list)
    """Listeners to each change of a site's clock, called with the site."""
