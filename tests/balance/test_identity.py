"""The identity of a joiner: it splits the largest range, and its own range is known before it enters."""

from random import Random

import pytest
from hypothesis import given, strategies as st

from kadcrawl.balance.identity import IdCandidate, Range, choose_id
from kadcrawl.keys import ID_BITS, NodeId, firstdiff

TOP = ID_BITS - 1
HALF = 1 << TOP

ids = st.integers(0, 2**ID_BITS - 1).map(NodeId)
swarms = st.lists(ids, min_size=1, max_size=12, unique=True)


def range_of(peer: int, peers: list[NodeId]) -> Range:
    mask = 0
    for other in peers:
        if other != peer:
            mask |= 1 << firstdiff(peer, other)
    return Range(owner=NodeId(peer), live_mask=mask)


def nearest_id(place: int, peers: list[NodeId]) -> NodeId:
    return min(peers, key=lambda peer: peer ^ place)


def candidate(node_id: int, halvings: int, firstdiff_to_owner: int = 0) -> IdCandidate:
    owner = NodeId(node_id ^ 1 << firstdiff_to_owner)
    return IdCandidate(
        node_id=NodeId(node_id), range=Range(owner=owner, live_mask=(1 << halvings) - 1 << TOP - halvings)
    )


@pytest.mark.parametrize(
    ("halvings", "expected"),
    [
        pytest.param([3], 0, id="one is taken as it is"),
        pytest.param([3, 2, 4], 1, id="the largest range"),
        pytest.param([2, 1, 1], 1, id="of equals the first"),
        pytest.param([0, 0], 0, id="the whole space, told by the only peer"),
    ],
)
def test_the_largest_range_is_split(halvings: list[int], expected: int) -> None:
    drawn = [candidate(10 + number, count) for number, count in enumerate(halvings)]
    assert drawn[expected] == choose_id(drawn)


def test_of_equal_ranges_the_one_is_taken_that_leaves_the_newcomer_more() -> None:
    beside = candidate(1 << 20, halvings=4)
    above = candidate(1 << 21, halvings=4, firstdiff_to_owner=TOP - 3)
    assert beside.range.halvings == above.range.halvings
    assert 5 == beside.range.newcomer(beside.node_id).halvings
    assert 3 == above.range.newcomer(above.node_id).halvings
    assert above == choose_id([beside, above])


def test_there_must_be_something_to_choose_from() -> None:
    with pytest.raises(ValueError, match="one ID"):
        choose_id([])


def test_an_id_that_is_taken_already_is_refused() -> None:
    with pytest.raises(ValueError, match="draw another"):
        Range(owner=NodeId(7), live_mask=HALF).newcomer(NodeId(7))


@given(swarms, ids)
def test_ranges_share_the_space(peers: list[NodeId], place: NodeId) -> None:
    assert sum(range_of(peer, peers).share for peer in peers) == 1.0


@given(swarms, ids)
def test_a_newcomer_knows_from_the_owner_alone_what_it_will_own(peers: list[NodeId], newcomer: NodeId) -> None:
    if newcomer in peers:
        return
    told = range_of(nearest_id(newcomer, peers), peers).newcomer(newcomer)
    assert range_of(newcomer, [*peers, newcomer]) == told


@given(swarms, swarms, ids)
def test_a_newcomer_knows_it_beside_others_that_are_expected(
    peers: list[NodeId], expected: list[NodeId], newcomer: NodeId
) -> None:
    """Several peers choose at the same time, and some have entered already."""
    everybody = [*dict.fromkeys([*peers, *expected])]
    if newcomer in everybody:
        return
    told = range_of(nearest_id(newcomer, peers), peers).shared_with(newcomer, expected)
    assert range_of(nearest_id(newcomer, everybody), everybody) == told


@given(swarms, ids)
def test_the_owner_an_id_is_found_at_loses_half_of_its_range(peers: list[NodeId], newcomer: NodeId) -> None:
    if newcomer in peers:
        return
    owner = nearest_id(newcomer, peers)
    before, after = range_of(owner, peers), range_of(owner, [*peers, newcomer])
    assert before.share / 2 == after.share
    assert before.newcomer(newcomer).share >= after.share


@given(swarms, st.integers(0, 2**32))
def test_the_choice_is_that_of_one_who_sees_the_whole_swarm(peers: list[NodeId], seed: int) -> None:
    random = Random(seed)
    drawn = [NodeId(random.getrandbits(ID_BITS)) for _ in range(4)]
    chosen = choose_id([IdCandidate(node_id=one, range=range_of(nearest_id(one, peers), peers)) for one in drawn])
    split = {one: range_of(nearest_id(one, peers), peers).share for one in drawn}
    assert max(split.values()) == split[chosen.node_id]
