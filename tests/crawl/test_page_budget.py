"""--max-pages over the whole swarm: never more, and none left over while somebody could use it."""

from itertools import pairwise
from random import Random

import msgspec
import pytest

from kadcrawl.crawl.page_budget import PORTION_MAX, REST_S, SOON_S, Budget, Resting, budget_cell, share
from kadcrawl.keys import Key
from kadcrawl.link.wire.messages import Contact, PeerCounters, PeerRow
from kadcrawl.link.wire.peer_state import PeerState


def budget_row(peer: int, pending: int, budget: Budget) -> PeerRow:
    contact = Contact(peer.to_bytes(20, "big"), "10.0.0.1", 1)
    return PeerRow(contact, PeerState.CRAWLING, pending, budget.held, 0, PeerCounters(), budget.allowance, budget.told)


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
    idle.note_journaled(int(idle.to_journal()))
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


A, B, C = (Key(bytes([number]) * 20) for number in (1, 2, 3))


def test_a_lender_pays_for_the_pages_it_lends_and_takes_back_what_comes_back() -> None:
    budget = Budget(10, granted=5, begun=0)
    budget.lend(3)
    assert (2, 3, 3) == (budget.allowance, budget.lent, budget.kept)
    budget.finish_lent(A)
    budget.take_back(2)
    assert (4, 0, 1) == (budget.allowance, budget.lent, budget.kept)


def test_the_units_of_a_silent_borrower_come_back_when_its_pages_are_fetched_or_it_says_that_it_did_not() -> None:
    budget = Budget(10, granted=6, begun=0)
    budget.lend(3)
    budget.lose([A, B, C])
    assert (3, 0) == (budget.allowance, budget.lent), "it may have fetched them"
    assert budget.begin()
    budget.end(fetched=True, key=A)
    assert 3 == budget.allowance, "the page counts once"
    budget.return_lost(B)
    budget.return_lost(B)
    assert 4 == budget.allowance
    budget.finish_late(C)
    budget.return_lost(C)
    assert 4 == budget.allowance


def test_the_unit_of_a_lost_page_that_another_holder_reports_stays_used_when_the_page_is_visited_again() -> None:
    """The silent borrower may have fetched it, and told the holder of the cell. The next visit gave its unit back."""
    budget = Budget(20, granted=10, begun=0)
    budget.lend(3)
    budget.lose([A, B, C])
    for key in (A, B, C):
        budget.note_elsewhere(key)
    assert 7 == budget.allowance
    assert budget.begin()
    budget.end(fetched=True, key=A)
    assert 6 == budget.allowance, "two visits, two units"
    budget.return_lost(B)
    assert 7 == budget.allowance, "the other holder has paid for it"
    budget.finish_late(C)
    assert 7 == budget.allowance
    budget.note_elsewhere(A)
    assert budget.begin()
    budget.end(fetched=True, key=A)
    assert 6 == budget.allowance


def test_a_page_that_was_returned_and_is_fetched_all_the_same_counts() -> None:
    """A borrower returns a page whose links nobody has taken, and finishes it later."""
    budget = Budget(10, granted=6, begun=0)
    budget.lend(2)
    budget.take_back(1)
    budget.finish_lent(A)
    assert 5 == budget.allowance
    budget.finish_late(B)
    assert 4 == budget.allowance


def test_the_unit_of_a_page_that_its_borrower_returns_unfinished_stays_taken() -> None:
    """World 510107: a borrower had fetched the page and finished it, when other peers had used the unit."""
    budget = Budget(10, granted=6, begun=0)
    budget.lend(4)
    budget.return_lent(A, unfinished=False)
    assert (3, 3) == (budget.allowance, budget.lent)
    for key in (A, B, C):
        budget.return_lent(key, unfinished=True)
    assert (3, 0) == (budget.allowance, budget.lent)
    budget.finish_late(A)
    assert 3 == budget.allowance, "its unit is used"
    budget.return_lost(B)
    assert 4 == budget.allowance, "it is not fetched after all"
    assert budget.begin()
    budget.end(fetched=True, key=C)
    assert 4 == budget.allowance, "it counts once"


def test_a_page_that_is_lost_twice_counts_once() -> None:
    budget = Budget(10, granted=6, begun=0)
    for _ in range(2):
        budget.lend(1)
        budget.lose([A])
        assert 5 == budget.allowance
    budget.lend(1)
    budget.finish_lent(A)
    assert 5 == budget.allowance


def test_a_borrowed_page_takes_nothing_from_the_grant() -> None:
    budget = Budget(10, granted=1, begun=0)
    budget.begin_borrowed()
    assert (1, 1) == (budget.allowance, budget.held)
    budget.end_borrowed()
    assert (1, 0, 0) == (budget.allowance, budget.held, budget.kept)


def test_pages_under_way_here_are_not_journaled_as_paid_and_pages_on_loan_are() -> None:
    budget = Budget(10, granted=5, begun=0)
    assert budget.begin()
    budget.lend(2)
    assert 2 == budget.kept
    budget.end(fetched=True, key=A)
    assert 3 == budget.kept


def test_who_has_lent_all_its_pages_is_not_hungry() -> None:
    lender = Budget(100, granted=10, begun=10)
    row = msgspec.structs.replace(budget_row(1, 10, lender), lent=10)
    assert ({}, False) == share(100, [row])
    assert [(1).to_bytes(20, "big")] == list(share(100, [msgspec.structs.replace(row, pending=11)])[0])


