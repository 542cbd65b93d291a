"""The part of the wire by which what a peer did stays in the swarm's totals when it has left.

Whoever leaves tells two peers, those nearest to its ID, and what it keeps of others it hands to those nearest to them.
It is for a person who asks how the crawl stands, and decides nothing: a member can make such figures up, as it can make
up its own. When a peer comes back, its own row takes the place of what is kept (peer/membership/departed.py).

Tests: tests/link/wire/test_messages.py
"""

from typing import Annotated

from msgspec import Meta, Struct

from kadcrawl.link.wire.basics import Contact, IdBytes, Message, PeerCounters

DEPARTED_MAX = 128
"""Peers in one Farewell, and kept by one peer: 1.1 MB on the wire at most and 4 MB in memory; a tenth as a rule."""
LEFT = "left"
"""State of a peer that is shown for what it did."""


class Departed(Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """A peer that left, and what it did."""

    contact: Contact
    counters: PeerCounters


class LeaveStats(Message, frozen=True):
    """I leave: keep in mind what these did, I may be one of them. A repeat changes nothing."""

    sender: IdBytes
    departed: Annotated[list[Departed], Meta(max_length=DEPARTED_MAX)]
