"""Which keys of a cell were met lately: fingerprints that expire by themselves (P4).

One slice for each grain of time; a key was seen if it is in any that lives. It is added to the current one, which is
dropped whole when its time is over. So a key met in grain g is forgotten when grain g + `grains` begins, after
at least `grains` - 1 and at most `grains` of them. A key once added is seen until then; of the keys never added,
at most `error` are taken for seen, over all slices together and however they grew.

There is one `Seen` for each cell with anything in it, and none for the others: a cell that moves takes its own along
and nothing else (`seen_wire`), and two copies are joined. `now` is an argument, looked at in every call: the clock may
roll over between any two. It may also jump back: slices that then lie ahead stay, count as seen, and expire when
their time comes; there are at most as many as live otherwise, and errors may double until then. Only a clock that jumps
ahead is believed: what it makes old is gone. Decides nothing else, and raises nothing on the way.

Departures from the paper: its bits lie in one Redis; k follows from the error, instead of being 6.
"""

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass

from kadcrawl.errors import ConfigError
from kadcrawl.keys import Key
from kadcrawl.store.bloom.engines import engine
from kadcrawl.store.bloom.filter import Filter, place_of
from kadcrawl.store.bloom.slice import EpochFilter, ExactSet, is_among

EPOCHS_MAX = 400
"""A year of days."""
EPOCH_LEAST_S = 1.0
ERROR_LEAST, ERROR_MOST = 1e-9, 0.1


