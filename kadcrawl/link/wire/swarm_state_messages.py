"""Messages that spread the swarm's state, when heartbeats carry different fingerprints (peer/swarm/state_gossip.py).

Tests: tests/link/wire/test_messages.py
"""

from typing import Annotated

from msgspec import Meta

from kadcrawl.link.wire.basics import Count, Message, Url
from kadcrawl.settings.job import SEEDS_MAX


class GetSwarmState(Message, frozen=True):
    """A peer asks another, whose heartbeat has another fingerprint, for its swarm state.

    Answered by GotSwarmState. A repeat is answered again.
    """


class GotSwarmState(Message, frozen=True):
    """The answer to GetSwarmState: the sender's swarm state (peer/swarm/swarm_state.py)."""

    stamp: Count
    """Stamp of the last order to pause or to resume: milliseconds since 1970, or 0 without any order."""
    paused: bool
    seeds: Annotated[list[Url], Meta(max_length=SEEDS_MAX)]
