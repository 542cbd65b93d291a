"""Ambushes: sprung when somebody has held something alone for long enough, else at their end, and once."""

from sim.ambush import Ambushes
from sim.plan import Event, Kind

AT_ONCE = Event(1.0, Kind.AMBUSH, (3,), for_s=4.0)
LATER = Event(1.0, Kind.AMBUSH, (5,), for_s=4.0, amount=0.1)


def test_an_ambush_is_sprung_once_when_its_machine_holds_something_alone() -> None:
    alone: set[int] = set()
    ambushes = Ambushes(alone.__contains__)
    assert not ambushes
    ambushes.lay(AT_ONCE)
    assert ambushes
    alone.add(4)
    assert [] == ambushes.sprung(1.1)
    alone.add(3)
    assert [AT_ONCE] == ambushes.sprung(1.2)
    assert [] == ambushes.sprung(1.3)
    assert not ambushes
    assert not ambushes.lift(AT_ONCE), "it has been sprung"


def test_it_may_wait_until_the_machine_has_held_it_for_a_while() -> None:
    alone = {5}
    ambushes = Ambushes(alone.__contains__)
    ambushes.lay(LATER)
    assert [] == ambushes.sprung(1.0)
    alone.clear()
    assert [] == ambushes.sprung(1.09)
    alone.add(5)
    assert [] == ambushes.sprung(1.11), "it has been one of many meanwhile"
    assert [LATER] == ambushes.sprung(1.22)


def test_one_that_never_was_sprung_is_at_its_end() -> None:
    ambushes = Ambushes(lambda machine: False)
    ambushes.lay(AT_ONCE)
    assert [] == ambushes.sprung(2.0)
    assert ambushes.lift(AT_ONCE)
    assert not ambushes
