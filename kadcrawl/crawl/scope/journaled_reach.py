"""The reach of streamed seeds in the scope and in the journal of one peer, kept alike.

Tests: tests/peer/swarm/test_seed_streams.py, tests/leaf/test_leaf.py
"""

from collections.abc import Iterable, Sequence

from kadcrawl.crawl.scope.scope import Scope
from kadcrawl.store.reach_table import ReachTable


class JournaledReach:
    """The segments of one peer."""

    def __init__(self, scope: Scope, table: ReachTable) -> None:
        """Widen the scope by the journaled segments."""
        self._scope = scope
        self._table = table
        for segment in table.segments():
            scope.reach.add(segment)

    def lacking(self, ids: bytes) -> Sequence[bytes]:
        """Return the segments among these IDs, one after the other, that are unknown here."""
        return self._scope.reach.lacking(ids)

    def add(self, segments: Iterable[bytes]) -> bool:
        """Widen the scope by segments, and journal them. Return whether any was new, well-formed and had room."""
        news = False
        for segment in segments:
            segment_id = self._scope.reach.add(segment)
            if segment_id is not None:
                self._table.put(segment_id, segment)
                news = True
        return news
