"""Sender and receiver of an epoch filter that is too large for one message and travels in parts.

Parts come in order and are as long as they can be, so a filter takes a known number of messages, whoever sends it. The
receiver keeps the parts of one filter at a time in memory, up to `EPOCH_FILTER_WHOLE_BYTES_MAX`, and merges the whole
filter. The sender continues at the receiver's position, so a lost message costs one repetition. Decides only.
"""

from math import ceil
from typing import NamedTuple

from kadcrawl.errors import KadcrawlError
from kadcrawl.keys import Cell
from kadcrawl.store.bloom.cell_filters import EncodedFilter, Large

IDLE_S = 30.0
"""Silence after which a filter gives way to that of another sender: its own sender would have tried again."""
SENT_MAX = 3
"""Times the parts of a filter are sent, as the receiver may lose them. Then the next comparison begins anew."""


class PartError(KadcrawlError):
    """A part does not have the required length."""


class Outgoing:
    """An epoch filter that is being sent."""

    def __init__(self, large: Large, part_bytes: int) -> None:
        self.label = large.label
        self.size = large.pieces.size
        self.at = 0
        """First byte of the next part."""
        self._pieces = large.pieces
        self._part_bytes = part_bytes
        self._left = SENT_MAX * ceil(self.size / part_bytes)

    @property
    def is_over(self) -> bool:
        """True if the filter has arrived, or is given up."""
        return self.at >= self.size or not self._left

    def part(self) -> bytes:
        """Return the next part."""
        return self._pieces.cut(self.at, self._part_bytes)

    def kept(self, upto: int | None) -> None:
        """Note that the receiver has so many bytes. None means that it accepts no part now."""
        self._left -= 1
        self.at = self.size if upto is None else upto

    def failed(self) -> None:
        """Note that a part was not answered."""
        self._left -= 1


class Assembly:
    """The received parts of one epoch filter."""

    def __init__(self, size: int, part_bytes: int) -> None:
        self.size = size
        self.bits = bytearray()
        self._part_bytes = part_bytes

    @property
    def is_whole(self) -> bool:
        return len(self.bits) == self.size

    def take(self, at: int, bits: bytes) -> None:
        """Accept a part, if it is the next part. Raises PartError if its length is not the required one."""
        if at == len(self.bits):
            if len(bits) != min(self._part_bytes, self.size - at):
                raise PartError(
                    f"a part of {len(bits):,} bytes at byte {at:,} does not fit a filter of {self.size:,} bytes; "
                    f"send parts of {self._part_bytes:,} bytes, and the rest last"
                )
            self.bits += bits


class Sent(NamedTuple):
    """The sender of an epoch filter, and the filter's name."""

    sender: bytes
    cell: Cell
    encoded: EncodedFilter
    """The filter without its bits."""
    size: int


class IncomingEpochFilter:
    """The epoch filter that another peer sends here, one at a time."""

    def __init__(self, part_bytes: int) -> None:
        self._part_bytes = part_bytes
        self._of: Sent | None = None
        self._assembly: Assembly | None = None
        self._moved_at = 0.0

    def take(self, of: Sent, at: int, bits: bytes, now: float) -> int | None:
        """Accept a part. Return the bytes received so far, or None while another filter is being received.

        At `size` bytes the caller must fetch the filter by `whole` at once. Raises PartError as `Assembly.take` does.
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
        """Return the complete filter, and make room for the next."""
        assert self._of is not None, "it has come"
        assert self._assembly is not None, "it has come"
        encoded = self._of.encoded._replace(bits=bytes(self._assembly.bits))
        self._of = self._assembly = None
        return encoded

    def let_go(self, now: float) -> None:
        """Forget a filter whose parts no longer come."""
        if now >= self._moved_at + IDLE_S:
            self._of = self._assembly = None
