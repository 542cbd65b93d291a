"""--max-pages over the whole swarm: never more, and none left over while somebody could use it."""

from itertools import pairwise
from random import Random

import pytest

from kadcrawl.crawl.page_budget import PORTION_MAX, REST_S, SOON_S, Budget, Resting, budget_cell, share
from kadcrawl.link.wire.messages import Contact, PeerCounters, PeerRow
from kadcrawl.link.wire.peer_state import PeerState


def budget_row(peer: int, pending: int, budget: Budget) -> PeerRow:
    contact = Contact(peer.to_bytes(20, "big"), "10.0.0.1", 1)
    return PeerRow(
        contact, PeerState.CRAWLING, pending, budget.held, 0, PeerCounters(), budget.allowance, budget.granted
    )


def test_without_a_limit_anything_may_begin() -> None:
    budget = Budget(None, 0, 0)
    assert all(budget.begin() for _ in range(1000))


def test_nothing_begins_without_a_grant() -> None:
    budget = Budget(10, granted=1, begun=0)
    assert budget.begin()
    assert not budget.begin()


def test_what_is_to_be_tried_again_is_given_back() -> None:
    budget = Budget(10, granted=1, begun=0)
    assert budget.begin()
    budget.end(fetched=False)
    assert (1, 0) == (budget.allowance, budget.held)
    assert budget.begin()
    budget.end(fetched=True)
    assert (0, 0) == (budget.allowance, budget.held)


def test_only_the_hungry_are_granted() -> None:
    fed, hungry, idle = Budget(1000, 60, 0), Budget(1000, 0, 0), Budget(1000, 0, 0)
    totals, spent = share(1000, [budget_row(1, 500, fed), budget_row(2, 500, hungry), budget_row(3, 0, idle)])
    assert [(2).to_bytes(20, "big")] == list(totals)
    assert not spent


def test_a_portion_is_bounded_by_need_and_by_the_limit() -> None:
    hungry = Budget(10**6, 0, 0)
    assert [PORTION_MAX] == list(share(10**6, [budget_row(1, 10**6, hungry)])[0].values())
    assert [7] == list(share(10**6, [budget_row(1, 7, hungry)])[0].values())


def test_the_budget_is_spent_when_all_is_granted_and_used() -> None:
    used, unused = Budget(10, 10, 10), Budget(10, 10, 9)
    assert ({}, True) == share(10, [budget_row(1, 50, used)])
    assert ({}, False) == share(10, [budget_row(1, 50, unused)])


def test_an_idle_peer_gives_back_what_others_then_get() -> None:
    idle, hungry = Budget(10, 10, 4), Budget(10, 0, 0)
    assert {} == share(10, [budget_row(1, 0, idle), budget_row(2, 50, hungry)])[0]
    idle.give_back()
    assert sum(share(10, [budget_row(1, 0, idle), budget_row(2, 50, hungry)])[0].values()) > 0


@pytest.mark.parametrize("seed", range(30))
def test_exactly_the_budget_is_fetched_whatever_the_order(seed: int) -> None:
    random = Random(seed)
    max_pages = random.randrange(1, 400)
    budgets = [Budget(max_pages, 0, 0) for _ in range(random.randrange(1, 9))]
    pending = [random.randrange(300) for _ in budgets]
    fetched, possible = 0, sum(pending)
    for _ in range(3000):
        peer = random.randrange(len(budgets))
        if pending[peer] and budgets[peer].begin():
            done = random.random() < 0.9
            budgets[peer].end(fetched=done)
            fetched += done
            pending[peer] -= done
        if not pending[peer]:
            budgets[peer].give_back()
        if random.random() < 0.2:
            totals, _ = share(max_pages, [budget_row(n, pending[n], budget) for n, budget in enumerate(budgets)])
            for n, budget in enumerate(budgets):
                budget.granted = totals.get(n.to_bytes(20, "big"), budget.granted)
        assert sum(budget.granted for budget in budgets) <= max_pages
    assert fetched == min(max_pages, possible)


def test_a_waiting_peer_does_not_withhold_the_last_grants_from_others() -> None:
    """The rule holds for any number of grants left, and for any first peer."""
    held, busy, resting = Budget(20, 0, 0), Budget(20, 0, 0), Resting()
    for step in range(200):
        rows = [budget_row(1, 500, held), budget_row(2, 500, busy)]
        totals, spent = share(20, rows, resting.look(rows, now=0.3 * step))
        resting.grant(totals)
        for budget, peer in ((held, 1), (busy, 2)):
            budget.granted = totals.get(peer.to_bytes(20, "big"), budget.granted)
        held.give_back()
        while busy.begin():
            busy.end(fetched=True)
        if spent:
            break
    assert (20, True) == (busy.begun, spent)
    assert step < 60


def test_a_peer_that_had_to_wait_is_granted_again_before_its_fetch_is_due() -> None:
    peer, resting = Budget(20, 0, 0), Resting()
    granted_at = []
    for step in range(100):
        rows = [budget_row(1, 500, peer)]
        totals, _ = share(20, rows, resting.look(rows, now=0.1 * step))
        resting.grant(totals)
        if totals:
            granted_at.append(0.1 * step)
            (peer.granted,) = totals.values()
            peer.give_back()
    gaps = [later - sooner for sooner, later in pairwise(granted_at)]
    assert REST_S <= min(gaps)
    assert max(gaps) < SOON_S


def test_a_peer_that_ran_dry_is_granted_as_soon_as_it_has_urls_again() -> None:
    peer, resting = Budget(20, 0, 0), Resting()
    resting.look([budget_row(1, 5, peer)], now=0.0)
    resting.grant({(1).to_bytes(20, "big"): 5})
    assert not resting.look([budget_row(1, 0, peer)], now=0.3)
    assert not resting.look([budget_row(1, 9, peer)], now=0.6)


def test_every_peer_names_the_same_budget_cell() -> None:
    assert budget_cell(16) == budget_cell(16)
    assert 0 <= budget_cell(8) < 256


def test_what_an_absent_peer_was_granted_stays_counted_whoever_shares_next() -> None:
    sharer, other = Budget(100, 0, 0), Budget(100, 0, 0)
    rows = [budget_row(1, 500, Budget(100, 40, 40)), budget_row(2, 500, Budget(100, 10, 10))]
    assert sharer.absent(rows) == {}
    gone = sharer.absent(rows[1:])
    assert gone == {(1).to_bytes(20, "big"): 40}
    totals, _ = share(100, rows[1:], absent=sum(gone.values()))
    assert sum(totals.values()) + 40 <= 100
    other.learn(gone | totals, (9).to_bytes(20, "big"), spent=False)
    assert other.absent(rows[1:]) == gone
    assert other.absent(rows) == {}
