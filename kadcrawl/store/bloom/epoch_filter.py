"""The done keys of one cell in one epoch: a few exactly, more in Bloom filters that follow each other.

Up to `EXACT_MAX` fingerprints are in a sorted array, 8 bytes each and without false positives. Most cells of a crawl
never have more, and a Bloom filter would take more memory, as it needs room for keys to come. Then the fingerprints go
into a Bloom filter. When that filter is full, another one opens: the next *stage*. Nothing raises.

**False positives.** An epoch filter may have a false positive rate of `error`, its share of the period's rate. The
first stage may have `FIRST_SHARE` of `error`. The further stages share the rest by 1/(i(i+1)), i = 1, 2, ..., which
sums to 1 for any number of stages. The first filter is as large as the fullest epoch filter of the epochs before, so a
second stage is rare.

**Joins.** Two copies of an epoch filter may have filters of one shape. They become one filter if its rate, by the bits
that are set, is no higher than both filters apart may have. Otherwise both filters stay. So every key of either copy
stays known, copies of one history stay one filter, and a join of unrelated copies has a known rate
(`false_positive_rate`): two full filters have twice the rate of one. Bits do not tell the keys, so nothing can move
them into one larger filter. A join that would exceed `JOINED_RATE_FACTOR_MAX` times the share is refused. A join is
commutative and idempotent. A second join changes nothing, as the union covers both epoch filters, filter by filter
(`covers`).

Tests: tests/store/bloom/test_expiring_filter.py, tests/store/bloom/test_encoding.py
"""

from array import array
from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import lru_cache
from hashlib import blake2b
from itertools import product
from math import ceil, log2
from typing import TypeAlias

from kadcrawl.store.bloom.filter import CAPACITY_MAX, Filter, Shape, error_of, shape_for

EXACT_MAX = 256
"""Limit on fingerprints in the sorted array: 2 KB. A filter for four times as many keys takes 3.4 KB."""
OBJECTS_BYTES = 300
"""Memory of an empty epoch filter, in bytes."""
CAPACITY_LEAST = 4 * EXACT_MAX
"""Capacity of the smallest Bloom filter, in keys."""
GROWTH = 3
"""Capacity of a further stage over that of all stages before it.

A large factor makes few filters to query, at the price of unused room in the last filter."""
SURPLUS = 0.25
"""The same factor for the second stage, if the first stage was made for an expected number of keys."""
STEPS = 32
"""Number of capacities from one power of 2 to the next.

They are few, so that similar epoch filters have the same shape."""
FIRST_SHARE = 0.9
"""Share of the epoch filter's error for the first stage. The other stages are rarely needed."""
JOINED_ERROR = 2.0
"""Limit on the rate of a joined filter over its designed error: the rate of two full filters kept apart."""
JOINED_RATE_FACTOR_MAX = 3.5
"""Limit on the rate of a joined epoch filter, with all its filters full, over its share of the error.

Three holders with unrelated histories come to a factor of 3; the rest is for chance."""
FILTERS_MAX = 32
"""Limit on the filters of one epoch filter: growth to the largest capacity needs 10, and joins may add some."""


ExactSet: TypeAlias = "array[int]"
"""Distinct fingerprints in ascending order."""


def make_exact_set(fingerprints: Iterable[int] = ()) -> ExactSet:
    """Return the exact set of distinct fingerprints that are in ascending order."""
    return array("Q", fingerprints)


def is_among(fingerprint: int, exact_set: ExactSet) -> bool:
    """Return whether a fingerprint is in an exact set."""
    at = bisect_left(exact_set, fingerprint)
    return at < len(exact_set) and exact_set[at] == fingerprint


