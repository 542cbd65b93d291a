"""A slice too large for one message, in parts: what is still to be sent, what has come, and when to stop.

Parts come in order and are as long as they can be, so a slice takes a known number of messages, whoever sends it. What
has come is kept in memory, no more than `SLICE_WHOLE_BYTES_MAX` and of one slice at a time, and joined when it is
whole. Whoever sends goes on from where the receiver says it is, so what one message cost is sent again and no more.
"""

from math import ceil
from typing import NamedTuple

from kadcrawl.errors import KadcrawlError
from kadcrawl.keys import Cell
from kadcrawl.store.bloom.cell_filters import EncodedFilter, Large

IDLE_S = 30.0
"""After which a slice of which nothing more comes gives way to another's: its sender would have tried again."""
SENT_MAX = 3
"""Times the parts of a slice are sent, as the receiver may lose what it had; then the next comparison begins anew."""


class PartError(KadcrawlError):
    """A part is not as long as it has to be."""


class Outgoing:
    """A slice that is being sent."""

    def __init__(self, large: Large, part_bytes: int) -> None:
        self.label = large.label
        self.size = large.pieces.size
        self.at = 0
        """Byte from which to go on."""
        self._pieces = large.pieces
        self._part_bytes = part_bytes
        self._left = SENT_MAX * ceil(self.size / part_bytes)

    @property
    def is_over(self) -> bool:
        """Whether it has arrived, or is not to be sent any more."""
        return self.at >= self.size or not self._left

    def part(self) -> bytes:
        """Return what is to be sent next."""
        return self._pieces.cut(self.at, self._part_bytes)

    def kept(self, upto: int | None) -> None:
        """The receiver has so many bytes of it; None if it takes none now."""
        self._left -= 1
        self.at = self.size if upto is None else upto

    def failed(self) -> None:
        """No answer came."""
        self._left -= 1


class Assembly:
    """What has come of one slice."""

    def __init__(self, size: int, part_bytes: int) -> None:
        self.size = size
        self.bits = bytearray()
        self._part_bytes = part_bytes

    @property
    def is_whole(self) -> bool:
        return len(self.bits) == self.size

    def take(self, at: int, bits: bytes) -> None:
        """Take a part; one that is not the next changes nothing. Raises PartError if it has a length of its own."""
        if at == len(self.bits):
            if len(bits) != min(self._part_bytes, self.size - at):
                raise PartError(f"there is no part of {len(bits):,} bytes from {at:,} on, of {self.size:,}")
            self.bits += bits


class Sent(NamedTuple):
    """Whose slice it is, and which."""

    sender: bytes
    cell: Cell
    encoded: EncodedFilter
    """Without its bits."""
    size: int


class IncomingSlice:
    """What others send here: one slice at a time."""

    def __init__(self, part_bytes: int) -> None:
        self._part_bytes = part_bytes
        self._of: Sent | None = None
        self._assembly: Assembly | None = None
        self._moved_at = 0.0

    def take(self, of: Sent, at: int, bits: bytes, now: float) -> int | None:
        """Take a part; return how many bytes there are of this slice now, None if another one's is coming.

        What is `size` bytes long is to be fetched by `whole` at once. Raises PartError as `Assembly.take` does.
        """
        self.let_go(now)
        if self._of is not None and self._of.sender != of.sender:
            return None
        if self._assembly is None or self._of != of:
            self._of, self._assembly = of, Assembly(of.size, self._part_bytes)
        self._assembly.take(at, bits)
        self._moved_at = now
        return len(self._assembly.bits)

    def whole(self) -> EncodedFilter:
        """Return the slice that has come, and make room for the next."""
        assert self._of is not None, "it has come"
        assert self._assembly is not None, "it has come"
        told = self._of.encoded._replace(bits=bytes(self._assembly.bits))
        self._of = self._assembly = None
        return told

    def let_go(self, now: float) -> None:
        """Forget a slice of which nothing comes any more."""
        if now >= self._moved_at + IDLE_S:
            self._of = self._assembly = None
