"""Shedding by time: lenders, borrowers, and the cases without moves."""

from random import Random

import pytest

from kadcrawl.balance.drain import (
    BLOCKS_PER_UPDATE_MAX,
    DRAIN_MARGIN,
    TRIAL_MAX,
    Backlog,
    BlockTrial,
    accepts,
    block_offers,
    common_end_s,
)
from tests.support.cases import cases


def test_a_load_is_checked() -> None:
    for wrong in ((-1, 1.0, 0.0), (1, 0.0, 0.0), (1, float("nan"), 0.0), (1, 1.0, -0.1), (1, 1.0, float("inf"))):
        with pytest.raises(ValueError, match="cannot be"):
            Backlog(*wrong)


def test_the_common_end_is_that_of_all_work_shared_out_by_power() -> None:
    assert 0.0 == common_end_s([])
    # 10 + 60 URLs at 1 and 6 a second.
    assert 10.0 == pytest.approx(common_end_s([Backlog(10, 1.0), Backlog(60, 1 / 6)]))
    assert 12.0 == pytest.approx(common_end_s([Backlog(10, 1.0, 14.0), Backlog(60, 1 / 6)]))


@pytest.mark.parametrize(
    ("own", "others", "expected"),
    [
        (Backlog(100, 1.0), [], []),
        # The slow one is the heavy one although it has fewer; and it stops at the common end, 5 s.
        (Backlog(10, 1.0), [Backlog(40, 0.1)], [1]),
        (Backlog(40, 0.1), [Backlog(10, 1.0)], [0]),
        # To each as it has time.
        (Backlog(60, 1.0), [Backlog(0, 1.0), Backlog(10, 1.0), Backlog(90, 1.0)], [3, 1, 0]),
        (Backlog(90, 1.0), [Backlog(0, 1.0), Backlog(10, 1.0)], [7, 4]),
        # Above the common end, but by too little to begin; and below it, although another is lighter.
        (Backlog(21, 1.0), [Backlog(19, 1.0)], [0]),
        (Backlog(40, 1.0), [Backlog(200, 1.0), Backlog(0, 1.0)], [0, 0]),
        # A borrower that is nearly as long busy as we are is left alone.
        (Backlog(20, 1.0), [Backlog(15, 1.0)], [0]),
        (Backlog(100, 1.0), [Backlog(88, 1.0), Backlog(0, 1.0)], [0, 8]),
        # What is borrowed cannot be given.
        (Backlog(4, 1.0, 100.0), [Backlog(0, 1.0)], [0]),
        # A cold one is given a block to try, whatever the others have; not by one that has hardly more itself.
        (Backlog(100, 1.0), [1, Backlog(100, 1.0)], [1, 0]),
        (Backlog(100, 1.0), [1, 1], [1, 1]),
        (Backlog(9, 1.0), [1], [0]),
        (Backlog(100, 1.0), [1, Backlog(0, 1.0)], [1, 9]),
        # One that was quick tries more, but not more than half of what we have.
        (Backlog(100, 1.0), [8, 0], [8, 0]),
        (Backlog(100, 1.0), [64, 64], [10, 5]),
        # Nor more than any is, whatever it says.
        (Backlog(10_000, 1.0), [1_000_000], [TRIAL_MAX]),
        (Backlog(50_000, 1.0), [64] * 9, [64] * 7 + [BLOCKS_PER_UPDATE_MAX - 7 * 64, 0]),
    ],
)
def test_what_one_that_looks_around_gives(own: Backlog, others: list[Backlog | int], expected: list[int]) -> None:
    assert expected == block_offers(own, others, 5)


def test_a_block_that_comes_too_late_is_not_given() -> None:
    assert [1] == block_offers(Backlog(10, 1.0), [Backlog(0, 1.0)], 5, hand_over_s=3.9)
    assert [0] == block_offers(Backlog(10, 1.0), [Backlog(0, 1.0)], 5, hand_over_s=4.0)


def test_one_look_gives_so_much_and_no_more() -> None:
    assert [BLOCKS_PER_UPDATE_MAX] == block_offers(Backlog(1_000_000, 1.0), [Backlog(0, 1e-6)], 1)


def test_a_cold_peer_gets_twice_as_many_once_its_first_loan_is_done() -> None:
    trial = BlockTrial()
    trial.update(0)
    assert 1 == trial.blocks
    trial.started()
    trial.update(3)
    assert 1 == trial.blocks
    trial.update(0)
    trial.update(0)
    assert 2 == trial.blocks
    for _ in range(20):
        trial.started()
        trial.update(0)
    assert TRIAL_MAX == trial.blocks


def test_a_borrower_decides_again() -> None:
    lender = Backlog(20, 1.0)
    assert accepts(Backlog(0, 1.0), lender, [], 5, 5)
    # All but the last block are with it when it gets that one.
    assert accepts(Backlog(2, 1.0), lender, [], 10, 5)
    assert not accepts(Backlog(5, 1.0), lender, [], 10, 5)
    assert not accepts(Backlog(0, 4.0), lender, [], 5, 5)
    assert not accepts(Backlog(0, 1.0, 15.0), lender, [], 5, 5)
    assert not accepts(Backlog(0, 1.0), lender, [], 5, 5, hand_over_s=15.0)
    # It is done before the lender, but is to take from others as well, or they from the lender.
    assert accepts(Backlog(8, 1.0), lender, [], 5, 5)
    assert accepts(Backlog(8, 1.0), lender, [lender], 5, 5)
    assert not accepts(Backlog(8, 1.0), lender, [Backlog(1, 0.1)], 5, 5)


@cases("seed", range(100))
def test_peers_that_balance_at_one_instant_end_together_without_swings(seed: int) -> None:
    random = Random(seed)
    count, block = random.randint(2, 12), random.randint(1, 10)
    own = [random.randrange(400) for _ in range(count)]
    borrowed = [0] * count
    url_s = [random.uniform(0.05, 1.0) for _ in range(count)]
    moved = 0

    def backlogs() -> list[Backlog]:
        return [Backlog(mine, s, lent * s) for mine, s, lent in zip(own, url_s, borrowed, strict=True)]

    first = backlogs()
    total, end_s, longest_s = sum(own), common_end_s(first), max(one.drain_s for one in first)
    for _ in range(20):
        known = backlogs()
        offers = [
            (lender, borrower, blocks)
            for lender in range(count)
            for borrower, blocks in zip(
                [peer for peer in range(count) if peer != lender],
                block_offers(known[lender], known[:lender] + known[lender + 1 :], block),
                strict=True,
            )
            if blocks
        ]
        random.shuffle(offers)
        for lender, borrower, blocks in offers:
            others = [known[peer] for peer in range(count) if peer not in (lender, borrower)]
            if accepts(backlogs()[borrower], known[lender], others, blocks * block, block):
                own[lender] -= blocks * block
                borrowed[borrower] += blocks * block
                moved += blocks * block
        assert max(one.drain_s for one in backlogs()) <= longest_s
        longest_s = max(one.drain_s for one in backlogs())
    assert total == sum(own) + sum(borrowed)
    assert pytest.approx(end_s) == common_end_s(backlogs())
    assert moved <= sum(max(0.0, one.drain_s - end_s) / one.url_s for one in first) + 2 * count * block
    assert longest_s <= end_s / (1 - DRAIN_MARGIN) + block * max(url_s)
