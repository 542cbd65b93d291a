"""The lender's side of loans: the effects of reports, silence and recalls."""

import asyncio
import sqlite3
from collections import Counter
from collections.abc import Callable, Coroutine
from contextlib import closing
from typing import Any

import pytest

from kadcrawl.balance.leases import LEASE_S, LOAN_S_MAX, MARGIN_S, RENEW_S, SILENCE_MAX_S
from kadcrawl.balance.loan_backoff import BACKOFF_FIRST_S
from kadcrawl.crawl.page_budget import SOON_S, Budget, write_units
from kadcrawl.keys import id_bytes, site_hash, url_key
from kadcrawl.lending import loan as loan_module
from kadcrawl.lending.loan import RECALLED_MAX_S, RETURNED_WAIT_MAX_S
from kadcrawl.link.wire.leaf_messages import leaf_contact
from kadcrawl.link.wire.messages import (
    BackOffRecord,
    LoanReport,
    RenewLease,
    ReturnedUrl,
    SiteRecord,
)
from kadcrawl.replication.record_codec import UNFINISHED_WAIT_S
from kadcrawl.store.frontier_entry import FrontierEntry
from kadcrawl.store.store import DONE, PENDING
from tests.support.swarm.lender_bench import CELL, CONNECTIONS, SITE, A, B, LenderBench, Play


def fetch_next(bench: LenderBench) -> FrontierEntry | None:
    """Fetch the next page of our own, and be through with it."""
    now = bench.loop.time()
    entry = bench.frontier.next(now)
    if entry is not None:
        bench.frontier.release(entry, now, now)
        bench.frontier.finish(entry, now)
    return entry


def test_an_unreported_loan_is_recalled_and_its_site_rests_as_reported(play_loans: Play) -> None:
    async def scenario(bench: LenderBench) -> None:
        await bench.lender.lend(A, SITE, 3)
        assert await bench.report(A, 0, wait_s=60.0)
        await asyncio.sleep(LEASE_S + MARGIN_S - 0.1)
        assert 3 == bench.lender.urls
        await asyncio.sleep(1.0)
        assert (0, 1) == (bench.lender.urls, bench.lender.lost[SITE])
        assert bench.frontier.next(bench.loop.time() + 50.0) is None
        assert bench.frontier.next(bench.loop.time() + 61.0) is not None

    play_loans(1.0, scenario)


def test_a_lender_that_stood_still_reads_the_reports_before_it_takes_a_loan_back(play_loans: Play) -> None:
    """Else both would fetch the pages that the borrower has done meanwhile."""

    async def scenario(bench: LenderBench) -> None:
        await bench.lender.lend(A, SITE, 3)
        assert await bench.report(A, 0)
        bench.loop.now += 60.0  # Nothing of this process runs.
        await asyncio.sleep(RENEW_S)
        assert 3 == bench.lender.urls
        assert await bench.report(A, 0)
        await asyncio.sleep(LOAN_S_MAX + RENEW_S)
        assert (0, 1) == (bench.lender.urls, bench.lender.lost[SITE]), "this time the borrower is silent"

    play_loans(0.0, scenario)


def test_a_lender_that_does_not_know_its_cells_takes_no_loan_back(play_loans: Play) -> None:
    """Until it knows them it reads no report."""

    async def scenario(bench: LenderBench) -> None:
        await bench.lender.lend(A, SITE, 3)
        assert await bench.report(A, 0)
        bench.sure.clear()
        report = asyncio.create_task(bench.report(A, 0))
        await asyncio.sleep(60.0)
        assert 3 == bench.lender.urls
        bench.sure.set()
        assert await report
        await asyncio.sleep(LOAN_S_MAX + RENEW_S)
        assert (0, 1) == (bench.lender.urls, bench.lender.lost[SITE])

    play_loans(0.0, scenario)


async def silence_s(bench: LenderBench, *done: bytes) -> float:
    """Report the first loan, and return how long the borrower may be silent."""
    report = LoanReport(bench.lends[0].loan, SiteRecord(SITE, 0.0, 0.0), [*done], [], False)
    return (await bench.lender.renew_lease(RenewLease(A, [report]))).silence_s


