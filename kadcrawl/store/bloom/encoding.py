"""A cell's slices as bytes, for the wire and the disk, and back, believing nothing.

    head     "seen", version, tag of the filters' engine, L; grain in s, error
    slice    grain number, how many places, how many filters; one of both is 0, never both
    place    8 bytes, ascending
    filter   rung, capacity; its bits, as many as these two ask for

All little-endian, everything in one order, so that equal sets have equal bytes; nothing is compressed, as a full filter
cannot be. How many keys a filter has is not told but counted from its bits, and a slice that says yes to more than its
share is refused: it would keep a cell from being crawled. Rungs are told from 0 on without a gap, and none has a filter
smaller than growth makes it: the higher a rung, the more bytes it takes to claim one, and what there is room for in
`BYTES_MAX` bounds them all. No memory is taken before the bytes it is for are there.
"""

from collections.abc import Iterator
from itertools import pairwise
from struct import Struct, calcsize, pack, unpack
from typing import TypeAlias

from kadcrawl.link.wire.messages import EPOCH_FILTER_WHOLE_BYTES_MAX
from kadcrawl.store.bloom.expiring_filter import ExpiringFilter, Period
from kadcrawl.store.bloom.filter import Filter
from kadcrawl.store.bloom.slice import (
    EXACT_MAX,
    FILTERS_MAX,
    EpochFilter,
    ExactSet,
    in_order,
    ladder,
    least_capacity,
    make_exact_set,
)

MAGIC = b"seen"
ENCODING_VERSION = 1
FILTER_BYTES_MAX = EPOCH_FILTER_WHOLE_BYTES_MAX
"""Of one cell: 10^7 keys in each of seven slices."""
RATE_FACTOR_MAX = 4.0
"""Times its share of the error a slice may come to err, all its filters full: more than `ERRS_JOINED`, as further
filters may follow a join, and which bits are set is chance."""
AHEAD = 1
"""Grains that another peer's clock may be ahead of ours."""

_HEAD = Struct("<4sBBHdd")
_EPOCH_FILTER = Struct("<qHB")
_FILTER = Struct("<BI")

_Part: TypeAlias = bytes | Filter
"""Some bytes, or the filter whose bits come next."""


def to_bytes(expiring: ExpiringFilter, now: float) -> bytes:
    """Return the live slices of a cell."""
    expiring.live(now)
    return b"".join(part if isinstance(part, bytes) else part.bits for part in _parts(expiring))


class Pieces:
    """The same for slices that may be large: some bytes, without making all others.

    Each filter is the one there was; a key that is added to it meanwhile is in what is made later.
    """

    def __init__(self, expiring: ExpiringFilter) -> None:
        self._parts = list(_parts(expiring))
        self.size = sum(map(_size, self._parts))

    def cut(self, at: int, most: int) -> bytes:
        """Return up to so many bytes from `at` on."""
        found = []
        for part in self._parts:
            size = _size(part)
            if at < size and most > 0:
                bits = part if isinstance(part, bytes) else part.bits
                found.append(bits[at : at + most])
                most -= len(found[-1])
            at = max(0, at - size)
        return b"".join(found)


def from_bytes(data: bytes, period: Period, now: float, bytes_max: int = FILTER_BYTES_MAX) -> ExpiringFilter:
    """Return the set that `to_bytes` told of; slices that have expired meanwhile are left out.

    Raises ValueError, saying what is wrong, unless the bytes are well formed, of this period and engine, within the
    limits, and not of a later grain than the next one.
    """
    if len(data) > bytes_max:
        raise ValueError(f"a cell's slices have at most {bytes_max:,} bytes, not {len(data):,}")
    reader = _FilterReader(data)
    _check_head(reader, period)
    seen = ExpiringFilter(period)
    current = period.epoch(now)
    latest = None
    while reader.left:
        grain, places, filters = reader.take(_EPOCH_FILTER, "a slice")
        if latest is not None and grain <= latest:
            raise ValueError(f"slices are in order of time, but {grain} comes after {latest}")
        if grain > current + AHEAD:
            raise ValueError(f"the slice of grain {grain} lies ahead of grain {current}: is either clock wrong?")
        latest = grain
        one = EpochFilter(grain, period.make, period.epoch_error)
        if places and not filters:
            one.exact_set = _read_exact_set(reader, places)
        elif filters and not places:
            _read_filters(reader, one, filters, period.epoch_error)
        else:
            raise ValueError(f"a slice has places or filters, not {places} and {filters}")
        if grain > current - period.epochs:
            seen.put(one)
    return seen


