"""Bloom filters by pybloom-live: Python over bitarray, wherever it runs.

What pybloom-live would hash with, ``str(key)`` and SHA-2, takes longer than all else. Its filters let their
`make_hashes` be replaced: here the bit in each part is the upper half of place times an odd constant (multiply-shift
hashing), and one product of long numbers has them all. Most keys are new to most filters, and of the filters of a cell
most have one shape: `asking` computes a few bits first, once for all of a shape, and looks them up itself.

Of its other offers none is safe here: `copy`, `union` and unpickling forget the count or the hashes, `add` raises by a
count that no join corrects, and `fromfile` believes any header; ours is made here.

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
"""Bits computed and looked up first; in a full filter one new key of 16 has them all."""

_LANE_BITS = 128
_LANES = [int.from_bytes(blake2b(b"%d" % lane, digest_size=8).digest(), "big") | 1 for lane in range(HASHES_MAX)]
_SPREAD = sum(factor << _LANE_BITS * lane for lane, factor in enumerate(_LANES))
"""Times a place, this has a hash of the place in bits 32 to 63 of every lane."""
_KEEP = sum(0xFFFFFFFF << _LANE_BITS * lane + 32 for lane in range(HASHES_MAX))

Hash = Callable[[int], Sequence[int]]
"""Place -> numbers of bits."""


class PybloomFilter:
    """A filter whose places lie where the odd constants put them."""

    tag = 1
    __slots__ = ("_filter", "count", "shape")

    def __init__(self, shape: Shape, bits: bytes | None = None) -> None:
        # As pybloom-live reads a filter from a file: the one way in for a shape of our own.
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

        def ask(place: int) -> bool:
            for first, others, arrays in groups:
                a, b, c, d = first(place)
                for bits in arrays:
                    if bits[a] and bits[b] and bits[c] and bits[d] and bits[others(place)].all():
                        return True
            return False

        return ask

    @property
    def ones(self) -> int:
        return int(self._filter.bitarray.count())

    @property
    def bits(self) -> bytes:
        return bytes(self._filter.bitarray.tobytes())

    def __contains__(self, place: int) -> bool:
        return place in self._filter

    def add(self, place: int) -> None:
        self._filter.count = 0  # It would raise when full, by a count of its own that no join corrects.
        self._filter.add(place, skip_check=True)
        self.count += 1

    def covers(self, other: Self) -> bool:
        return subset(other._filter.bitarray, self._filter.bitarray)

    def merged(self, other: Self) -> Self:
        return type(self)(self.shape, (self._filter.bitarray | other._filter.bitarray).tobytes())


@lru_cache(maxsize=SHAPES_KEPT)
def _bits_in_parts(first: int, end: int, part_bits: int) -> Hash:
    """Return place -> its bit in each part from `first` to before `end`, counted from the part's own first bit."""
    return _hash(first, end, part_bits, 0, tuple)


@lru_cache(maxsize=2 * SHAPES_KEPT)
def _bits(first: int, end: int, part_bits: int) -> Hash:
    """Return the same counted from the first bit of the filter, as a list: these can be looked up all at once."""
    return _hash(first, end, part_bits, part_bits, list)


def _hash(first: int, end: int, part_bits: int, step: int, made: Callable[[tuple[int, ...]], Sequence[int]]) -> Hash:
    count = end - first
    size = _LANE_BITS // 8 * count
    lanes = (1 << 8 * size) - 1
    spread, keep = _SPREAD >> _LANE_BITS * first & lanes, _KEEP & lanes
    begins = sum((first + lane) * step << _LANE_BITS * lane + 64 for lane in range(count))
    unpack = Struct("<" + "8xQ" * count).unpack

    # Filters of one shape are asked one after another for the same place, and then it is added to one.
    @lru_cache(maxsize=1)
    def bits_of(place: int) -> Sequence[int]:
        return made(unpack(((place * spread & keep) * part_bits + begins).to_bytes(size, "little")))

    return bits_of
