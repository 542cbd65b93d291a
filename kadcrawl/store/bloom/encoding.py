"""The epoch filters of a cell as bytes for the wire and the disk. The reader trusts no byte.

    head          "seen", version, tag of the engine, number of epochs; epoch in s (`Period.encoded_s`), error
    epoch filter  epoch, number of fingerprints, number of filters; one of the two numbers is 0, never both
    fingerprint   8 bytes, ascending
    filter        stage, capacity; its bits, as many as these two determine

All numbers are little-endian, and everything has one order, so that equal filters have equal bytes. Nothing is
compressed, as a full filter does not compress. The number of keys in a filter is not encoded but estimated from its
bits. The reader refuses an epoch filter whose false positive rate is above its share, which would keep a cell from
being crawled. Stages count from 0 without a gap, and no filter is smaller than growth makes it. So a higher stage needs
more bytes, and `FILTER_BYTES_MAX` bounds them all. The reader takes no memory before the bytes for it are there.
"""

from collections.abc import Iterator
from itertools import pairwise
from struct import Struct, calcsize, pack, unpack
from typing import TypeAlias

from kadcrawl.link.wire.messages import EPOCH_FILTER_WHOLE_BYTES_MAX
from kadcrawl.store.bloom.epoch_filter import (
    EXACT_MAX,
    FILTERS_MAX,
    EpochFilter,
    ExactSet,
    in_order,
    ladder,
    least_capacity,
    make_exact_set,
)
from kadcrawl.store.bloom.expiring_filter import ExpiringFilter, Period
from kadcrawl.store.bloom.filter import Filter

MAGIC = b"seen"
ENCODING_VERSION = 1
FILTER_BYTES_MAX = EPOCH_FILTER_WHOLE_BYTES_MAX
"""Limit on the encoded filters of one cell: room for 10^7 keys in each of seven epochs."""
RATE_FACTOR_MAX = 4.0
"""Limit on the rate of a full epoch filter over its share of the error.

It is above `JOINED_RATE_FACTOR_MAX`, as further stages may follow a join, and the bits that are set are chance."""
AHEAD = 1
"""Number of epochs by which another peer's clock may be ahead of this peer's."""

_HEAD = Struct("<4sBBHdd")
_EPOCH_FILTER = Struct("<qHB")
_FILTER = Struct("<BI")

_Part: TypeAlias = bytes | Filter
"""Some bytes, or a filter whose bits come next."""


def to_bytes(expiring: ExpiringFilter, now: float) -> bytes:
    """Return the encoded live epoch filters of a cell."""
    expiring.live(now)
    return b"".join(part if isinstance(part, bytes) else part.bits for part in _parts(expiring))


class Pieces:
    """The encoding of epoch filters that may be large, made piece by piece.

    The filters are not copied, so a key that is added meanwhile is in the pieces made later.
    """

    def __init__(self, expiring: ExpiringFilter) -> None:
        self._parts = list(_parts(expiring))
        self.size = sum(map(_size, self._parts))

    def cut(self, at: int, most: int) -> bytes:
        """Return up to `most` bytes of the encoding from offset `at` on."""
        cuts: list[bytes] = []
        for part in self._parts:
            size = _size(part)
            if at < size and most > 0:
                bits = part if isinstance(part, bytes) else part.bits
                cuts.append(bits[at : at + most])
                most -= len(cuts[-1])
            at = max(0, at - size)
        return b"".join(cuts)


