"""The shape of a Bloom filter, and the interface that the two engines share.

A key is hashed to 64 bits, its *fingerprint*, and an engine derives the positions of its bits from that. Keys of one
site differ only in their last 8 bytes, keys of other sites in more. So all 20 bytes go into the hash (XXH3, three times
as fast as a cut of 8 bytes). The engines derive positions differently, so peers that exchange filters must use the same
engine (`tag`).

This module only computes. A filter takes all its memory when it is made, and `epoch_filter` watches its capacity.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import ceil, log, log1p, log2
from typing import Any, Protocol, Self

from xxhash import xxh3_64_intdigest

from kadcrawl.keys import Key

HASHES_LEAST = 4
"""Least number of bits per key. Fewer give a useless false positive rate."""
HASHES_MAX = 64
"""Limit on the bits per key: two URLs share a fingerprint with the same probability of 2^-64."""
CAPACITY_MAX = 1 << 28
"""Limit on the keys of one filter, about 800 MB, so that a part has fewer than 2^32 bits.

An epoch filter opens a further stage for more keys."""
SHAPES_KEPT = 256
"""Number of shapes kept in memory, which all filters of all cells share."""


@dataclass(frozen=True, slots=True)
class Shape:
    """The parameters of a filter: the bits of two filters of equal shape mean the same."""

    capacity: int
    """Number of keys at which the false positive rate reaches `error`."""
    error: float
    """False positive rate of a full filter: the share of keys never added that it reports as added."""
    hashes: int
    """Number of bits per key (k): each part has one of them."""
    part_bits: int
    """Number of bits of each part, a multiple of 8."""

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
    assert 0 < capacity <= CAPACITY_MAX, "a larger set needs several filters"
    assert HASHES_LEAST <= hashes <= HASHES_MAX, "Period limits the error"
    return Shape(capacity, error, hashes, 8 * ceil(capacity * log(1 / error) / (8 * hashes * log(2) ** 2)))


def fingerprint_of(key: Key) -> int:
    """Return the 64-bit hash of a key that stands for the key in every filter."""
    return xxh3_64_intdigest(key)


class Filter(Protocol):
    """A Bloom filter of either engine."""

    tag: int
    """Number of the engine on the wire: engines spread fingerprints over the bits differently."""
    shape: Shape
    count: int
    """Number of keys added. After a join, an estimate by the bits that are set."""

    def __init__(self, shape: Shape, bits: bytes | None = None) -> None:
        """Make an empty filter, or a filter of `bits` (`shape.size_bytes` long) with an estimated count."""

    @staticmethod
    def asking(filters: Sequence[Any]) -> Callable[[int], bool]:
        """Return a function that says whether any of these filters has a fingerprint.

        It is faster than a search of each filter."""

    @property
    def ones(self) -> int:
        """Number of bits that are set. Counts them."""

    @property
    def bits(self) -> bytes:
        """A copy of the bits."""

    def __contains__(self, fingerprint: int) -> bool:
        """Return whether the fingerprint was added, or seems so."""

    def add(self, fingerprint: int) -> None:
        """Add a fingerprint that the filter does not have yet."""

    def covers(self, other: Self) -> bool:
        """Return whether every bit set in `other`, of the same shape, is set here."""

    def merged(self, other: Self) -> Self:
        """Return a new filter with the bits of both, which have the same shape."""


def error_of(filter: Filter) -> float:
    """Return the false positive rate of a filter now, by the bits that are set."""
    return float((filter.ones / filter.shape.bits) ** filter.shape.hashes)


def likely_count(shape: Shape, ones: int) -> int:
    """Return the most likely number of keys for so many bits that are set."""
    if ones >= shape.bits:
        return shape.capacity
    return min(shape.capacity, round(-shape.part_bits * log1p(-ones / shape.bits)))
