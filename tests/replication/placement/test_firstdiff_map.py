"""Test that a newcomer takes exactly the placements nearer to it, and that little else is read (P1 1.3.2)."""

from random import Random

import pytest
from hypothesis import assume, given, strategies as st

from kadcrawl.keys import ID_BITS, Cell, id_bytes
from kadcrawl.link.wire.messages import Contact
from kadcrawl.replication.placement.firstdiff_map import CellMap, Placement
from kadcrawl.replication.placement.placement import HOLDERS, OWNER, holders, placement_keys

BITS = 16
ME = 0b1000 << 156
"""The peer of the tables, whose IDs and places differ in the top four bits."""


def place_of_top(top: int) -> int:
    return top << 156


def filled_map(me: int, placements: dict[Placement, int]) -> CellMap:
    cells = CellMap(me)
    for (cell, role), at in placements.items():
        cells.put(cell, role, at)
    return cells


def nearer_to(newcomer: int, me: int, placements: dict[Placement, int]) -> set[Placement]:
    """Return the placements nearer to the newcomer by brute force."""
    return {placement for placement, at in placements.items() if newcomer ^ at < me ^ at}


@pytest.mark.parametrize(
    ("newcomer", "moved", "examined"),
    [
        pytest.param(0b1001, [], 0, id="the nearest place: of the farther ones nothing is read, as none has the bit"),
        pytest.param(0b1010, [2], 1, id="its bucket goes whole, the others stay unread"),
        pytest.param(0b1100, [3], 1, id="the next bucket"),
        pytest.param(0b0000, [4], 1, id="the farthest bucket: all others stay unread"),
    ],
)
def test_whole_buckets_go_or_stay_unread(newcomer: int, moved: list[int], examined: int) -> None:
    placements = {(Cell(1), 0): 0b1000, (Cell(2), 0): 0b1010, (Cell(3), 0): 0b1100, (Cell(4), 0): 0b0000}
    cells = filled_map(ME, {placement: place_of_top(top) | 1 for placement, top in placements.items()})
    assert [(Cell(cell), 0) for cell in moved] == cells.displaced_by(place_of_top(newcomer))
    assert (examined, len(moved)) == (cells.counts.examined, cells.counts.moved)


def test_a_farther_bucket_gives_keys_that_differ_in_the_newcomers_bit() -> None:
    cells = filled_map(
        ME, {(Cell(1), 0): place_of_top(0b0001), (Cell(2), 1): place_of_top(0b0010), (Cell(3), 2): place_of_top(0b0011)}
    )
    assert [(Cell(2), 1), (Cell(3), 2)] == cells.displaced_by(place_of_top(0b1010))
    assert (2, 2) == (cells.counts.examined, cells.counts.moved)


def test_we_displace_nothing_of_our_own() -> None:
    cells = filled_map(ME, {(Cell(1), 0): ME, (Cell(2), 0): place_of_top(0b1010)})
    assert [] == cells.displaced_by(ME)


def test_a_cell_has_one_role_at_a_time() -> None:
    cells = filled_map(ME, {(Cell(1), 0): place_of_top(0b0001)})
    cells.put(Cell(1), 2, place_of_top(0b1010))
    assert 1 == len(cells)
    assert [] == cells.displaced_by(place_of_top(0b0000))
    assert [(Cell(1), 2)] == cells.displaced_by(place_of_top(0b1010))


def test_what_was_dropped_is_no_longer_displaced() -> None:
    cells = filled_map(ME, {(Cell(1), 0): place_of_top(0b0001), (Cell(2), 0): place_of_top(0b0010)})
    cells.drop(Cell(1))
    cells.drop(Cell(1))
    cells.drop(Cell(7))
    assert [(Cell(2), 0)] == cells.displaced_by(place_of_top(0b0000))
    assert 1 == len(cells)


def test_putting_twice_changes_nothing() -> None:
    cells = filled_map(ME, {(Cell(1), 0): place_of_top(0b0001)})
    cells.put(Cell(1), 0, place_of_top(0b0001))
    assert [(Cell(1), 0)] == cells.displaced_by(place_of_top(0b0000))


ids = st.integers(0, 2**ID_BITS - 1)
near_ids = st.builds(lambda id_, shift: id_ >> shift, ids, st.integers(0, ID_BITS))
"""IDs that share long prefixes too, so that every bucket is met."""
held = st.dictionaries(st.integers(0, 99).map(Cell), st.tuples(st.integers(0, HOLDERS - 1), near_ids), max_size=40)


@given(near_ids, near_ids, held)
def test_displaced_are_exactly_those_the_newcomer_is_nearer_to(
    me: int, newcomer: int, held: dict[Cell, tuple[int, int]]
) -> None:
    assume(newcomer != me)
    placements = {(cell, role): at for cell, (role, at) in held.items()}
    cells = filled_map(me, placements)
    displaced = cells.displaced_by(newcomer)
    assert nearer_to(newcomer, me, placements) == set(displaced)
    assert len(displaced) == len(set(displaced)) == cells.counts.moved <= cells.counts.examined <= len(placements)


