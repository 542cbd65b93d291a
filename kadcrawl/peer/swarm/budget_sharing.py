"""The conversation that shares --max-pages, or --max-bytes, out among the peers.

crawl/page_budget.py and crawl/byte_budget.py decide the shares. The owner of the budget's cell asks all peers for their
rows and grants each a share.

Tests: tests/peer/swarm/test_budget_sharing.py, tests/peer/test_swarm.py, tests/peer/test_max_bytes.py
"""

import asyncio
from collections.abc import Sequence
from math import inf

from kadcrawl.crawl.crawl_limits import SharedBudget
from kadcrawl.crawl.grants_journal import write_grant
from kadcrawl.crawl.page_budget import SOON_S, Resting, budget_cell, listed
from kadcrawl.crawl.pause_reasons import PauseReason
from kadcrawl.errors import RemoteError
from kadcrawl.keys import Cell, anchor
from kadcrawl.link.wire.census_rows import has_left
from kadcrawl.link.wire.messages import Contact, GetSwarmState, GotSwarmState, Grant, PeerRow
from kadcrawl.link.wire.peer_state import PeerState
from kadcrawl.peer.runtime import Runtime
from kadcrawl.peer.swarm.census import take_census

INTERVAL_S = 0.3
ENDING = frozenset({PeerState.STOPPING, PeerState.LEAVING})
"""The states of a peer that gets no grant: its unused grant would be missing while it is away."""
HEARD_PEERS = 8
"""Peers that a new owner of the budget's cell asks for the grants that they know."""
HEAR_DEADLINE_S = 2.0
TELL_TRIES = 3
TELL_DEADLINE_S = 3.0
"""Seconds that a leaving peer waits until all have heard what it used of its grant."""
BUDGET_SPENT_INTERVAL_S = 3.0
"""Seconds between two announcements that the budget is spent.

A peer that joined since would wait for ever otherwise.
"""


async def share_budget(runtime: Runtime, budget: SharedBudget) -> None:
    """Give back unusable fetches or bytes, and share the budget out while owning its cell, until cancelled."""
    cell = budget_cell(runtime.job.bits)
    resting = Resting(budget.granted_to)
    announced, again_at, is_heir = False, inf, True
    while True:
        await asyncio.sleep(INTERVAL_S)
        own = runtime.components.frontier.pending - runtime.balancing.loans.lender.urls
        is_idle = own <= 0 or _must_wait(runtime)
        if _is_ending(runtime) or (is_idle and not runtime.balancing.loans.borrower.urls):
            await give_back(runtime, budget)
        if not runtime.overlay.owns(cell):
            is_heir = True
        elif is_heir and not await _hear_grants(runtime, budget, cell):
            continue
        else:
            is_heir = False
            known, epochs = dict(budget.known), dict(budget.epochs)
            census = (await take_census(runtime.waves, budget.unit)).rows
            rows = [row for row in census if not has_left(row)]
            has_changed = (budget.known, budget.epochs) != (known, epochs) or _has_told_another(runtime, budget, rows)
            if has_changed or runtime.cells.is_stalled() or not runtime.overlay.owns(cell):
                continue  # Another peer may have shared the budget out since these rows were told.
            absent = budget.absent(rows, filter(has_left, census))
            now = asyncio.get_running_loop().time()
            resters = {*resting.look(rows, now), *(row.contact.id for row in rows if row.state in ENDING)}
            totals, spent = budget.shares(rows, resters, sum(absent.values()))
            resting.grant(totals)
            if totals or spent != announced or now >= again_at:
                told = listed(totals, absent)
                await runtime.waves.ask_all(Grant(told, spent, budget.unit, budget.epochs_of(told, rows)))
                announced, again_at = spent, now + BUDGET_SPENT_INTERVAL_S if spent else inf


async def give_back(runtime: Runtime, budget: SharedBudget) -> None:
    """Give the unused grant back, and return when the journal has the smaller grant."""
    budget.give_back()
    if budget.told > budget.granted:
        store, written = runtime.resources.store, budget.granted
        write_grant(store.meta, budget)
        await store.journal.durable()
        budget.note_journaled(written)


async def tell_total(runtime: Runtime, budget: SharedBudget) -> None:
    """Give the unused grant back, and tell all peers what is used of it, before this peer leaves.

    The last census may have seen the grant whole, and a peer that is absent counts as it was last seen.
    """
    told = None
    for _ in range(TELL_TRIES):
        await give_back(runtime, budget)
        if budget.limit is None or budget.spent or budget.own_total == told:
            break
        told, me = budget.own_total, runtime.contact.id  # A grant that comes meanwhile makes it larger.
        grant = Grant({me: told}, spent=False, unit=budget.unit, epochs={me: budget.tell()})
        await runtime.waves.ask_all(grant, TELL_DEADLINE_S)


async def _hear_grants(runtime: Runtime, budget: SharedBudget, cell: Cell) -> bool:
    """Ask the peers nearest to the budget's cell for the totals they know, and return whether one has answered.

    The grants of absent peers are in no row of a census, and a newcomer has heard of none.
    """
    place = anchor(cell, runtime.job.bits)
    near = sorted(runtime.overlay.contacts(), key=lambda contact: contact.number ^ place)[:HEARD_PEERS]

    async def hear(contact: Contact) -> bool:
        question = GetSwarmState(runtime.named_fingerprint)
        try:
            got = await runtime.resources.client.ask(contact, question, GotSwarmState, HEAR_DEADLINE_S)
        except RemoteError:
            return False
        if budget.unit == "pages":
            budget.hear(got.pages_granted, got.pages_epochs)
        else:
            budget.hear(got.bytes_granted, got.bytes_epochs)
        return True

    return not near or any(await asyncio.gather(*map(hear, near)))


def _has_told_another(runtime: Runtime, budget: SharedBudget, rows: Sequence[PeerRow]) -> bool:
    """Return whether this peer has told its row to another peer that shares the budget out, since it told these."""
    me = runtime.contact.id
    return any(row.contact.id == me and row.grant_epoch != budget.epoch for row in rows if not row.hosted_leaf)


def _is_ending(runtime: Runtime) -> bool:
    """Return whether this peer begins no URL any more, as it stops or leaves."""
    return runtime.leaving or PauseReason.STOPPING in runtime.components.crawler.pause_reasons


def _must_wait(runtime: Runtime) -> bool:
    """Return whether every site of this peer must be left alone for a while longer, or until a person says so."""
    due = runtime.components.frontier.next_due()
    if runtime.components.crawler.in_flight:
        return False
    if due is None:
        return runtime.components.site_settings.steering.has_pauses
    return due > runtime.resources.clock.now() + SOON_S
