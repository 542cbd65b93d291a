"""The end of a full peer, which finishes its work and, if it leaves, hands its range over.

`Peer` calls this. Nothing here has to succeed: unfinished work is on disk, for a later run or for other peers.

Tests: tests/peer/test_shutdown.py, tests/peer/test_coming_and_going.py, tests/peer/membership/test_departed.py
"""

import asyncio
from typing import TYPE_CHECKING

from kadcrawl.balance.leases import LOAN_S_MAX
from kadcrawl.crawl.pause_reasons import PauseReason
from kadcrawl.link.wire.basics import COUNT_MAX
from kadcrawl.link.wire.leave_messages import Departed
from kadcrawl.peer.membership.departed import send_leave_stats

if TYPE_CHECKING:  # A leaf does without the rooms of a full peer.
    from kadcrawl.peer.runtime import Runtime

DRAIN_LINKS_S = 2.0
"""Seconds a stopping peer waits for the acknowledgment of its last links. Their owners may have stopped already. Pages
whose links take longer stay PENDING in the directory, and are fetched again."""
LEAVE_LINKS_S = 10.0
"""Seconds a leaving peer waits for the same. Their owners may be leaving too, and others must take over first."""
LOANS_S = LOAN_S_MAX + 0.5
"""Seconds a peer waits until lent and borrowed pages are back at their owners. A loan without a report lasts no longer:
its borrower may be dead. A living borrower hears of the recall at once, or as a leaf within half a second."""
LINGER_S = 0.5
"""Seconds a stopping peer stays for the last links of others that finish too, and for the goodbyes of its leaves."""
LEAVES_S = 3.0
"""Longest time that a peer which exits at the end of the crawl stays, until its leaves have heard of the end. A leaf
that is there asks at least every two seconds (link/wire/leaf_messages.py)."""
LEAVE_S = 30.0
"""Seconds a leaving peer waits for others to take more of its records. A swarm that takes nothing has all of them."""


async def drain(runtime: "Runtime", links_s: float = DRAIN_LINKS_S) -> None:
    """Start nothing more and wait until work under way is finished and on disk."""
    if runtime.begun:
        from kadcrawl.peer.swarm.budget_sharing import give_back  # Not at the top: a leaf has no budget.

        crawler, loans = runtime.components.crawler, runtime.balancing.loans
        leaves = runtime.parts.leaves.last_figures()
        if leaves:  # A leaf may hear of a stop so late that nobody is left to take its goodbye, which would count more.
            runtime.departed.keep(leaves)
        if has_ended := runtime.ended:  # At once: a peer that this peer meets meanwhile reopens the question.
            runtime.parts.leaves.end()
        crawler.pause_reasons.add(PauseReason.STOPPING)
        runtime.components.forwarder.hurry()
        loans.recall_all()
        await asyncio.gather(crawler.drained(links_s), loans.end(links_s, LOANS_S))
        for budget in runtime.components.crawl_limits.budgets:
            await give_back(runtime, budget)
        if has_ended:
            await runtime.parts.leaves.heard_of_end(LEAVES_S)
        elif leaves or runtime.overlay.contacts():
            # Others are finishing too, and their last links may be for this peer.
            await asyncio.sleep(LINGER_S)
    await runtime.resources.store.journal.commit()


async def leave(runtime: "Runtime") -> None:
    """Finish the work under way, say goodbye, and stay until others have taken over all records."""
    await drain(runtime, LEAVE_LINKS_S)
    resources, overlay = runtime.resources, runtime.overlay
    if runtime.begun:
        from kadcrawl.peer.swarm.budget_sharing import tell_total  # Not at the top: a leaf has no budget.

        for budget in runtime.components.crawl_limits.budgets:
            await tell_total(runtime, budget)
        pages_taken = min(runtime.components.crawl_limits.pages.begun, COUNT_MAX)
        me = Departed(runtime.contact, resources.counters.to_wire(), pages_taken)
        stats = runtime.departed.leave_stats(me, overlay.nearest_known)
        await send_leave_stats(resources.client, runtime.contact.id, stats)
        await runtime.cells.leave(overlay.leave, LEAVE_S)
    await resources.store.journal.commit()
