"""Runs of finished pages, by which an owner tells a backup of many pages and names one of them.

A site is crawled breadth first, so its pages end in about the order in which they came. The backup has received the
same PENDING records in the same order. A *run* is the first of some finished pages, their number, and a check of their
keys. A backup whose order differs, as after a comparison, says so by the check, and is told each key.

Tests: tests/replication/test_done_runs.py
"""

from collections.abc import Callable, Iterable, Mapping, Sequence

from kadcrawl.keys import ID_BYTES, Key
from kadcrawl.link.wire.messages import BATCH_MAX, DoneRun
from kadcrawl.store.frontier_entry import FrontierEntry
from kadcrawl.store.store import Store

CHECK_BYTES = 16
"""Size of the check: a backup with other pages in its place takes them for the same with a probability of 2**-128."""


def check_of(keys: Iterable[Key]) -> bytes:
    """Return the check of a run: the XOR of the last bytes of its keys."""
    check = 0
    for key in keys:
        check ^= int.from_bytes(key[ID_BYTES - CHECK_BYTES :], "big")
    return check.to_bytes(CHECK_BYTES, "big")


def done_run(keys: Sequence[Key]) -> DoneRun:
    """Return the run of these keys as it travels."""
    return DoneRun(keys[0], len(keys), check_of(keys))


def in_runs(
    done: Iterable[bytes],
    places: Mapping[Key, FrontierEntry],
    is_parted: Callable[[FrontierEntry, FrontierEntry], bool],
) -> tuple[list[list[Key]], list[bytes]]:
    """Return the runs of two and more keys among done keys, and the other keys.

    `places` has the former entries of those keys that the backup has as PENDING. `is_parted` says whether a page
    between two entries of a site is still PENDING.
    """
    runs: list[list[Key]] = []
    rest: list[bytes] = []
    placed = []
    for key in map(Key, done):
        if key in places:
            placed.append(places[key])
        else:
            rest.append(key)
    last: FrontierEntry | None = None
    for entry in sorted(placed, key=lambda entry: (entry.site, entry)):
        if last is not None and last.site == entry.site and not is_parted(last, entry):
            runs[-1].append(entry.key)
        else:
            runs.append([entry.key])
        last = entry
    return [run for run in runs if len(run) > 1], rest + [bytes(run[0]) for run in runs if len(run) == 1]


def resolved(store: Store, runs: Sequence[DoneRun]) -> list[list[Key] | None]:
    """Return the keys of each run in the order of this store, or None for a run that this store has otherwise.

    Beyond `BATCH_MAX` keys in all no run is read.
    """
    found: list[list[Key] | None] = []
    left = BATCH_MAX
    for run in runs:
        left -= run.count
        entry = store.entry(Key(run.first)) if left >= 0 else None
        keys = [] if entry is None else store.frontier.keys_from(entry, run.count)
        found.append(keys if len(keys) == run.count and check_of(keys) == run.check else None)
    return found
