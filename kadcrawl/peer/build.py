"""Builds the balance of load of one peer out of its parts.

Tests: tests/peer/test_peer.py
"""

import asyncio
from typing import TYPE_CHECKING

from kadcrawl.balance.sizing import UpdateSchedule
from kadcrawl.keys import anchor
from kadcrawl.lending.balancer import Balancer
from kadcrawl.lending.blocks import Blocks
from kadcrawl.lending.drain_policy import DrainPolicy
from kadcrawl.lending.leaf_host import LeafHost
from kadcrawl.lending.level_policy import LevelPolicy
from kadcrawl.lending.loans import Loans
from kadcrawl.lending.throughput_learning import ThroughputLearning
from kadcrawl.link.wire.messages import Contact

if TYPE_CHECKING:
    from kadcrawl.peer.peer import Peer


def build_balancer(peer: "Peer", first_update_s: float | None, learns: ThroughputLearning | None) -> Balancer:
    """Put the balance of a peer together, whose other parts are there.

    The load is first looked at after so many seconds, as the bootstrap peer says, or after a whole interval.
    """
    parts, job = peer.components, peer.job

    def may_lend(lender: Contact, site: str) -> bool:
        cell = parts.partitioner.cell(site)
        nearest = peer.overlay.nearest_known(anchor(cell, job.cell_bits), 1)[0]
        if not peer.overlay.is_live(lender.id):
            peer.overlay.suspect(lender)  # We may not know each other yet.
        return nearest == lender and not peer.overlay.owns(cell) and cell not in peer.cells.holdings.owned

    loans = Loans(
        components=parts,
        cells=peer.cells,
        store=peer.store,
        client=peer.client,
        me=lambda: peer.overlay.me,
        activity=peer.activity,
        clock=peer.clock,
        random=peer.random,
        limits=peer.config.limits,
        may_lend=may_lend,
    )
    first_at = asyncio.get_running_loop().time() + (job.update_s if first_update_s is None else first_update_s)
    blocks = Blocks(
        job=job,
        overlay=peer.overlay,
        client=peer.client,
        frontier=parts.frontier,
        loans=loans,
        me=lambda: peer.overlay.me,
        is_paused=lambda: bool(parts.crawler.pause_reasons) or peer.leaving,
        now=peer.clock.now,
    )
    mode = (
        DrainPolicy(blocks, peer.random, learns)
        if job.lends_by in ("drain", "predictive")
        else LevelPolicy(blocks, peer.config.work_area)
    )
    return Balancer(
        policy=mode,
        blocks=blocks,
        updates=UpdateSchedule(first_at, job.update_s),
        counters=peer.counters,
        learning=learns,
    )


def build_leaf_host(peer: "Peer") -> LeafHost:
    """Return the host of the leaves that draw pages from a peer."""
    crawler = peer.components.crawler
    return LeafHost(
        state=peer,
        lender=peer.balancing.loans.lender,
        overlay=peer.overlay,
        random=peer.random,
        pause_reasons=lambda: crawler.pause_reasons,
    )
