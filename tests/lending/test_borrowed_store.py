"""Borrowed pages as a frontier and a crawler see them: by loan, in memory, until they are fetched."""

import pytest

from kadcrawl.crawl.frontier.frontier import Frontier
from kadcrawl.keys import Key, id_bytes, site_hash, url_key
from kadcrawl.lending.borrowed_store import NOWHERE, BorrowedStore
from kadcrawl.link.wire.messages import Contact
from kadcrawl.settings.limits import Limits
from kadcrawl.store.frontier_entry import FrontierEntry

GIVER = Contact(id_bytes(1), "10.0.0.1", 4160)
A, B = "a.example", "b.example"


def url(site: str, number: int) -> str:
    return f"http://{site}/{number}"


def key(site: str, number: int) -> Key:
    return url_key(site_hash(site), url(site, number))


class BorrowedStoreBench:
    def __init__(self, delay_s: float = 1.0) -> None:
        self.journaled: list[tuple[str, bool]] = []
        self.known = False
        self.store = BorrowedStore(self.journal)
        self.frontier = Frontier(self.store, Limits(), delay_s, connections=self.store.connections)

    def journal(self, entry: FrontierEntry, line: bytes, records: bytes, *, reported: bool) -> bool:
        self.journaled.append((entry.url, reported))
        return not self.known

    def borrow(self, site: str, count: int, loan: bytes = b"loan one") -> None:
        urls = [(key(site, number), url(site, number), 1, 0, 0, 0.0) for number in range(count)]
        self.store.add(loan, GIVER, site, urls)


@pytest.fixture
def bench() -> BorrowedStoreBench:
    return BorrowedStoreBench()


def test_a_loan_is_crawled_only_between_its_opening_and_its_closing(bench: BorrowedStoreBench) -> None:
    bench.borrow(A, 3)
    loan = bench.store.loans[b"loan one"]
    assert bench.frontier.next(100.0) is None
    bench.frontier.open(loan.cell, 100.0, hold=False)
    first = bench.frontier.next(100.0)
    assert first is not None
    assert url(A, 0) == first.url
    bench.frontier.release(first, 100.0, 100.0)
    bench.frontier.close(loan.cell)
    assert bench.frontier.next(200.0) is None
    assert 3 == bench.store.pending


@pytest.mark.parametrize("connections", [1, 2, 100])
def test_no_more_requests_are_under_way_than_connections_were_lent(connections: int) -> None:
    bench = BorrowedStoreBench(delay_s=0.0)
    urls = [(key(A, number), url(A, number), 1, 0, 0, 0.0) for number in range(20)]
    loan = bench.store.add(b"loan one", GIVER, A, urls, connections)
    bench.frontier.open(loan.cell, 0.0, hold=False)
    taken = [bench.frontier.next(0.0) for _ in range(20)]
    assert min(connections, Limits().site_connections_max) == sum(entry is not None for entry in taken)


def test_what_is_fetched_is_journaled_and_waits_to_be_reported(bench: BorrowedStoreBench) -> None:
    bench.borrow(A, 2)
    loan = bench.store.loans[b"loan one"]
    bench.frontier.open(loan.cell, 0.0, hold=False)
    entry = bench.frontier.next(10.0)
    assert entry is not None
    bench.frontier.release(entry, 10.0, 10.0)
    assert bench.store.finish(entry, b"{}")
    bench.frontier.finish(entry, 10.0)
    assert ([(entry.url, True)], [entry.key], 1) == (bench.journaled, list(loan.done), bench.store.pending)
    assert bench.frontier.next(10.5) is None, "its site keeps its pace"
    second = bench.frontier.next(11.0)
    assert second is not None
    assert second.key != entry.key


def test_a_page_finished_after_its_loan_is_reported_to_its_owner_apart(bench: BorrowedStoreBench) -> None:
    bench.borrow(A, 1)
    loan = bench.store.loans[b"loan one"]
    (entry,) = loan.entries.values()
    bench.store.drop(loan)
    bench.known = True
    assert not bench.store.finish(entry, b"{}")
    assert [(entry.url, False)] == bench.journaled
    assert NOWHERE == bench.store.cell_of(entry.key)


def test_two_loans_of_one_lender_end_each_by_itself(bench: BorrowedStoreBench) -> None:
    bench.borrow(A, 2)
    bench.borrow(B, 2, b"loan two")
    one, two = bench.store.loans.values()
    for loan in (one, two):
        bench.frontier.open(loan.cell, 0.0, hold=False)
    bench.frontier.close(one.cell)
    bench.store.drop(one)
    entry = bench.frontier.next(10.0)
    assert entry is not None
    assert B == entry.site
    assert (False, True) == (bench.store.has_site(A), bench.store.has_site(B))


def test_a_postponed_page_keeps_its_tries(bench: BorrowedStoreBench) -> None:
    bench.borrow(A, 1)
    loan = bench.store.loans[b"loan one"]
    bench.frontier.open(loan.cell, 0.0, hold=False)
    entry = bench.frontier.next(10.0)
    assert entry is not None
    bench.frontier.release(entry, 10.0, 10.0)
    bench.frontier.postpone(entry, 15.0, 10.0)
    (left,) = loan.entries.values()
    assert (1, 15.0) == (left.tries, left.due)
    assert bench.frontier.next(14.9) is None
    assert bench.frontier.next(15.0) is not None


def test_of_what_is_not_borrowed_nothing_is_known(bench: BorrowedStoreBench) -> None:
    assert [] == bench.store.window("c.example", 9)
    assert [] == bench.store.pending_sites(NOWHERE, b"", 9)
    assert bench.store.sites.clock("c.example") is None


def test_what_is_known_to_be_done_is_reported_and_not_fetched(bench: BorrowedStoreBench) -> None:
    bench.borrow(A, 3)
    loan = bench.store.loans[b"loan one"]
    bench.store.skip(loan, key(A, 1))
    bench.frontier.open(loan.cell, 100.0, hold=False)
    assert 2 == bench.store.pending == bench.frontier.pending
    assert [key(A, 1)] == list(loan.done)
    urls = []
    for now in (100.0, 110.0, 120.0):
        if (entry := bench.frontier.next(now)) is not None:
            urls.append(entry.url)
            bench.frontier.release(entry, now, now)
    assert [url(A, 0), url(A, 2)] == urls
