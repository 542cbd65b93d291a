"""The observer's check of trails: a done page has passed its link on, and all holders know the next page.

On a trail (`sim/synthetic_web.py`) only the page before links to a page. So once a page is DONE anywhere, the owner and
all backups of its link must have the link, because only then a link is acknowledged. The check runs before the first
fault and after all has settled: just after a partition a peer may drop for one owner a record that the other is about
to send (seed 3042).
"""

from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise

from kadcrawl.keys import Key
from kadcrawl.store.store import DONE, Store


class SeenTrails:
    """The trails of one web."""

    def __init__(self, trails: Iterable[Iterable[str]], keys: Mapping[str, Key], copies: int) -> None:
        """`trails` are their URLs in a row, `keys` those of all URLs. `copies` are those of the job."""
        self._copies = copies
        self._steps = {after: (keys[before], keys[after]) for trail in trails for before, after in pairwise(trail)}
        """By URL, its page before and itself, until it has been seen to be safe."""

    def unsafe(self, stores: Iterable[Store]) -> Iterator[tuple[str, int]]:
        """Yield each URL after a finished page that too few of these peers know, and their number."""
        every = list(stores)
        for url, (before, after) in list(self._steps.items()):
            if any(store.state(before) == DONE for store in every):
                known = sum(store.state(after) is not None for store in every)
                if known >= min(self._copies, len(every)):
                    del self._steps[url]
                else:
                    yield url, known
