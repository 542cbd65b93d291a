"""Test the owner of each cell, and the cache from a cell to its owner."""

from random import Random

import pytest

from kadcrawl.keys import Cell, anchor, firstdiff
from kadcrawl.link.wire.messages import Contact
from kadcrawl.overlay.ownership import OwnerCache, owner_bucket
from tests.support.links.contacts import contact

BITS = 8


def peer_in_cell(cell: int) -> Contact:
    """A peer whose ID begins with the bits of `cell`."""
    return contact(anchor(Cell(cell), BITS) + 1)


@pytest.mark.parametrize("peers", [1, 2, 3, 16, 100])
def test_the_mask_tells_where_the_owner_stands(peers: int) -> None:
    random = Random(peers)
    ids = [random.getrandbits(160) for _ in range(peers)]
    for me in ids:
        mask = 0
        for other in ids:
            if other != me:
                mask |= 1 << firstdiff(me, other)
        for _ in range(50):
            target = random.getrandbits(160)
            owner = min(ids, key=lambda number: number ^ target)
            assert firstdiff(me, owner) == owner_bucket(me, target, mask)


def test_entries_end_after_their_time() -> None:
    cache = OwnerCache(BITS, 10, 60)
    cache.put(Cell(1), peer_in_cell(2), 0)
    assert peer_in_cell(2) == cache.get(Cell(1), 59.9)
    assert cache.get(Cell(1), 60) is None
    assert len(cache) == 0


def test_the_longest_unused_entry_makes_room() -> None:
    cache = OwnerCache(BITS, 2, 60)
    cache.put(Cell(1), peer_in_cell(9), 0)
    cache.put(Cell(2), peer_in_cell(9), 0)
    cache.get(Cell(1), 0)
    cache.put(Cell(3), peer_in_cell(9), 0)
    assert [cache.get(Cell(cell), 0) is not None for cell in (1, 2, 3)] == [True, False, True]


def test_a_lost_peer_owns_nothing() -> None:
    cache = OwnerCache(BITS, 10, 60)
    for cell, owner in ((1, 7), (2, 8), (3, 7)):
        cache.put(Cell(cell), peer_in_cell(owner), 0)
    cache.drop_peer(peer_in_cell(7).id)
    assert [None, peer_in_cell(8), None] == [cache.get(Cell(cell), 0) for cell in (1, 2, 3)]


def test_a_newcomer_takes_what_it_is_nearer_to() -> None:
    cache = OwnerCache(BITS, 10, 60)
    for cell in (0, 4, 5):
        cache.put(Cell(cell), peer_in_cell(7), 0)
    cache.drop_taken_by(peer_in_cell(4))
    assert [cache.get(Cell(cell), 0) for cell in (0, 4, 5)] == [None, None, None]
    cache.put(Cell(7), peer_in_cell(6), 0)
    cache.drop_taken_by(peer_in_cell(5))
    assert peer_in_cell(6) == cache.get(Cell(7), 0)
