"""The number of URLs that are lent of a site in a crawl with a budget of pages (--max-pages).

The unit of a lent URL is missing elsewhere until the URL is fetched, and the end of the crawl waits for it. So no site
has more URLs on loan than it answers in a few seconds. By URL, the pages of a host share its clock and count together.
A decision: the caller gives the time.

Tests: tests/lending/test_paid_loans.py, tests/leaf/test_leaf.py
"""

from collections import Counter
from collections.abc import Iterable
from math import inf
from typing import Protocol

from kadcrawl.crawl.page_budget import SOON_S, Budget
from kadcrawl.lending.loan import Loan
from kadcrawl.urls import host_of


class Clocks(Protocol):
    """The politeness clocks of sites (see `crawl.frontier.frontier`)."""

    def clock(self, name: str, now: float) -> tuple[float, float]: ...


class PaidLoans:
    """The URLs on loan at one moment, by the clocks that they wait for."""

    def __init__(self, budget: Budget, clocks: Clocks, loans: Iterable[Loan], now: float) -> None:
        """`now` is the wall-clock second at which `clocks` are asked."""
        self._budget = budget
        self._clocks = clocks
        self._now = now
        self._lent = Counter[str]()
        self._delays: dict[str, float] = {}
        if budget.limit is not None:
            for loan in loans:
                self.add(loan)

    def add(self, loan: Loan) -> None:
        """Count the URLs of a loan."""
        self._lent[_clock_of(loan.site)] += len(loan.entries)
        _, delay_s = self._clocks.clock(loan.site, self._now)
        self._slow_down(loan.site, delay_s)

    def room(self, site: str) -> float:
        """Return how many more URLs of this site may be lent, or infinity without a budget."""
        if self._budget.limit is None:
            return inf
        wait_s, own_delay_s = self._clocks.clock(site, self._now)
        if not self._budget.allowance or wait_s > SOON_S:
            return 0
        delay_s = self._slow_down(site, own_delay_s)
        soon = max(1, int(SOON_S / delay_s)) if delay_s else inf
        return min(self._budget.allowance, max(0, soon - self._lent[_clock_of(site)]))

    def _slow_down(self, site: str, delay_s: float) -> float:
        """Note the delay of a site, and return the longest delay known of the sites that share its clock.

        The delay of a robots.txt is known only of URLs that were asked for.
        """
        name = _clock_of(site)
        self._delays[name] = max(delay_s, self._delays.get(name, 0.0))
        return self._delays[name]


def _clock_of(site: str) -> str:
    """Return what all sites have in common that wait for each other: by URL their host, else the site itself."""
    return host_of(site) if "://" in site else site