class _FilterReader:
    """Bytes, taken from the front."""

    def __init__(self, data: bytes) -> None:
        self._data = memoryview(data)

    @property
    def left(self) -> int:
        return len(self._data)

    def take(self, form: Struct, what: str) -> tuple[int, ...]:
        return form.unpack(self.take_bytes(form.size, what))

    def take_bytes(self, size: int, what: str) -> bytes:
        if size > self.left:
            raise ValueError(f"{what} needs {size:,} bytes, but only {self.left:,} are left")
        taken, self._data = self._data[:size], self._data[size:]
        return bytes(taken)


def _size(part: _Part) -> int:
    return len(part) if isinstance(part, bytes) else part.shape.size_bytes


def _parts(expiring: ExpiringFilter) -> Iterator[_Part]:
    period = expiring.period
    yield _HEAD.pack(MAGIC, ENCODING_VERSION, period.make.tag, period.epochs, period.epoch_s, period.error)
    for one in expiring.epoch_filters:
        places = one.exact_set if one.exact_set is not None else ()
        yield _EPOCH_FILTER.pack(one.epoch, len(places), len(one.filters))
        yield pack(f"<{len(places)}Q", *places)
        for rung, filter in in_order(one.filters):
            yield _FILTER.pack(rung, filter.shape.capacity)
            yield filter


def _check_head(reader: _FilterReader, period: Period) -> None:
    magic, version, *theirs = _HEAD.unpack(reader.take_bytes(_HEAD.size, "the head"))
    if (magic, version) != (MAGIC, ENCODING_VERSION):
        raise ValueError(f"these are no slices of version {ENCODING_VERSION}")
    ours = [period.make.tag, period.epochs, period.epoch_s, period.error]
    if theirs != ours:
        raise ValueError(f"slices of another kind: engine, grains, grain in s and error are {theirs}, ours {ours}")


def _read_exact_set(reader: _FilterReader, count: int) -> ExactSet:
    if count > EXACT_MAX:
        raise ValueError(f"a slice has at most {EXACT_MAX} places, not {count}")
    form = f"<{count}Q"
    places = unpack(form, reader.take_bytes(calcsize(form), f"a slice of {count} places"))
    if any(one >= other for one, other in pairwise(places)):
        raise ValueError("places are told in order, each once")
    return make_exact_set(places)


def _read_filters(reader: _FilterReader, one: EpochFilter, count: int, epoch_error: float) -> None:
    if count > FILTERS_MAX:
        raise ValueError(f"a slice has at most {FILTERS_MAX} filters, not {count}")
    latest = -1
    for _ in range(count):
        rung, capacity = reader.take(_FILTER, "a filter")
        if capacity < least_capacity(rung) or ladder(capacity) != capacity:
            raise ValueError(f"there is no filter of rung {rung} for {capacity:,} keys")
        if not max(latest, 0) <= rung <= latest + 1:
            raise ValueError(f"no filter of rung {rung} follows one of rung {latest}")
        latest = rung
        shape = one.shape(rung, capacity)
        filter = one.make(shape, reader.take_bytes(shape.size_bytes, f"a filter for {capacity:,} keys"))
        if not filter.count:
            raise ValueError(f"a filter for {capacity:,} keys has none")
        one.put(rung, filter)
    if (errs := one.false_positive_rate_when_full) > RATE_FACTOR_MAX * epoch_error:
        raise ValueError(f"a slice takes {errs:.1e} of all keys for seen, and may only {epoch_error:.1e}")
