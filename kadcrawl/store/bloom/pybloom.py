"""Bloom filters by pybloom-live: Python over bitarray, on every platform.

The hash of pybloom-live, ``str(key)`` and SHA-2, takes longer than all the rest. Its filters allow another
`make_hashes`. Here the bit in each part is the upper half of the fingerprint times an odd constant (multiply-shift
hashing), and one product of long integers computes all parts. Most keys are new to most filters, and most filters of a
cell have one shape. So `asking` computes a few bits first, once per shape, and looks them up itself.

Other functions of pybloom-live are not safe here. `copy`, `union` and unpickling forget the count or the hashes. `add`
raises by a count that no join corrects. `fromfile` believes any header, so this module makes the header itself.

Tests: tests/store/bloom/test_filter.py
"""

from collections.abc import Callable, Sequence
from functools import lru_cache
from hashlib import blake2b
from io import BytesIO
from struct import Struct, pack
from typing import Self

from bitarray import bitarray
from bitarray.util import subset
from pybloom_live import BloomFilter

from kadcrawl.store.bloom.filter import HASHES_LEAST, HASHES_MAX, SHAPES_KEPT, Shape, likely_count

FIRST = HASHES_LEAST
"""Number of bits that are looked up first: in a full filter, 1 new key of 16 has them all."""

_LANE_BITS = 128
_LANES = [int.from_bytes(blake2b(b"%d" % lane, digest_size=8).digest(), "big") | 1 for lane in range(HASHES_MAX)]
_SPREAD = sum(factor << _LANE_BITS * lane for lane, factor in enumerate(_LANES))
"""Factor whose product with a fingerprint has a hash of it in bits 32 to 63 of every lane."""
_KEEP = sum(0xFFFFFFFF << _LANE_BITS * lane + 32 for lane in range(HASHES_MAX))

Hash = Callable[[int], Sequence[int]]
"""A function from a fingerprint to bit numbers."""


class PybloomFilter:
    """A pybloom-live filter with its own hash functions."""

    tag = 1
    __slots__ = ("_filter", "count", "shape")

    def __init__(self, shape: Shape, bits: bytes | None = None) -> None:
        # Only `fromfile` of pybloom-live accepts a shape of the caller.
        head = pack(BloomFilter.FILE_FMT, shape.error, shape.hashes, shape.part_bits, shape.capacity, 0)
        self._filter = BloomFilter.fromfile(BytesIO(head + (bytes(shape.size_bytes) if bits is None else bits)))
        self._filter.make_hashes = _bits_in_parts(0, shape.hashes, shape.part_bits)
        self.shape = shape
        self.count = 0 if bits is None else likely_count(shape, self.ones)

    @staticmethod
    def asking(filters: Sequence["PybloomFilter"]) -> Callable[[int], bool]:
        by_shape: dict[Shape, list[bitarray]] = {}
        for one in filters:
            by_shape.setdefault(one.shape, []).append(one._filter.bitarray)
        groups = [
            (_bits(0, FIRST, shape.part_bits), _bits(FIRST, shape.hashes, shape.part_bits), arrays)
            for shape, arrays in by_shape.items()
        ]

        def any_has(fingerprint: int) -> bool:
            for first, others, arrays in groups:
                a, b, c, d = first(fingerprint)
                for bits in arrays:
                    if bits[a] and bits[b] and bits[c] and bits[d] and bits[others(fingerprint)].all():
                        return True
            return False

        return any_has

    @property
    def ones(self) -> int:
        return int(self._filter.bitarray.count())

    @property
    def bits(self) -> bytes:
        return bytes(self._filter.bitarray.tobytes())

    def __contains__(self, fingerprint: int) -> bool:
        return fingerprint in self._filter

    def add(self, fingerprint: int) -> None:
        self._filter.count = 0  # Its own count would make it raise when full, and no join corrects that count.
        self._filter.add(fingerprint, skip_check=True)
        self.count += 1

    def covers(self, other: Self) -> bool:
        return subset(other._filter.bitarray, self._filter.bitarray)

    def merged(self, other: Self) -> Self:
        return type(self)(self.shape, (self._filter.bitarray | other._filter.bitarray).tobytes())


@lru_cache(maxsize=SHAPES_KEPT)
def _bits_in_parts(first: int, end: int, part_bits: int) -> Hash:
    """Return the function to bit numbers in parts `first` to `end` - 1, each from the part's own first bit."""
    return _hash(first, end, part_bits, 0, tuple)


@lru_cache(maxsize=2 * SHAPES_KEPT)
def _bits(first: int, end: int, part_bits: int) -> Hash:
    """Return the same function with numbers from the filter's first bit, as a list for one combined lookup."""
    return _hash(first, end, part_bits, part_bits, list)


def _hash(first: int, end: int, part_bits: int, step: int, made: Callable[[tuple[int, ...]], Sequence[int]]) -> Hash:
    count = end - first
    size = _LANE_BITS // 8 * count
    lanes = (1 << 8 * size) - 1
    spread, keep = _SPREAD >> _LANE_BITS * first & lanes, _KEEP & lanes
    begins = sum((first + lane) * step << _LANE_BITS * lane + 64 for lane in range(count))
    unpack = Struct("<" + "8xQ" * count).unpack

    # All filters of one shape are searched for the same fingerprint in turn, and then one of them adds it.
    @lru_cache(maxsize=1)
    def bits_of(fingerprint: int) -> Sequence[int]:
        return made(unpack(((fingerprint * spread & keep) * part_bits + begins).to_bytes(size, "little")))

    return bits_of
