"""Sharing --max-pages out: the conversation around crawl/budget.py."""

import asyncio
from typing import TYPE_CHECKING

from kadcrawl.crawl.budget import budget_cell, share
from kadcrawl.link.messages import Grant

if TYPE_CHECKING:
    from kadcrawl.peer.peer import Peer

INTERVAL_S = 0.3


async def share_budget(peer: "Peer", max_pages: int) -> None:
    """Give back what this peer cannot use, and share the budget out while owning its cell; until cancelled."""
    cell = budget_cell(peer.job.cell_bits)
    announced = False
    while True:
        await asyncio.sleep(INTERVAL_S)
        if not peer.parts.frontier.pending:
            peer.parts.budget.give_back()
        if peer.overlay.owns(cell):
            totals, spent = share(max_pages, (await peer.census()).rows)
            if totals or spent != announced:
                await peer.waves.ask_all(Grant(totals, spent))
                announced = spent
