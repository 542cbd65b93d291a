"""The keys of one cell met in one grain of time: a few exactly, more in Bloom filters that follow each other.

Up to `FEW_MAX` places are kept sorted, 8 bytes each and without error: most cells of a crawl never have more, and a
filter, which needs room for those that may follow, would take more. Then they go into a filter; when it is full a
further one is opened, and nothing raises.

**Errors.** A slice may err with its share of the whole, `error`. Its first filter has `FIRST_SHARE` of that, the
further ones share the rest by 1/(i(i+1)), i = 1, 2, ..., which sums to 1 however many there are. The first is made as
large as the fullest slice of the days before, so that usually there is no second.

**Joins.** Of two copies of a slice, filters of one shape become one if that errs no more than both apart may, by the
bits that are set; else both stay. So whatever was added to either is seen, copies of one history stay one filter, and
a union of strangers keeps an error that is known (`errs`): two that are full err twice as much as one. Keys cannot be
told from bits, so nothing would put them into one larger filter. What would come to more than `ERRS_JOINED` times its
share is not joined at all. A join is commutative and idempotent, and joining again what was joined changes nothing: of
two slices joined each is covered by the union, filter by filter (`covers`).

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
"""Places kept one by one: 2 KB, when a filter for four times as many takes 3.4 with its objects."""
OBJECTS_BYTES = 300
"""Memory of a slice with nothing in it."""
CAPACITY_LEAST = 4 * EXACT_MAX
GROWTH = 3
"""A further filter holds so many times what those before it hold: few to ask, at the price of room in the last."""
SURPLUS = 0.25
"""The same for the second where the first was made for as many as were expected."""
STEPS = 32
"""Capacities there are from one power of 2 to the next, so that filters of like slices have the same shape."""
FIRST_SHARE = 0.9
"""Of a slice's error for its first filter: of the rest it rarely has need."""
JOINED_ERROR = 2.0
"""Times the designed error, that of two full filters kept apart: what one in place of both may have."""
JOINED_RATE_FACTOR_MAX = 3.5
"""Times its share of the error a joined slice may come to err, all its filters full: that of three holders who knew
nothing of each other, and some chance."""
FILTERS_MAX = 32
"""Filters of one slice: growth needs 10 for the largest capacity, joins may add some."""


ExactSet: TypeAlias = "array[int]"
"""Some places in order, each once."""


def make_exact_set(places: Iterable[int] = ()) -> ExactSet:
    """Keep places, which are in order, each once."""
    return array("Q", places)


def is_among(place: int, exact_set: ExactSet) -> bool:
    """Return whether a place is one of a few."""
    at = bisect_left(exact_set, place)
    return at < len(exact_set) and exact_set[at] == place


