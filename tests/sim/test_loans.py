"""Pages that heavy peers lend to light peers in whole simulated worlds are fetched once, politely, and never lost."""

from collections import Counter
from typing import Literal

import msgspec
import pytest

from kadcrawl.lending.borrower import Borrower
from kadcrawl.lending.lender import Lender
from kadcrawl.lending.loan import Loan
from kadcrawl.link.wire.messages import LoanReport
from sim.draw import draw
from sim.plan import Event, Kind, Plan
from sim.trial import Size, run

pytestmark = pytest.mark.worlds

SMALL = Size(pages=60, sites=6)
CALM = Plan(7, 6, (), delay_s=0.5, balance="level", block_urls=1, update_s=1.0)


@pytest.fixture
def counts(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Count the loans and their outcomes."""
    counted: Counter[str] = Counter()
    end, take_in, drop = Lender._end, Lender._take_in, Borrower._drop

    def ended(self: Lender, loan: Loan, *, is_lost: bool = False) -> None:
        counted["loans"] += 1
        counted["lost"] = sum(self.lost.values())
        end(self, loan, is_lost=is_lost)

    def took_in(self: Lender, loan: Loan, report: LoanReport) -> None:
        counted["done"] += len(report.done)
        take_in(self, loan, report)

    def dropped(self: Borrower, loan: object) -> None:
        counted["dropped"] += 1
        drop(self, loan)  # type: ignore[arg-type]

    monkeypatch.setattr(Lender, "_end", ended)
    monkeypatch.setattr(Lender, "_take_in", took_in)
    monkeypatch.setattr(Borrower, "_drop", dropped)
    return counted


def test_in_a_calm_swarm_pages_are_lent_and_each_is_fetched_once(counts: Counter[str]) -> None:
    outcome = run(CALM, SMALL)
    assert {} == outcome.violations
    assert 0 == outcome.duplicates
    assert counts["done"] >= 10
    assert counts["loans"] >= 5
    assert counts["dropped"] >= 5
    assert 0 == counts["lost"]


def test_without_balance_nothing_is_lent(counts: Counter[str]) -> None:
    outcome = run(msgspec.structs.replace(CALM, balance="off"), SMALL)
    assert {} == outcome.violations
    assert Counter() == counts


@pytest.mark.parametrize("history", ["exact", "bloom"])
@pytest.mark.parametrize("kind", [Kind.KILL, Kind.LEAVE, Kind.FREEZE])
def test_whoever_goes_while_pages_are_lent_takes_none_away(
    counts: Counter[str], kind: Kind, history: Literal["exact", "bloom"]
) -> None:
    events = [Event(at_s, kind, (machine,), for_s=4.0) for machine, at_s in ((1, 5.0), (2, 5.5), (3, 12.0))]
    outcome = run(msgspec.structs.replace(CALM, events=tuple(events), history=history), SMALL)
    assert {} == outcome.violations
    assert counts["done"] >= 5
    assert outcome.lent >= 5


@pytest.mark.parametrize(
    ("balance", "solver"), [("level", "exact"), ("drain", "exact"), ("predictive", "exact"), ("predictive", "pso")]
)
def test_no_page_bounces(lendings: Counter[str], balance: str, solver: str) -> None:
    """A block that was shed is not shed repeatedly by borrowers a little lighter than the last (P1 1.4)."""
    hurried = msgspec.structs.replace(CALM, balance=balance, solver=solver, delay_s=0.0, fetches_max=1)
    lent = 0
    for seed in range(1, 4):
        lendings.clear()
        assert {} == run(msgspec.structs.replace(hurried, seed=seed), SMALL).violations
        assert max(lendings.values()) <= 2
        lent += len(lendings)
    assert lent >= 10


def test_a_world_whose_peers_predict_is_the_same_at_each_run() -> None:
    predicted = msgspec.structs.replace(CALM, balance="predictive", solver="pso", delay_s=0.0, fetches_max=1)
    assert run(predicted, SMALL).trace == run(predicted, SMALL).trace


def test_plans_draw_predicted_times_with_both_solvers() -> None:
    plans = [draw(seed, 8) for seed in range(150)]
    assert {"exact", "pso"} == {plan.solver for plan in plans if plan.balance == "predictive"}
    assert {"exact"} == {plan.solver for plan in plans if plan.balance != "predictive"}
