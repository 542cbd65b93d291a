"""Sender and receiver of an epoch filter that is too large for one message and travels in parts.

Parts come in order and are as long as they can be, so a filter takes a known number of messages, whoever sends it. The
receiver keeps the parts of one filter of each sender in memory, up to `EPOCH_FILTER_WHOLE_BYTES_MAX` in all, and merges
each filter when it is whole. The sender continues at the receiver's position, so a lost message costs one repetition.
Decides only.
"""

from math import ceil
from typing import NamedTuple

from kadcrawl.errors import KadcrawlError
from kadcrawl.keys import Cell
from kadcrawl.link.wire.messages import EPOCH_FILTER_WHOLE_BYTES_MAX
from kadcrawl.store.bloom.cell_filters import EncodedFilter, Large

IDLE_S = 30.0
"""Silence after which a filter gives way to those of other senders: its own sender would have tried again."""
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


class Arrival(NamedTuple):
    """An epoch filter of which parts have come."""

    of: Sent
    assembly: Assembly
    moved_at: float
    """Second at which its last part came."""


class IncomingEpochFilters:
    """The epoch filters that other peers send here, one of each sender at a time.

    A sender that dies in the middle does not keep the filters of other senders out, unless these are too large.
    """

    def __init__(self, part_bytes: int, bytes_max: int = EPOCH_FILTER_WHOLE_BYTES_MAX) -> None:
        """`bytes_max` limits the filters of all senders together."""
        self._part_bytes = part_bytes
        self._bytes_max = bytes_max
        self._arriving: dict[bytes, Arrival] = {}
        """Sender, by ID -> the filter that it sends."""

    def take(self, of: Sent, at: int, bits: bytes, now: float) -> int | None:
        """Accept a part. Return the bytes received so far, or None while others leave no room for its filter.

        At `size` bytes the caller must fetch the filter by `whole` at once. Raises PartError as `Assembly.take` does.
        """
        self.let_go(now)
        known = self._arriving.get(of.sender)
        if known is not None and known.of == of:
            assembly = known.assembly
        else:
            self._arriving.pop(of.sender, None)
            if self._arriving and of.size + sum(one.of.size for one in self._arriving.values()) > self._bytes_max:
                return None
            assembly = Assembly(of.size, self._part_bytes)
        assembly.take(at, bits)
        self._arriving[of.sender] = Arrival(of, assembly, now)
        return len(assembly.bits)

    def whole(self, sender: bytes) -> EncodedFilter:
        """Return the complete filter of a sender, by ID, and make room for the next."""
        of, assembly, _ = self._arriving.pop(sender)
        return of.encoded._replace(bits=bytes(assembly.bits))

    def lost(self, sender: bytes) -> None:
        """Forget the filter of a sender, by ID, that is dead or gone."""
        self._arriving.pop(sender, None)

    def let_go(self, now: float) -> None:
        """Forget the filters whose parts no longer come."""
        self._arriving = {sender: one for sender, one in self._arriving.items() if now < one.moved_at + IDLE_S}
