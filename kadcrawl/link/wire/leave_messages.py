"""Messages that keep the work of a departed peer in the swarm's totals.

A peer that leaves tells the two peers nearest to its ID, and hands what it keeps of others to the peers nearest to
them. The totals are for a person, and count for a limit of pages or bytes too. A member can make up such figures, as it
can make up its own. When a peer comes back, its own row replaces what is kept (peer/membership/departed.py).

Tests: tests/link/wire/test_messages.py
"""

from typing import Annotated

from msgspec import Meta, Struct

from kadcrawl.link.wire.basics import Contact, Count, IdBytes, Message, PeerCounters

DEPARTED_MAX = 128
"""Peers in one LeaveStats, and kept by one peer: 1.1 MB on the wire at most and 4 MB in memory, usually a tenth."""


class Departed(Struct, frozen=True, array_like=True):
    """A departed peer, and its counters."""

    contact: Contact
    counters: PeerCounters
    pages_taken: Count = 0
    """Fetches that the peer has taken from the budget --max-pages, or would have taken from one."""


class LeaveStats(Message, frozen=True):
    """A peer that leaves asks another to keep these counters, its own perhaps among them. Answered by Ok. A repeat
    changes nothing.
    """

    sender: IdBytes
    departed: Annotated[list[Departed], Meta(max_length=DEPARTED_MAX)]
