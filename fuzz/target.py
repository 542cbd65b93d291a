"""The definition of a fuzz target, and a reader that takes numbers and bytes from an input.

A target takes any bytes and returns. Every exception that escapes is a fault: the target catches the documented
exceptions of its decisions itself, and asserts all other promises. It opens no socket, reads no clock and has a random
seed of its own, so an input has the same effect in every process.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

SWOLLEN_BYTES_MAX = 8 * 1024
"""The most bytes of an input that repeats itself.

This is enough to expose quadratic work, while each byte of the input itself would slow the search.
"""
SWOLLEN_FROM = 240
"""The first byte of an input that may repeat itself says how often from here on: so one of 16 by chance does."""


@dataclass(frozen=True)
class Target:
    """A function to be fuzzed."""

    name: str
    one: Callable[[bytes], int | None]
    """Processes one input and returns its number of `units`. Raises only for a fault of kadcrawl."""
    seeds: Callable[[], Iterable[bytes]]
    """Returns valid inputs to begin with, so that the search need not discover the form of a message."""
    bytes_max: int = 4096
    """The most bytes of an input."""
    units: str = ""
    """The unit in which an input is counted, if it has any."""


class Bites:
    """A reader that takes an input from the front. Beyond the end it returns zeros."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    @property
    def left(self) -> int:
        """Bytes not taken yet."""
        return len(self._data) - self._at

    def take(self, count: int) -> bytes:
        """Return the next bytes, fewer at the end."""
        taken = self._data[self._at : self._at + count]
        self._at += len(taken)
        return taken

    def number(self, size: int = 1) -> int:
        """Return the next `size` bytes as a number."""
        return int.from_bytes(self.take(size).ljust(size, b"\0"), "big")

    def rest(self) -> bytes:
        return self.take(self.left)

    def swollen(self) -> bytes:
        """Return the rest, some of it with all but the beginning repeated: two bytes say how often, and from where.

        What takes a regular expression or a parser long is mostly short, and repeated.
        """
        doublings, begin = max(0, self.number() - SWOLLEN_FROM), self.number()
        head, tail = self.take(begin), self.rest()
        while doublings and 2 * len(tail) <= SWOLLEN_BYTES_MAX:
            tail += tail
            doublings -= 1
        return head + tail


def plain(content: bytes) -> bytes:
    """Return the input that `Bites.swollen` reads as this content, not repeated."""
    return b"\0\0" + content
