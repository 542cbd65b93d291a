"""Bloom filters for one slice of time: their shape, what the two engines that hold the bits have in common.

A key is hashed once more, to 64 bits, its *place*, from which an engine derives where its bits are. Of a site's keys
only the last 8 bytes differ, of others more: all 20 go into the place, well mixed (XXH3, three times as fast as taking
8 of them out). The engines derive bits differently, so who exchanges filters must have the same (`tag`).

Pure. What a filter can hold is for `seen_slice` to look at; its memory is taken when it is made, all of it.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import ceil, log, log1p, log2
from typing import Any, Protocol, Self

from xxhash import xxh3_64_intdigest

from kadcrawl.keys import Key

HASHES_LEAST = 4
"""Fewer bits of a key than this err more than anybody would want."""
HASHES_MAX = 64
"""Bits of one key in one filter: an error of 2^-64 is that of two URLs with the same place."""
CAPACITY_MAX = 1 << 28
"""Keys of one filter: some 800 MB; for more, a slice opens a further one. A part has then fewer than 2^32 bits."""
SHAPES_KEPT = 256
"""Shapes in memory, which all filters of all cells share."""


@dataclass(frozen=True, slots=True)
class Shape:
    """What two filters must have in common for their bits to mean the same."""

    capacity: int
    """Keys with which the error is as designed."""
    error: float
    """Share of the keys never added that are taken for added, when the filter is full."""
    hashes: int
    """k: bits of one key, one in each part."""
    part_bits: int
    """Bits of each part; a multiple of 8."""

    @property
    def bits(self) -> int:
        return self.hashes * self.part_bits

    @property
    def size_bytes(self) -> int:
        return self.bits // 8


@lru_cache(maxsize=SHAPES_KEPT)
def shape_for(capacity: int, error: float) -> Shape:
    """Return the smallest shape for so many keys at this error: k = log2(1/error), bits = capacity * log2(e) * k."""
    hashes = ceil(log2(1 / error))
    assert 0 < capacity <= CAPACITY_MAX, "who asks for more opens several"
    assert HASHES_LEAST <= hashes <= HASHES_MAX, "the error of a period is limited"
    return Shape(capacity, error, hashes, 8 * ceil(capacity * log(1 / error) / (8 * hashes * log(2) ** 2)))


def place_of(key: Key) -> int:
    """Return what stands for a key in every filter: 64 bits of all of it."""
    return xxh3_64_intdigest(key)


class Filter(Protocol):
    """A Bloom filter of either engine."""

    tag: int
    """Says on the wire how places were spread over the bits."""
    shape: Shape
    count: int
    """Keys added; after a join, as many as the bits set make likely."""

    def __init__(self, shape: Shape, bits: bytes | None = None) -> None:
        """Without `bits` an empty one; with them (`shape.size_bytes`) one whose count is estimated."""

    @staticmethod
    def asking(filters: Sequence[Any]) -> Callable[[int], bool]:
        """Return place -> whether any of these filters of this engine has it: faster than asking each."""

    @property
    def ones(self) -> int:
        """How many bits are set; counts them."""

    @property
    def bits(self) -> bytes:
        """The bits; a copy."""

    def __contains__(self, place: int) -> bool:
        """Return whether the place was added, or seems so."""

    def add(self, place: int) -> None:
        """Add a place that is not in it yet."""

    def covers(self, other: Self) -> bool:
        """Return whether every bit set in `other`, of the same shape, is set here."""

    def merged(self, other: Self) -> Self:
        """Return a new filter with the bits of both, which have the same shape."""


def error_of(filter: Filter) -> float:
    """Return the share of keys never added that this filter takes for added now, by the bits that are set."""
    return float((filter.ones / filter.shape.bits) ** filter.shape.hashes)


def likely_count(shape: Shape, ones: int) -> int:
    """Return how many keys set so many bits, most likely."""
    if ones >= shape.bits:
        return shape.capacity
    return min(shape.capacity, round(-shape.part_bits * log1p(-ones / shape.bits)))