@pytest.mark.parametrize("seed", range(20))
def test_no_more_pages_than_the_budget_are_fetched_whatever_becomes_of_loans(seed: int) -> None:
    """Pages are lent, fetched, returned and lost at random, and a silent borrower may have fetched a page."""
    random, limit = Random(seed), 30
    budget = Budget(limit, granted=limit, begun=0)
    waiting = {Key(number.to_bytes(20, "big")) for number in range(60)}
    lent: set[Key] = set()
    fetched: set[Key] = set()
    for _ in range(2_000):
        move = random.choice(("begin", "lend", "done", "return", "lose"))
        if move == "begin" and waiting and budget.begin():
            key = random.choice(sorted(waiting))
            is_fetched = random.random() < 0.5
            budget.end(is_fetched, key)
            if is_fetched:
                fetched.add(key)
                waiting.discard(key)
        elif move == "lend" and waiting:
            some = random.sample(sorted(waiting), min(len(waiting), budget.allowance, random.randrange(1, 6)))
            budget.lend(len(some))
            lent.update(some)
            waiting -= lent
        elif move in ("done", "return", "lose") and lent:
            key = random.choice(sorted(lent))
            lent.discard(key)
            if move == "done":
                budget.finish_lent(key)
                fetched.add(key)
            else:
                waiting.add(key)
                if move == "return":
                    budget.take_back(1)
                else:
                    budget.lose([key])
                    if random.random() < 0.5:
                        fetched.add(key)
        assert len(fetched) <= limit
        assert budget.allowance <= limit
    assert len(fetched) >= limit // 2


@pytest.mark.parametrize("seed", range(20))
def test_no_more_visits_than_the_budget_are_made_whatever_becomes_of_loans(seed: int) -> None:
    """Pages are due again after each visit, and other holders of the cells report what borrowers told them."""
    random, limit = Random(seed), 200
    budget = Budget(limit, granted=limit, begun=0)
    pages = [Key(number.to_bytes(20, "big")) for number in range(20)]
    visits = 0
    lost: dict[Key, bool] = {}
    """Pages of lost loans, and whether their borrowers have fetched them."""
    for _ in range(2_000):
        key = random.choice(pages)
        move = random.choice(("begin", "lend", "lose", "report"))
        if move == "begin" and budget.begin():
            budget.end(fetched=True, key=key)
            # A peer that had not heard of a visit made this visit in its place, and the page counts once.
            visits += not lost.pop(key, False)
        elif move == "lend" and budget.allowance:
            budget.lend(1)
            budget.finish_lent(key)
            visits += not lost.pop(key, False)
        elif move == "lose" and budget.allowance and key not in lost:
            budget.lend(1)
            budget.lose([key])
            lost[key] = random.random() < 0.5
            visits += lost[key]
        elif move == "report" and lost.get(key):
            budget.note_elsewhere(key)
            del lost[key]
        assert visits <= limit
    assert visits >= limit // 2


def test_of_an_absent_peer_the_largest_total_counts_that_any_peer_knows() -> None:
    newcomer, gone = Budget(100, 0, 0), (9).to_bytes(20, "big")
    newcomer.hear({gone: 40})
    newcomer.hear({gone: 30, b"x" * 20: 10**9})
    assert {gone: 40, b"x" * 20: 100} == newcomer.absent([])
    present = budget_row(9, 1, Budget(100, 35, 30))
    assert {b"x" * 20: 100} == newcomer.absent([present])
    newcomer.hear({})
    assert 35 == newcomer.absent([])[gone], "its row told more lately"
    unlimited = Budget(None, 0, 0)
    unlimited.hear({gone: 5})
    assert {} == unlimited.known


def test_pages_of_a_run_without_a_limit_count_for_a_limit_of_a_later_run() -> None:
    """A killed peer gives no grant back, so its journal had the pages and no grant for them."""
    before = Budget(None, 0, 0)
    for _ in range(90):
        assert before.begin()
        before.end(fetched=True)
    budgets = [Budget(100, int(before.to_journal()), before.kept), Budget(100, 0, 0)]
    spent = False
    while not spent:
        rows = [budget_row(number, 500, budget) for number, budget in enumerate(budgets, 1)]
        totals, spent = share(100, rows)
        for row, budget in zip(rows, budgets, strict=True):
            budget.learn(totals, row.contact.id, spent)
            while budget.begin():
                budget.end(fetched=True)
    assert sum(budget.begun for budget in budgets) == 100


def test_what_was_granted_stays_counted_when_the_limit_is_lowered_and_raised_again() -> None:
    budget = Budget(100, granted=0, begun=0)
    budget.learn({b"x": 40}, b"", spent=False)
    budget.set_limit(20)
    budget.learn({b"x": 40}, b"", spent=False)
    budget.set_limit(90)
    assert {b"x": 40} == budget.absent([])
    budget.learn({b"x": 1_000}, b"", spent=False)
    assert {b"x": 100} == budget.absent([])


def test_others_hear_of_a_smaller_grant_when_the_journal_has_it() -> None:
    budget = Budget(100, granted=0, begun=0)
    budget.learn({b"me": 50}, b"me", spent=False)
    assert b"50" == budget.to_journal()
    budget.give_back()
    assert (0, 50) == (budget.granted, budget.told), "after a crash the peer would have 50"
    assert b"0" == budget.to_journal()
    assert 50 == budget.told, "the commit is under way"
    budget.note_journaled(0)
    assert 0 == budget.told
    budget.learn({b"me": 10}, b"me", spent=False)
    assert 10 == budget.told


def test_a_grant_written_during_the_commit_of_another_counts_when_it_is_journaled_itself() -> None:
    budget = Budget(100, granted=50, begun=40)
    budget.give_back()
    assert b"40" == budget.to_journal()
    budget.begun = 39  # A page of a borrower came back during the commit, and the peer stops.
    budget.give_back()
    assert b"39" == budget.to_journal()
    budget.note_journaled(40)
    assert 40 == budget.told
    budget.note_journaled(39)
    assert 39 == budget.told
