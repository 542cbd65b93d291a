"""Borrowed pages as a frontier and a crawler see them: by loan, in memory, until they are fetched."""

import pytest

from kadcrawl.crawl.frontier.frontier import Frontier
from kadcrawl.keys import Key, id_bytes, site_hash, url_key
from kadcrawl.lending.borrowed_store import NOWHERE, BorrowedStore
from kadcrawl.link.wire.messages import Contact
from kadcrawl.settings.job import Job
from kadcrawl.settings.limits import Limits
from kadcrawl.settings.site_settings import SiteSettings
from kadcrawl.store.frontier_entry import FrontierEntry
from kadcrawl.store.visit import Visit

GIVER = Contact(id_bytes(1), "10.0.0.1", 4160)
A, B = "a.example", "b.example"


def site_url(site: str, number: int) -> str:
    return f"http://{site}/{number}"


def site_key(site: str, number: int) -> Key:
    return url_key(site_hash(site), site_url(site, number))


class BorrowedStoreBench:
    def __init__(self, delay_s: float = 1.0) -> None:
        self.journaled: list[tuple[str, bool]] = []
        self.known = False
        self.store = BorrowedStore(self.journal)
        self.frontier = Frontier(
            self.store, Limits(), SiteSettings(Job(delay_s=delay_s)), connections=self.store.connections
        )

    def journal(
        self, entry: FrontierEntry, line: bytes, records: bytes, visit: Visit | None, rounds: int, *, reported: bool
    ) -> bool:
        self.journaled.append((entry.url, reported))
        return not self.known

    def borrow(self, site: str, count: int, loan: bytes = b"loan one") -> None:
        urls = [(site_key(site, number), site_url(site, number), 1, 0, 0, 0.0, b"") for number in range(count)]
        self.store.add(loan, GIVER, site, urls)


@pytest.fixture
def borrowed_bench() -> BorrowedStoreBench:
    return BorrowedStoreBench()


def test_a_shorter_path_to_a_borrowed_page_counts_and_a_longer_does_not(borrowed_bench: BorrowedStoreBench) -> None:
    borrowed_bench.borrow(A, 2)
    store, loan = borrowed_bench.store, borrowed_bench.store.loans[b"loan one"]
    first, second = (loan.entries[site_key(A, number)] for number in range(2))
    store.shorten(loan, {bytes(first.key): 0, bytes(second.key): 5, bytes(site_key(B, 0)): 0})
    assert (0, 1) == (store.latest(first).depth, store.latest(second).depth)
    store.postpone(first._replace(tries=1))
    assert (0, 1) == (store.latest(first).depth, store.latest(first).tries)
    assert {first.key, second.key} == loan.entries.keys()


def test_a_loan_is_crawled_only_between_its_opening_and_its_closing(borrowed_bench: BorrowedStoreBench) -> None:
    borrowed_bench.borrow(A, 3)
    loan = borrowed_bench.store.loans[b"loan one"]
    assert borrowed_bench.frontier.next(100.0) is None
    borrowed_bench.frontier.open(loan.cell, 100.0, hold=False)
    first = borrowed_bench.frontier.next(100.0)
    assert first is not None
    assert site_url(A, 0) == first.url
    borrowed_bench.frontier.release(first, 100.0, 100.0)
    borrowed_bench.frontier.close(loan.cell)
    assert borrowed_bench.frontier.next(200.0) is None
    assert 3 == borrowed_bench.store.pending


@pytest.mark.parametrize("connections", [1, 2, 100])
def test_no_more_requests_are_under_way_than_connections_were_lent(connections: int) -> None:
    bench = BorrowedStoreBench(delay_s=0.0)
    urls = [(site_key(A, number), site_url(A, number), 1, 0, 0, 0.0, b"") for number in range(20)]
    loan = bench.store.add(b"loan one", GIVER, A, urls, connections)
    bench.frontier.open(loan.cell, 0.0, hold=False)
    taken = [bench.frontier.next(0.0) for _ in range(20)]
    assert min(connections, Limits().site_connections_max) == sum(entry is not None for entry in taken)


