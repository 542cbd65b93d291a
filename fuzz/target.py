"""What a target is, and the inputs of all of them as numbers and bytes.

A target takes any bytes and returns. It lets no exception pass but a fault: those its decisions document it catches
itself, and what must hold besides it asserts. It opens no socket, reads no clock and draws by a seed of its own, so an
input does the same in every process.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

SWOLLEN_BYTES_MAX = 8 * 1024
"""Of an input that repeats itself: enough that work that grows with the square of its length is seen, where each byte
of the input itself would slow the search."""
SWOLLEN_FROM = 240
"""The first byte of an input that may repeat itself says how often from here on: so one of 16 by chance does."""


@dataclass(frozen=True)
class Target:
    """One thing to be fuzzed."""

    name: str
    one: Callable[[bytes], int | None]
    """Does all with one input, and returns of how many `units` it was; raises only for a fault of kadcrawl's."""
    seeds: Callable[[], Iterable[bytes]]
    """Inputs to begin with, each of them honest, so that the search has not to find out what a message looks like."""
    bytes_max: int = 4096
    """Of an input."""
    units: str = ""
    """What an input is many of, if it is."""


class Bites:
    """An input, taken from the front; beyond its end there are zeros."""

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
