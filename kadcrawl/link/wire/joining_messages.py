"""Messages of a newcomer that selects its ID: how large are the ranges that its IDs would split?

A newcomer draws a few node IDs and is not yet in the swarm under any of them, so it asks its bootstrap peer by the
link. That peer finds the owners and asks each for its range by a datagram. An answer may be a lie: it then attracts
newcomers or keeps them off, which costs balance, never a URL (balance/identity.py).

Tests: tests/link/wire/test_messages.py
"""

from typing import Annotated

from msgspec import Meta, Struct

from kadcrawl.link.wire.basics import IdBytes, Message

DRAWN_MAX = 8
"""IDs that a newcomer may ask about."""
STARTING = "this peer is still starting"
"""The first words of a refusal by a peer that has not begun yet."""


class GetRange(Message, frozen=True):
    """A question by datagram: which of your buckets have a live peer?

    Answered by OwnRange. A repeat is answered again.
    """

    sender: IdBytes


class OwnRange(Message, frozen=True):
    """The answer to GetRange: bit i of `live_mask` is set if bucket i (firstdiff i) has a live peer.

    The mask is a number of 20 bytes, big-endian.
    """

    sender: IdBytes
    live_mask: IdBytes


class FindRanges(Message, frozen=True):
    """A newcomer asks its bootstrap peer for the peer nearest to each of these IDs, and its range.

    Answered by Ranges. A repeat is answered again.
    """

    ids: Annotated[list[IdBytes], Meta(min_length=1, max_length=DRAWN_MAX)]


class FoundRange(Struct, frozen=True, array_like=True):
    """The live peer nearest to an ID, and its mask as in `OwnRange`."""

    owner: IdBytes
    live_mask: IdBytes


class Ranges(Message, frozen=True):
    """The answer to FindRanges: the ranges found in time, in the order of the question, None for the others."""

    found: Annotated[list[FoundRange | None], Meta(max_length=DRAWN_MAX)]
