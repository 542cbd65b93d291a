"""Test that a peer ignores a member's statements about cells it was not asked for, and about others' loans."""

import pytest

from kadcrawl.keys import Cell, anchor, id_bytes
from kadcrawl.link.wire.messages import Batch, CellEpochFilters, Contact, KeepEpochFilters, PendingRecord, Recall
from tests.support.links.liar import LIAR, visit
from tests.support.swarm.peers import MakePeer, make_peer as make_peer
from tests.support.waiting import until


@pytest.mark.parametrize("kind", ["done", "pending", "visit"])
async def test_of_an_answer_only_what_is_of_the_cell_it_was_asked_for_is_taken(make_peer: MakePeer, kind: str) -> None:
    """A peer asked for one cell could otherwise write into all other cells, without a word to their owners."""
    peer = await make_peer("one", recrawl_after_s=86_400.0)
    url = "http://a.example/x"
    place = peer.components.partitioner.locate(url)
    pending = PendingRecord(url, 1, 0, 0, 0.0)
    said = {
        "done": Batch([place.key], [], [], []),
        "pending": Batch([], [pending], [], []),
        "visit": Batch([], [], [], [], [visit(url, 3)]),
    }[kind]
    assert set() == peer.cells.records.merge(said, Cell(place.cell ^ 1))
    assert peer.store.state(place.key) is None
    assert {place.cell} == peer.cells.records.merge(said, place.cell)
    assert peer.store.state(place.key) is not None


async def test_a_loan_is_taken_back_by_nobody_but_its_lender(make_peer: MakePeer) -> None:
    peer = await make_peer("one")
    giver, loan_id = Contact(bytes(20), "127.0.0.1", 9), bytes(8)
    borrowing = peer.balancing.loans.borrower
    borrowing._borrowed.add(loan_id, giver, "a.example", [], 1)
    loan = borrowing._borrowed.loans[loan_id]
    borrowing.recall(Recall(Contact(LIAR, *giver.address), [loan_id]))
    assert not loan.closing
    borrowing.recall(Recall(giver, [loan_id]))
    assert loan.closing


async def test_fingerprints_are_taken_of_nobody_to_whom_another_is_nearer(
    make_peer: MakePeer, monkeypatch: pytest.MonkeyPatch
) -> None:
    anne = await make_peer("one", history="bloom")
    bert = await make_peer("two", join=anne)
    await until(lambda: anne.overlay.contacts() == [bert.contact])
    cell = next(Cell(number) for number in range(2**16) if not anne.overlay.owns(Cell(number)))
    await until(lambda: cell not in anne.cells.holdings.owned)
    taken: list[Cell] = []

    async def merge(cell: Cell, told: object, *, adopt: bool) -> None:
        taken.append(cell)

    monkeypatch.setattr(anne.cells.records, "merge_epoch_filters", merge)
    far = Contact(id_bytes(anchor(cell, 16) ^ ((1 << 160) - 1)), "127.0.0.1", 9)
    for owner in (far, bert.contact):
        assert [] == taken
        await anne.cells.keep_epoch_filters(KeepEpochFilters(owner, [CellEpochFilters(cell, [])]))
    assert [cell] == taken
