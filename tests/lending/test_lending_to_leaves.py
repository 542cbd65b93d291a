"""The lender's side of loans to leaves: leaves are never called, and trusted about late pages of their loans only."""

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest

from kadcrawl.balance.leases import LEASE_S, MARGIN_S, RENEW_S
from kadcrawl.balance.loan_backoff import BACKOFF_FIRST_S
from kadcrawl.keys import Key, id_bytes, site_hash, url_key
from kadcrawl.link.wire.leaf_messages import leaf_contact
from kadcrawl.link.wire.messages import Contact, Lend, LoanReport, RenewLease, ReturnedUrl, SiteRecord
from kadcrawl.store.store import DONE, PENDING
from tests.support.swarm.lender_bench import SITE, LenderBench, Play

LEAF, OTHER = leaf_contact(id_bytes(8)), leaf_contact(id_bytes(9))
CLOCK = SiteRecord(SITE, 0.0, 0.0)


def lent_key(lend: Lend, number: int) -> Key:
    return url_key(site_hash(SITE), lend.pending[number].url)


async def given(bench: LenderBench, count: int) -> Lend:
    (lend,) = await bench.lender.offers(LEAF, [(SITE, count)])
    return lend


async def report_loan(bench: LenderBench, lend: Lend, borrower: Contact = LEAF, **said: object) -> list[bytes]:
    """Report a loan. Return the loans that go on."""
    fields: dict[str, object] = {"done": [], "returned": [], "over": False} | said
    answer = await bench.lender.renew_lease(RenewLease(borrower, [LoanReport(lend.loan, CLOCK, **fields)]))  # type: ignore[arg-type]
    return [one.loan for one in answer.active]


def test_a_leaf_that_is_to_give_back_hears_so_when_it_reports(play_loans: Play) -> None:
    async def scenario(bench: LenderBench) -> None:
        calls: list[str] = []

        def spawn(work: Coroutine[Any, Any, None], name: str) -> None:
            calls.append(name)
            work.close()

        bench.lender._spawn = spawn
        lend = await given(bench, 3)
        assert [lend.loan] == await report_loan(bench, lend)
        bench.lender.recall_all()
        assert [] == calls, "nothing can be sent to a leaf"
        assert [] == await report_loan(bench, lend)
        assert [] == await report_loan(bench, lend, over=True)
        assert 0 == bench.lender.urls

    play_loans(1.0, scenario)


def test_a_leaf_reports_twice_a_second_however_long_its_pages_take(play_loans: Play) -> None:
    async def scenario(bench: LenderBench) -> None:
        lend = await given(bench, 3)
        for number in range(2):
            await asyncio.sleep(2.0)
            report = LoanReport(lend.loan, CLOCK, [lent_key(lend, number)], [], False)
            answer = await bench.lender.renew_lease(RenewLease(LEAF, [report]))
            assert [lend.loan] == [one.loan for one in answer.active]
            assert RENEW_S == answer.silence_s, "or it would hear late of a recall"

    play_loans(1.0, scenario)


def test_what_a_leaf_gave_back_and_finishes_all_the_same_is_done(play_loans: Play) -> None:
    async def scenario(bench: LenderBench) -> None:
        lend = await given(bench, 3)
        first, second, third = (lent_key(lend, number) for number in range(3))
        await report_loan(bench, lend, returned=[ReturnedUrl(first, 0, 5.0)], over=True)
        assert PENDING == bench.store.state(first)
        await report_loan(bench, lend, OTHER, done=[first])
        assert PENDING == bench.store.state(first), "it was not lent to that one"
        await report_loan(bench, lend, done=[first])
        await report_loan(bench, lend, done=[second])
        assert [DONE, DONE, PENDING] == [bench.store.state(key) for key in (first, second, third)]
        # Neither is crawled any more.
        left = {entry.key for entry in iter(lambda: bench.frontier.next(bench.loop.time() + 1000.0), None)}
        assert not left & {first, second}

    play_loans(0.0, scenario)