def from_bytes(data: bytes, period: Period, now: float, bytes_max: int = FILTER_BYTES_MAX) -> ExpiringFilter:
    """Return the filter that `to_bytes` encoded, without the epoch filters that have expired since.

    Raises ValueError with the reason unless the bytes are well formed, of this period and engine, within the limits,
    and of no epoch after the next.
    """
    if len(data) > bytes_max:
        raise ValueError(f"a cell's epoch filters have at most {bytes_max:,} bytes, not {len(data):,}")
    reader = _FilterReader(data)
    _check_head(reader, period)
    expiring = ExpiringFilter(period)
    current = period.epoch(now)
    latest = None
    while reader.left:
        epoch, exact, filters = reader.take(_EPOCH_FILTER, "an epoch filter")
        if latest is not None and epoch <= latest:
            raise ValueError(f"epoch filters are in order of time, but {epoch} comes after {latest}")
        if epoch > current + AHEAD:
            raise ValueError(f"epoch {epoch} lies ahead of epoch {current}: check the clocks of both peers")
        latest = epoch
        one = EpochFilter(epoch, period.make, period.epoch_error)
        if exact and not filters:
            one.exact_set = _read_exact_set(reader, exact)
        elif filters and not exact:
            _read_filters(reader, one, filters, period.epoch_error)
        else:
            raise ValueError(f"an epoch filter has fingerprints or filters, not {exact} and {filters}")
        if epoch > current - period.epochs:
            expiring.put(one)
    return expiring


class _FilterReader:
    """Bytes that are read from the front."""

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
    yield _HEAD.pack(MAGIC, ENCODING_VERSION, period.make.tag, period.epochs, period.encoded_s, period.error)
    for one in expiring.epoch_filters:
        exact = one.exact_set if one.exact_set is not None else ()
        yield _EPOCH_FILTER.pack(one.epoch, len(exact), len(one.filters))
        yield pack(f"<{len(exact)}Q", *exact)
        for stage, filter in in_order(one.filters):
            yield _FILTER.pack(stage, filter.shape.capacity)
            yield filter


def _check_head(reader: _FilterReader, period: Period) -> None:
    magic, version, *theirs = _HEAD.unpack(reader.take_bytes(_HEAD.size, "the head"))
    if (magic, version) != (MAGIC, ENCODING_VERSION):
        raise ValueError(f"these are no epoch filters of version {ENCODING_VERSION}")
    ours = [period.make.tag, period.epochs, period.encoded_s, period.error]
    if theirs != ours:
        raise ValueError(f"epoch filters of another kind: engine, epochs, epoch_s and error are {theirs}, not {ours}")


def _read_exact_set(reader: _FilterReader, count: int) -> ExactSet:
    if count > EXACT_MAX:
        raise ValueError(f"an exact set has at most {EXACT_MAX} fingerprints, not {count}")
    form = f"<{count}Q"
    fingerprints = unpack(form, reader.take_bytes(calcsize(form), f"an exact set of {count} fingerprints"))
    if any(one >= other for one, other in pairwise(fingerprints)):
        raise ValueError("fingerprints must ascend, and each must occur once")
    return make_exact_set(fingerprints)


def _read_filters(reader: _FilterReader, one: EpochFilter, count: int, epoch_error: float) -> None:
    if count > FILTERS_MAX:
        raise ValueError(f"an epoch filter has at most {FILTERS_MAX} filters, not {count}")
    latest = -1
    for _ in range(count):
        stage, capacity = reader.take(_FILTER, "a filter")
        if capacity < least_capacity(stage) or ladder(capacity) != capacity:
            raise ValueError(f"there is no filter of stage {stage} for {capacity:,} keys")
        if not max(latest, 0) <= stage <= latest + 1:
            raise ValueError(f"no filter of stage {stage} follows one of stage {latest}")
        latest = stage
        shape = one.shape(stage, capacity)
        filter = one.make(shape, reader.take_bytes(shape.size_bytes, f"a filter for {capacity:,} keys"))
        if not filter.count:
            raise ValueError(f"a filter for {capacity:,} keys has none")
        one.put(stage, filter)
    if (rate := one.false_positive_rate_when_full) > RATE_FACTOR_MAX * epoch_error:
        raise ValueError(f"the false positive rate is {rate:.1e}, and may only be {epoch_error:.1e}")
