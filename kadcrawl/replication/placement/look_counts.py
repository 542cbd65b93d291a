"""Counts of the placements that a peer reads to find those that move, and of its messages about them (P1 1.3.2).

The claim of P1 is that work follows what moves, not what is stored. So the containers of placements count every entry
that is read from them in turn: a search through all cells cannot go uncounted, wherever it stands.
"""

from collections.abc import Iterator
from typing import Any, TypeVar

Held = TypeVar("Held")
Value = TypeVar("Value")


class LookCounts:
    """The counts of one peer so far."""

    def __init__(self) -> None:
        self.examined = 0
        """Placements read in turn."""
        self.moved = 0
        """Placements found to move, or to be told of."""
        self.messages = 0
        """Batches of cells handed to a successor, one message each."""

    def read(self, count: int) -> None:
        """Count placements that are read."""
        self.examined += count

    def found(self, count: int) -> None:
        """Count placements that move."""
        self.moved += count

    def sent(self) -> None:
        """Count a message."""
        self.messages += 1


class CountedDict(dict[Held, Value]):
    """A dict that counts the entries that are read in turn. A look-up of one key is not counted."""

    def __init__(self, counts: LookCounts) -> None:
        super().__init__()
        self._counts = counts

    def __iter__(self) -> Iterator[Held]:
        self._counts.read(len(self))
        return super().__iter__()

    def keys(self) -> Any:
        """Return the keys, all of which count as read."""
        self._counts.read(len(self))
        return super().keys()

    def values(self) -> Any:
        """Return the values, all of which count as read."""
        self._counts.read(len(self))
        return super().values()

    def items(self) -> Any:
        """Return the entries, all of which count as read."""
        self._counts.read(len(self))
        return super().items()