def ladder(keys: int) -> int:
    """Return the smallest filter capacity that holds so many keys, or the largest capacity there is."""
    if keys <= CAPACITY_LEAST:
        return CAPACITY_LEAST
    step = 1 << ceil(log2(keys)) - 1
    return min(CAPACITY_MAX, step + ceil((keys - step) * STEPS / step) * step // STEPS)


def least_capacity(stage: int) -> int:
    """Return the smallest capacity that growth gives to the filter of a stage, counted from 0.

    The first two stages together have room for twice `CAPACITY_LEAST`, as the second may be a surplus. Each further
    stage is `GROWTH` times as large as all stages before it, so a high stage proves that there are many keys.
    """
    if stage < 2:
        return CAPACITY_LEAST
    before: int = 2 * CAPACITY_LEAST * (GROWTH + 1) ** (stage - 2)
    return min(CAPACITY_MAX, GROWTH * before)


@lru_cache
def stage_error(error: float, stage: int) -> float:
    """Return the share of an epoch filter's `error` for the filter of a stage, counted from 0."""
    return error * (FIRST_SHARE if stage == 0 else (1 - FIRST_SHARE) / (stage * (stage + 1)))


class EpochFilter:
    """The keys that became done in one epoch."""

    __slots__ = ("_error", "_expected", "epoch", "exact_set", "filters", "make")

    def __init__(self, epoch: int, make: type[Filter], error: float, expected: int = 0) -> None:
        """Make an empty epoch filter with a false positive rate of at most `error`.

        `expected` is the number of keys for which the first Bloom filter has room.
        """
        self.epoch = epoch
        self.make = make
        self._error = error
        self._expected = expected
        self.exact_set: ExactSet | None = make_exact_set()
        """The fingerprints, as long as they are few, or None once there are Bloom filters."""
        self.filters: tuple[tuple[int, Filter], ...] = ()
        """Pairs (stage, filter), in order of stage."""

    @property
    def count(self) -> int:
        """Number of keys. An estimate after a join."""
        return len(self.exact_set) if self.exact_set is not None else sum(filter.count for _, filter in self.filters)

    @property
    def size_bytes(self) -> int:
        """Approximate size in memory, in bytes."""
        exact_bytes = 8 * len(self.exact_set) if self.exact_set is not None else 0
        return OBJECTS_BYTES + exact_bytes + sum(filter.shape.size_bytes for _, filter in self.filters)

    @property
    def false_positive_rate(self) -> float:
        """Share of keys never added that the filter reports as added. Counts all bits that are set."""
        return sum(error_of(filter) for _, filter in self.filters)

    @property
    def false_positive_rate_when_full(self) -> float:
        """The same share once all filters are full."""
        return sum(max(error_of(filter), filter.shape.error) for _, filter in self.filters)

    def __contains__(self, fingerprint: int) -> bool:
        return (
            is_among(fingerprint, self.exact_set)
            if self.exact_set is not None
            else any(fingerprint in filter for _, filter in self.filters)
        )

    def add(self, fingerprint: int) -> bool:
        """Add a fingerprint, unless the epoch filter has it. Return whether a new Bloom filter was opened."""
        if fingerprint in self:
            return False
        if self.exact_set is not None and len(self.exact_set) < EXACT_MAX:
            insort(self.exact_set, fingerprint)
            return False
        opened = self.exact_set is not None
        if self.exact_set is not None:
            fingerprints, self.exact_set = self.exact_set, None
            self._open(self._expected)
            for one in fingerprints:
                self.filters[0][1].add(one)
        for _, filter in self.filters:
            if filter.count < filter.shape.capacity:
                filter.add(fingerprint)
                return opened
        stage, last = self.filters[-1]
        was_expected = stage == 0 and last.shape.capacity > CAPACITY_LEAST
        growth = SURPLUS if was_expected else GROWTH
        self._open(ceil(growth * sum(filter.shape.capacity for _, filter in self.filters)))
        self.filters[-1][1].add(fingerprint)
        return True

    def put(self, stage: int, filter: Filter) -> None:
        """Add a Bloom filter as it is."""
        self.exact_set = None
        self.filters = in_order((*self.filters, (stage, filter)))

    def shape(self, stage: int, capacity: int) -> Shape:
        """Return the shape of this epoch filter's Bloom filter of that stage and capacity."""
        return shape_for(capacity, stage_error(self._error, stage))

    def covers(self, other: "EpochFilter") -> bool:
        """Return whether a join with `other` would change nothing here.

        If not, most keys of `other` may still be here, in a filter of another shape.
        """
        if other.exact_set is not None:
            return all(fingerprint in self for fingerprint in other.exact_set)
        return all(any(_covers(mine, one) for mine in self.filters) for one in other.filters)

    def joined(self, other: "EpochFilter") -> "EpochFilter":
        """Return a new epoch filter with the keys of both, of the earlier epoch if the epochs differ.

        Raises ValueError if the join has more than `FILTERS_MAX` filters. Raises it also if neither covers the other
        and the rate, with all filters full, exceeds `JOINED_RATE_FACTOR_MAX` times the share.
        """
        both = self._joined(other)
        if len(both.filters) > FILTERS_MAX:
            raise ValueError(f"a joined epoch filter has at most {FILTERS_MAX} filters, not {len(both.filters)}")
        rate = both.false_positive_rate_when_full
        if rate > JOINED_RATE_FACTOR_MAX * self._error and not self.covers(other) and not other.covers(self):
            raise ValueError(f"joined they would have a false positive rate of {rate:.1e}, not {self._error:.1e}")
        return both

    def _joined(self, other: "EpochFilter") -> "EpochFilter":
        both = EpochFilter(min(self.epoch, other.epoch), self.make, self._error, max(self._expected, other._expected))
        if self.exact_set is None and other.exact_set is None:
            both.exact_set, both.filters = None, _joined(self.filters, other.filters)
            return both
        exact, larger = (self, other) if self.exact_set is not None else (other, self)
        assert exact.exact_set is not None, "one of the two has an exact set"
        if larger.exact_set is None:
            both.exact_set, both.filters = None, _joined(larger.filters, ())
        else:
            both.exact_set = make_exact_set(larger.exact_set)
        for fingerprint in exact.exact_set:
            both.add(fingerprint)
        return both

    def _open(self, keys: int) -> None:
        stage = 1 + self.filters[-1][0] if self.filters else 0
        self.filters = (*self.filters, (stage, self.make(self.shape(stage, ladder(keys)))))


def in_order(numbered: Sequence[tuple[int, Filter]]) -> tuple[tuple[int, Filter], ...]:
    """Return filters in an order that is the same for all peers with the same filters."""
    shapes = Counter(filter.shape for _, filter in numbered)
    return tuple(
        sorted(
            numbered,
            key=lambda one: (one[0], one[1].shape.capacity, _digest(one[1]) if shapes[one[1].shape] > 1 else b""),
        )
    )


def _digest(filter: Filter) -> bytes:
    """Return a hash of the bits, to order filters of one shape: a filter may have 100 MB."""
    return blake2b(filter.bits, digest_size=16).digest()


def _joined(mine: Sequence[tuple[int, Filter]], theirs: Sequence[tuple[int, Filter]]) -> tuple[tuple[int, Filter], ...]:
    """Return copies of all filters that no other filter covers, and join pairs of one shape if the rate allows."""
    theirs = [one for one in theirs if not any(_covers(another, one) for another in mine)]
    mine = [one for one in mine if not any(_covers(another, one) for another in theirs)]
    left = {id(filter): (stage, filter) for stage, filter in (*mine, *theirs)}
    pairs = [(a, b) for a, b in product(mine, theirs) if a[1].shape == b[1].shape]
    if len(pairs) > 1:
        # The same pairs in the same order on both sides of a join.
        digests = {id(filter): (stage, filter.shape.capacity, _digest(filter)) for stage, filter in (*mine, *theirs)}
        pairs.sort(key=lambda pair: sorted(digests[id(filter)] for _, filter in pair))
    joined: list[tuple[int, Filter]] = []
    for (stage, a), (_, b) in pairs:
        if id(a) in left and id(b) in left:
            one = a.merged(b)
            if error_of(one) <= JOINED_ERROR * one.shape.error:
                del left[id(a)], left[id(b)]
                joined.append((stage, one))
    copies = [(stage, filter.merged(filter)) for stage, filter in left.values()]
    return in_order((*joined, *copies))


def _covers(one: tuple[int, Filter], other: tuple[int, Filter]) -> bool:
    return one[1].shape == other[1].shape and one[1].covers(other[1])