@dataclass(frozen=True, slots=True)
class Period:
    """For how long, how surely and by what keys are kept; one for all cells, and the same on every peer.

    Raises ConfigError for what cannot be, or if the filters' package is missing.
    """

    epoch_s: float = 86_400
    epochs: int = 7
    """L: slices that live at a time."""
    error: float = 1e-4
    """Of the keys never added, how many may be taken for seen, over all slices. Each slice has an equal share.

    One that was joined of copies of unlike keys may err more, up to `seen_slice.ERRS_JOINED` times its share."""
    filters: str = "pybloom"
    """By which package: pybloom, or rbloom where the extra fast-history is installed."""

    def __post_init__(self) -> None:
        for holds, otherwise in (
            (self.epoch_s >= EPOCH_LEAST_S, f"a grain is at least {EPOCH_LEAST_S:g} s, not {self.epoch_s}"),
            (1 <= self.epochs <= EPOCHS_MAX, f"a period has 1 to {EPOCHS_MAX} grains, not {self.epochs}"),
            (ERROR_LEAST <= self.error <= ERROR_MOST, f"the error is {ERROR_LEAST} to {ERROR_MOST}, not {self.error}"),
        ):
            if not holds:
                raise ConfigError(otherwise)
        engine(self.filters)

    @property
    def make(self) -> type[Filter]:
        return engine(self.filters)

    @property
    def epoch_error(self) -> float:
        return self.error / self.epochs

    def epoch(self, now: float) -> int:
        """Return the number of the grain that a second of the wall clock lies in."""
        return int(now // self.epoch_s)


class ExpiringFilter:
    """The keys of one cell that were met lately."""

    __slots__ = ("_ask", "_epoch", "_epoch_filters", "_exact_sets", "_fullest", "period")

    def __init__(self, period: Period) -> None:
        self.period = period
        self._epoch_filters: tuple[EpochFilter, ...] = ()
        """In order of time; a tuple, as of most cells there are many and in each a few keys."""
        self._epoch: int | None = None
        """At which the dead were last dropped."""
        self._fullest = 0
        """Keys of the fullest slice there was then."""
        self._exact_sets: tuple[ExactSet, ...] = ()
        """What is asked for a key, the youngest first: of slices with just a few, ..."""
        self._ask: Callable[[int], bool] | None = None
        """... and all filters at once."""

    def contains(self, key: Key, now: float) -> bool:
        """Return whether the key was added in a grain that lives; rarely also for one that was not (`Period.error`)."""
        if now // self.period.epoch_s != self._epoch:
            self._roll(now)
        place = place_of(key)
        for few in self._exact_sets:
            if is_among(place, few):
                return True
        return self._ask is not None and self._ask(place)

    def add(self, key: Key, now: float) -> None:
        """The key was met now. Adding it again later lengthens its life, so add only what is not seen."""
        self._roll(now)
        grain = self.period.epoch(now)
        for current in reversed(self._epoch_filters):
            if current.epoch == grain:
                if current.add(place_of(key)):
                    self._keep(self._epoch_filters)
                return
        first = EpochFilter(grain, self.period.make, self.period.epoch_error, self._fullest)
        first.add(place_of(key))
        self._keep([*self._epoch_filters, first])

    def join(self, other: "ExpiringFilter", now: float) -> None:
        """Take up what another copy of the cell has.

        Raises ValueError, and changes nothing, if it is of another period or there would be too many filters or errors.
        """
        if self.period != other.period:
            raise ValueError(f"a set of {other.period} cannot be joined to one of {self.period}")
        self._roll(now)
        oldest = self.period.epoch(now) - self.period.epochs + 1
        slices = {one.epoch: one for one in self._epoch_filters}
        for theirs in other.epoch_filters:
            if theirs.epoch >= oldest:
                empty = EpochFilter(theirs.epoch, self.period.make, self.period.epoch_error)
                slices[theirs.epoch] = slices.get(theirs.epoch, empty).joined(theirs)
        self._keep(slices.values())

    def live(self, now: float) -> int:
        """Return how many slices live, after dropping the others; with none, the set need not be kept."""
        self._roll(now)
        return len(self._epoch_filters)

    def count(self, now: float) -> int:
        """Return how many keys the slices have, as far as one knows; a key of two slices counts twice."""
        self._roll(now)
        return sum(one.count for one in self._epoch_filters)

    def false_positive_rate(self, now: float) -> float:
        """Return which share of keys never added is taken for seen now, by the bits that are set; reads them all.

        Above `Period.error` only if unlike copies were joined; who has the keys had better make the set anew then.
        """
        self._roll(now)
        return sum(one.false_positive_rate for one in self._epoch_filters)

    @property
    def epoch_filters(self) -> Sequence[EpochFilter]:
        """All slices, in order of time."""
        return self._epoch_filters

    def put(self, new: EpochFilter) -> None:
        """Take a slice up as it is; there is none of that grain."""
        assert new.epoch not in [one.epoch for one in self._epoch_filters], "slices of one grain are joined"
        self._keep([*self._epoch_filters, new])

    def replace(self, new: EpochFilter) -> None:
        """Take a slice up in place of that of its grain."""
        self._keep([*(one for one in self._epoch_filters if one.epoch != new.epoch), new])

    def _roll(self, now: float) -> None:
        """Drop what has had its time."""
        grain = self.period.epoch(now)
        if grain == self._epoch:
            return
        self._epoch = grain
        self._fullest = max((one.count for one in self._epoch_filters), default=self._fullest)
        if any(one.epoch <= grain - self.period.epochs for one in self._epoch_filters):
            self._keep([one for one in self._epoch_filters if one.epoch > grain - self.period.epochs])

    def _keep(self, epoch_filters: Iterable[EpochFilter]) -> None:
        """Take these for all there are, and see to what is asked for a key."""
        kept = sorted(epoch_filters, key=lambda one: one.epoch)
        # No more ahead of the clock than live: it may jump back again and again.
        while (
            self._epoch is not None
            and len(kept) > self.period.epochs
            and kept[-self.period.epochs - 1].epoch > self._epoch
        ):
            last = kept.pop()
            with suppress(ValueError):  # Then it is forgotten: its pages may come again.
                kept[-1] = kept[-1].joined(last)
        self._epoch_filters = tuple(kept)
        youngest_first = kept[::-1]
        filters = [filter for one in youngest_first for _, filter in one.filters]
        self._exact_sets = tuple(one.exact_set for one in youngest_first if one.exact_set is not None)
        self._ask = self.period.make.asking(filters) if filters else None