@given(near_ids, st.lists(near_ids, max_size=12, unique=True), held)
def test_each_cell_of_a_leaving_peer_goes_to_the_nearest_other_and_is_read_once(
    me: int, others: list[int], held: dict[Cell, tuple[int, int]]
) -> None:
    contacts = [Contact(id_bytes(other), "10.0.0.1", 1) for other in others if other != me]
    assume(contacts)
    cells = filled_map(me, {(cell, OWNER): at for cell, (_, at) in held.items()})
    shares = cells.successors(contacts)
    found = {cell: successor for successor, them in shares.items() for cell in them}
    assert {cell: min(contacts, key=lambda one: one.number ^ at) for cell, (_, at) in held.items()} == found
    assert len(held) == sum(map(len, shares.values())) == cells.counts.examined == cells.counts.moved


def test_a_leaving_peer_that_knows_no_other_has_no_successors() -> None:
    assert {} == filled_map(ME, {(Cell(1), 0): place_of_top(0b1010)}).successors([])


@pytest.mark.parametrize(
    ("peers", "expected"),
    [
        pytest.param([0b1100], {0b1100: [1, 2, 3]}, id="a single candidate takes all"),
        pytest.param([0b1100, 0b0000], {0b1100: [1, 2, 3]}, id="a peer in a farther bucket is no candidate"),
        pytest.param([0b1100, 0b1110], {0b1100: [1, 2], 0b1110: [3]}, id="Left takes the near cells, Right the far"),
        pytest.param([0b1110, 0b1111], {0b1110: [1, 3], 0b1111: [2]}, id="Left is empty: Right takes all"),
        pytest.param([0b1100, 0b1101], {0b1100: [1, 3], 0b1101: [2]}, id="Right is empty: Left takes all"),
    ],
)
def test_left_and_right_divide_the_cells_as_in_p1(peers: list[int], expected: dict[int, list[int]]) -> None:
    places = {1: 0b1000, 2: 0b1001, 3: 0b1010}
    cells = filled_map(ME, {(Cell(cell), 0): place_of_top(top) for cell, top in places.items()})
    contacts = [Contact(id_bytes(place_of_top(peer)), "10.0.0.1", 1) for peer in peers]
    shares = {one.number >> 156: sorted(them) for one, them in cells.successors(contacts).items()}
    assert expected == shares


@given(near_ids, near_ids, held, st.lists(st.integers(0, 99).map(Cell)), held)
def test_the_map_is_exact_after_any_changes(
    me: int,
    newcomer: int,
    first: dict[Cell, tuple[int, int]],
    dropped: list[Cell],
    then: dict[Cell, tuple[int, int]],
) -> None:
    assume(newcomer != me)
    cells = filled_map(me, {(cell, role): at for cell, (role, at) in first.items()})
    for cell in dropped:
        cells.drop(cell)
    for cell, (role, at) in then.items():
        cells.put(cell, role, at)
    now = {cell: one for cell, one in first.items() if cell not in dropped} | then
    placements = {(cell, role): at for cell, (role, at) in now.items()}
    assert len(placements) == len(cells)
    assert nearer_to(newcomer, me, placements) == set(cells.displaced_by(newcomer))


@pytest.mark.parametrize("stored", [1_000, 4_000])
def test_examined_follows_what_moves_not_what_is_stored(stored: int) -> None:
    """Places are anywhere, the worst case.

    Of the farther buckets half the places go, so at most twice the moved placements are read. A single newcomer may
    have bad luck, but the sum over many must not.
    """
    random = Random(stored)
    examined = moved = 0
    for _ in range(60):
        cells = CellMap(random.getrandbits(ID_BITS))
        for cell in range(stored):
            cells.put(Cell(cell), OWNER, random.getrandbits(ID_BITS))
        cells.displaced_by(random.getrandbits(ID_BITS))
        examined += cells.counts.examined
        moved += cells.counts.moved
    assert moved <= examined <= 2 * moved


@pytest.mark.parametrize("count", [8, 32])
def test_a_newcomers_cells_are_found_by_reading_at_most_twice_as_many(count: int) -> None:
    """All peers of real swarms, each with the cells it really holds, meet newcomers."""
    random = Random(count)
    examined = moved = 0
    for _ in range(12):
        contacts = [Contact(id_bytes(random.getrandbits(ID_BITS)), "10.0.0.1", 1) for _ in range(count)]
        maps = {contact.id: CellMap(contact.number) for contact in contacts}
        for cell in map(Cell, random.sample(range(2**BITS), 300)):
            places = placement_keys(cell, BITS)
            nearest = [sorted(contacts, key=lambda one: one.number ^ at)[:HOLDERS] for at in places]
            for role, contact in enumerate(holders(nearest)):
                maps[contact.id].put(cell, role, places[role])
        newcomer = random.getrandbits(ID_BITS)
        for cells in maps.values():
            cells.displaced_by(newcomer)
            examined += cells.counts.examined
            moved += cells.counts.moved
    assert moved <= examined <= 2 * moved
