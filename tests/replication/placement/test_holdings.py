"""Test the cells that a peer holds, and its role for each.

Also tested are the changes by a joining or leaving peer.
"""

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from kadcrawl.keys import Cell
from kadcrawl.link.wire.messages import Contact
from kadcrawl.replication.placement.holdings import Holdings
from kadcrawl.replication.placement.placement import FIRST_BACKUP, HOLDERS, OWNER, SECOND_BACKUP, placement_keys
from tests.support.links.contacts import contact

BITS = 8
ME = 1 << 159
CELL, OTHER = Cell(3), Cell(200)


A, B, C = contact(1), contact(2), contact(3)


@pytest.fixture
def holdings() -> Holdings:
    return Holdings(ME, BITS)


def test_an_owned_cell_is_closed_at_first(holdings: Holdings) -> None:
    owned = holdings.own(CELL, 0.0)
    assert (False, False, False, ()) == (owned.open, owned.closing, owned.whole, owned.backups)
    assert not holdings.is_open(CELL)


def test_owning_again_keeps_it_open(holdings: Holdings) -> None:
    holdings.own(CELL, 0.0).open = True
    assert holdings.own(CELL, 0.0).open
    assert holdings.is_open(CELL)


def test_a_cell_nobody_spoke_of_is_not_open(holdings: Holdings) -> None:
    assert not holdings.is_open(CELL)
    assert [CELL] == holdings.strays([CELL])


def test_a_cell_is_owned_or_backed_up_never_both(holdings: Holdings) -> None:
    holdings.own(CELL, 0.0).open = True
    holdings.back_up_at(CELL, [A])
    holdings.back_up_for(CELL, B, FIRST_BACKUP, 1.0)
    assert not holdings.is_open(CELL)
    assert ([], [CELL]) == (list(holdings.owned), list(holdings.backed))
    assert ([], []) == holdings.lost(A.id)
    holdings.own(CELL, 0.0)
    assert ([CELL], []) == (list(holdings.owned), list(holdings.backed))
    assert ([], []) == holdings.lost(B.id)


def test_a_lost_backup_leaves_its_cells_short(holdings: Holdings) -> None:
    for cell, backups in ((CELL, [A, B]), (OTHER, [B, C])):
        holdings.own(cell, 0.0).whole = True
        holdings.back_up_at(cell, backups)
    assert ([CELL], []) == holdings.lost(A.id)
    assert (False, (B,)) == (holdings.owned[CELL].whole, holdings.owned[CELL].backups)
    assert (True, (B, C)) == (holdings.owned[OTHER].whole, holdings.owned[OTHER].backups)


@pytest.mark.parametrize("copies", [2, 3, 5])
def test_a_cell_is_short_until_it_has_as_many_holders_as_the_job_says(copies: int) -> None:
    holdings = Holdings(ME, BITS, copies)
    holdings.own(CELL, 0.0)
    assert copies == len(set(holdings.places(CELL)))
    backups = [contact(number) for number in range(1, copies)]
    holdings.back_up_at(CELL, backups[:-1])
    assert [CELL] == holdings.short()
    holdings.back_up_at(CELL, backups)
    assert [] == holdings.short()


def test_a_leaving_peer_tells_the_owners_of_its_copies_and_its_successors(holdings: Holdings) -> None:
    holdings.own(CELL, 0.0)
    holdings.back_up_for(OTHER, B, FIRST_BACKUP, 0.0)
    nearest = min([A, B, C], key=lambda one: one.number ^ holdings.places(CELL)[OWNER])
    assert [(nearest, [CELL]), (B, [OTHER])] == holdings.departing([A, B, C])
    assert (2, 2) == (holdings.looks.examined, holdings.looks.moved)


def test_a_lost_owner_leaves_orphans_which_are_strays(holdings: Holdings) -> None:
    holdings.back_up_for(CELL, A, FIRST_BACKUP, 0.0)
    holdings.back_up_for(OTHER, B, SECOND_BACKUP, 0.0)
    assert ([], [CELL]) == holdings.lost(A.id)
    assert [CELL] == holdings.strays([CELL, OTHER])
    assert ([], []) == holdings.lost(A.id)


def test_a_non_member_that_is_lost_leaves_nothing_short(holdings: Holdings) -> None:
    holdings.own(CELL, 0.0)
    assert ([], []) == holdings.lost(A.id)