def test_a_borrower_may_be_silent_for_about_as_long_as_a_page_takes_it(play_loans: Play) -> None:
    async def scenario(bench: LenderBench) -> None:
        await bench.lender.lend(A, SITE, 4)
        keys = [url_key(site_hash(SITE), record.url) for record in bench.lends[0].pending]
        silent_s = await silence_s(bench)
        assert RENEW_S == silent_s, "nothing is known of its pace"
        for number, page_s in enumerate((3.0, 60.0, 0.1)):
            for _ in range(int(page_s / RENEW_S)):
                await asyncio.sleep(RENEW_S)
                await silence_s(bench)
            await asyncio.sleep(page_s % RENEW_S)
            silent_s = await silence_s(bench, keys[number])
            assert pytest.approx(min(max(page_s, RENEW_S), SILENCE_MAX_S), abs=0.01) == silent_s
            assert silent_s == await silence_s(bench), "and so until the next page is done"

    play_loans(0.0, scenario)


def test_the_loan_of_a_dead_borrower_comes_back_after_its_silence_and_a_lease(play_loans: Play) -> None:
    async def scenario(bench: LenderBench) -> None:
        await bench.lender.lend(A, SITE, 3)
        key = url_key(site_hash(SITE), bench.lends[0].pending[0].url)
        await silence_s(bench)
        await asyncio.sleep(2.0)
        assert pytest.approx(2.0, abs=0.01) == await silence_s(bench, key)
        await asyncio.sleep(2.0 - RENEW_S + LEASE_S + MARGIN_S - 0.1)
        assert 2 == bench.lender.urls
        await asyncio.sleep(1.0)
        assert (0, 1) == (bench.lender.urls, bench.lender.lost[SITE])

    play_loans(0.0, scenario)


def test_of_two_loans_of_a_site_that_turns_out_to_have_a_delay_one_goes_on(play_loans: Play) -> None:
    async def scenario(bench: LenderBench) -> None:
        await bench.lender.lend(A, SITE, 2)
        await bench.lender.lend(B, SITE, 2)
        assert [bench.lends[1].loan] == await bench.report(B, 1)
        assert [bench.lends[0].loan] == await bench.report(A, 0, delay_s=10.0)
        assert [] == await bench.report(B, 1, delay_s=10.0)

    play_loans(0.0, scenario)


REFUSED = BackOffRecord(1, 60.0, 429, 59.0, 1)
"""A borrower's word for a refusal without a Retry-After, one second ago."""


@pytest.mark.parametrize(
    ("told", "waits_s"),
    [
        (REFUSED, 60.0),
        (BackOffRecord(1, 0.0, 503, 9.0, 1), 9.0),
        (BackOffRecord(1_000_000, 86_400.0, 429, 86_400.0, 2**53), 60.0),
        (BackOffRecord(1_000_000, 0.0, 429, 86_400.0, 2**53), RETURNED_WAIT_MAX_S),
    ],
    ids=["no Retry-After", "Retry-After", "a lie about the row", "a lie about Retry-After"],
)
def test_a_refusal_that_a_borrower_reports_slows_all_who_ask_the_site_and_counts_once(
    told: BackOffRecord, waits_s: float, play_loans: Play
) -> None:
    async def scenario(bench: LenderBench) -> None:
        await bench.lender.lend(A, SITE, 2)
        await bench.lender.lend(B, SITE, 1)
        for _ in range(2):
            assert [] == await bench.report(A, 0, back_off=told)
        assert [] == await bench.report(B, 1), "the other loan of the site ends as well"
        now = bench.loop.time()
        assert 1 == bench.frontier.back_off(SITE).refusals
        assert pytest.approx(waits_s, abs=0.01) == bench.frontier.wait_s(SITE, now)
        assert bench.frontier.next(now + waits_s - 0.1) is None
        assert [] == bench.lender.sites_with_spare_connections()

    play_loans(0.0, scenario)


def test_a_borrower_is_told_the_shorter_paths_to_its_pages_until_they_are_done(play_loans: Play) -> None:
    async def scenario(bench: LenderBench) -> None:
        for number in range(6, 8):
            url = f"http://{SITE}/{number}"
            entry = bench.store.accept(url_key(site_hash(SITE), url), SITE, url, 3, 0)
            assert entry is not None
            bench.frontier.add(entry, 0.0)
        await bench.lender.lend(A, SITE, 8)
        keys = [url_key(site_hash(SITE), record.url) for record in bench.lends[0].pending]
        clock, loan = SiteRecord(SITE, 0.0, 0.0), bench.lends[0].loan

        async def told(*done: bytes) -> dict[bytes, int]:
            message = RenewLease(A, [LoanReport(loan, clock, [*done], [], False)])
            [standing] = (await bench.lender.renew_lease(message)).active
            return standing.depths

        assert {} == await told()
        bench.store.shorten(keys[6], 1)
        bench.store.shorten(keys[7], 2)
        for _ in range(2):
            assert {bytes(keys[6]): 1, bytes(keys[7]): 2} == await told()
        assert {bytes(keys[7]): 2} == await told(keys[6])

    play_loans(0.0, scenario)


