"""The epoch filters of all cells of a store, which replace its done keys, on disk and in memory.

`Store` uses them for a job with ``history = "bloom"``. The epoch filters of a cell are one `ExpiringFilter`, read from
the journal when it is first needed. Each epoch filter has a *label*: the number of keys that were added, and the XOR of
their contributions to the digest of their cell (store/cell_digest.py). Two holders that added the same keys have the
same label, in whatever order they added them. So cells are compared as always, and an epoch filter travels only if its
labels differ.

A new key is journaled as its fingerprint of 8 bytes. Many fingerprints of one epoch are then replaced by the bits of
their filter. Rows are written in the transaction of the change that they belong to.
"""

import logging
from collections import Counter, OrderedDict, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from hashlib import blake2b
from typing import Any, NamedTuple

from kadcrawl.keys import Cell, Key
from kadcrawl.link.wire.messages import EPOCH_FILTER_KEYS_MAX
from kadcrawl.store.bloom.encoding import Pieces, from_bytes, to_bytes
from kadcrawl.store.bloom.epoch_filter import EXACT_MAX, EpochFilter
from kadcrawl.store.bloom.expiring_filter import ExpiringFilter, Period
from kadcrawl.store.bloom.filter import fingerprint_of
from kadcrawl.store.cell_digest import DIGEST_BYTES, CellDigest, contribution
from kadcrawl.store.schema import DONE

SCHEMA = (
    "CREATE TABLE IF NOT EXISTS slice("
    "cell INTEGER, grain INTEGER, keys INTEGER NOT NULL, digest BLOB NOT NULL, PRIMARY KEY(cell, grain)) WITHOUT ROWID",
    "CREATE TABLE IF NOT EXISTS slice_bits(cell INTEGER, grain INTEGER, bits BLOB NOT NULL, PRIMARY KEY(cell, grain))",
    "CREATE TABLE IF NOT EXISTS slice_place("
    "cell INTEGER, grain INTEGER, place BLOB, PRIMARY KEY(cell, grain, place)) WITHOUT ROWID",
)
"""Statements that make the tables of epoch filters. Only a store with fingerprints has these tables.

In their columns, "slice" means an epoch filter, "grain" an epoch, and "place" a fingerprint."""
SLICE_TABLES = ("slice", "slice_bits", "slice_place")

FOLDED_SHARE = 4
"""Divisor of an epoch filter's keys: with more single fingerprints in the journal than the quotient, bits replace them.

So bits are written a few times only, and the next start reads few single rows."""
FINGERPRINTS_MAX = 250_000
"""Limit on the single fingerprints of an epoch filter, even if its label claims more keys."""


log = logging.getLogger(__name__)


class Label(NamedTuple):
    """A summary of an epoch filter: holders of the same keys have the same label."""

    keys: int
    """Number of keys that were added."""
    digest: int
    """XOR of the contributions of the keys to the digest of their cell."""


class EncodedFilter(NamedTuple):
    """An epoch filter in the form in which it travels."""

    epoch: int
    label: Label
    bits: bytes
    """The encoding of an `ExpiringFilter` with this epoch filter only (encoding.py)."""


class Large(NamedTuple):
    """A large epoch filter, which travels in parts."""

    label: Label
    pieces: Pieces


