"""What the dashboard of one peer or leaf asks: its swarm, by the census that `kadcrawl status` uses too.

Tests: tests/peer/dashboard/test_source.py
"""

import asyncio
import secrets
from collections.abc import Callable
from math import inf
from typing import Any

from kadcrawl.crawl.scope.explain import UrlVerdict, explain
from kadcrawl.errors import ConfigError, RemoteError
from kadcrawl.link.wire.given_order import silent_parts
from kadcrawl.link.wire.queue_messages import QUEUED_SITES_MAX, Queue, SurveyQueue
from kadcrawl.peer.dashboard.facts import facts
from kadcrawl.peer.dashboard.given_by_viewer import viewer_order
from kadcrawl.peer.dashboard.queue_facts import QueueLooks, queue_facts
from kadcrawl.peer.dashboard.swarm_access import SwarmAccess
from kadcrawl.peer.dashboard.url_way import sentences, url_way
from kadcrawl.peer.dashboard.watch_log import WatchLog
from kadcrawl.peer.monitoring.monitored_peer import MonitoredPeer
from kadcrawl.peer.monitoring.readings import verdict
from kadcrawl.peer.resources import Resources
from kadcrawl.web.source import DashboardSource

OVERLAP_S = 3.0
"""Time for which peers tell again what they told at the last look, as answers take a while and may be lost."""
SINCE_MOST_S = 600.0
"""The longest time of which peers tell what happened."""
WHOLE_QUEUE = SurveyQueue("", QUEUED_SITES_MAX, 0)
"""The question for the sites with the most pending URLs. All who ask share one count, so it is always the same."""


def dashboard_source(peer: MonitoredPeer, swarm: SwarmAccess) -> DashboardSource:
    """Return what the dashboard asks of this peer."""
    looks, log = QueueLooks(), WatchLog()
    last_at = -inf

    async def queue_if_due(now: float) -> Queue | None:
        if not looks.is_due(now):
            return None
        try:
            return await swarm.queue(WHOLE_QUEUE)
        except RemoteError:
            looks.put_off(now)
            return None

    async def gather() -> dict[str, Any]:
        nonlocal last_at
        asked_at = peer.resources.clock.now()
        told_s = min(asked_at - last_at + OVERLAP_S, SINCE_MOST_S)
        # Both at once, as a dead peer delays each of them.
        view, queue = await asyncio.gather(swarm.look(told_s), queue_if_due(asked_at))
        now = peer.resources.clock.now()
        last_at = asked_at
        log.note_rows(view.rows, now)
        log.note(view.watched, now)
        document = facts(view, verdict(peer), peer.peer_id(), now, log.samples) | log.members()
        if queue is not None:
            looks.note(queue, len(document["peers"]), now)
        return document | ({} if looks.last is None else queue_facts(looks.last, looks.counted_at))

    def verdict_on(url: str) -> UrlVerdict:
        components = peer.components()
        if components is None:
            raise ConfigError("this peer does not know the job yet; try again in a moment")
        return explain(components.job, [url], components.scope)[0]

    async def find(url: str) -> dict[str, Any]:
        checked = verdict_on(url)
        if checked.canonical is None or checked.reason == "credentials":
            raise ConfigError(f"{checked.why}")
        return url_way(checked, await swarm.find(checked.canonical))

    async def order(told: dict[str, Any]) -> str:
        wanted = viewer_order(told)
        if wanted.verb is not None:
            await swarm.command(wanted.verb)
        if wanted.about_site is not None and (missing := await swarm.steer(wanted.about_site)):
            return f"{wanted.said} {silent_parts(missing)}."
        return wanted.said

    return DashboardSource(
        data=peer.resources.config.data,
        now=peer.resources.clock.now,
        session_key=_session_key(peer.resources),
        gather=gather,
        check=lambda url: {"url": url, "why": sentences(verdict_on(url))},
        find=find,
        order=order,
    )


def _session_key(resources: Resources) -> Callable[[], bytes]:
    """Return a function that returns the key of the sessions: of the swarm's key, so that another key ends them."""
    of_process = secrets.token_bytes(32)

    def key() -> bytes:
        credentials = resources.credentials
        return of_process if credentials is None else credentials.keyring.key.derive(b"dashboard sessions")

    return key
