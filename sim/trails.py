"""What the observer sees on the trails of a web: a page that is done has told of the next, and three peers know it.

On a trail (`sim.synthetic_web`) a page is linked from the one before and from nowhere else. So once a page is DONE
anywhere, what it linked to must be with its owner and both backups: that is when a link is acknowledged. Looked at
before anything befalls anybody and after all has settled: just after a partition a peer may drop for one owner what
the other is about to send it (seed 3042).
"""

from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise

from kadcrawl.keys import Key
from kadcrawl.store.store import DONE, Store

from .judges import COPIES


class SeenTrails:
    """The trails of one web."""

    def __init__(self, trails: Iterable[Iterable[str]], keys: Mapping[str, Key]) -> None:
        """`trails` are their URLs in a row, `keys` those of all URLs."""
        self._steps = {after: (keys[before], keys[after]) for trail in trails for before, after in pairwise(trail)}
        """By URL, its page before and itself, until it has been seen to be safe."""

    def unsafe(self, stores: Iterable[Store]) -> Iterator[tuple[str, int]]:
        """Yield each URL that a finished page has led to and too few of these peers know, and how many do."""
        every = list(stores)
        for url, (before, after) in list(self._steps.items()):
            if any(store.state(before) == DONE for store in every):
                known = sum(store.state(after) is not None for store in every)
                if known >= min(COPIES, len(every)):
                    del self._steps[url]
                else:
                    yield url, known
