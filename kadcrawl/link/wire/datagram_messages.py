"""The part of the wire that goes by datagrams: small, idempotent, may be lost or repeated.

Tests: tests/link/wire/test_messages.py
"""

from typing import Annotated

from msgspec import Meta

from kadcrawl.link.wire.basics import CONTACTS_MAX, Contact, Fingerprint, IdBytes, Message, Small
from kadcrawl.link.wire.joining_messages import GetRange, OwnRange


class Ping(Message, frozen=True):
    """Are you there? Doubles as the heartbeat between siblings. A repeat is another heartbeat."""

    sender: IdBytes
    load: Small
    state_fingerprint: Fingerprint = 0
    """Fingerprint of what the sender takes the swarm to be told (peer/swarm_state.py); 0 if it does not know yet."""


class Pong(Message, frozen=True):
    """I am, and this is my ID, load level (heavy blocks times 100) and course."""

    sender: IdBytes
    load: Small
    state_fingerprint: Fingerprint = 0


class FindNode(Message, frozen=True):
    """Which peers do you know nearest to `target`? A repeat is answered again."""

    sender: IdBytes
    target: IdBytes


class Nodes(Message, frozen=True):
    """The nearest live contacts the sender knows, nearest first."""

    sender: IdBytes
    contacts: Annotated[list[Contact], Meta(max_length=CONTACTS_MAX)]


class Leave(Message, frozen=True):
    """I am going; forget me now instead of after three missed heartbeats. Harmless when repeated."""

    sender: IdBytes


class Left(Message, frozen=True):
    """Forgotten."""

    sender: IdBytes


Datagram = Ping | Pong | FindNode | Nodes | Leave | Left | GetRange | OwnRange
