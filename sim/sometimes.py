"""Awkward moments a campaign must have met: without them its zeros say little.

Each is recognized from outside, at the instant of a fault or when it is over, by a pure function over what
`sim.observer` saw. The observer counts them by name; a campaign adds up and says which it never met.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence

from kadcrawl.keys import Cell, Key

from .judges import Fetch, Parting

AWKWARD: Mapping[str, str] = {
    "kill_during_sync": "one that catches up with a cell, or of whom it is asked, was killed",
    "kill_owner_and_backup": "the owner of a cell with work and one of its backups were killed together",
    "kill_between_journal_and_copy": "a peer was killed with a record on its disk that no other had yet",
    "two_joins_into_one_range": "two newcomers became holders of one cell at the same time",
    "crawl_on_both_sides": "both sides of a partition crawled on",
    "old_disk_after_move": "a peer came back on its disk after another had crawled what had been its own",
}
"""Name -> what happened."""

Holders = Mapping[Cell, Sequence[int]]
"""Cell -> the machines that ought to hold it, its owner first."""
Records = Mapping[Key, int]
"""What a store holds: key -> state."""


def never_met(met: Mapping[str, int]) -> list[str]:
    """Return the names of the moments that were not met."""
    return [name for name in AWKWARD if not met.get(name)]


def kill_during_sync(killed: Collection[int], catching_up: Collection[Cell], holders: Holders) -> bool:
    """`catching_up` are the cells whose owner is up and may not crawl them yet."""
    return any(not _disjoint(holders.get(cell, ()), killed) for cell in catching_up)


def kill_owner_and_backup(killed: Collection[int], holders: Holders) -> bool:
    """`holders` are those of the cells with work, before the first of the kills."""
    return any(names[0] in killed and not _disjoint(names[1:], killed) for names in holders.values() if names)


def kill_between_journal_and_copy(journaled: Records, others: Iterable[Records]) -> bool:
    """`journaled` is what is on the killed machine's disk, `others` what the stores of the live ones hold."""
    elsewhere: set[tuple[Key, int]] = set()
    for records in others:
        elsewhere.update(records.items())
    return not journaled.items() <= elsewhere


def two_joins_into_one_range(newcomers: Collection[int], holders: Holders) -> bool:
    """`newcomers` joined within one moment; `holders` are those after it."""
    return any(sum(name in newcomers for name in names) >= 2 for names in holders.values())


def crawl_on_both_sides(parting: Parting, fetches: Iterable[Fetch]) -> bool:
    """Whether machines of either side fetched anything meanwhile."""
    sides = {fetch.machine in parting.few for fetch in fetches if parting.from_s <= fetch.at_s <= parting.until_s}
    return len(sides) == 2


def old_disk_after_move(machine: int, owned: Collection[str], fetches: Iterable[Fetch]) -> bool:
    """`owned` are the sites the machine owned when it was killed, `fetches` those made since."""
    return any(fetch.machine != machine and fetch.site in owned for fetch in fetches)


def _disjoint(names: Iterable[int], others: Collection[int]) -> bool:
    return not any(name in others for name in names)
