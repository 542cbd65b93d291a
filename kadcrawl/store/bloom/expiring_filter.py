"""The done keys of one cell as fingerprints that expire (P4).

`ExpiringFilter` has one epoch filter for each *epoch*, a span of wall-clock time: some seconds, or an hour, day, week
or month of the calendar (calendar_epochs.py). A key is known if it is in a live epoch filter. A new key goes into the
filter of the current epoch. The whole filter is dropped when its time is over: a key added in epoch e is forgotten when
epoch e + `epochs` begins, after at least `epochs` - 1 and at most `epochs` epochs. Until then the key stays known. Over
all live epochs together, and however they grew, at most the share `error` of the keys never added is reported as known.

Each cell with done keys has one `ExpiringFilter`. A cell that moves takes its own along (encoding.py), and two copies
are joined. `now` is an argument of every call that depends on time. The clock may jump back: epoch filters that then
lie ahead stay, count as known, and expire when their time comes. No more of them are kept than live otherwise, and the
false positive rate may double until then. A clock that jumps ahead is believed, and the old filters are lost. Nothing
here reads a clock or raises on the way.

Departures from the paper: its bits are in one Redis server, and its k is 6, where k follows from the error here.
"""

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass

from kadcrawl.errors import ConfigError
from kadcrawl.keys import Key
from kadcrawl.settings.recrawl_checks import CALENDAR_GRAINS_S, CalendarGrain
from kadcrawl.store.bloom import calendar_epochs
from kadcrawl.store.bloom.engines import engine
from kadcrawl.store.bloom.epoch_filter import EpochFilter, ExactSet, is_among
from kadcrawl.store.bloom.filter import Filter, fingerprint_of

EPOCHS_MAX = 400
"""Limit on the epochs of a period: a year of days, and some."""
EPOCH_LEAST_S = 1.0
"""Shortest epoch, in seconds."""
ERROR_LEAST, ERROR_MOST = 1e-9, 0.1
"""Limits of a period's false positive rate."""