def test_what_is_fetched_is_journaled_and_waits_to_be_reported(borrowed_bench: BorrowedStoreBench) -> None:
    borrowed_bench.borrow(A, 2)
    loan = borrowed_bench.store.loans[b"loan one"]
    borrowed_bench.frontier.open(loan.cell, 0.0, hold=False)
    entry = borrowed_bench.frontier.next(10.0)
    assert entry is not None
    borrowed_bench.frontier.release(entry, 10.0, 10.0)
    assert borrowed_bench.store.finish(entry, b"{}")
    borrowed_bench.frontier.finish(entry, 10.0)
    assert ([(entry.url, True)], [entry.key], 1) == (
        borrowed_bench.journaled,
        list(loan.done),
        borrowed_bench.store.pending,
    )
    assert borrowed_bench.frontier.next(10.5) is None, "its site keeps its pace"
    second = borrowed_bench.frontier.next(11.0)
    assert second is not None
    assert second.key != entry.key


def test_a_page_finished_after_its_loan_is_reported_to_its_owner_apart(borrowed_bench: BorrowedStoreBench) -> None:
    borrowed_bench.borrow(A, 1)
    loan = borrowed_bench.store.loans[b"loan one"]
    (entry,) = loan.entries.values()
    borrowed_bench.store.drop(loan)
    borrowed_bench.known = True
    assert not borrowed_bench.store.finish(entry, b"{}")
    assert [(entry.url, False)] == borrowed_bench.journaled
    assert NOWHERE == borrowed_bench.store.cell_of(entry.key)


def test_two_loans_of_one_lender_end_each_by_itself(borrowed_bench: BorrowedStoreBench) -> None:
    borrowed_bench.borrow(A, 2)
    borrowed_bench.borrow(B, 2, b"loan two")
    one, two = borrowed_bench.store.loans.values()
    for loan in (one, two):
        borrowed_bench.frontier.open(loan.cell, 0.0, hold=False)
    borrowed_bench.frontier.close(one.cell)
    borrowed_bench.store.drop(one)
    entry = borrowed_bench.frontier.next(10.0)
    assert entry is not None
    assert B == entry.site
    assert (False, True) == (borrowed_bench.store.has_site(A), borrowed_bench.store.has_site(B))


def test_a_postponed_page_keeps_its_tries(borrowed_bench: BorrowedStoreBench) -> None:
    borrowed_bench.borrow(A, 1)
    loan = borrowed_bench.store.loans[b"loan one"]
    borrowed_bench.frontier.open(loan.cell, 0.0, hold=False)
    entry = borrowed_bench.frontier.next(10.0)
    assert entry is not None
    borrowed_bench.frontier.release(entry, 10.0, 10.0)
    borrowed_bench.frontier.postpone(entry, 15.0, 10.0)
    (left,) = loan.entries.values()
    assert (1, 15.0) == (left.tries, left.due)
    assert borrowed_bench.frontier.next(14.9) is None
    assert borrowed_bench.frontier.next(15.0) is not None


def test_of_what_is_not_borrowed_nothing_is_known(borrowed_bench: BorrowedStoreBench) -> None:
    assert [] == borrowed_bench.store.window("c.example", 9)
    assert [] == borrowed_bench.store.pending_sites(NOWHERE, b"", 9)
    assert borrowed_bench.store.sites.clock("c.example") is None


def test_what_is_known_to_be_done_is_reported_and_not_fetched(borrowed_bench: BorrowedStoreBench) -> None:
    borrowed_bench.borrow(A, 3)
    loan = borrowed_bench.store.loans[b"loan one"]
    borrowed_bench.store.skip(loan, site_key(A, 1))
    borrowed_bench.frontier.open(loan.cell, 100.0, hold=False)
    assert 2 == borrowed_bench.store.pending == borrowed_bench.frontier.pending
    assert [site_key(A, 1)] == list(loan.done)
    urls = []
    for now in (100.0, 110.0, 120.0):
        if (entry := borrowed_bench.frontier.next(now)) is not None:
            urls.append(entry.url)
            borrowed_bench.frontier.release(entry, now, now)
    assert [site_url(A, 0), site_url(A, 2)] == urls