def test_with_a_budget_of_pages_no_more_is_lent_than_it_pays_for(play_loans: Play) -> None:
    async def scenario(bench: LenderBench) -> None:
        budget = bench.lender._budget = Budget(100, granted=3, begun=0)
        assert 3 == await bench.lender.lend(A, SITE, 5)
        assert (0, 3) == (budget.allowance, budget.kept)
        assert [] == bench.lender.sites_with_spare_connections()
        assert None is await bench.lender.lend(B, SITE, 5)
        keys = [url_key(site_hash(SITE), record.url) for record in bench.lends[0].pending]
        loan, clock = bench.lends[0].loan, SiteRecord(SITE, 0.0, 0.0)
        report = LoanReport(loan, clock, [keys[0]], [ReturnedUrl(keys[1], 0, 0.0)], False)
        await bench.lender.renew_lease(RenewLease(A, [report]))
        assert (1, 1) == (budget.allowance, budget.lent), "one was fetched, one came back"
        await asyncio.sleep(LEASE_S + MARGIN_S + 1.0)
        assert (1, 0) == (budget.allowance, budget.lent), "the silent borrower may have fetched the third"
        late = LoanReport(loan, clock, [], [ReturnedUrl(keys[2], 0, 0.0)], True)
        await bench.lender.renew_lease(RenewLease(B, [late]))
        assert 1 == budget.allowance, "another peer did not have the page"
        await bench.lender.renew_lease(RenewLease(A, [late]))
        assert 2 == budget.allowance

    play_loans(0.0, scenario)


def test_a_page_that_comes_back_unfinished_is_paid_for(play_loans: Play) -> None:
    """Its borrower has fetched it, and finishes it once others have taken its links."""

    async def scenario(bench: LenderBench) -> None:
        budget = bench.lender._budget = Budget(100, granted=3, begun=0)
        assert 2 == await bench.lender.lend(A, SITE, 2)
        keys = [url_key(site_hash(SITE), record.url) for record in bench.lends[0].pending]
        back = [ReturnedUrl(keys[0], 0, UNFINISHED_WAIT_S, unfinished=True), ReturnedUrl(keys[1], 0, 0.0)]
        report = LoanReport(bench.lends[0].loan, SiteRecord(SITE, 0.0, 0.0), [], back, True)
        await bench.lender.renew_lease(RenewLease(A, [report]))
        assert (2, 0) == (budget.allowance, budget.lent)
        late = LoanReport(bench.lends[0].loan, SiteRecord(SITE, 0.0, 0.0), [keys[0]], [], True)
        await bench.lender.renew_lease(RenewLease(A, [late]))
        assert 2 == budget.allowance

    play_loans(0.0, scenario)


def test_with_a_budget_of_pages_no_urls_are_lent_that_wait_long_for_their_site(play_loans: Play) -> None:
    """Their units would be missing elsewhere, and a crawl at its limit would wait for them."""

    async def scenario(bench: LenderBench) -> None:
        def spare() -> list[str]:
            return [site for site, _ in bench.lender.sites_with_spare_connections(to_leaf=True)]

        bench.lender._budget = Budget(100, granted=30, begun=0)
        bench.frontier.hold(SITE, bench.loop.time() + 60.0, bench.loop.time())
        assert [] == spare()
        assert await bench.lender.lend(A, SITE, 6) is None
        await asyncio.sleep(56.0)
        assert [SITE] == spare()
        bench.frontier.park(SITE)
        assert [SITE] == spare(), "a leaf may wait for a turn on a shared clock"
        assert 2 == await bench.lender.lend(A, SITE, 6), "as many as a site with this delay has in five seconds"

    play_loans(2.0, scenario)