def test_a_backup_replaced_is_no_loss(holdings: Holdings) -> None:
    holdings.own(CELL, 0.0)
    holdings.back_up_at(CELL, [A, B])
    holdings.back_up_at(CELL, [B, C])
    assert [B, C] == holdings.others(CELL)
    assert ([], []) == holdings.lost(A.id)
    assert ([CELL], []) == holdings.lost(C.id)


def test_an_owner_replaced_is_no_loss(holdings: Holdings) -> None:
    holdings.back_up_for(CELL, A, FIRST_BACKUP, 0.0)
    holdings.back_up_for(CELL, B, FIRST_BACKUP, 0.0)
    assert [B] == holdings.others(CELL)
    assert ([], []) == holdings.lost(A.id)
    assert ([], [CELL]) == holdings.lost(B.id)


def test_an_owner_is_silent_until_it_speaks_again(holdings: Holdings) -> None:
    holdings.back_up_for(CELL, A, FIRST_BACKUP, 1.0)
    holdings.back_up_for(OTHER, A, None, 2.0)
    assert [] == holdings.silent(1.0, 0.0)
    assert [CELL] == holdings.silent(2.0, 0.0)
    holdings.back_up_for(CELL, A, None, 3.0)
    assert [OTHER] == holdings.silent(3.0, 0.0)


def test_an_owner_that_is_silent_about_all_its_cells_is_missed_sooner(holdings: Holdings) -> None:
    """An owner of many cells speaks of each of them more seldom, and of one of them in each repair."""
    holdings.back_up_for(CELL, A, FIRST_BACKUP, 1.0)
    holdings.back_up_for(OTHER, A, None, 2.0)
    assert [] == holdings.silent(0.0, 2.0)
    assert [CELL, OTHER] == holdings.silent(0.0, 2.5)
    holdings.back_up_for(OTHER, A, None, 3.0)
    assert [] == holdings.silent(0.0, 2.5)
    holdings.let_go(CELL)
    holdings.let_go(OTHER)
    holdings.back_up_for(CELL, B, FIRST_BACKUP, 4.0)
    assert [CELL] == holdings.silent(0.0, 5.0)


def test_each_backup_hears_of_one_cell_in_each_repair(holdings: Holdings) -> None:
    for cell, backups in ((Cell(1), [A, B]), (Cell(2), [B, C]), (Cell(3), [B, C])):
        holdings.own(cell, 0.0).set_open()
        holdings.back_up_at(cell, backups)
        holdings.owned[cell].set_whole(True)
    assert [Cell(2)] == holdings.words_for_others([Cell(1)])
    assert [Cell(1)] == holdings.words_for_others([Cell(3)])
    assert [Cell(1), Cell(2)] == holdings.words_for_others([])
    assert [] == holdings.words_for_others([Cell(1), Cell(2)])
    holdings.owned[Cell(1)].set_whole(False)
    assert [] == holdings.words_for_others([Cell(3)])  # A cell that lacks copies is synced.


def test_cells_with_fewer_than_two_backups_are_short(holdings: Holdings) -> None:
    for cell, backups in ((Cell(1), []), (Cell(2), [A]), (Cell(3), [A, B])):
        holdings.own(cell, 0.0)
        holdings.back_up_at(cell, backups)
    assert [Cell(1), Cell(2)] == holdings.short()


@pytest.mark.parametrize("role", [OWNER, FIRST_BACKUP, SECOND_BACKUP])
def test_a_newcomer_at_the_place_of_a_cell_is_to_hold_it(holdings: Holdings, role: int) -> None:
    place = placement_keys(CELL, BITS)[role]
    if role == OWNER:
        holdings.own(CELL, 0.0)
    else:
        holdings.back_up_for(CELL, A, role, 0.0)
    assert ([CELL], []) == holdings.joined(place)
    holdings.let_go(CELL)
    assert ([], []) == holdings.joined(place)


@pytest.mark.parametrize("role", [FIRST_BACKUP, SECOND_BACKUP])
def test_a_newcomer_at_the_place_of_a_backup_is_to_hold_its_copy(holdings: Holdings, role: int) -> None:
    """The owner finds it out by itself: the backup may not know the newcomer."""
    holdings.own(CELL, 0.0)
    holdings.back_up_at(CELL, [A, B])
    place = placement_keys(CELL, BITS)[role]
    assert CELL in holdings.joined(place)[1]
    holdings.let_go(CELL)
    assert [] == holdings.joined(place)[1]


