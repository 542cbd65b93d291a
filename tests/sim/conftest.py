"""Counts that several tests of simulated worlds need."""

from collections import Counter
from collections.abc import Callable

import pytest

from kadcrawl.lending.borrower import Borrower
from kadcrawl.link.wire.messages import Lend


@pytest.fixture
def lendings(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Count how often each URL is taken by a peer that does not own it."""
    counted: Counter[str] = Counter()
    loans: set[bytes] = set()
    accept = Borrower.accept

    def counting(self: Borrower, lend: Lend, wants: Callable[[int], bool]) -> bool:
        taken = accept(self, lend, wants)
        if taken and lend.loan not in loans:  # An offer may be made again.
            loans.add(lend.loan)
            counted.update(one.url for one in lend.pending)
        return taken

    monkeypatch.setattr(Borrower, "accept", counting)
    return counted
