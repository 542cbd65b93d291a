"""`SwarmAccess`: the ways by which a peer or a leaf asks its swarm and tells it orders, for its dashboard.

A full peer sends waves, as for the commands of a person. A leaf asks its full peer (leaf/leaf_access.py).

Tests: tests/peer/dashboard/test_source.py
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Literal

from kadcrawl.link.wire.find_url_messages import UrlFound
from kadcrawl.link.wire.order_messages import StandingOrder
from kadcrawl.link.wire.queue_messages import Queue, QueueCounts, SurveyQueue
from kadcrawl.peer.dashboard.swarm_view import SwarmView
from kadcrawl.peer.runtime import Runtime
from kadcrawl.peer.swarm.census import WATCH_DEADLINE_S, watch_swarm
from kadcrawl.peer.swarm.find_url import find_url
from kadcrawl.peer.swarm.state_gossip import StateGossip
from kadcrawl.peer.swarm.steer import give_orders

Verb = Literal["pause", "resume"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SwarmAccess:
    """The ways of one peer or leaf to its swarm. Each raises RemoteError."""

    look: Callable[[float], Awaitable[SwarmView]]
    """Returns all peers, and what happened in the last so many seconds."""
    queue: Callable[[SurveyQueue], Awaitable[Queue | None]]
    """Returns the queue, perhaps without peers that are still counting, or None before the peer has begun."""
    command: Callable[[Verb], Awaitable[None]]
    """Pauses the swarm, or lets it go on."""
    steer: Callable[[StandingOrder], Awaitable[int]]
    """Gives an order, and returns how many parts of the swarm have not heard of it. Also raises ConfigError."""
    find: Callable[[str], Awaitable[UrlFound]]
    """Returns what the owner of a canonical URL knows of it. Also raises ConfigError."""


def access_of(runtime: Runtime, gossip: StateGossip) -> SwarmAccess:
    """Return the ways of a full peer to its swarm."""

    async def look(since_s: float) -> SwarmView:
        if not runtime.begun:
            return SwarmView()
        status, watched = await watch_swarm(runtime.waves, since_s)
        return SwarmView.of_status(status, runtime.job, watched, paused=runtime.paused, ended=runtime.ended)

    async def queue(survey: SurveyQueue) -> Queue | None:
        if not runtime.begun:
            return None
        answer = await runtime.waves.ask_all(survey, WATCH_DEADLINE_S)
        counts, tally = answer.queue or QueueCounts(), answer.tally
        return Queue(counts, tally.missing, tally.retrying, runtime.standing_orders.to_wire())

    async def command(verb: Verb) -> None:
        runtime.require_joined()
        await gossip.order(verb)

    async def steer(order: StandingOrder) -> int:
        runtime.require_joined()
        return (await give_orders(runtime, [order])).parts_missing

    async def find(url: str) -> UrlFound:
        runtime.require_joined()
        return await find_url(runtime, url)

    return SwarmAccess(look=look, queue=queue, command=command, steer=steer, find=find)
