"""A person's seeds on their way into the swarm: first every peer widens its job, then the seeds' owners get them.

Until both are done the crawl is not over: `Runtime.unacknowledged` counts each call under way.

Tests: tests/peer/test_peer.py, tests/peer/test_swarm.py, tests/peer/swarm/test_state_gossip.py
"""

import logging
from dataclasses import replace

from kadcrawl.crawl.pause_reasons import PauseReason
from kadcrawl.errors import RemoteError
from kadcrawl.link.wire.messages import BATCH_MAX, Link, NewSeeds
from kadcrawl.peer.runtime import Runtime

log = logging.getLogger(__name__)


async def add_seeds(runtime: Runtime, seeds: list[str]) -> None:
    """Add these canonical URLs to the swarm's job, and return when their owners have journaled them.

    A part of the swarm that does not answer hears of them by heartbeats. Raises ConfigError when the job would have too
    many seeds.
    """
    crawler = runtime.components.crawler
    with runtime.seeding():
        if not runtime.job.seeds:
            crawler.pause_reasons.add(PauseReason.SEEDING)  # The caller may still ask for `pages`.
        try:
            # Making a Job checks the number of seeds before any peer hears of them.
            replace(runtime.job, seeds=tuple(dict.fromkeys([*runtime.job.seeds, *seeds])))
            try:
                for start in range(0, len(seeds), BATCH_MAX):
                    await runtime.waves.reach_all(NewSeeds(seeds[start : start + BATCH_MAX]))
            except RemoteError as error:
                runtime.add_seeds(seeds)
                log.warning("seeds.late count=%d why=%s", len(seeds), error)
            await runtime.components.forwarder.forward([Link(url, 0, 0) for url in seeds], None).acknowledged
            await runtime.resources.store.journal.durable()
        finally:
            crawler.pause_reasons.discard(PauseReason.SEEDING)
            crawler.wake()
