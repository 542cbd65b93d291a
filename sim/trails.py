"""The observer's check of trails: a done page has passed its link on, and all holders know the next page.

On a trail (`sim/synthetic_web.py`) only the page before links to a page. So once a page is DONE anywhere, the owner and
all backups of its link must have the link, because only then a link is acknowledged. A link within the cell of its page
reaches a backup before the backup hears that the page is DONE, so there each peer is checked by itself. The check runs
before the first fault and after all has settled: just after a partition a peer may drop for one owner a record that the
other is about to send (seed 3042).
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import pairwise

from kadcrawl.keys import Cell, Key
from kadcrawl.store.cell_digest import CellDigest
from kadcrawl.store.store import DONE, Store

Digests = list[tuple[Store, *tuple[CellDigest | None, ...]]]
"""Peers, each with its digests of some cells. A digest changes with each record of its cell."""


class SeenTrails:
    """The trails of one web."""

    def __init__(
        self, trails: Iterable[Iterable[str]], keys: Mapping[str, Key], copies: int, cell_of: Callable[[Key], Cell]
    ) -> None:
        """`trails` are their URLs in a row, `keys` those of all URLs. `copies` are those of the job."""
        self._copies = copies
        self._cell_of = cell_of
        self._steps = {after: (keys[before], keys[after]) for trail in trails for before, after in pairwise(trail)}
        """By URL, its page before and itself, until it has been seen to be safe."""
        self._safe: dict[str, Digests] = {}
        """By URL, the peers and their digests of its two cells when it was last seen to be safe."""

    def unsafe(self, stores: Iterable[Store]) -> Iterator[tuple[str, int]]:
        """Yield each URL after a finished page that too few of these peers know, and their number.

        A URL is looked at again only when a record of its cells has changed since, or a peer has come or gone.
        """
        every = list(stores)
        for url, (before, after) in list(self._steps.items()):
            cells = self._cell_of(before), self._cell_of(after)
            digests: Digests = [(store, *map(store.cells.get, cells)) for store in every]
            if digests == self._safe.get(url):
                continue
            known = self._known(url, before, after, every)
            if known is None:
                self._safe[url] = digests
            else:
                yield url, known

    def _known(self, url: str, before: Key, after: Key, every: list[Store]) -> int | None:
        """Return the number of peers that know a URL if that is too few, or None."""
        finished = [store for store in every if store.state(before) == DONE]
        if not finished:
            return None
        known = sum(store.state(after) is not None for store in every)
        if self._cell_of(before) == self._cell_of(after):
            return None if all(store.state(after) is not None for store in finished) else known
        if known < min(self._copies, len(every)):
            return known
        del self._steps[url]
        return None
