"""--max-bytes over the whole swarm: little more than that, and none left over while somebody could use it."""

from random import Random

import pytest

from kadcrawl.crawl.byte_budget import BYTES_PORTION_MAX, BYTES_PORTION_MIN, ByteBudget, share_bytes, used_bytes
from kadcrawl.link.wire.messages import COUNT_MAX, Contact, PeerCounters, PeerRow
from kadcrawl.link.wire.peer_state import PeerState


def row_of(number: int, *, pending: int, granted: int, received: int, borrowed: int = 0) -> PeerRow:
    return PeerRow(
        Contact(bytes([number]) * 20, "127.0.0.1", 1),
        PeerState.CRAWLING,
        pending,
        0,
        0,
        PeerCounters(bytes=received),
        0,
        0,
        borrowed=borrowed,
        bytes_granted=granted,
    )


def test_a_url_begins_while_the_bytes_under_way_are_expected_to_fit() -> None:
    received, pages = 0, 0
    budget = ByteBudget(10_000, 1_000, lambda: (received, pages))
    assert budget.may_begin(16), "nothing is known of the sizes yet"
    received, pages = 600, 3
    assert (True, False) == (budget.may_begin(1), budget.may_begin(2))
    received = 1_000
    assert not budget.may_begin(0)
    assert ByteBudget(None, 0, lambda: (10**9, 1)).may_begin(99)


def test_an_unused_grant_is_given_back_and_a_used_one_is_not() -> None:
    received = 400
    budget = ByteBudget(10_000, 1_000, lambda: (received, 1))
    budget.give_back()
    assert 400 == budget.granted
    received = 900
    budget.give_back()
    assert 400 == budget.granted, "bytes beyond the grant are told by the counters"


def test_bytes_beyond_a_grant_are_taken_from_others() -> None:
    rows = [row_of(1, pending=9, granted=500, received=900), row_of(2, pending=9, granted=100, received=100)]
    assert [900, 100] == [used_bytes(row) for row in rows]
    totals, spent = share_bytes(1_000, rows)
    assert ({}, True) == (totals, spent)
    totals, spent = share_bytes(1_200, rows, absent=50)
    assert ({bytes([1]) * 20: 1_050}, False) == (totals, spent)


def test_an_unused_byte_keeps_the_budget_from_being_spent() -> None:
    rows = [row_of(1, pending=9, granted=500, received=499), row_of(2, pending=0, granted=500, received=500)]
    assert ({}, False) == share_bytes(1_000, rows)


def test_borrowed_pages_need_bytes_too_and_idle_or_resting_peers_none() -> None:
    rows = [
        row_of(1, pending=0, granted=0, received=0, borrowed=4),
        row_of(2, pending=0, granted=0, received=0),
        row_of(3, pending=5, granted=0, received=0),
    ]
    totals, _ = share_bytes(10**12, rows, resting={bytes([3]) * 20})
    assert {bytes([1]) * 20: BYTES_PORTION_MAX} == totals


@pytest.mark.parametrize("seed", range(40))
def test_the_swarm_receives_all_bytes_and_no_more_than_the_bodies_under_way(seed: int) -> None:
    random = Random(seed)
    max_bytes, body_max = random.randrange(1, 5_000_000), 300_000
    received = [0] * random.randrange(1, 7)
    pages = [0] * len(received)
    budgets = [
        ByteBudget(max_bytes, 0, lambda number=number: (received[number], pages[number]))  # type: ignore[misc]
        for number in range(len(received))
    ]
    spent, rounds = False, 0
    while not spent:
        rounds += 1
        assert rounds < 2_000
        rows = [
            row_of(number, pending=99, granted=budget.granted, received=received[number])
            for number, budget in enumerate(budgets)
        ]
        totals, spent = share_bytes(max_bytes, rows)
        for number, budget in enumerate(budgets):
            budget.learn(totals, bytes([number]) * 20, spent)
            under_way = 0
            while under_way < 3 and budget.may_begin(under_way):
                under_way += 1
            for _ in range(under_way):
                received[number] += random.randrange(body_max)
                pages[number] += 1
    assert max_bytes <= sum(received) <= max_bytes + 3 * len(received) * body_max
    assert rounds >= max_bytes // (BYTES_PORTION_MIN * 100 * len(received))


def test_nobody_is_granted_more_than_there_is() -> None:
    budget = ByteBudget(30, 0, lambda: (0, 0))
    budget.learn({b"me": COUNT_MAX, b"other": COUNT_MAX}, b"me", spent=False)
    assert (30, {b"me": 30, b"other": 30}) == (budget.granted, budget.known)
    free = ByteBudget(None, 0, lambda: (0, 0))
    free.learn({b"me": 5}, b"me", spent=True)
    assert (0, {}, False) == (free.granted, free.known, free.spent)
