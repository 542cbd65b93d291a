"""Test that each successor of a leaving peer is told of its cells once, in full batches."""

from kadcrawl.keys import Cell
from kadcrawl.replication.placement.look_counts import LookCounts
from kadcrawl.replication.placement.succession import Succession
from tests.support.links.contacts import contact

A, B, C = contact(1), contact(2), contact(3)


def cells(*numbers: int) -> list[Cell]:
    return [Cell(number) for number in numbers]


def test_each_successor_gets_its_cells_in_full_batches() -> None:
    counts = LookCounts()
    succession = Succession(counts)
    succession.begin(A, cells(1, 2, 3))
    succession.begin(B, cells(4))
    succession.begin(A, cells(5, 6))
    succession.begin(C, [])
    assert succession
    assert [(A, cells(1, 2)), (B, cells(4))] == succession.next_batches(2)
    assert [(A, cells(3, 5))] == succession.next_batches(2)
    assert [(A, cells(6))] == succession.next_batches(2)
    assert not succession
    assert [] == succession.next_batches(2)
    assert 4 == counts.messages


def test_a_peer_that_refused_is_passed_over_until_all_have() -> None:
    succession = Succession(LookCounts())
    assert A == succession.willing([A, B])
    succession.refused(A.id)
    assert B == succession.willing([A, B])
    succession.refused(B.id)
    assert A == succession.willing([A, B]), "all have refused, so all are asked again"
    assert A == succession.willing([A, B])
    assert succession.willing([]) is None
