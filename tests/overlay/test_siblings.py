"""Test that the sibling list knows how far it is complete, and that its rounds slow down while nothing changes."""

from itertools import pairwise
from random import Random

from kadcrawl.keys import firstdiff
from kadcrawl.overlay.siblings import Siblings, TrickleTimer
from tests.support.links.contacts import neighbor


def test_the_nearest_are_siblings_nearest_first() -> None:
    siblings = Siblings(0, 2)
    assert siblings.update([neighbor(9), neighbor(3), neighbor(5)])
    assert [n.long_id for n in siblings.nearest] == [3, 5]
    assert not siblings.update([neighbor(3), neighbor(5), neighbor(7)])


def test_only_who_is_nearer_than_the_farthest_is_admitted() -> None:
    siblings = Siblings(0, 2)
    siblings.update([neighbor(3)])
    assert siblings.admits(1000), "there is a place"
    siblings.update([neighbor(3), neighbor(5)])
    assert [siblings.admits(number) for number in (4, 5, 6)] == [True, True, False]


def test_all_peers_are_known_below_the_farthest_sibling() -> None:
    random = Random(1)
    for _ in range(50):
        me, *others = [neighbor(random.getrandbits(160)) for _ in range(40)]
        siblings = Siblings(me.long_id, 16)
        siblings.update(others)
        for index in range(160):
            there = {n.id for n in others if firstdiff(me.long_id, n.long_id) == index}
            if siblings.complete_at(index):
                assert there <= siblings.ids
            assert siblings.complete_at(index) == (index < siblings.reach)


def test_with_free_places_all_peers_are_known() -> None:
    siblings = Siblings(0, 16)
    siblings.update([neighbor(3)])
    assert siblings.complete_at(159)


def test_the_pace_slows_down_and_quickens_on_a_change() -> None:
    pace = TrickleTimer(1, 8, Random(1))
    rounds = [now / 10 for now in range(1000) if pace.due(now / 10)]
    waits = [later - earlier for earlier, later in pairwise(rounds)]
    for wait, nominal in zip(waits, [1, 2, 4, 8, 8, 8], strict=False):
        assert 0.75 * nominal <= wait <= 1.25 * nominal + 0.1
    pace.reset(100)
    assert not pace.due(100.7)
    assert pace.due(101.3)
