"""Reads the DONE keys of stores, also of stores that keep fingerprints: the simulator knows all keys to ask for."""

import sqlite3
from collections.abc import Iterable, Mapping
from contextlib import closing

from kadcrawl.keys import Cell, Key
from kadcrawl.store.bloom.encoding import from_bytes
from kadcrawl.store.bloom.expiring_filter import ExpiringFilter
from kadcrawl.store.bloom.filter import fingerprint_of
from kadcrawl.store.store import DONE, Store


class Histories:
    """Reads the histories of stores and of their disks."""

    def __init__(self, keys: Iterable[tuple[Cell, Key]]) -> None:
        """`keys` are those of all URLs of the world."""
        self._keys: dict[Cell, list[Key]] = {}
        for cell, key in keys:
            self._keys.setdefault(cell, []).append(key)

    def of_store(self, store: Store, cell: Cell) -> dict[Key, int]:
        """Return the state of each key of a cell that the store knows."""
        records = dict(store.scan.records(cell, b"", 2**40))
        if store.expiring_filters is not None and cell in store.expiring_filters:
            records |= {key: DONE for key in self._keys.get(cell, ()) if key not in records and store.state(key)}
        return records

    def on_disk(self, store: Store) -> dict[Key, int]:
        """Return the state of each key that is committed in a store's journal."""
        with closing(sqlite3.connect(f"file:{store.journal.path}?mode=ro", uri=True)) as db:
            records: dict[Key, int] = dict(db.execute("SELECT key, state FROM history"))
            if store.expiring_filters is None:
                return records
            period = store.expiring_filters.period
            places = {
                int.from_bytes(place, "big") for (place,) in db.execute("SELECT place FROM slice_place").fetchall()
            }
            epoch_filters: dict[Cell, list[ExpiringFilter]] = {}
            for cell, epoch, bits in db.execute("SELECT cell, grain, bits FROM slice_bits"):
                epoch_filters.setdefault(Cell(cell), []).append(from_bytes(bits, period, period.begin_s(epoch)))
        return records | self._done(places, epoch_filters, store.expiring_filters.now(), records)

    def _done(
        self,
        places: set[int],
        epoch_filters: Mapping[Cell, list[ExpiringFilter]],
        now: float,
        records: Mapping[Key, int],
    ) -> dict[Key, int]:
        return {
            key: DONE
            for cell, keys in self._keys.items()
            for key in keys
            if key not in records
            and (fingerprint_of(key) in places or any(one.contains(key, now) for one in epoch_filters.get(cell, ())))
        }