def test_a_leaf_is_not_believed_what_it_was_never_lent(play_loans: Play) -> None:
    async def scenario(bench: LenderBench) -> None:
        lend = await given(bench, 2)
        keys = [url_key(site_hash(SITE), f"http://{SITE}/{number}") for number in range(6)]
        await report_loan(bench, lend, done=keys, over=True)
        await report_loan(bench, lend, done=keys)
        assert {lent_key(lend, 0), lent_key(lend, 1)} == {key for key in keys if bench.store.state(key) == DONE}

    play_loans(1.0, scenario)


async def lost(bench: LenderBench) -> None:
    """Wait until a loan begun now and never reported on is lost."""
    await asyncio.sleep(LEASE_S + MARGIN_S + RENEW_S)
    assert 0 == bench.lender.urls


@pytest.mark.parametrize("delay_s", [1.0, 5.0, 30.0])
def test_a_leaf_that_draws_and_never_reports_keeps_no_site_from_its_owner(play_loans: Play, delay_s: float) -> None:
    """Not even under a new ID each time."""

    async def draw(bench: LenderBench) -> None:
        for number in range(1, 10_000):
            if bench.lender.sites_with_spare_connections():
                await bench.lender.offers(leaf_contact(id_bytes(number)), [(SITE, 3)])
            await asyncio.sleep(0.1)

    async def scenario(bench: LenderBench) -> None:
        drawing = asyncio.create_task(draw(bench))
        fetched = 0
        for _ in range(int(10 * 12 * (LEASE_S + MARGIN_S + delay_s + BACKOFF_FIRST_S))):
            if (entry := bench.frontier.next(bench.loop.time())) is not None:
                bench.frontier.release(entry, bench.loop.time(), bench.loop.time())
                bench.store.learn_done(entry.key)
                bench.frontier.finish(entry, bench.loop.time())
                fetched += 1
            await asyncio.sleep(0.1)
        drawing.cancel()
        assert 6 == fetched
        assert bench.lender.lost[SITE] > 1, "it was lent again and again"

    play_loans(delay_s, scenario)


@pytest.mark.parametrize("says_so", [False, True])
def test_a_leaf_that_does_nothing_of_a_loan_draws_no_more_for_a_while(play_loans: Play, says_so: bool) -> None:
    async def scenario(bench: LenderBench) -> None:
        lend = await given(bench, 3)
        assert bench.lender.may_lend_to(LEAF)
        if says_so:
            await report_loan(bench, lend, over=True)
        else:
            await lost(bench)
        assert not bench.lender.may_lend_to(LEAF)
        assert bench.lender.may_lend_to(OTHER)
        assert [] == bench.lender.sites_with_spare_connections()
        await asyncio.sleep(1.0 + BACKOFF_FIRST_S)
        assert bench.lender.may_lend_to(LEAF)
        assert [(SITE, 6)] == bench.lender.sites_with_spare_connections()

    play_loans(1.0, scenario)


def test_a_leaf_that_has_done_some_may_draw_of_that_site_at_once(play_loans: Play) -> None:
    async def scenario(bench: LenderBench) -> None:
        lend = await given(bench, 3)
        await report_loan(bench, lend, done=[lent_key(lend, 0)])
        await report_loan(bench, lend, over=True)
        assert bench.lender.may_lend_to(LEAF)
        assert [(SITE, 5)] == bench.lender.sites_with_spare_connections()

    play_loans(1.0, scenario)


def test_a_lost_site_is_lent_again_only_after_its_owner_could_ask_it(play_loans: Play) -> None:
    async def scenario(bench: LenderBench) -> None:
        await given(bench, 3)
        await lost(bench)
        await asyncio.sleep(29.0)
        assert [] == bench.lender.sites_with_spare_connections()
        await asyncio.sleep(1.0 + BACKOFF_FIRST_S)
        assert [(SITE, 6)] == bench.lender.sites_with_spare_connections()

    play_loans(30.0, scenario)
