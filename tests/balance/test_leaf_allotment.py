"""The allotment of a leaf: its share of the ready URLs of its full peer, and no more."""

import pytest

from kadcrawl.balance.leaf_allotment import leaf_allotment

MANY = [("a", 30), ("b", 50), ("c", 10)]


def allotment(
    sites: list[tuple[str, int]], *, leaves: int, in_hand: int, lent: int, room: int, loans: int = 6
) -> list[tuple[str, int]]:
    """Return the allotment of a leaf that may have all sites."""
    ready = sum(urls for _, urls in sites)
    return leaf_allotment(
        sites, ready=ready, leaves=leaves, in_hand=in_hand, lent=lent, room=room, block_urls=20, loans=loans
    )


@pytest.mark.parametrize(
    ("lendable", "leaves", "in_hand", "lent", "room", "expected"),
    [
        (MANY, 1, 0, 0, 200, [("b", 20), ("a", 20), ("c", 5)]),
        (MANY, 2, 0, 0, 200, [("b", 20), ("a", 10)]),
        # What others have in hand is shared, too; what it has itself counts as got.
        (MANY, 2, 0, 30, 200, [("b", 20), ("a", 20)]),
        (MANY, 2, 30, 30, 200, [("b", 10)]),
        (MANY, 1, 90, 90, 200, []),
        # A full peer keeps the last one to itself.
        ([("a", 1)], 1, 0, 0, 200, []),
        ([("a", 1), ("b", 1)], 1, 0, 0, 200, [("a", 1)]),
        (MANY, 1, 0, 0, 7, [("b", 7)]),
        (MANY, 1, 0, 0, 0, []),
        ([], 1, 0, 50, 200, []),
    ],
)
def test_a_leaf_gets_its_share_by_blocks_of_the_largest_sites(
    lendable: list[tuple[str, int]],
    leaves: int,
    in_hand: int,
    lent: int,
    room: int,
    expected: list[tuple[str, int]],
) -> None:
    assert expected == allotment(lendable, leaves=leaves, in_hand=in_hand, lent=lent, room=room)


def test_no_more_loans_are_made_than_may_be() -> None:
    lendable = [(str(number), 10) for number in range(20)]
    for loans in (0, 1, 6):
        assert loans == len(allotment(lendable, leaves=1, in_hand=0, lent=0, room=200, loans=loans))


def test_the_share_counts_sites_that_other_leaves_have() -> None:
    given = leaf_allotment([("b", 50)], ready=90, leaves=2, in_hand=0, lent=0, room=200, block_urls=40, loans=6)
    assert [("b", 30)] == given
