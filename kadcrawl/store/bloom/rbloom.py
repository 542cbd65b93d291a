"""Bloom filters by rbloom (in Rust, the extra ``kadcrawl[fast-history]``): the same shapes, many times faster.

rbloom spreads a hash of 128 bits over the filter with its own generator. A fingerprint serves as that hash unchanged:
the generator multiplies it first, and takes positions from the middle of the product.

Tests: tests/store/bloom/test_filter.py
"""

from collections.abc import Callable, Sequence
from operator import index
from struct import pack
from typing import Self

from rbloom import Bloom

from kadcrawl.store.bloom.filter import Shape, likely_count

HEAD_BYTES = 8
"""Length of the head of a saved filter, which holds k."""


class RbloomFilter:
    """An rbloom filter of a given shape."""

    tag = 2
    __slots__ = ("_filter", "count", "shape")

    def __init__(self, shape: Shape, bits: bytes | None = None) -> None:
        # Only `load_bytes` keeps the caller's k; the constructor rounds k down.
        saved = pack("<Q", shape.hashes) + (bytes(shape.size_bytes) if bits is None else bits)
        self._filter = Bloom.load_bytes(saved, index)
        self.shape = shape
        self.count = 0 if bits is None else likely_count(shape, self.ones)

    @staticmethod
    def asking(filters: Sequence["RbloomFilter"]) -> Callable[[int], bool]:
        blooms = [one._filter for one in filters]

        def any_has(fingerprint: int) -> bool:
            for bloom in blooms:  # noqa: SIM110 - `any` over a generator takes half as long again.
                if fingerprint in bloom:
                    return True
            return False

        return any_has

    @property
    def ones(self) -> int:
        return int.from_bytes(self.bits, "little").bit_count()

    @property
    def bits(self) -> bytes:
        return self._filter.save_bytes()[HEAD_BYTES:]

    def __contains__(self, fingerprint: int) -> bool:
        return fingerprint in self._filter

    def add(self, fingerprint: int) -> None:
        self._filter.add(fingerprint)
        self.count += 1

    def covers(self, other: Self) -> bool:
        return other._filter <= self._filter

    def merged(self, other: Self) -> Self:
        return type(self)(self.shape, (self._filter | other._filter).save_bytes()[HEAD_BYTES:])
