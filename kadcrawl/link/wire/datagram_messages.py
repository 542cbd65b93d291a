"""Messages by datagram: small and idempotent. A datagram may be lost or repeated.

Tests: tests/link/wire/test_messages.py
"""

from typing import Annotated

from msgspec import Meta

from kadcrawl.link.wire.basics import CONTACTS_MAX, SMALL_MAX, Contact, Count, Fingerprint, IdBytes, Message
from kadcrawl.link.wire.joining_messages import GetRange, OwnRange
from kadcrawl.link.wire.loan_messages import BacklogRecord

LevelHundredths = Annotated[int, Meta(ge=-SMALL_MAX, le=SMALL_MAX)]
"""A load level in hundredths of a heavy block, below zero for light."""


class Ping(Message, frozen=True):
    """A question whether the receiver is alive, also the heartbeat between siblings.

    Answered by Pong. A repeat is another heartbeat.
    """

    sender: IdBytes
    load: LevelHundredths
    state_fingerprint: Fingerprint = 0
    """Fingerprint of the sender's swarm state (peer/swarm/swarm_state.py), or 0 if it does not know the state yet."""
    crawl_ms: Count = 0
    """Milliseconds for which the swarm has crawled, as far as the sender knows, or 0 without --max-time."""
    backlog: BacklogRecord | None = None
    """The sender's work by time, or None if it is unknown or not told. So siblings need not ask each other for it."""


class Pong(Message, frozen=True):
    """The answer to Ping: the ID, load level, state fingerprint, time and backlog of a live peer."""

    sender: IdBytes
    load: LevelHundredths
    state_fingerprint: Fingerprint = 0
    crawl_ms: Count = 0
    backlog: BacklogRecord | None = None


class FindNode(Message, frozen=True):
    """A question: which peers do you know nearest to `target`? Answered by Nodes. A repeat is answered again."""

    sender: IdBytes
    target: IdBytes


class Nodes(Message, frozen=True):
    """The answer to FindNode: the nearest live contacts that the sender knows, nearest first."""

    sender: IdBytes
    contacts: Annotated[list[Contact], Meta(max_length=CONTACTS_MAX)]


class Leave(Message, frozen=True):
    """A goodbye: the receiver forgets the sender now instead of after three missed heartbeats.

    Answered by Left. A repeat is harmless.
    """

    sender: IdBytes


class Left(Message, frozen=True):
    """The answer to Leave: the sender of the goodbye is forgotten."""

    sender: IdBytes


Datagram = Ping | Pong | FindNode | Nodes | Leave | Left | GetRange | OwnRange
