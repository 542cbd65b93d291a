"""Rightful holders of cells, and the copies they have, computed from outside for many peers at once. Pure."""

from bisect import bisect_left
from collections.abc import Mapping, Sequence

from kadcrawl.keys import ID_BITS, Cell, Key, cell_of


def rightful(standing: Mapping[int, int], placements: Mapping[Cell, Sequence[int]]) -> dict[Cell, tuple[int, ...]]:
    """Return for each cell the distinct machines nearest to its placement keys, the owner first.

    `standing` maps machines to the IDs of their peers. There are fewer holders than keys if there are fewer machines.
    """
    number_of = {peer: number for number, peer in standing.items()}
    peers = sorted(number_of)
    found = {}
    for cell, keys in placements.items():
        chosen: list[int] = []
        for key in keys:
            candidates = [number_of[peer] for peer in nearest(peers, key, len(keys))]
            chosen += [number for number in candidates if number not in chosen][:1]
        found[cell] = tuple(chosen)
    return found


def copies(
    records: Mapping[int, Mapping[Key, int]], holders: Mapping[Cell, Sequence[int]], cell_bits: int
) -> dict[Key, int]:
    """Return for each record how many of its rightful holders have it in the most advanced state of any machine.

    `records` maps machines to their records: key -> state.
    """
    furthest: dict[Key, int] = {}
    for held in records.values():
        for key, state in held.items():
            furthest[key] = max(furthest.get(key, 0), state)
    return {
        key: sum(records[number].get(key) == state for number in holders.get(cell_of(key, cell_bits), ()))
        for key, state in furthest.items()
    }


def nearest(numbers: Sequence[int], key: int, count: int) -> list[int]:
    """Return the `count` of these 160-bit numbers, which are sorted, that are XOR-nearest to `key`, nearest first."""

    def sharing(bits: int) -> range:
        """Return the indices of the numbers that differ from the key in the last `bits` bits only."""
        first = key >> bits << bits
        return range(bisect_left(numbers, first), bisect_left(numbers, first + (1 << bits)))

    def how_many(bits: int) -> int:
        return len(sharing(bits))

    # A number that shares more leading bits with the key is nearer than all that share fewer.
    bits = bisect_left(range(ID_BITS), count, key=how_many)
    return sorted((numbers[at] for at in sharing(bits)), key=lambda number: number ^ key)[:count]
