"""A person's seeds on their way into the swarm: every peer's job is widened first, then their owners are offered them.

Until both are done the crawl is not over: `under_way` is part of what the peer has unacknowledged.

Tests: tests/peer/test_swarm.py
"""

import logging
from dataclasses import replace
from typing import TYPE_CHECKING

from kadcrawl.crawl.pause_reasons import PauseReason
from kadcrawl.errors import RemoteError
from kadcrawl.link.wire.messages import BATCH_MAX, Link, NewSeeds

if TYPE_CHECKING:
    from kadcrawl.peer.peer import Peer

log = logging.getLogger(__name__)


class Seeding:
    """All such seeds at one peer."""

    def __init__(self, peer: "Peer") -> None:
        self._peer = peer
        self.under_way = 0
        """Calls of `add` that have not returned."""

    async def add(self, seeds: list[str]) -> None:
        """Add these canonical URLs to the swarm's job; return when their owners have journaled them.

        A part of the swarm that cannot be told just now hears of them by heartbeats. Raises ConfigError when the job
        would have too many.
        """
        peer = self._peer
        self.under_way += 1
        if not peer.job.seeds:
            peer.components.crawler.pause_reasons.add(PauseReason.SEEDING)  # The caller may still ask for `pages`.
        try:
            replace(peer.job, seeds=tuple(dict.fromkeys([*peer.job.seeds, *seeds])))  # Too many? Say so before telling.
            try:
                for start in range(0, len(seeds), BATCH_MAX):
                    await peer.waves.reach_all(NewSeeds(seeds[start : start + BATCH_MAX]))
            except RemoteError as error:
                peer.add_seeds(seeds)
                log.warning("seeds.late count=%d why=%s", len(seeds), error)
            await peer.components.forwarder.forward([Link(url, 0, 0) for url in seeds], None).acknowledged
            await peer.store.journal.durable()
        finally:
            self.under_way -= 1
            peer.components.crawler.pause_reasons.discard(PauseReason.SEEDING)
            peer.components.crawler.wake()