def test_a_backup_that_the_overlay_gets_to_know_takes_nothing_from_itself(holdings: Holdings) -> None:
    """A lookup had found the backup, and the overlay hears of the backup only now."""
    holdings.own(CELL, 0.0)
    holdings.back_up_at(CELL, [A])
    assert [] == holdings.joined(A.number)[1]


def test_a_copy_kept_under_another_role_moves_by_that_role(holdings: Holdings) -> None:
    places = placement_keys(CELL, BITS)
    holdings.back_up_for(CELL, A, FIRST_BACKUP, 0.0)
    holdings.back_up_for(CELL, A, SECOND_BACKUP, 0.0)
    assert ([CELL], []) == holdings.joined(places[SECOND_BACKUP])
    nearer = places[FIRST_BACKUP] ^ places[SECOND_BACKUP] < ME ^ places[SECOND_BACKUP]
    assert nearer == (([CELL], []) == holdings.joined(places[FIRST_BACKUP]))


def test_a_copy_whose_role_is_unknown_keeps_the_one_it_had(holdings: Holdings) -> None:
    holdings.back_up_for(CELL, A, FIRST_BACKUP, 0.0)
    holdings.back_up_for(CELL, A, None, 1.0)
    assert ([CELL], []) == holdings.joined(placement_keys(CELL, BITS)[FIRST_BACKUP])


class AnyOrder(RuleBasedStateMachine):
    """Check that the indices equal a scan of all cells, for any events in any order."""

    cells = st.integers(0, 5).map(Cell)
    peers = st.integers(1, 4).map(contact)

    def __init__(self) -> None:
        super().__init__()
        self.holdings = Holdings(ME, BITS)
        self.backups: dict[Cell, list[Contact]] = {}
        self.owners: dict[Cell, Contact] = {}
        self.roles: dict[Cell, int] = {}

    def _gone(self, cell: Cell) -> None:
        for known in (self.backups, self.owners, self.roles):
            known.pop(cell, None)

    @rule(cell=cells)
    def own(self, cell: Cell) -> None:
        if cell not in self.backups:
            self._gone(cell)
            self.backups[cell] = []
            self.roles[cell] = OWNER
        self.holdings.own(cell, 0.0).whole = True

    @rule(cell=cells, backups=st.lists(peers, max_size=2, unique=True))
    def back_up_at(self, cell: Cell, backups: list[Contact]) -> None:
        if cell in self.backups:
            self.backups[cell] = backups
            self.holdings.back_up_at(cell, backups)

    @rule(cell=cells, owner=peers, role=st.sampled_from([None, FIRST_BACKUP, SECOND_BACKUP]))
    def back_up_for(self, cell: Cell, owner: Contact, role: int | None) -> None:
        if self.owners.get(cell) != owner:
            self._gone(cell)
            self.owners[cell] = owner
        if role is not None:
            self.roles[cell] = role
        self.holdings.back_up_for(cell, owner, role, 0.0)

    @rule(cell=cells)
    def let_go(self, cell: Cell) -> None:
        self._gone(cell)
        self.holdings.let_go(cell)

    @rule(peer=peers)
    def lose(self, peer: Contact) -> None:
        unsafe, orphans = self.holdings.lost(peer.id)
        assert {cell for cell, backups in self.backups.items() if peer in backups} == set(unsafe)
        assert {cell for cell, owner in self.owners.items() if owner == peer} == set(orphans)
        assert not any(self.holdings.owned[cell].whole for cell in unsafe)
        self.backups = {cell: [one for one in backups if one != peer] for cell, backups in self.backups.items()}
        for cell in orphans:
            self._gone(cell)

    @invariant()
    def holds_what_it_was_told(self) -> None:
        assert self.backups == {cell: list(owned.backups) for cell, owned in self.holdings.owned.items()}
        assert self.owners == {cell: backed.owner for cell, backed in self.holdings.backed.items()}
        short = {cell for cell, backups in self.backups.items() if len(backups) < HOLDERS - 1}
        assert short == set(self.holdings.short())
        for cell, role in self.roles.items():
            assert cell in self.holdings.joined(placement_keys(cell, BITS)[role])[0]


TestAnyOrder = AnyOrder.TestCase
