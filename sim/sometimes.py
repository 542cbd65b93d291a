"""Awkward moments that a campaign must have met: without them its zeros say little.

A pure function recognizes each moment from outside, at the instant of a fault or after it, from the observations of
`sim/observer.py`. The observer counts the moments by name. A campaign adds the counts and reports the moments it never
met.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence

from kadcrawl.keys import Cell, Key

from .judges import Fetch, Parting

AWKWARD: Mapping[str, str] = {
    "kill_during_sync": "a peer was killed that was syncing a cell, or that was asked for the cell",
    "kill_owner_and_backup": "the owner of a cell with work and one of its backups were killed together",
    "kill_all_holders_but_one": "all holders of a cell with work but one, two or more, were killed together",
    "kill_between_journal_and_copy": "a peer was killed with a record on its disk that no other peer had yet",
    "two_joins_into_one_range": "two newcomers became holders of one cell at the same time",
    "crawl_on_both_sides": "both sides of a partition crawled on",
    "old_disk_after_move": "a peer came back on its disk after another peer had crawled its cells",
}
"""Name -> description of the moment."""

Holders = Mapping[Cell, Sequence[int]]
"""Cell -> the machines that ought to hold it, its owner first."""
Records = Mapping[Key, int]
"""The records of a store: key -> state."""


def never_met(met: Mapping[str, int]) -> list[str]:
    """Return the names of the moments that were not met."""
    return [name for name in AWKWARD if not met.get(name)]


def kill_during_sync(killed: Collection[int], catching_up: Collection[Cell], holders: Holders) -> bool:
    """`catching_up` are the cells whose owner is up and may not crawl them yet."""
    return any(not _disjoint(holders.get(cell, ()), killed) for cell in catching_up)


def kill_owner_and_backup(killed: Collection[int], holders: Holders) -> bool:
    """`holders` are those of the cells with work, before the first of the kills."""
    return any(names[0] in killed and not _disjoint(names[1:], killed) for names in holders.values() if names)


def kill_all_holders_but_one(killed: Collection[int], holders: Holders) -> bool:
    """`holders` are those of the cells with work, before the first of the kills."""
    return any(
        len(names) >= 3 and sum(name in killed for name in names) == len(names) - 1 for names in holders.values()
    )


def kill_between_journal_and_copy(journaled: Records, others: Iterable[Records]) -> bool:
    """Return whether the killed machine had records on disk (`journaled`) that no live store (`others`) has."""
    elsewhere: set[tuple[Key, int]] = set()
    for records in others:
        elsewhere.update(records.items())
    return not journaled.items() <= elsewhere


def two_joins_into_one_range(newcomers: Collection[int], holders: Holders) -> bool:
    """Return whether two `newcomers`, which joined within one moment, hold the same cell. `holders` are those after
    it."""
    return any(sum(name in newcomers for name in names) >= 2 for names in holders.values())


def crawl_on_both_sides(parting: Parting, fetches: Iterable[Fetch]) -> bool:
    """Return whether machines of both sides made requests during the partition."""
    sides = {fetch.machine in parting.few for fetch in fetches if parting.from_s <= fetch.at_s <= parting.until_s}
    return len(sides) == 2


def old_disk_after_move(machine: int, owned: Collection[str], fetches: Iterable[Fetch]) -> bool:
    """`owned` are the sites the machine owned when it was killed, `fetches` those made since."""
    return any(fetch.machine != machine and fetch.site in owned for fetch in fetches)


def _disjoint(names: Iterable[int], others: Collection[int]) -> bool:
    return not any(name in others for name in names)
