"""A cell's sync goes only where its table lets it, and an attempt asks, merges and drops by plain rules."""

import pytest

from kadcrawl.keys import Cell
from kadcrawl.link.wire.messages import CellState, CellSummary, Contact
from kadcrawl.replication.owner.sync_progress import (
    CLAIMS_MAX,
    MOVES,
    IllegalMoveError,
    SyncAttempt,
    SyncProgress,
    SyncState,
)
from tests.support.cases import cases
from tests.support.links.contacts import contact

CELL = Cell(3)
ME, FIRST, SECOND, NEXT, FORMER, STRAY = map(contact, range(1, 7))


def progress_in(state: SyncState) -> SyncProgress:
    progress = SyncProgress(CELL)
    progress.state = state
    return progress


@cases("before", SyncState)
@cases("after", SyncState)
def test_a_sync_moves_only_by_its_table(before: SyncState, after: SyncState) -> None:
    progress = progress_in(before)
    if after in MOVES[before]:
        progress.move(after)
        assert after is progress.state
    else:
        with pytest.raises(IllegalMoveError, match="sync of cell 3"):
            progress.move(after)
        assert before is progress.state


def test_every_state_but_the_last_can_fail_and_end() -> None:
    assert set(SyncState) == MOVES.keys()
    assert frozenset() == MOVES[SyncState.ENDED]
    for state in set(SyncState) - {SyncState.ENDED}:
        assert SyncState.ENDED in MOVES[state]
        assert state is SyncState.QUEUED or SyncState.QUEUED in MOVES[state]


def test_a_request_during_an_attempt_is_kept_and_one_before_it_is_answered() -> None:
    progress = SyncProgress(CELL)
    progress.request_again()
    progress.take_request()
    assert not progress.requested_again
    progress.request_again()
    assert progress.requested_again


def answer(keys: int, *, released: bool = False, clocks_incomplete: bool = False) -> CellState:
    held = CellSummary(CELL, keys, 0, bytes(16))
    return CellState(held, None, [], False, released, [], clocks_incomplete=clocks_incomplete)


def attempt_of(**answers: CellState) -> SyncAttempt:
    attempt = SyncAttempt(0.0, 0, 0, left_closed=False)
    attempt.choose([ME, FIRST, SECOND], [ME, NEXT], [FORMER], ME.id)
    attempt.ask_too({STRAY.id: STRAY, ME.id: ME}, ME.id)
    named = {"first": FIRST, "second": SECOND, "next": NEXT, "former": FORMER, "stray": STRAY}
    attempt.answers = {contact.id: answers.get(name, answer(0)) for name, contact in named.items()}
    return attempt


def test_backups_the_next_peer_former_holders_and_providers_are_asked() -> None:
    attempt = attempt_of()
    assert [FIRST, SECOND, NEXT, FORMER, STRAY] == list(attempt.asked.values())
    assert {FIRST.id, SECOND.id, NEXT.id, FORMER.id} == attempt.placed
    assert {ME.id, FIRST.id, SECOND.id, NEXT.id} == attempt.near
    assert [] == attempt.unasked
    del attempt.answers[NEXT.id]
    assert [NEXT] == attempt.unasked


def test_who_released_the_cell_is_merged_first_then_who_holds_most() -> None:
    attempt = attempt_of(first=answer(5), next=answer(1, released=True), former=answer(9))
    assert [NEXT, FORMER, FIRST, SECOND, STRAY] == [contact for contact, _ in attempt.in_merge_order()]


def test_a_cell_is_released_only_with_all_its_clocks() -> None:
    assert attempt_of(next=answer(1, released=True)).was_released()
    assert not attempt_of(next=answer(1)).was_released()
    assert not attempt_of(next=answer(1, released=True), stray=answer(1, clocks_incomplete=True)).was_released()


@pytest.mark.parametrize(
    ("peer", "keys", "drops"),
    [(FIRST, 5, False), (FORMER, 0, True), (FORMER, 5, True), (STRAY, 5, True), (STRAY, 0, False)],
)
def test_holders_that_are_no_backup_drop_their_copy(peer: Contact, keys: int, drops: bool) -> None:
    assert drops == attempt_of().must_drop(peer, answer(keys))


def test_only_a_claim_with_other_records_than_the_answer_syncs_a_cell_again() -> None:
    progress = SyncProgress(CELL)
    heard, news = answer(3), answer(4)
    assert progress.claim(FIRST.id, heard.held)
    assert not progress.claim(FIRST.id, heard.held)
    progress.hear({FIRST.id: heard})
    assert not progress.requested_again
    progress.claim(FIRST.id, news.held)
    progress.hear({FIRST.id: heard})
    assert progress.requested_again
    progress.take_request()
    progress.hear({FIRST.id: heard})
    assert not progress.requested_again
    progress.claim(STRAY.id, heard.held)  # It was not asked.
    progress.hear({FIRST.id: heard})
    assert progress.requested_again


def test_the_claims_noted_during_an_attempt_are_bounded() -> None:
    progress = SyncProgress(CELL)
    claims = [progress.claim(bytes([number]), answer(1).held) for number in range(CLAIMS_MAX)]
    assert [True] * CLAIMS_MAX == claims
    assert not progress.requested_again
    assert progress.claim(STRAY.id, answer(1).held)
    assert progress.requested_again
    assert not progress.claim(FORMER.id, answer(1).held)
