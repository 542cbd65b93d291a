"""Messages that spread the swarm's state, when heartbeats carry different fingerprints (peer/swarm/state_gossip.py).

Tests: tests/link/wire/test_messages.py
"""

from typing import Annotated

from msgspec import Meta, field

from kadcrawl.link.wire.basics import ROWS_MAX, Count, Fingerprint, IdBytes, Message, Url
from kadcrawl.link.wire.order_messages import STANDING_ORDERS_MAX, StandingOrder
from kadcrawl.link.wire.retry_messages import RETRY_ORDERS_MAX, RetryOrder
from kadcrawl.link.wire.seed_messages import SegmentIds
from kadcrawl.settings.job import SEEDS_MAX


class GetSwarmState(Message, frozen=True):
    """A peer asks another, whose heartbeat has another fingerprint, for its swarm state.

    Answered by GotSwarmState. A repeat is answered again.
    """

    known_seeds: Fingerprint = 0
    """The fingerprint of the seeds that the asker's job names. The answer leaves out equal seeds."""


class GotSwarmState(Message, frozen=True):
    """The answer to GetSwarmState: the sender's swarm state (peer/swarm/swarm_state.py)."""

    stamp: Count
    """Stamp of the last order to pause or to resume: milliseconds since 1970, or 0 without any order."""
    paused: bool
    seeds: Annotated[list[Url], Meta(max_length=SEEDS_MAX)]
    """The seeds that the job names, or none if the asker knows them."""
    reach: SegmentIds = b""
    """The IDs of all segments of reach of streamed seeds."""
    retries: Annotated[list[RetryOrder], Meta(max_length=RETRY_ORDERS_MAX)] = field(default_factory=list)
    """The orders to retry (peer/swarm/retry_orders.py)."""
    orders: Annotated[list[StandingOrder], Meta(max_length=STANDING_ORDERS_MAX)] = field(default_factory=list)
    """The standing orders about sites (peer/swarm/standing_orders.py)."""
    crawl_ms: Count = 0
    """Milliseconds for which the swarm has crawled, as far as the sender knows, or 0 without --max-time."""
    pages_granted: Annotated[dict[IdBytes, Count], Meta(max_length=ROWS_MAX)] = field(default_factory=dict)
    """Peer -> its total of --max-pages, as far as the sender knows."""
    bytes_granted: Annotated[dict[IdBytes, Count], Meta(max_length=ROWS_MAX)] = field(default_factory=dict)
    """Peer -> its total of --max-bytes, as far as the sender knows."""
    pages_epochs: Annotated[dict[IdBytes, Count], Meta(max_length=ROWS_MAX)] = field(default_factory=dict)
    """Peer -> the epoch of its total of --max-pages."""
    bytes_epochs: Annotated[dict[IdBytes, Count], Meta(max_length=ROWS_MAX)] = field(default_factory=dict)
    """Peer -> the epoch of its total of --max-bytes."""