def test_with_a_budget_of_pages_the_loans_of_one_offer_count_together(play_loans: Play) -> None:
    async def scenario(bench: LenderBench) -> None:
        bench.lender._budget = Budget(100, granted=50, begun=0)
        clock, looks = bench.frontier.clock, Counter[str]()

        def look(name: str, now: float) -> tuple[float, float]:
            looks[name] += 1
            return clock(name, now)

        bench.frontier.clock = look  # type: ignore[method-assign]
        assert 1 == len(await bench.lender.offers(A, [(SITE, 1)] * 5))
        assert looks[SITE] <= 7, "no loan that stands is looked at for each site again"

    play_loans(SOON_S / 1.5, scenario)


def test_the_units_of_a_loan_are_on_disk_before_its_borrower_hears_of_it(play_loans: Play) -> None:
    """Else a lender that crashed would pay for other pages with them, and --max-pages would be exceeded."""

    async def scenario(bench: LenderBench) -> None:
        budget = bench.lender._budget = Budget(100, granted=3, begun=0)

        def flush() -> list[int]:
            write_units(bench.store.meta, budget)  # As a peer does before each commit.
            return []

        bench.store.journal.before_commit(flush)
        await bench.store.journal.commit()  # Nothing else is to be written as the loans begin.
        journaled: list[dict[str, bytes]] = []
        ask = bench.ask

        async def look(*message: Any) -> Any:
            with closing(sqlite3.connect(bench.store.journal.path)) as journal:
                named = "SELECT name, value FROM meta WHERE name IN ('granted', 'pages_begun')"
                journaled.append(dict(journal.execute(named)))
            return await ask(*message)

        bench.ask = look  # type: ignore[method-assign, assignment]
        for count, borrower in ((2, A), (1, B)):
            assert count == await bench.lender.lend(borrower, SITE, count)
        assert [{"granted": b"3", "pages_begun": units} for units in (b"2", b"3")] == journaled

    play_loans(0.0, scenario)


def test_a_loan_that_nobody_took_costs_nothing(play_loans: Play) -> None:
    async def scenario(bench: LenderBench) -> None:
        budget = bench.lender._budget = Budget(100, granted=3, begun=0)
        bench.fails = True
        assert 0 == await bench.lender.lend(A, SITE, 2)
        assert (3, 0) == (budget.allowance, budget.lent)

    play_loans(0.0, scenario)


def test_a_site_that_refuses_its_owner_is_taken_back_from_borrowers(play_loans: Play) -> None:
    async def scenario(bench: LenderBench) -> None:
        await bench.lender.lend(A, SITE, 2)
        assert await bench.report(A, 0)
        bench.lender.recall_site(SITE)
        assert [] == await bench.report(A, 0)

    play_loans(0.0, scenario)


def test_a_borrower_whose_loan_was_refused_may_have_others(play_loans: Play) -> None:
    async def scenario(bench: LenderBench) -> None:
        await bench.lender.lend(A, SITE, 2)
        clock = SiteRecord(SITE, 59.0, 0.0, REFUSED)
        back = [ReturnedUrl(url_key(site_hash(SITE), record.url), 1, 0.0) for record in bench.lends[0].pending]
        await bench.lender.renew_lease(RenewLease(A, [LoanReport(bench.lends[0].loan, clock, [], back, True)]))
        assert 0 == bench.lender.urls
        assert bench.lender.may_lend_to(A)

    play_loans(0.0, scenario)


def test_of_the_pages_that_came_back_only_the_latest_are_remembered(
    play_loans: Play, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loan_module, "LATE_PAGES_MAX", 2)

    async def scenario(bench: LenderBench) -> None:
        borrower = leaf_contact(id_bytes(9))
        await bench.lender.lend(borrower, SITE, 3)
        await asyncio.sleep(LEASE_S + MARGIN_S + 1.0)
        assert 0 == bench.lender.urls
        keys = [url_key(site_hash(SITE), record.url) for record in bench.lends[0].pending]
        for key in keys:
            one = LoanReport(bench.lends[0].loan, SiteRecord(SITE, 0.0, 0.0), [key], [], True)
            await bench.lender.renew_lease(RenewLease(borrower, [one]))
        assert [PENDING, DONE, DONE] == [bench.store.state(key) for key in keys]

    play_loans(0.0, scenario)


