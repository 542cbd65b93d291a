"""A stopping peer waits for what is quick, and no longer: the rest is in its directory."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from kadcrawl.balance.leases import LOAN_S_MAX
from kadcrawl.crawl.pause_reasons import PauseReason
from kadcrawl.link.server import ANSWERS_S
from kadcrawl.link.wire.leaf_messages import WORK_WAIT_S_MAX
from kadcrawl.peer.shutdown import DRAIN_LINKS_S, LEAVES_S, LINGER_S, LOANS_S, drain
from sim.loop import world


class StoppingPeer:
    """The parts of a peer that a stop uses, with links that are never acknowledged."""

    def __init__(self) -> None:
        self.steps: list[str] = []
        self.others = ["another peer"]
        self.leaves: list[str] = []
        self.kept: list[str] = []
        self.told_end = asyncio.Event()
        crawler = SimpleNamespace(pause_reasons=set(), drained=self.drained)
        budget = SimpleNamespace(give_back=lambda: self.steps.append("limits"), told=0, granted=0)
        limits = SimpleNamespace(budgets=[budget])
        forwarder = SimpleNamespace(hurry=lambda: self.steps.append("links hurry"))
        self.runtime: Any = SimpleNamespace(
            begun=True,
            ended=False,
            overlay=SimpleNamespace(contacts=lambda: self.others),
            parts=SimpleNamespace(
                leaves=SimpleNamespace(
                    last_figures=lambda: self.leaves, end=self.told_end.set, heard_of_end=self.heard_of_end
                )
            ),
            departed=SimpleNamespace(keep=self.kept.extend),
            components=SimpleNamespace(crawler=crawler, crawl_limits=limits, forwarder=forwarder),
            balancing=SimpleNamespace(
                loans=SimpleNamespace(recall_all=lambda: self.steps.append("recall"), end=self.end_loans)
            ),
            resources=SimpleNamespace(store=SimpleNamespace(journal=SimpleNamespace(commit=self.commit))),
        )

    async def heard_of_end(self, seconds: float) -> bool:
        await asyncio.sleep(seconds if self.leaves else 0.0)
        return not self.leaves

    async def drained(self, links_s: float) -> None:
        await asyncio.sleep(links_s)
        self.steps.append("own pages")

    async def end_loans(self, links_s: float, seconds: float) -> None:
        assert LOANS_S == seconds
        await asyncio.sleep(links_s)
        self.steps.append("borrowed pages")

    async def commit(self) -> None:
        self.steps.append("commit")


@pytest.mark.parametrize(
    ("has_ended", "others", "leaves", "lingers_s"),
    [
        (False, ["another peer"], [], LINGER_S),
        (True, ["another peer"], [], 0.0),
        (True, ["another peer"], ["a leaf"], LEAVES_S),
        (False, [], [], 0.0),
        (False, [], ["a leaf"], LINGER_S),
    ],
    ids=["stopped", "ended", "ended with a leaf", "alone", "alone with a leaf"],
)
def test_own_and_borrowed_pages_wait_for_their_links_at_the_same_time_and_not_for_long(
    has_ended: bool, others: list[str], leaves: list[str], lingers_s: float
) -> None:
    peer = StoppingPeer()
    peer.runtime.ended, peer.others, peer.leaves = has_ended, others, leaves
    with world(0) as loop:
        loop.run_until_complete(drain(peer.runtime))
        assert DRAIN_LINKS_S + lingers_s == pytest.approx(loop.time())
    assert ["links hurry", "recall", "own pages", "borrowed pages", "limits", "commit"] == peer.steps
    assert leaves == peer.kept, "what the leaves did stays known"
    assert has_ended == peer.told_end.is_set()
    assert {PauseReason.STOPPING} == peer.runtime.components.crawler.pause_reasons
    assert DRAIN_LINKS_S + LINGER_S < 3.0, "a stop takes three seconds at most, if the requests in flight are over"


def test_a_peer_that_exits_at_the_end_tells_its_leaves_so_also_if_it_meets_another_peer_meanwhile() -> None:
    peer = StoppingPeer()
    peer.runtime.ended, peer.leaves = True, ["a leaf"]

    async def story() -> float:
        loop = asyncio.get_running_loop()
        loop.call_later(DRAIN_LINKS_S / 2, lambda: setattr(peer.runtime, "ended", False))
        await drain(peer.runtime)
        return loop.time()

    with world(0) as loop:
        assert DRAIN_LINKS_S + LEAVES_S == pytest.approx(loop.run_until_complete(story()))
    assert peer.told_end.is_set()


def test_a_stop_waits_until_the_loan_of_a_dead_borrower_is_over() -> None:
    assert LOANS_S > LOAN_S_MAX


def test_a_leaf_asks_again_while_a_peer_waits_for_it_at_the_end() -> None:
    assert LEAVES_S > WORK_WAIT_S_MAX


def test_the_waits_of_a_stop_leave_time_within_three_seconds() -> None:
    assert DRAIN_LINKS_S + LINGER_S + ANSWERS_S < 3.0
