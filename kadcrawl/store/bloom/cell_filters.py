"""The finished keys of every cell of a store that keeps no key of them: slices of fingerprints, on disk and in memory.

For `Store` of a job with ``history = "bloom"``. A cell's slices are one `Seen`, read when the cell is first asked for.
Each slice has a *label*: how many keys were put into it, and the XOR of what they add to the digest of their cell
(store/cell_digest.py). Two holders that put the same keys into a slice have the same label, in whatever order, so
cells are compared as ever, and slices travel only where labels differ.

What is added is journaled as a place of 8 bytes; when there are many places of a slice, they are written down as the
slice's bits and deleted. Rows are written in the transaction of the change they are part of.
"""

import logging
from collections import Counter, OrderedDict, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from hashlib import blake2b
from typing import Any, NamedTuple

from kadcrawl.keys import Cell, Key
from kadcrawl.link.wire.messages import EPOCH_FILTER_KEYS_MAX
from kadcrawl.store.bloom.encoding import Pieces, from_bytes, to_bytes
from kadcrawl.store.bloom.expiring_filter import ExpiringFilter, Period
from kadcrawl.store.bloom.filter import place_of
from kadcrawl.store.bloom.slice import EXACT_MAX, EpochFilter
from kadcrawl.store.cell_digest import DIGEST_BYTES, CellDigest, contribution
from kadcrawl.store.schema import DONE

SCHEMA = (
    "CREATE TABLE IF NOT EXISTS slice("
    "cell INTEGER, grain INTEGER, keys INTEGER NOT NULL, digest BLOB NOT NULL, PRIMARY KEY(cell, grain)) WITHOUT ROWID",
    "CREATE TABLE IF NOT EXISTS slice_bits(cell INTEGER, grain INTEGER, bits BLOB NOT NULL, PRIMARY KEY(cell, grain))",
    "CREATE TABLE IF NOT EXISTS slice_place("
    "cell INTEGER, grain INTEGER, place BLOB, PRIMARY KEY(cell, grain, place)) WITHOUT ROWID",
)
"""Not among the tables of every store: one without slices has none of them."""
SLICE_TABLES = ("slice", "slice_bits", "slice_place")

FOLDED_SHARE = 4
"""Places of a slice are written down as bits when they are more than this part of it: so bits are written few times,
and little is read one by one at the next start."""
PLACES_MAX = 250_000
"""Whatever a label says."""
FILTERS_BYTES_MAX = 512 * 1024 * 1024
"""Of all slices in memory: of 180 million URLs, those of which copies are kept here with them. Those of cells asked for
longest ago are then read from the journal again; so whoever sends slices of ever more cells takes no more than this."""


log = logging.getLogger(__name__)


class Label(NamedTuple):
    """What a slice has, without what is in it."""

    keys: int
    digest: int


class EncodedFilter(NamedTuple):
    """A slice as it travels."""

    epoch: int
    label: Label
    bits: bytes
    """As `seen_wire` has a set of this one slice."""


class Large(NamedTuple):
    """A slice as it travels in parts."""

    label: Label
    pieces: Pieces


