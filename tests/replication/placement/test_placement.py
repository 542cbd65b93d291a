"""Test that three distinct peers hold each cell, so that the loss of any two is harmless."""

from itertools import combinations
from random import Random

import pytest
from hypothesis import given, strategies as st

from kadcrawl.keys import ID_BITS, Cell, anchor, backup_key
from kadcrawl.link.wire.messages import Contact
from kadcrawl.replication.placement.placement import (
    FIRST_BACKUP,
    HOLDERS,
    OWNER,
    SECOND_BACKUP,
    holders,
    placement_keys,
)
from kadcrawl.settings.job import COPIES_MAX, COPIES_MIN
from tests.support.links.contacts import contact

BITS = 16
PEERS = 8

cells = st.integers(0, 2**BITS - 1).map(Cell)
swarms = st.lists(st.integers(0, 2**ID_BITS - 1), min_size=1, max_size=12, unique=True)
copies_of_a_job = st.integers(COPIES_MIN, COPIES_MAX)


def nearest_to_place(peers: list[int], place: int, count: int) -> list[Contact]:
    return [contact(peer) for peer in sorted(peers, key=lambda peer: peer ^ place)[:count]]


def holders_in(peers: list[int], cell: Cell, copies: int = HOLDERS) -> list[Contact]:
    return holders([nearest_to_place(peers, place, copies) for place in placement_keys(cell, BITS, copies)])


A, B, C, D = (contact(number) for number in range(1, 5))


@pytest.mark.parametrize(
    ("by_role", "expected"),
    [
        pytest.param([[A, B, C], [B, A, C], [C, A, B]], [A, B, C], id="three different ones"),
        pytest.param([[A, B, C], [A, B, C], [C, A, B]], [A, B, C], id="the owner is skipped"),
        pytest.param([[A, B, C], [A, B, C], [A, B, C]], [A, B, C], id="the owner and the first backup are skipped"),
        pytest.param([[A, B, C], [C, A, B], [C, A, D]], [A, C, D], id="both skipped, whoever they are"),
        pytest.param([[A, B], [A, B], [B, A]], [A, B], id="two peers"),
        pytest.param([[A], [A], [A]], [A], id="one peer"),
        pytest.param([[], [], []], [], id="nobody"),
    ],
)
def test_a_peer_chosen_already_is_skipped(by_role: list[list[Contact]], expected: list[Contact]) -> None:
    assert expected == holders(by_role)


def test_the_places_of_a_cell_are_those_of_its_roles() -> None:
    places = placement_keys(Cell(77), BITS)
    assert anchor(Cell(77), BITS) == places[OWNER]
    assert backup_key(Cell(77), 1, BITS) == places[FIRST_BACKUP]
    assert backup_key(Cell(77), 2, BITS) == places[SECOND_BACKUP]


@given(swarms, cells, copies_of_a_job)
def test_holders_are_distinct_as_many_as_there_can_be_and_led_by_the_owner(
    peers: list[int], cell: Cell, copies: int
) -> None:
    chosen = holders_in(peers, cell, copies)
    assert min(copies, len(peers)) == len(chosen) == len({one.id for one in chosen})
    assert nearest_to_place(peers, anchor(cell, BITS), 1) == chosen[:1]


@given(swarms, cells)
def test_fewer_copies_are_with_the_first_holders_of_more(peers: list[int], cell: Cell) -> None:
    """A crawl that goes on with another number of copies moves only the copies that are new or too many."""
    assert holders_in(peers, cell, COPIES_MAX)[:COPIES_MIN] == holders_in(peers, cell, COPIES_MIN)


@given(swarms.filter(lambda peers: len(peers) >= 3), cells, st.randoms())
def test_each_backup_is_the_nearest_to_its_key_of_those_not_chosen(
    peers: list[int], cell: Cell, random: Random
) -> None:
    """All peers choose alike, for any order of the list of peers."""
    chosen = holders_in(peers, cell)
    random.shuffle(peers)
    assert chosen == holders_in(peers, cell)
    places = placement_keys(cell, BITS)
    for role in (FIRST_BACKUP, SECOND_BACKUP):
        earlier = {one.number for one in chosen[:role]}
        others = [peer for peer in peers if peer not in earlier]
        assert nearest_to_place(others, places[role], 1) == [chosen[role]]


def test_plain_double_hashing_loses_what_distinct_backups_keep() -> None:
    """The figures of replication/placement/placement.py, over many swarms of 8: one more hash alone is
    not one more peer."""
    random = Random(1)
    swarms, cells_each = 300, 60
    owner_again = lost_plain = lost_distinct = 0.0
    pairs = list(combinations(range(PEERS), 2))
    for _ in range(swarms):
        peers = [random.getrandbits(ID_BITS) for _ in range(PEERS)]
        for _ in range(cells_each):
            cell = Cell(random.getrandbits(BITS))
            owner, backup, _ = (min(peers, key=lambda peer: peer ^ place) for place in placement_keys(cell, BITS))
            plain, distinct = {owner, backup}, {one.number for one in holders_in(peers, cell)}
            owner_again += owner == backup
            gone = [{peers[one], peers[other]} for one, other in pairs]
            lost_plain += sum(plain <= two for two in gone) / len(pairs)
            lost_distinct += sum(distinct <= two for two in gone)
    total = swarms * cells_each
    assert pytest.approx(0.185, abs=0.02) == owner_again / total
    assert pytest.approx(0.075, abs=0.005) == lost_plain / total
    assert 0 == lost_distinct
