"""What peers say of the course of their swarm, when their heartbeats differ (peer/swarm/state_gossip.py).

Tests: tests/link/wire/test_messages.py
"""

from typing import Annotated

from msgspec import Meta

from kadcrawl.link.wire.basics import Count, Message, Url
from kadcrawl.settings.config import SEEDS_MAX


class GetSwarmState(Message, frozen=True):
    """A peer asks another whose heartbeat has another fingerprint what it was told. A repeat is answered again."""


class GotSwarmState(Message, frozen=True):
    """What the sender takes the swarm to be told (peer/swarm_state.py)."""

    stamp: Count
    """Of the last order to pause or to resume: milliseconds since 1970; 0 if there was none."""
    paused: bool
    seeds: Annotated[list[Url], Meta(max_length=SEEDS_MAX)]