def ladder(keys: int) -> int:
    """Return the least capacity filters come in that holds so many keys, or the largest there is."""
    if keys <= CAPACITY_LEAST:
        return CAPACITY_LEAST
    step = 1 << ceil(log2(keys)) - 1
    return min(CAPACITY_MAX, step + ceil((keys - step) * STEPS / step) * step // STEPS)


def least_capacity(stage: int) -> int:
    """Return the least capacity growth gives to a filter of this number.

    The first two together have room for twice `CAPACITY_LEAST`: the second may be a surplus. From then on each is
    `GROWTH` times those before it, so that a high rung says that there are many keys.
    """
    if stage < 2:
        return CAPACITY_LEAST
    before: int = 2 * CAPACITY_LEAST * (GROWTH + 1) ** (stage - 2)
    return min(CAPACITY_MAX, GROWTH * before)


@lru_cache
def stage_error(error: float, stage: int) -> float:
    """Return what the filter of this number, from 0, has of a slice's `error`."""
    return error * (FIRST_SHARE if stage == 0 else (1 - FIRST_SHARE) / (stage * (stage + 1)))


class EpochFilter:
    """What was met in one grain."""

    __slots__ = ("_error", "_expected", "epoch", "exact_set", "filters", "make")

    def __init__(self, epoch: int, make: type[Filter], error: float, expected: int = 0) -> None:
        """`error` is the whole slice's; `expected` is how many keys to make room for once there are not just a few."""
        self.epoch = epoch
        self.make = make
        self._error = error
        self._expected = expected
        self.exact_set: ExactSet | None = make_exact_set()
        """None once there are filters."""
        self.filters: tuple[tuple[int, Filter], ...] = ()
        """(Rung, filter), in order of rung."""

    @property
    def count(self) -> int:
        """How many keys, as far as one knows."""
        return len(self.exact_set) if self.exact_set is not None else sum(filter.count for _, filter in self.filters)

    @property
    def size_bytes(self) -> int:
        """What it takes in memory, about."""
        places = 8 * len(self.exact_set) if self.exact_set is not None else 0
        return OBJECTS_BYTES + places + sum(filter.shape.size_bytes for _, filter in self.filters)

    @property
    def false_positive_rate(self) -> float:
        """Which share of keys never added is taken for added, by the bits that are set; counts them."""
        return sum(error_of(filter) for _, filter in self.filters)

    @property
    def false_positive_rate_when_full(self) -> float:
        """Return the same once all filters are full."""
        return sum(max(error_of(filter), filter.shape.error) for _, filter in self.filters)

    def __contains__(self, place: int) -> bool:
        return (
            is_among(place, self.exact_set)
            if self.exact_set is not None
            else any(place in filter for _, filter in self.filters)
        )

    def add(self, place: int) -> bool:
        """Add a place, unless it is there; return whether there is a filter that was not there before."""
        if place in self:
            return False
        if self.exact_set is not None and len(self.exact_set) < EXACT_MAX:
            insort(self.exact_set, place)
            return False
        opened = self.exact_set is not None
        if self.exact_set is not None:
            places, self.exact_set = self.exact_set, None
            self._open(self._expected)
            for one in places:
                self.filters[0][1].add(one)
        for _, filter in self.filters:
            if filter.count < filter.shape.capacity:
                filter.add(place)
                return opened
        rung, last = self.filters[-1]
        was_expected = rung == 0 and last.shape.capacity > CAPACITY_LEAST
        growth = SURPLUS if was_expected else GROWTH
        self._open(ceil(growth * sum(filter.shape.capacity for _, filter in self.filters)))
        self.filters[-1][1].add(place)
        return True

    def put(self, stage: int, filter: Filter) -> None:
        """Take a filter up as it is."""
        self.exact_set = None
        self.filters = in_order((*self.filters, (stage, filter)))

    def shape(self, stage: int, capacity: int) -> Shape:
        """Return the shape of this slice's filter of that rung and capacity."""
        return shape_for(capacity, stage_error(self._error, stage))

    def covers(self, other: "EpochFilter") -> bool:
        """Return whether a join with `other` would change nothing here.

        If not, most of what `other` has may be here all the same, in a filter of another shape.
        """
        if other.exact_set is not None:
            return all(place in self for place in other.exact_set)
        return all(any(_covers(mine, one) for mine in self.filters) for one in other.filters)

    def joined(self, other: "EpochFilter") -> "EpochFilter":
        """Return a new slice with what either has, of the earlier grain if they differ.

        Raises ValueError if it came to more than `FILTERS_MAX` filters, or might come to err more than `ERRS_JOINED`
        allows where neither has all that the other has.
        """
        both = self._joined(other)
        if len(both.filters) > FILTERS_MAX:
            raise ValueError(f"a joined slice has at most {FILTERS_MAX} filters, not {len(both.filters)}")
        errs = both.false_positive_rate_when_full
        if errs > JOINED_RATE_FACTOR_MAX * self._error and not self.covers(other) and not other.covers(self):
            raise ValueError(f"joined they would take {errs:.1e} of all keys for seen, not {self._error:.1e}")
        return both

    def _joined(self, other: "EpochFilter") -> "EpochFilter":
        both = EpochFilter(min(self.epoch, other.epoch), self.make, self._error, max(self._expected, other._expected))
        if self.exact_set is None and other.exact_set is None:
            both.exact_set, both.filters = None, _joined(self.filters, other.filters)
            return both
        few, more = (self, other) if self.exact_set is not None else (other, self)
        assert few.exact_set is not None, "one of both has but a few"
        if more.exact_set is None:
            both.exact_set, both.filters = None, _joined(more.filters, ())
        else:
            both.exact_set = make_exact_set(more.exact_set)
        for place in few.exact_set:
            both.add(place)
        return both

    def _open(self, keys: int) -> None:
        rung = 1 + self.filters[-1][0] if self.filters else 0
        self.filters = (*self.filters, (rung, self.make(self.shape(rung, ladder(keys)))))


def in_order(numbered: Sequence[tuple[int, Filter]]) -> tuple[tuple[int, Filter], ...]:
    """Return the filters of a slice in the same order for whoever has the same."""
    shapes = Counter(filter.shape for _, filter in numbered)
    return tuple(
        sorted(
            numbered,
            key=lambda one: (one[0], one[1].shape.capacity, _digest(one[1]) if shapes[one[1].shape] > 1 else b""),
        )
    )


def _digest(filter: Filter) -> bytes:
    """Return what stands for the bits where filters of one shape are put in order: filters may have 100 MB."""
    return blake2b(filter.bits, digest_size=16).digest()


def _joined(mine: Sequence[tuple[int, Filter]], theirs: Sequence[tuple[int, Filter]]) -> tuple[tuple[int, Filter], ...]:
    """Return copies of all filters without what others cover; each of theirs in one of mine if both fit into one."""
    theirs = [one for one in theirs if not any(_covers(another, one) for another in mine)]
    mine = [one for one in mine if not any(_covers(another, one) for another in theirs)]
    left = {id(filter): (rung, filter) for rung, filter in (*mine, *theirs)}
    pairs = [(a, b) for a, b in product(mine, theirs) if a[1].shape == b[1].shape]
    if len(pairs) > 1:
        # The same pairs in the same order whoever joins whom.
        digests = {id(filter): (rung, filter.shape.capacity, _digest(filter)) for rung, filter in (*mine, *theirs)}
        pairs.sort(key=lambda pair: sorted(digests[id(filter)] for _, filter in pair))
    found: list[tuple[int, Filter]] = []
    for (rung, a), (_, b) in pairs:
        if id(a) in left and id(b) in left:
            one = a.merged(b)
            if error_of(one) <= JOINED_ERROR * one.shape.error:
                del left[id(a)], left[id(b)]
                found.append((rung, one))
    copies = [(rung, filter.merged(filter)) for rung, filter in left.values()]
    return in_order((*found, *copies))


def _covers(one: tuple[int, Filter], other: tuple[int, Filter]) -> bool:
    return one[1].shape == other[1].shape and one[1].covers(other[1])