@dataclass(frozen=True, slots=True)
class Period:
    """The lifetime and the accuracy of fingerprints: one period for all cells, the same on every peer.

    Raises ConfigError for values out of their limits, or if the package of the filters is missing.
    """

    epoch_s: float = 86_400
    """Length of an epoch, in seconds. Without effect if there is a `calendar`."""
    epochs: int = 7
    """Number of epochs that live at a time (L in P4)."""
    error: float = 1e-4
    """False positive rate over all live epochs. Each epoch filter has an equal share.

    A join of copies with unrelated keys may exceed its share, up to `epoch_filter.JOINED_RATE_FACTOR_MAX` times."""
    filters: str = "pybloom"
    """Package of the Bloom filters: pybloom, or rbloom where the extra fast-history is installed."""
    calendar: CalendarGrain | None = None
    """Unit of the calendar, in UTC, that is one epoch, or None for epochs of `epoch_s` seconds."""

    def __post_init__(self) -> None:
        for holds, otherwise in (
            (self.epoch_s >= EPOCH_LEAST_S, f"an epoch is at least {EPOCH_LEAST_S:g} s, not {self.epoch_s}"),
            (1 <= self.epochs <= EPOCHS_MAX, f"a period has 1 to {EPOCHS_MAX} epochs, not {self.epochs}"),
            (ERROR_LEAST <= self.error <= ERROR_MOST, f"the error is {ERROR_LEAST} to {ERROR_MOST}, not {self.error}"),
        ):
            if not holds:
                raise ConfigError(otherwise)
        engine(self.filters)

    @property
    def make(self) -> type[Filter]:
        """The class of the Bloom filters."""
        return engine(self.filters)

    @property
    def epoch_error(self) -> float:
        """The share of `error` of each epoch filter."""
        return self.error / self.epochs

    def epoch(self, now: float) -> int:
        """Return the number of the epoch of a wall-clock second."""
        return int(now // self.epoch_s) if self.calendar is None else calendar_epochs.number(self.calendar, now)

    def begin_s(self, epoch: int) -> float:
        """Return the wall-clock second at which an epoch begins."""
        return epoch * self.epoch_s if self.calendar is None else calendar_epochs.begin_s(self.calendar, epoch)

    @property
    def encoded_s(self) -> float:
        """The number that tells the epochs of this period from others: the length of an epoch, in seconds.

        It is negative for weeks and months, which do not begin at multiples of their length.
        """
        if self.calendar is None:
            return self.epoch_s
        length_s = CALENDAR_GRAINS_S[self.calendar]
        return -length_s if self.calendar in ("week", "month") else length_s


class ExpiringFilter:
    """The keys of one cell that became done within the period."""

    __slots__ = ("_any_filter_has", "_epoch", "_epoch_filters", "_exact_sets", "_fullest", "period")

    def __init__(self, period: Period) -> None:
        self.period = period
        self._epoch_filters: tuple[EpochFilter, ...] = ()
        """The epoch filters in order of time. A tuple saves memory, as most peers have many cells with few keys."""
        self._epoch: int | None = None
        """The epoch in which expired epoch filters were last dropped."""
        self._fullest = 0
        """Number of keys in the fullest epoch filter at that time."""
        self._exact_sets: tuple[ExactSet, ...] = ()
        """The exact sets to search for a key, the youngest first."""
        self._any_filter_has: Callable[[int], bool] | None = None
        """Function that searches all Bloom filters for a fingerprint."""

    def contains(self, key: Key, now: float) -> bool:
        """Return whether the key was added in a live epoch. Rarely true for another key (`Period.error`)."""
        self._roll(now)
        fingerprint = fingerprint_of(key)
        for exact_set in self._exact_sets:
            if is_among(fingerprint, exact_set):
                return True
        return self._any_filter_has is not None and self._any_filter_has(fingerprint)

    def add(self, key: Key, now: float) -> None:
        """Add a key that is done now. A key that is added again lives longer, so add only unknown keys."""
        self._roll(now)
        epoch = self.period.epoch(now)
        for current in reversed(self._epoch_filters):
            if current.epoch == epoch:
                if current.add(fingerprint_of(key)):
                    self._keep(self._epoch_filters)
                return
        first = EpochFilter(epoch, self.period.make, self.period.epoch_error, self._fullest)
        first.add(fingerprint_of(key))
        self._keep([*self._epoch_filters, first])

    def join(self, other: "ExpiringFilter", now: float) -> None:
        """Add the keys of another copy of the cell.

        Raises ValueError, and changes nothing, for another period, or if a join exceeds a limit (`EpochFilter.joined`).
        """
        if self.period != other.period:
            raise ValueError(f"a filter of {other.period} cannot be joined to a filter of {self.period}")
        self._roll(now)
        oldest = self.period.epoch(now) - self.period.epochs + 1
        by_epoch = {one.epoch: one for one in self._epoch_filters}
        for theirs in other.epoch_filters:
            if theirs.epoch >= oldest:
                empty = EpochFilter(theirs.epoch, self.period.make, self.period.epoch_error)
                by_epoch[theirs.epoch] = by_epoch.get(theirs.epoch, empty).joined(theirs)
        self._keep(by_epoch.values())

    def live(self, now: float) -> int:
        """Drop the expired epoch filters, and return the number of live epoch filters.

        Without any, nothing need be kept.
        """
        self._roll(now)
        return len(self._epoch_filters)

    def count(self, now: float) -> int:
        """Return the estimated number of keys. A key of two epochs counts twice."""
        self._roll(now)
        return sum(one.count for one in self._epoch_filters)

    def false_positive_rate(self, now: float) -> float:
        """Return the share of keys never added that are reported as added. Counts all bits that are set.

        It exceeds `Period.error` only after a join of unrelated copies. A holder of the keys should then rebuild the
        filters.
        """
        self._roll(now)
        return sum(one.false_positive_rate for one in self._epoch_filters)

    @property
    def epoch_filters(self) -> Sequence[EpochFilter]:
        """All epoch filters, in order of time."""
        return self._epoch_filters

    def put(self, new: EpochFilter) -> None:
        """Add an epoch filter as it is. Its epoch must have none."""
        assert new.epoch not in [one.epoch for one in self._epoch_filters], "epoch filters of one epoch are joined"
        self._keep([*self._epoch_filters, new])

    def replace(self, new: EpochFilter) -> None:
        """Replace the epoch filter of the same epoch."""
        self._keep([*(one for one in self._epoch_filters if one.epoch != new.epoch), new])

    def _roll(self, now: float) -> None:
        """Drop the epoch filters that have expired."""
        epoch = self.period.epoch(now)
        if epoch == self._epoch:
            return
        self._epoch = epoch
        self._fullest = max((one.count for one in self._epoch_filters), default=self._fullest)
        if any(one.epoch <= epoch - self.period.epochs for one in self._epoch_filters):
            self._keep([one for one in self._epoch_filters if one.epoch > epoch - self.period.epochs])

    def _keep(self, epoch_filters: Iterable[EpochFilter]) -> None:
        """Replace all epoch filters, and prepare the search for a key."""
        kept = sorted(epoch_filters, key=lambda one: one.epoch)
        # The clock may jump back again and again, so the filters ahead of the clock are no more than the live ones.
        while (
            self._epoch is not None
            and len(kept) > self.period.epochs
            and kept[-self.period.epochs - 1].epoch > self._epoch
        ):
            last = kept.pop()
            with suppress(ValueError):  # Then the filter is forgotten, and its pages may be fetched again.
                kept[-1] = kept[-1].joined(last)
        self._epoch_filters = tuple(kept)
        youngest_first = kept[::-1]
        filters = [filter for one in youngest_first for _, filter in one.filters]
        self._exact_sets = tuple(one.exact_set for one in youngest_first if one.exact_set is not None)
        self._any_filter_has = self.period.make.asking(filters) if filters else None