def test_a_loan_of_a_closed_cell_is_not_kept_for_ever_by_reports(play_loans: Play) -> None:
    async def scenario(bench: LenderBench) -> None:
        await bench.lender.lend(A, SITE, 2)
        bench.frontier.close(CELL)
        bench.lender.recall(CELL)
        for _ in range(int(RECALLED_MAX_S) + 5):
            assert [] == await bench.report(A, 0)
            await asyncio.sleep(1.0)
        assert (0, 0) == (bench.lender.urls, bench.frontier.lent(CELL))

    play_loans(1.0, scenario)


def test_a_loan_whose_offer_failed_goes_on_only_if_it_was_begun(play_loans: Play) -> None:
    async def scenario(bench: LenderBench) -> None:
        bench.fails = True
        assert 0 == await bench.lender.lend(A, SITE, 2)
        assert [] == await bench.report(A, 0)
        assert 0 == bench.lender.urls

    play_loans(1.0, scenario)


def test_connections_are_given_only_when_no_request_of_ours_uses_them(play_loans: Play) -> None:
    async def scenario(bench: LenderBench) -> None:
        own = [bench.frontier.next(bench.loop.time()) for _ in range(CONNECTIONS)]
        lent = asyncio.create_task(bench.lender.lend(A, SITE, 2))
        await asyncio.sleep(1.0)
        assert [] == bench.lends
        assert own[0] is not None
        bench.frontier.release(own[0], bench.loop.time(), bench.loop.time())
        assert 2 == await lent
        assert 1 == bench.lends[0].connections
        assert bench.frontier.next(bench.loop.time()) is None

    play_loans(0.0, scenario)


@pytest.mark.parametrize("closes", [True, False])
def test_a_loan_without_free_connections_or_an_open_cell_is_not_offered(play_loans: Play, closes: bool) -> None:
    async def scenario(bench: LenderBench) -> None:
        own = [bench.frontier.next(bench.loop.time()) for _ in range(CONNECTIONS)]
        lent = asyncio.create_task(bench.lender.lend(A, SITE, 2))
        await asyncio.sleep(0.1)
        if closes:
            bench.frontier.close(CELL)
            bench.lender.recall(CELL)
            assert own[0] is not None
            bench.frontier.release(own[0], bench.loop.time(), bench.loop.time())
        assert await lent is None
        assert ([], 0, 0) == (bench.lends, bench.lender.urls, bench.frontier.lent(CELL))

    play_loans(0.0, scenario)


def test_a_loan_is_offered_only_once_all_holders_have_its_urls(play_loans: Play) -> None:
    """The borrower offers no link to them, so their owner alone would know them."""

    async def scenario(bench: LenderBench) -> None:
        bench.copied = False
        assert await bench.lender.lend(A, SITE, 3) is None
        assert ([], 0) == (bench.lends, bench.lender.urls)
        bench.copied = True
        assert 3 == await bench.lender.lend(B, SITE, 3)

    play_loans(0.0, scenario)


def test_a_page_that_its_borrower_reports_is_named_once(play_loans: Play) -> None:
    async def scenario(bench: LenderBench) -> None:
        told: list[tuple[object, bytes]] = []
        bench.lender.page_reported.append(lambda borrower, key: told.append((borrower, key)))
        await bench.lender.lend(A, SITE, 2)
        key = bytes(next(iter(bench.lender.loans()[0].entries)))
        report = LoanReport(bench.lends[0].loan, SiteRecord(SITE, 0.0, 0.0), [key], [], False)
        for _ in range(2):
            await bench.lender.renew_lease(RenewLease(A, [report]))
        assert [(A, key)] == told

    play_loans(0.0, scenario)


@pytest.mark.parametrize("wait_s", [0.0, 1000.0, 1e6])
def test_a_borrower_without_progress_loses_its_loan_whatever_it_reports(play_loans: Play, wait_s: float) -> None:
    async def scenario(bench: LenderBench) -> None:
        await bench.lender.lend(A, SITE, 2)
        stands_s = RECALLED_MAX_S + 1.0 + min(wait_s, RETURNED_WAIT_MAX_S)
        standing = []
        while bench.loop.time() < stands_s + 1.0:
            wait_left_s = max(0.0, wait_s - bench.loop.time()) if wait_s < 1e6 else wait_s
            if await bench.report(A, 0, wait_s=wait_left_s):
                standing.append(bench.loop.time())
            await asyncio.sleep(RENEW_S)  # It never falls silent, so that it does not lose it for that.
        assert stands_s - 1.0 < standing[-1] <= stands_s
        assert not bench.lender.lost

    play_loans(1.0, scenario)


