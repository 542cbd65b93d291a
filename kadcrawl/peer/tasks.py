"""The background tasks of a full peer that has begun, by name.

Tests: tests/peer/test_peer.py, tests/peer/test_disk_full.py
"""

from collections.abc import Coroutine, Iterator
from typing import Any

from kadcrawl.crawl.disk_guard import guard
from kadcrawl.crawl.output.warc_indexer import WarcIndexer
from kadcrawl.crawl.time_count import count_time
from kadcrawl.overlay.waves.termination import Termination
from kadcrawl.peer.membership.key_refusals import watch
from kadcrawl.peer.runtime import Runtime
from kadcrawl.peer.swarm.budget_sharing import share_budget
from kadcrawl.peer.swarm.state_gossip import StateGossip
from kadcrawl.store.free_pages import FreePages


def background_tasks(runtime: Runtime, gossip: StateGossip) -> Iterator[tuple[str, Coroutine[Any, Any, None]]]:
    """Yield the name and the coroutine of each task. Each task runs until cancelled."""
    resources, parts = runtime.resources, runtime.parts
    config, components = resources.config, parts.components
    crawler = components.crawler
    if resources.key_rotation is not None:
        yield "keys", resources.key_rotation.run()
        yield "refusals", watch(runtime.key_mismatches, runtime.overlay, runtime.known, resources.client)
    free_bytes = resources.environment.free_bytes
    yield "disk", guard(crawler, config.data, config.limits.disk_reserve_bytes, free_bytes)
    yield "index", WarcIndexer(components.outputs).run()
    free_pages = FreePages(resources.store.journal)
    if free_pages.may_go:  # Only a vacuum at rest changes that.
        yield "free pages", free_pages.run()
    yield "crawl", crawler.run()
    yield "forward", components.forwarder.run()
    if components.clocks is not None:
        yield "clocks", components.clocks.run()
    yield "termination", Termination(runtime.waves, resources.random, resources.activity).run()
    yield "cells", parts.cells.run()
    yield "state_gossip", gossip.run()
    yield "balance", parts.balancing.run()
    if components.reach.self_test is not None:
        yield "network", components.reach.self_test.run(crawler)
    if components.proxy_checks is not None:
        yield "proxies", components.proxy_checks.run(crawler)
    yield "retry", parts.retrying.run()
    yield "drop", parts.dropping.run()
    yield "queue", parts.queue_counter.run()
    if parts.recrawling is not None:
        yield "recrawl", parts.recrawling.run()
    if parts.expiring is not None:
        yield "expire", parts.expiring.run()
    if runtime.job.max_time_s is not None:
        activity = resources.activity
        counting = count_time(
            components.crawl_limits,
            crawler,
            resources.store.meta,
            resources.clock.now,
            is_crawling=lambda: activity.armed and activity.busy.is_set(),
            tell=runtime.overlay.set_crawl_ms,
            hurry=runtime.overlay.hurry_heartbeats,
            reached=activity.end_rest,
        )
        yield "time", counting
    if runtime.job.max_pages is not None:
        yield "budget", share_budget(runtime, components.crawl_limits.pages)
    if runtime.job.max_bytes is not None:
        yield "bytes", share_budget(runtime, components.crawl_limits.bytes)