class ExpiringFilters:
    """The epoch filters of all cells of one store."""

    def __init__(
        self,
        period: Period,
        now: Callable[[], float],
        write: Callable[[str, Sequence[object]], int],
        read: Callable[[tuple[type, ...], str, Sequence[object]], Iterator[Any]],
        bytes_max: int,
    ) -> None:
        """Make the tables if needed, and read the labels. Raises StorageError.

        `now` returns wall-clock seconds. `write` and `read` execute a statement in the journal's open transaction, and
        `read` takes the types of the columns (`Journal.write`, `Journal.rows`). Beyond `bytes_max` of filters in
        memory, those of the least recently used cells stay on disk.
        """
        self._bytes_max = bytes_max
        self.period = period
        self.now = now
        self._write = write
        self._read = read
        self._cells: OrderedDict[Cell, ExpiringFilter] = OrderedDict()
        """The filters of the cells in memory, the most recently used last."""
        self._bytes: dict[Cell, int] = {}
        """Bytes of the filters of each cell in memory, when they were last read or written as bits."""
        self._bytes_all = 0
        self._labels: dict[Cell, dict[int, Label]] = {}
        """The labels of all cells with epoch filters, by epoch."""
        self._journaled: Counter[tuple[Cell, int]] = Counter()
        """Number of single fingerprints in the journal, by cell and epoch."""
        self._relabelled: set[tuple[Cell, int]] = set()
        """Cells and epochs whose label is not written yet."""
        self.keys = 0
        """Number of keys in all epoch filters of all cells. A key of two epochs counts twice."""
        for statement in SCHEMA:
            write(statement, ())
        labels = read((int, int, int, bytes), "SELECT cell, grain, keys, digest FROM slice", ())
        for cell, epoch, keys, digest in labels:
            self._labels.setdefault(Cell(cell), {})[epoch] = Label(keys, int.from_bytes(digest, "big"))
            self.keys += keys
        counted = "SELECT cell, grain, count(*) FROM slice_place GROUP BY cell, grain"
        for cell, epoch, count in read((int, int, int), counted, ()):
            self._journaled[Cell(cell), epoch] = count

    # --- queries -------------------------------------------------------------------------------------------------

    def __contains__(self, cell: Cell) -> bool:
        return cell in self._labels

    def has(self, cell: Cell, key: Key) -> bool:
        """Return whether a key became done in a live epoch. Rarely true for another key."""
        return cell in self._labels and self._filter(cell).contains(key, self.now())

    def labels(self, cell: Cell) -> dict[int, Label]:
        """Return the labels of a cell's epoch filters by epoch, read only."""
        return self._labels.get(cell, {})

    def encoded(self, cell: Cell, epoch: int) -> EncodedFilter | None:
        """Return an encoded epoch filter, or None if it has expired or does not exist."""
        label = self.labels(cell).get(epoch)
        bits = self._bits(cell, epoch) if label is not None else None
        return None if label is None or bits is None else EncodedFilter(epoch, label, bits)

    def large(self, cell: Cell, epoch: int) -> Large | None:
        """Return an epoch filter for encoding in parts, or None as `encoded` does.

        Keys added later may be in the parts. A later join is not.
        """
        label = self.labels(cell).get(epoch)
        one = self._alone(cell, epoch) if label is not None else None
        return None if label is None or one is None else Large(label, Pieces(one))

    def may_live(self, epoch: int) -> bool:
        """Return whether this peer accepts an epoch filter of that epoch.

        No peer's clock is trusted to be further ahead. A nearer epoch expires when its time comes.
        """
        current = self.period.epoch(self.now())
        return current - self.period.epochs < epoch <= current + self.period.epochs

    def digest(self, cell: Cell) -> CellDigest:
        """Return the share of a cell's epoch filters in the digest of the cell."""
        keys = digest = 0
        for label in self.labels(cell).values():
            keys += label.keys
            digest ^= label.digest
        return CellDigest(keys, 0, digest)

    # --- changes -------------------------------------------------------------------------------------------------

    def add(self, cell: Cell, key: Key) -> None:
        """Add a key that is done now and was not known as done."""
        now = self.now()
        epoch = self.period.epoch(now)
        self._filter(cell).add(key, now)
        keys, digest = self.labels(cell).get(epoch, Label(0, 0))
        self._label(cell, epoch, Label(min(keys + 1, EPOCH_FILTER_KEYS_MAX), digest ^ contribution(key, DONE)))
        row = (cell, epoch, fingerprint_of(key).to_bytes(8, "big"))
        self._journaled[cell, epoch] += self._write("INSERT OR IGNORE INTO slice_place VALUES (?, ?, ?)", row)
        if self._journaled[cell, epoch] > min(max(EXACT_MAX, keys // FOLDED_SHARE), FINGERPRINTS_MAX):
            self._fold(cell, epoch)

    def join(self, cell: Cell, theirs: Iterable[EncodedFilter], *, adopt: bool) -> list[ExpiringFilter]:
        """Join the epoch filters of another holder of a cell. Return the news as filters of one epoch each.

        A holder whose filter covers the other filter keeps its label. The union of two filters without such a relation
        gets a new label, so that the owner sees that it lacks keys, and asks for them. If both filters are equal under
        two labels, the owner's label is right: theirs with `adopt`, otherwise ours. As epoch filters only grow, one
        exchange led by the owner makes all holders equal, if no key is added meanwhile.

        Two filters whose join has too many false positives (`EpochFilter.joined`) are not joined. With `adopt` theirs
        replaces ours, otherwise ours stays. The keys left out may be fetched again. A filter that is malformed or of
        another period is left out too. Its sender is not told, and the cells stay different.
        """
        news = []
        for epoch, label, bits in {one.epoch: one for one in theirs}.values():
            if self.labels(cell).get(epoch) == label:
                continue
            if not self.may_live(epoch):
                continue
            now = self.now()
            try:
                one = from_bytes(bits, self.period, max(now, self.period.begin_s(epoch)))
                if [each.epoch for each in one.epoch_filters] != [epoch]:
                    continue  # The filter has expired meanwhile, or has another epoch than its sender says.
            except ValueError:
                continue
            other, mine, known = one.epoch_filters[0], self._epoch_filter(cell, epoch), self.labels(cell).get(epoch)
            if mine is not None and mine.covers(other):
                if adopt and other.covers(mine):
                    self._label(cell, epoch, label)
                continue
            joined_label = label if mine is None or known is None or other.covers(mine) else both_of(known, label)
            try:
                self._filter(cell).join(one, now)
            except ValueError as error:
                log.warning("epoch_filter.not_joined cell=%d epoch=%d adopt=%s why=%s", cell, epoch, adopt, error)
                if not adopt:
                    continue
                self._filter(cell).replace(other)
                joined_label = label
            joined = self._epoch_filter(cell, epoch)
            if joined is None:
                continue
            if (rate := joined.false_positive_rate) > self.period.epoch_error:
                log.info("epoch_filter.false_positives cell=%d epoch=%d rate=%.1e", cell, epoch, rate)
            self._label(cell, epoch, joined_label)
            self._fold(cell, epoch)
            news.append(one)
        return news

    def expire(self, cell: Cell) -> None:
        """Drop the expired epoch filters of a cell."""
        current = self.period.epoch(self.now())
        expired = [epoch for epoch in self.labels(cell) if epoch <= current - self.period.epochs]
        for epoch in expired:
            self.keys -= self._labels[cell].pop(epoch).keys
            self._journaled.pop((cell, epoch), None)
            self._relabelled.discard((cell, epoch))
            for table in SLICE_TABLES:
                self._write(f"DELETE FROM {table} WHERE cell=? AND grain=?", (cell, epoch))
        if expired and not self._labels[cell]:
            del self._labels[cell]
            self._unload(cell)
        elif expired and cell in self._cells:
            self._cells[cell].live(self.now())
            self._update_size(cell)

    def forget(self, cell: Cell) -> None:
        """Drop all epoch filters of a cell that other peers hold now."""
        for epoch, label in self._labels.pop(cell, {}).items():
            self.keys -= label.keys
            self._journaled.pop((cell, epoch), None)
            self._relabelled.discard((cell, epoch))
        self._unload(cell)
        for table in SLICE_TABLES:
            self._write(f"DELETE FROM {table} WHERE cell=?", (cell,))

    def before_commit(self) -> None:
        """Journal the labels that changed since the last commit."""
        for cell, epoch in sorted(self._relabelled):
            keys, digest = self._labels[cell][epoch]
            row = (cell, epoch, keys, digest.to_bytes(DIGEST_BYTES, "big"))
            self._write("INSERT OR REPLACE INTO slice VALUES (?, ?, ?, ?)", row)
        self._relabelled.clear()

    # --- inside --------------------------------------------------------------------------------------------------

    def _label(self, cell: Cell, epoch: int, label: Label) -> None:
        labels = self._labels.setdefault(cell, {})
        self.keys += label.keys - labels.get(epoch, Label(0, 0)).keys
        labels[epoch] = label
        self._relabelled.add((cell, epoch))

    def _filter(self, cell: Cell) -> ExpiringFilter:
        """Return the filter of a cell, from memory or from the journal."""
        expiring = self._cells.get(cell)
        if expiring is not None:
            self._cells.move_to_end(cell)
            return expiring
        expiring = self._cells[cell] = ExpiringFilter(self.period)
        if cell in self._labels:
            for epoch_filter in self._read_cell(cell):
                expiring.put(epoch_filter)
            self._update_size(cell)
        return expiring

    def _update_size(self, cell: Cell) -> None:
        """Update the size of a cell's filters, and unload the least recently used cells above the limit."""
        now = sum(one.size_bytes for one in self._cells[cell].epoch_filters)
        self._bytes_all += now - self._bytes.get(cell, 0)
        self._bytes[cell] = now
        while self._bytes_all > self._bytes_max and (least_recent := next(iter(self._cells))) != cell:
            self._unload(least_recent)

    def _unload(self, cell: Cell) -> None:
        """Remove a cell's filters from memory."""
        self._cells.pop(cell, None)
        self._bytes_all -= self._bytes.pop(cell, 0)

    def _read_cell(self, cell: Cell) -> Iterable[EpochFilter]:
        """Return the epoch filters of a cell as they are in the journal."""
        by_epoch: dict[int, EpochFilter] = {}
        for epoch, bits in list(self._read((int, bytes), "SELECT grain, bits FROM slice_bits WHERE cell=?", (cell,))):
            try:
                # The time of the epoch itself, as the clock may have been put back since.
                one = from_bytes(bits, self.period, self.period.begin_s(epoch))
            except ValueError as error:
                # A join of several unrelated copies may exceed the limit of the encoding. The peer starts without it.
                log.warning("epoch_filter.dropped cell=%d epoch=%d why=%s", cell, epoch, error)
                continue
            by_epoch.update((each.epoch, each) for each in one.epoch_filters)
        singles: defaultdict[int, list[int]] = defaultdict(list)
        for epoch, place in self._read((int, bytes), "SELECT grain, place FROM slice_place WHERE cell=?", (cell,)):
            singles[epoch].append(int.from_bytes(place, "big"))
        for epoch, fingerprints in singles.items():
            if epoch not in by_epoch:
                expected = min(self.labels(cell).get(epoch, Label(0, 0)).keys, FOLDED_SHARE * len(fingerprints))
                by_epoch[epoch] = EpochFilter(epoch, self.period.make, self.period.epoch_error, expected)
            for fingerprint in fingerprints:
                by_epoch[epoch].add(fingerprint)
        return by_epoch.values()

    def _bits(self, cell: Cell, epoch: int) -> bytes | None:
        """Return an encoded epoch filter, or None if it has expired or does not exist."""
        one = self._alone(cell, epoch)
        return None if one is None else to_bytes(one, self.period.begin_s(epoch))

    def _alone(self, cell: Cell, epoch: int) -> ExpiringFilter | None:
        """Return a filter with only this epoch of a cell, or None."""
        epoch_filter = self._epoch_filter(cell, epoch)
        if epoch_filter is None:
            return None
        one = ExpiringFilter(self.period)
        one.put(epoch_filter)
        return one

    def _epoch_filter(self, cell: Cell, epoch: int) -> EpochFilter | None:
        return next((one for one in self._filter(cell).epoch_filters if one.epoch == epoch), None)

    def _fold(self, cell: Cell, epoch: int) -> None:
        """Replace the single fingerprints of an epoch filter in the journal by its bits."""
        bits = self._bits(cell, epoch)
        if bits is not None:
            self._write("INSERT OR REPLACE INTO slice_bits VALUES (?, ?, ?)", (cell, epoch, bits))
            self._write("DELETE FROM slice_place WHERE cell=? AND grain=?", (cell, epoch))
            del self._journaled[cell, epoch]
            self._update_size(cell)


def both_of(one: Label, other: Label) -> Label:
    """Return the label of a join of two different epoch filters: new, and the same on both sides."""
    parts = [keys.to_bytes(8, "big") + digest.to_bytes(DIGEST_BYTES, "big") for keys, digest in sorted((one, other))]
    digest = int.from_bytes(blake2b(b"".join(parts), digest_size=DIGEST_BYTES).digest(), "big")
    return Label(max(one.keys, other.keys), digest)