class ExpiringFilters:
    """The slices of all cells of one store."""

    def __init__(
        self,
        period: Period,
        now: Callable[[], float],
        write: Callable[[str, Sequence[object]], int],
        read: Callable[[tuple[type, ...], str, Sequence[object]], Iterator[Any]],
    ) -> None:
        """`now` gives wall-clock seconds; `write` and `read` execute a statement in the store's open transaction, the
        latter given the types of its columns."""
        self.period = period
        self.now = now
        self._write = write
        self._read = read
        self._cells: OrderedDict[Cell, ExpiringFilter] = OrderedDict()
        """Of the cells that were asked for, the latest last."""
        self._bytes: dict[Cell, int] = {}
        """What their slices take, when they were last read, or written down as bits."""
        self._bytes_all = 0
        self._labels: dict[Cell, dict[int, Label]] = {}
        """Of all cells that have any."""
        self._places: Counter[tuple[Cell, int]] = Counter()
        """How many places of a slice are journaled one by one."""
        self._relabelled: set[tuple[Cell, int]] = set()
        """Slices whose label is not written yet."""
        self.keys = 0
        """In all slices of all cells; one finished in two grains counts twice."""
        for statement in SCHEMA:
            write(statement, ())
        labels = read((int, int, int, bytes), "SELECT cell, grain, keys, digest FROM slice", ())
        for cell, grain, keys, digest in labels:
            self._labels.setdefault(Cell(cell), {})[grain] = Label(keys, int.from_bytes(digest, "big"))
            self.keys += keys
        counted = "SELECT cell, grain, count(*) FROM slice_place GROUP BY cell, grain"
        for cell, grain, count in read((int, int, int), counted, ()):
            self._places[Cell(cell), grain] = count

    # --- asking --------------------------------------------------------------------------------------------------

    def __contains__(self, cell: Cell) -> bool:
        return cell in self._labels

    def has(self, cell: Cell, key: Key) -> bool:
        """Return whether a key was finished in a grain that lives; rarely also for one that was not."""
        return cell in self._labels and self._filter(cell).contains(key, self.now())

    def labels(self, cell: Cell) -> dict[int, Label]:
        """Return the labels of a cell's slices by grain; to be read only."""
        return self._labels.get(cell, {})

    def encoded(self, cell: Cell, epoch: int) -> EncodedFilter | None:
        """Return a slice as it travels; None if it has expired or there is none."""
        label = self.labels(cell).get(epoch)
        bits = self._bits(cell, epoch) if label is not None else None
        return None if label is None or bits is None else EncodedFilter(epoch, label, bits)

    def large(self, cell: Cell, epoch: int) -> Large | None:
        """Return the same without making any of it; what is added later may be in it, and a join is not."""
        label = self.labels(cell).get(epoch)
        one = self._alone(cell, epoch) if label is not None else None
        return None if label is None or one is None else Large(label, Pieces(one))

    def may_live(self, epoch: int) -> bool:
        """Return whether a slice of that grain can be taken up.

        No clock is believed to be further ahead than that; what is nearer expires when its time comes.
        """
        current = self.period.epoch(self.now())
        return current - self.period.epochs < epoch <= current + self.period.epochs

    def digest(self, cell: Cell) -> CellDigest:
        """Return what the slices of a cell are to its tally."""
        keys = digest = 0
        for label in self.labels(cell).values():
            keys += label.keys
            digest ^= label.digest
        return CellDigest(keys, 0, digest)

    # --- changing ------------------------------------------------------------------------------------------------

    def add(self, cell: Cell, key: Key) -> None:
        """A key that is not seen was finished now."""
        now = self.now()
        grain = self.period.epoch(now)
        seen = self._filter(cell)
        seen.add(key, now)
        keys, digest = self.labels(cell).get(grain, Label(0, 0))
        self._label(cell, grain, Label(min(keys + 1, EPOCH_FILTER_KEYS_MAX), digest ^ contribution(key, DONE)))
        place = place_of(key).to_bytes(8, "big")
        row = (cell, grain, place)
        self._places[cell, grain] += self._write("INSERT OR IGNORE INTO slice_place VALUES (?, ?, ?)", row)
        if self._places[cell, grain] > min(max(EXACT_MAX, keys // FOLDED_SHARE), PLACES_MAX):
            self._fold(cell, grain)

    def join(self, cell: Cell, theirs: Iterable[EncodedFilter], *, adopt: bool) -> list[ExpiringFilter]:
        """Take up what another holder has of a cell; return what was news, as sets of one slice.

        Whoever has all that the other has keeps its label; the union of two that are unlike gets one of its own, so
        that the owner sees that something is here which it lacks, and asks. If both have the same under two names, the
        owner's is right: with `adopt` theirs, else ours. As slices only grow, one round of asking and telling by the
        owner makes all holders alike, if nothing is added meanwhile.

        Two that would err too much together (`EpochFilter.joined`) are not joined: with `adopt` theirs is taken in
        place of ours, else ours stays; what is left out may be fetched again. What is not well formed or not of this
        period is left out as well: its sender is told nothing, and the cells stay unlike.
        """
        news = []
        for grain, label, bits in {one.epoch: one for one in theirs}.values():
            if self.labels(cell).get(grain) == label:
                continue
            if not self.may_live(grain):
                continue
            now = self.now()
            try:
                one = from_bytes(bits, self.period, max(now, grain * self.period.epoch_s))
                if [slice.epoch for slice in one.epoch_filters] != [grain]:
                    continue  # It has expired meanwhile, or is another than it is said to be.
            except ValueError:
                continue
            other, mine, known = one.epoch_filters[0], self._epoch_filter(cell, grain), self.labels(cell).get(grain)
            if mine is not None and mine.covers(other):
                if adopt and other.covers(mine):
                    self._label(cell, grain, label)
                continue
            named = label if mine is None or known is None or other.covers(mine) else both_of(known, label)
            try:
                self._filter(cell).join(one, now)
            except ValueError as error:
                log.warning("epoch_filter.apart cell=%d grain=%d adopt=%s why=%s", cell, grain, adopt, error)
                if not adopt:
                    continue
                self._filter(cell).replace(other)
                named = label
            joined = self._epoch_filter(cell, grain)
            if joined is None:
                continue
            if (errs := joined.false_positive_rate) > self.period.epoch_error:
                log.info("epoch_filter.false_positives cell=%d grain=%d share=%.1e", cell, grain, errs)
            self._label(cell, grain, named)
            self._fold(cell, grain)
            news.append(one)
        return news

    def expire(self, cell: Cell) -> None:
        """Drop the slices of a cell that have had their time."""
        current = self.period.epoch(self.now())
        dead = [grain for grain in self.labels(cell) if grain <= current - self.period.epochs]
        for grain in dead:
            self.keys -= self._labels[cell].pop(grain).keys
            self._places.pop((cell, grain), None)
            self._relabelled.discard((cell, grain))
            for table in SLICE_TABLES:
                self._write(f"DELETE FROM {table} WHERE cell=? AND grain=?", (cell, grain))
        if dead and not self._labels[cell]:
            del self._labels[cell]
            self._let_go(cell)
        elif dead and cell in self._cells:
            self._cells[cell].live(self.now())
            self._weigh(cell)

    def forget(self, cell: Cell) -> None:
        """Drop all slices of a cell, which others hold now."""
        for grain, label in self._labels.pop(cell, {}).items():
            self.keys -= label.keys
            self._places.pop((cell, grain), None)
            self._relabelled.discard((cell, grain))
        self._let_go(cell)
        for table in SLICE_TABLES:
            self._write(f"DELETE FROM {table} WHERE cell=?", (cell,))

    def before_commit(self) -> None:
        """Journal the labels that changed."""
        for cell, grain in sorted(self._relabelled):
            keys, digest = self._labels[cell][grain]
            row = (cell, grain, keys, digest.to_bytes(DIGEST_BYTES, "big"))
            self._write("INSERT OR REPLACE INTO slice VALUES (?, ?, ?, ?)", row)
        self._relabelled.clear()

    # --- inside --------------------------------------------------------------------------------------------------

    def _label(self, cell: Cell, epoch: int, label: Label) -> None:
        labels = self._labels.setdefault(cell, {})
        self.keys += label.keys - labels.get(epoch, Label(0, 0)).keys
        labels[epoch] = label
        self._relabelled.add((cell, epoch))

    def _filter(self, cell: Cell) -> ExpiringFilter:
        """Return the set of a cell, as journaled if it was not asked for yet."""
        seen = self._cells.get(cell)
        if seen is not None:
            self._cells.move_to_end(cell)
            return seen
        seen = self._cells[cell] = ExpiringFilter(self.period)
        if cell in self._labels:
            for slice in self._journaled(cell):
                seen.put(slice)
            self._weigh(cell)
        return seen

    def _weigh(self, cell: Cell) -> None:
        """The slices of a cell are others now: let go what was asked for longest ago if all take too much."""
        now = sum(one.size_bytes for one in self._cells[cell].epoch_filters)
        self._bytes_all += now - self._bytes.get(cell, 0)
        self._bytes[cell] = now
        while self._bytes_all > FILTERS_BYTES_MAX and (longest_ago := next(iter(self._cells))) != cell:
            self._let_go(longest_ago)

    def _let_go(self, cell: Cell) -> None:
        """Keep a cell's slices in memory no more."""
        self._cells.pop(cell, None)
        self._bytes_all -= self._bytes.pop(cell, 0)

    def _journaled(self, cell: Cell) -> Iterable[EpochFilter]:
        slices: dict[int, EpochFilter] = {}
        for grain, bits in list(self._read((int, bytes), "SELECT grain, bits FROM slice_bits WHERE cell=?", (cell,))):
            try:
                # As of its own time: the clock may have been put back since.
                one = from_bytes(bits, self.period, grain * self.period.epoch_s)
            except ValueError as error:
                # Copies of several strangers joined may err more than may travel: better forgotten than no start.
                log.warning("epoch_filter.dropped cell=%d grain=%d why=%s", cell, grain, error)
                continue
            slices.update((slice.epoch, slice) for slice in one.epoch_filters)
        places: defaultdict[int, list[int]] = defaultdict(list)
        for grain, place in self._read((int, bytes), "SELECT grain, place FROM slice_place WHERE cell=?", (cell,)):
            places[grain].append(int.from_bytes(place, "big"))
        for grain, some in places.items():
            if grain not in slices:
                expected = min(self.labels(cell).get(grain, Label(0, 0)).keys, FOLDED_SHARE * len(some))
                slices[grain] = EpochFilter(grain, self.period.make, self.period.epoch_error, expected)
            for place in some:
                slices[grain].add(place)
        return slices.values()

    def _bits(self, cell: Cell, epoch: int) -> bytes | None:
        """Return one slice of a cell as bytes; None if there is none, or it has expired."""
        one = self._alone(cell, epoch)
        return None if one is None else to_bytes(one, epoch * self.period.epoch_s)

    def _alone(self, cell: Cell, epoch: int) -> ExpiringFilter | None:
        """Return the set of one slice of a cell."""
        slice = self._epoch_filter(cell, epoch)
        if slice is None:
            return None
        one = ExpiringFilter(self.period)
        one.put(slice)
        return one

    def _epoch_filter(self, cell: Cell, epoch: int) -> EpochFilter | None:
        return next((one for one in self._filter(cell).epoch_filters if one.epoch == epoch), None)

    def _fold(self, cell: Cell, epoch: int) -> None:
        """Write a slice down as bits."""
        bits = self._bits(cell, epoch)
        if bits is not None:
            self._write("INSERT OR REPLACE INTO slice_bits VALUES (?, ?, ?)", (cell, epoch, bits))
            self._write("DELETE FROM slice_place WHERE cell=? AND grain=?", (cell, epoch))
            del self._places[cell, epoch]
            self._weigh(cell)


def both_of(one: Label, other: Label) -> Label:
    """Return the label of two unlike slices joined: new, and the same whoever joins whom."""
    told = [keys.to_bytes(8, "big") + digest.to_bytes(DIGEST_BYTES, "big") for keys, digest in sorted((one, other))]
    digest = int.from_bytes(blake2b(b"".join(told), digest_size=DIGEST_BYTES).digest(), "big")
    return Label(max(one.keys, other.keys), digest)
