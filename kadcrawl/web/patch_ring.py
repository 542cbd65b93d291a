"""`PatchRing` keeps the last changes of a document, so that a viewer who comes back gets only what it has missed.

Changes have rising numbers. The ring forgets the oldest, by number and by size. A decision.
"""

from collections import deque

PATCHES_MAX = 120
"""Changes that are kept: those of two minutes and more."""
PATCH_BYTES_MAX = 1024 * 1024
"""Bytes of all changes that are kept."""


class PatchRing:
    """The last changes of one document."""

    def __init__(self, patches_max: int = PATCHES_MAX, bytes_max: int = PATCH_BYTES_MAX) -> None:
        self._patches: deque[bytes] = deque()
        self._patches_max = patches_max
        self._bytes_max = bytes_max
        self._bytes = 0
        self.last = 0
        """The number of the last change, 0 for the document before the first."""

    def append(self, patch: bytes) -> None:
        """Keep the next change, and forget the oldest if there are too many."""
        self.last += 1
        self._patches.append(patch)
        self._bytes += len(patch)
        while len(self._patches) > self._patches_max or self._bytes > self._bytes_max:
            self._bytes -= len(self._patches.popleft())

    def since(self, number: int) -> list[bytes] | None:
        """Return the changes after this number, or None if some are forgotten or there was no such change."""
        missed = self.last - number
        if not 0 <= missed <= len(self._patches):
            return None
        return [self._patches[at] for at in range(len(self._patches) - missed, len(self._patches))]
