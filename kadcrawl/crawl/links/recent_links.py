"""What was told of URLs lately: so many of them, and so many characters; beyond that the oldest is forgotten.

Bounded by characters as well, as a URL has ten or two thousand of them, and a site chooses. The URL itself is kept, not
a hash of it: one that is taken for another is never told to its owner, and lost. A decision: no I/O, no clock.
"""

from collections import OrderedDict
from typing import Generic, TypeVar

Sent = TypeVar("Sent")


class RecentlySent(OrderedDict[str, Sent], Generic[Sent]):
    """URL -> what was told of it, the oldest first; written by `keep` only."""

    # Not a dict, in which finding the first entry takes ever longer the more of them were deleted before it.

    def __init__(self, urls_max: int, chars_max: int) -> None:
        super().__init__()
        self._urls_max = urls_max
        self._chars_max = chars_max
        self._chars = 0

    def keep(self, url: str, sent: Sent) -> None:
        """Remember what was told of a URL; one known already keeps its age."""
        if url not in self:
            self._chars += len(url)
        self[url] = sent
        while len(self) > self._urls_max or self._chars > self._chars_max:
            self._chars -= len(self.popitem(last=False)[0])

    def clear(self) -> None:
        """Forget all."""
        super().clear()
        self._chars = 0
