"""The part of the wire by which a newcomer takes its place: how large the ranges are that its IDs would split.

A newcomer draws a few node IDs and is of the swarm under none of them yet, so it asks its bootstrap peer by the link;
that one finds the owners and asks each for its range by a datagram. What is told may be a lie: it then draws newcomers
or keeps them off, which costs balance, never a URL (balance/identity.py).

Tests: tests/link/wire/test_messages.py
"""

from typing import Annotated

from msgspec import Meta, Struct

from kadcrawl.link.wire.basics import IdBytes, Message

DRAWN_MAX = 8
"""IDs a newcomer may ask about."""


class GetRange(Message, frozen=True):
    """Which of your buckets have a live peer? (a datagram; a repeat is answered again)"""

    sender: IdBytes


class OwnRange(Message, frozen=True):
    """These: bit i of `live_mask`, a number of 20 bytes big-endian, is set if bucket i (firstdiff i) has one."""

    sender: IdBytes
    live_mask: IdBytes


class FindRanges(Message, frozen=True):
    """A newcomer asks its bootstrap peer: who is nearest to each of these IDs, and what is its range?"""

    ids: Annotated[list[IdBytes], Meta(min_length=1, max_length=DRAWN_MAX)]


class FoundRange(Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """The live peer nearest to an ID, and its mask as in `OwnRange`."""

    owner: IdBytes
    live_mask: IdBytes


class Ranges(Message, frozen=True):
    """Those found in time, in the order of the question; None for the others."""

    found: Annotated[list[FoundRange | None], Meta(max_length=DRAWN_MAX)]
