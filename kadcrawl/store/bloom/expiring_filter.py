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
from kadcrawl.store.bloom.slice import Few, Slice, is_among

GRAINS_MAX = 400
"""A year of days."""
GRAIN_LEAST_S = 1.0
ERROR_LEAST, ERROR_MOST = 1e-9, 0.1


@dataclass(frozen=True, slots=True)
class Period:
    """For how long, how surely and by what keys are kept; one for all cells, and the same on every peer.

    Raises ConfigError for what cannot be, or if the filters' package is missing.
    """

    grain_s: float = 86_400
    grains: int = 7
    """L: slices that live at a time."""
    error: float = 1e-4
    """Of the keys never added, how many may be taken for seen, over all slices. Each slice has an equal share.

    One that was joined of copies of unlike keys may err more, up to `seen_slice.ERRS_JOINED` times its share."""
    filters: str = "pybloom"
    """By which package: pybloom, or rbloom where the extra fast-history is installed."""

    def __post_init__(self) -> None:
        for holds, otherwise in (
            (self.grain_s >= GRAIN_LEAST_S, f"a grain is at least {GRAIN_LEAST_S:g} s, not {self.grain_s}"),
            (1 <= self.grains <= GRAINS_MAX, f"a period has 1 to {GRAINS_MAX} grains, not {self.grains}"),
            (ERROR_LEAST <= self.error <= ERROR_MOST, f"the error is {ERROR_LEAST} to {ERROR_MOST}, not {self.error}"),
        ):
            if not holds:
                raise ConfigError(otherwise)
        engine(self.filters)

    @property
    def make(self) -> type[Filter]:
        return engine(self.filters)

    @property
    def slice_error(self) -> float:
        return self.error / self.grains

    def grain(self, now: float) -> int:
        """Return the number of the grain that a second of the wall clock lies in."""
        return int(now // self.grain_s)


class Seen:
    """The keys of one cell that were met lately."""

    __slots__ = ("_ask", "_few", "_fullest", "_grain", "_slices", "period")

    def __init__(self, period: Period) -> None:
        self.period = period
        self._slices: tuple[Slice, ...] = ()
        """In order of time; a tuple, as of most cells there are many and in each a few keys."""
        self._grain: int | None = None
        """At which the dead were last dropped."""
        self._fullest = 0
        """Keys of the fullest slice there was then."""
        self._few: tuple[Few, ...] = ()
        """What is asked for a key, the youngest first: of slices with just a few, ..."""
        self._ask: Callable[[int], bool] | None = None
        """... and all filters at once."""

    def seen(self, key: Key, now: float) -> bool:
        """Return whether the key was added in a grain that lives; rarely also for one that was not (`Period.error`)."""
        if now // self.period.grain_s != self._grain:
            self._roll(now)
        place = place_of(key)
        for few in self._few:
            if is_among(place, few):
                return True
        return self._ask is not None and self._ask(place)

    def add(self, key: Key, now: float) -> None:
        """The key was met now. Adding it again later lengthens its life, so add only what is not seen."""
        self._roll(now)
        grain = self.period.grain(now)
        for current in reversed(self._slices):
            if current.grain == grain:
                if current.add(place_of(key)):
                    self._keep(self._slices)
                return
        first = Slice(grain, self.period.make, self.period.slice_error, self._fullest)
        first.add(place_of(key))
        self._keep([*self._slices, first])

    def join(self, other: "Seen", now: float) -> None:
        """Take up what another copy of the cell has.

        Raises ValueError, and changes nothing, if it is of another period or there would be too many filters or errors.
        """
        if self.period != other.period:
            raise ValueError(f"a set of {other.period} cannot be joined to one of {self.period}")
        self._roll(now)
        oldest = self.period.grain(now) - self.period.grains + 1
        slices = {one.grain: one for one in self._slices}
        for theirs in other.slices:
            if theirs.grain >= oldest:
                empty = Slice(theirs.grain, self.period.make, self.period.slice_error)
                slices[theirs.grain] = slices.get(theirs.grain, empty).joined(theirs)
        self._keep(slices.values())

    def live(self, now: float) -> int:
        """Return how many slices live, after dropping the others; with none, the set need not be kept."""
        self._roll(now)
        return len(self._slices)

    def count(self, now: float) -> int:
        """Return how many keys the slices have, as far as one knows; a key of two slices counts twice."""
        self._roll(now)
        return sum(one.count for one in self._slices)

    def errs(self, now: float) -> float:
        """Return which share of keys never added is taken for seen now, by the bits that are set; reads them all.

        Above `Period.error` only if unlike copies were joined; who has the keys had better make the set anew then.
        """
        self._roll(now)
        return sum(one.errs for one in self._slices)

    @property
    def slices(self) -> Sequence[Slice]:
        """All slices, in order of time."""
        return self._slices

    def put(self, new: Slice) -> None:
        """Take a slice up as it is; there is none of that grain."""
        assert new.grain not in [one.grain for one in self._slices], "slices of one grain are joined"
        self._keep([*self._slices, new])

    def replace(self, new: Slice) -> None:
        """Take a slice up in place of that of its grain."""
        self._keep([*(one for one in self._slices if one.grain != new.grain), new])

    def _roll(self, now: float) -> None:
        """Drop what has had its time."""
        grain = self.period.grain(now)
        if grain == self._grain:
            return
        self._grain = grain
        self._fullest = max((one.count for one in self._slices), default=self._fullest)
        if any(one.grain <= grain - self.period.grains for one in self._slices):
            self._keep([one for one in self._slices if one.grain > grain - self.period.grains])

    def _keep(self, slices: Iterable[Slice]) -> None:
        """Take these for all there are, and see to what is asked for a key."""
        kept = sorted(slices, key=lambda one: one.grain)
        # No more ahead of the clock than live: it may jump back again and again.
        while (
            self._grain is not None
            and len(kept) > self.period.grains
            and kept[-self.period.grains - 1].grain > self._grain
        ):
            last = kept.pop()
            with suppress(ValueError):  # Then it is forgotten: its pages may come again.
                kept[-1] = kept[-1].joined(last)
        self._slices = tuple(kept)
        youngest_first = kept[::-1]
        filters = [filter for one in youngest_first for _, filter in one.filters]
        self._few = tuple(one.few for one in youngest_first if one.few is not None)
        self._ask = self.period.make.asking(filters) if filters else None
