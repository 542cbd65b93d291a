"""Remembers a bounded number of recently sent URLs, and a bounded number of their characters.

Characters are bounded as well, because a site chooses whether its URLs have ten characters or two thousand. The oldest
URL is forgotten first. The URL itself is kept, as a hash could confuse two URLs: the second URL would never be sent to
its owner, and would be lost. A decision: no I/O, no clock.
"""

from collections import OrderedDict
from typing import Generic, TypeVar

Sent = TypeVar("Sent")


class RecentlySent(OrderedDict[str, Sent], Generic[Sent]):
    """URL -> the value last sent of the URL, the oldest first. Only `keep` writes."""

    # In a plain dict the search for the first entry takes longer with each deleted entry before it.

    def __init__(self, urls_max: int, chars_max: int) -> None:
        super().__init__()
        self._urls_max = urls_max
        self._chars_max = chars_max
        self._chars = 0

    def keep(self, url: str, sent: Sent) -> None:
        """Remember the value sent of a URL. A known URL keeps its age."""
        if url not in self:
            self._chars += len(url)
        self[url] = sent
        while len(self) > self._urls_max or self._chars > self._chars_max:
            self._chars -= len(self.popitem(last=False)[0])

    def clear(self) -> None:
        """Forget all."""
        super().clear()
        self._chars = 0
