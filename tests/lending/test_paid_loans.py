"""How many URLs of a site are lent in a crawl with a budget of pages."""

from collections.abc import Mapping
from math import inf

import pytest

from kadcrawl.crawl.page_budget import SOON_S, Budget
from kadcrawl.keys import Cell, site_hash, url_key
from kadcrawl.lending.loan import Loan
from kadcrawl.lending.paid_loans import PaidLoans
from kadcrawl.store.frontier_entry import FrontierEntry
from tests.support.swarm.lender_bench import A

AMPLE = Budget(100, granted=30, begun=0)


class FixedClocks:
    """The clocks of sites that never change."""

    def __init__(self, clocks: Mapping[str, tuple[float, float]]) -> None:
        self.clocks = clocks

    def clock(self, name: str, now: float) -> tuple[float, float]:
        return self.clocks.get(name, (0.0, 0.0))


def loan_of(site: str, urls: int) -> Loan:
    texts = [f"http://{site}/{number}" for number in range(urls)]
    hashed = site_hash(site)
    entries = [FrontierEntry(0, seq, url_key(hashed, url), site, url, 0, 0, 0.0) for seq, url in enumerate(texts)]
    return Loan(b"1" * 8, A, site, Cell(0), {entry.key: entry for entry in entries}, 1, 0.0)


def room(site: str, clocks: Mapping[str, tuple[float, float]], *loans: Loan, budget: Budget = AMPLE) -> float:
    return PaidLoans(budget, FixedClocks(clocks), loans, 0.0).room(site)


@pytest.mark.parametrize(
    ("delay_s", "most"), [(0.0, 30), (SOON_S / 30, 30), (SOON_S / 3, 3), (SOON_S, 1), (100 * SOON_S, 1)]
)
def test_no_more_is_lent_of_a_site_than_it_answers_soon(delay_s: float, most: int) -> None:
    assert most == room("a.example", {"a.example": (0.0, delay_s)})


def test_a_site_that_rests_long_is_not_lent() -> None:
    assert 30 == room("a.example", {"a.example": (SOON_S, 0.0)})
    assert 0 == room("a.example", {"a.example": (SOON_S + 0.1, 0.0)})


def test_the_budget_pays_for_every_url() -> None:
    assert 4 == room("a.example", {}, budget=Budget(100, granted=30, begun=26))
    assert 0 == room("a.example", {}, budget=Budget(100, granted=30, begun=30))


def test_without_a_budget_every_url_is_lent() -> None:
    assert inf == room("a.example", {"a.example": (60.0, 60.0)}, budget=Budget(None, 0, 0))


def test_by_url_the_pages_of_a_host_count_together() -> None:
    """Each page is a site of its own, and all wait for one clock."""
    slow = {f"http://slow.example/{n}": (0.0, SOON_S / 3) for n in range(9)}
    lent = [loan_of(site, 1) for site in list(slow)[:2]]
    assert 1 == room("http://slow.example/8", slow, *lent)
    assert 0 == room("http://slow.example/8", slow, *lent, loan_of("http://slow.example/2", 1))
    assert 3 == room("http://other.example/", {"http://other.example/": (0.0, SOON_S / 3)}, *lent)


def test_by_url_a_page_waits_by_the_delay_that_another_page_of_its_host_has_shown() -> None:
    """The delay of a robots.txt is not known of a page that nobody asked for yet."""
    lent = loan_of("http://slow.example/0", 1)
    assert 0 == room("http://slow.example/8", {"http://slow.example/0": (0.0, 60.0)}, lent)
    assert 30 == room("http://slow.example/8", {})