@pytest.mark.parametrize("fruitful", [True, False])
def test_a_loan_returned_whole_rests_its_borrower_and_its_site_for_a_while(play_loans: Play, fruitful: bool) -> None:
    """The borrower may be cut off from the web, and would finish any number of pages at once."""

    async def scenario(bench: LenderBench) -> None:
        await bench.lender.lend(A, SITE, 2)
        first, second = (url_key(site_hash(SITE), one.url) for one in bench.lends[0].pending)
        back = [ReturnedUrl(key, 0, 0.0) for key in ([second] if fruitful else [first, second])]
        done: list[bytes] = [first] if fruitful else []
        report = LoanReport(bench.lends[0].loan, SiteRecord(SITE, 0.0, 0.0), done, back, True)
        assert [] == (await bench.lender.renew_lease(RenewLease(A, [report]))).active
        assert (fruitful, True) == (bench.lender.may_lend_to(A), bench.lender.may_lend_to(B))
        assert [SITE] * fruitful == [site for site, _ in bench.lender.sites_with_spare_connections()]
        await asyncio.sleep(BACKOFF_FIRST_S + 2.0)
        assert bench.lender.may_lend_to(A)
        assert [SITE] == [site for site, _ in bench.lender.sites_with_spare_connections()]

    play_loans(1.0, scenario)


@pytest.mark.parametrize("leaf", [True, False])
def test_a_full_peers_reports_on_recalled_or_earlier_loans_are_trusted(play_loans: Play, leaf: bool) -> None:
    async def scenario(bench: LenderBench) -> None:
        borrower = leaf_contact(A.id) if leaf else A
        await bench.lender.lend(borrower, SITE, 2)
        first, second = (url_key(site_hash(SITE), one.url) for one in bench.lends[0].pending)
        await asyncio.sleep(LEASE_S + MARGIN_S + 1.0)
        assert 1 == bench.lender.lost[SITE]
        for loan, key in ((bench.lends[0].loan, first), (b"long ago", second)):
            report = LoanReport(loan, SiteRecord(SITE, 0.0, 0.0), [key], [], False)
            assert [] == (await bench.lender.renew_lease(RenewLease(borrower, [report]))).active
        assert [DONE, PENDING if leaf else DONE] == [bench.store.state(first), bench.store.state(second)]
        await asyncio.sleep(BACKOFF_FIRST_S + 5.0)
        left = {entry.key for _ in range(6) if (entry := fetch_next(bench)) is not None}
        assert (4 + leaf, first in left, second in left) == (len(left), False, leaf)

    play_loans(0.0, scenario)


def test_nobody_reports_of_the_loan_of_another(play_loans: Play) -> None:
    async def scenario(bench: LenderBench) -> None:
        await bench.lender.lend(A, SITE, 2)
        assert [] == await bench.report(B, 0)

    play_loans(1.0, scenario)


def test_a_lender_that_was_away_neither_lends_nor_renews_before_it_knows_its_cells(play_loans: Play) -> None:
    """Another peer may own the site by now, and may ask it at the same time."""

    async def scenario(bench: LenderBench) -> None:
        await bench.lender.lend(A, SITE, 2)
        bench.sure.clear()
        assert await bench.lender.lend(B, SITE, 2) is None
        renewal = asyncio.create_task(bench.report(A, 0))
        await asyncio.sleep(1.0)
        assert not renewal.done()
        bench.sure.set()
        assert [bench.lends[0].loan] == await renewal

    play_loans(0.0, scenario)


def test_a_loan_that_waits_for_connections_ends_if_the_lender_was_away_meanwhile(play_loans: Play) -> None:
    async def scenario(bench: LenderBench) -> None:
        bench.lender._connections_free = _clear_first(bench)  # type: ignore[assignment, method-assign]
        assert await bench.lender.lend(A, SITE, 2) is None
        assert (0, []) == (bench.lender.urls, bench.lends)

    play_loans(0.0, scenario)


def _clear_first(bench: LenderBench) -> Callable[[Any], Coroutine[Any, Any, bool]]:
    async def connections_free(loan: Any) -> bool:
        bench.sure.clear()
        return True

    return connections_free
