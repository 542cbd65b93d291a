"""Sharing --max-pages out: the conversation around crawl/page_budget.py.

Tests: tests/peer/test_swarm.py
"""

import asyncio
from math import inf
from typing import TYPE_CHECKING

from kadcrawl.crawl.page_budget import SOON_S, Resting, budget_cell, listed, share
from kadcrawl.link.wire.census_rows import has_left
from kadcrawl.link.wire.messages import Grant

if TYPE_CHECKING:
    from kadcrawl.peer.peer import Peer

INTERVAL_S = 0.3
BUDGET_SPENT_INTERVAL_S = 3.0
"""How often it is said that the budget is spent: who joined since does not know, and would wait for ever."""


async def share_budget(peer: "Peer", max_pages: int) -> None:
    """Give back what this peer cannot use, and share the budget out while owning its cell; until cancelled."""
    cell = budget_cell(peer.job.cell_bits)
    resting = Resting()
    announced, again_at = False, inf
    while True:
        await asyncio.sleep(INTERVAL_S)
        if not peer.components.frontier.pending or _must_wait(peer):
            peer.components.budget.give_back()
        if peer.overlay.owns(cell):
            rows = [row for row in (await peer.census()).rows if not has_left(row)]
            absent = peer.components.budget.absent(rows)
            now = asyncio.get_running_loop().time()
            resters = resting.look(rows, now)
            totals, spent = share(max_pages, rows, resters, sum(absent.values()))
            resting.grant(totals)
            if totals or spent != announced or now >= again_at:
                await peer.waves.ask_all(Grant(listed(totals, absent), spent))
                announced, again_at = spent, now + BUDGET_SPENT_INTERVAL_S if spent else inf


def _must_wait(peer: "Peer") -> bool:
    """Every URL of this peer is of a site that asks to be left alone, and not only for a moment."""
    due = peer.components.frontier.next_due()
    return not peer.components.crawler.in_flight and due is not None and due > peer.clock.now() + SOON_S
