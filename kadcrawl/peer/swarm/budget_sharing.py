"""The conversation that shares --max-pages out among the peers.

crawl/page_budget.py decides the shares. The owner of the budget's cell asks all peers for their rows and grants each a
share.

Tests: tests/peer/test_peer.py, tests/peer/test_swarm.py, tests/crawl/test_page_budget.py
"""

import asyncio
from math import inf

from kadcrawl.crawl.page_budget import SOON_S, Resting, budget_cell, listed, share
from kadcrawl.link.wire.census_rows import has_left
from kadcrawl.link.wire.messages import Grant
from kadcrawl.peer.runtime import Runtime
from kadcrawl.peer.swarm.census import take_census

INTERVAL_S = 0.3
BUDGET_SPENT_INTERVAL_S = 3.0
"""Seconds between two announcements that the budget is spent.

A peer that joined since would wait for ever otherwise.
"""


async def share_budget(runtime: Runtime, max_pages: int) -> None:
    """Give back unusable fetches, and share the budget out while owning its cell, until cancelled."""
    cell = budget_cell(runtime.job.cell_bits)
    budget = runtime.components.crawl_limits.pages
    resting = Resting()
    announced, again_at = False, inf
    while True:
        await asyncio.sleep(INTERVAL_S)
        if not runtime.components.frontier.pending or _must_wait(runtime):
            budget.give_back()
        if runtime.overlay.owns(cell):
            rows = [row for row in (await take_census(runtime.waves)).rows if not has_left(row)]
            absent = budget.absent(rows)
            now = asyncio.get_running_loop().time()
            resters = resting.look(rows, now)
            totals, spent = share(max_pages, rows, resters, sum(absent.values()))
            resting.grant(totals)
            if totals or spent != announced or now >= again_at:
                await runtime.waves.ask_all(Grant(listed(totals, absent), spent))
                announced, again_at = spent, now + BUDGET_SPENT_INTERVAL_S if spent else inf


def _must_wait(runtime: Runtime) -> bool:
    """Return whether every site of this peer must be left alone for a while longer."""
    due = runtime.components.frontier.next_due()
    return not runtime.components.crawler.in_flight and due is not None and due > runtime.resources.clock.now() + SOON_S
