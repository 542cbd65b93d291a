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
from kadcrawl.store.store import DONE, Store


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

    def unsafe(self, stores: Iterable[Store]) -> Iterator[tuple[str, int]]:
        """Yield each URL after a finished page that too few of these peers know, and their number."""
        every = list(stores)
        for url, (before, after) in list(self._steps.items()):
            finished = [store for store in every if store.state(before) == DONE]
            if finished:
                known = sum(store.state(after) is not None for store in every)
                if self._cell_of(before) == self._cell_of(after):
                    if not all(store.state(after) is not None for store in finished):
                        yield url, known
                elif known >= min(self._copies, len(every)):
                    del self._steps[url]
                else:
                    yield url, known
