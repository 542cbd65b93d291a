"""Messages about shared clocks: the owner of a clock's key leases the clock to the peers that ask sites on it.

A shared clock is the politeness clock of an IP address or of a host. A lease is the right to make requests on it for
some seconds, which its *holder* counts from the second at which it sent the question. No instant travels, so the clocks
of two machines may differ. The clock of a host without a delay is shared out: each holder has some of its connections.
The owner reads the robots.txt of a host whose URLs many peers crawl, and its rules travel with the leases.

Tests: tests/link/wire/test_messages.py, tests/crawl/clocks/test_clock_keeper.py
"""

from typing import Annotated

from msgspec import Meta, Struct

from kadcrawl.link.wire.basics import COUNT_MAX, PRINTABLE, URL_CHARS_MAX, Contact, Message, Seconds
from kadcrawl.link.wire.cell_messages import RobotsRecord

CLOCKS_MAX = 64
"""Clocks in one message."""
CLOCK_CHARS_MAX = 300
"""Characters in the name of a clock. A host with its port has at most 259."""

ClockName = Annotated[str, Meta(min_length=4, max_length=CLOCK_CHARS_MAX, pattern=PRINTABLE)]
LeaseNumber = Annotated[int, Meta(ge=0, le=COUNT_MAX)]
ALL_CONNECTIONS = 1_000
"""The connections of a holder that has its clock to itself: as many as its sites allow."""
MaybeUrl = Annotated[str, Meta(max_length=URL_CHARS_MAX)]
Connections = Annotated[int, Meta(ge=0, le=ALL_CONNECTIONS)]


class ClockQuestion(Struct, frozen=True, array_like=True):
    """A holder's question about one clock."""

    clock: ClockName
    """Name of the clock."""
    lease: LeaseNumber
    """Number of the lease that the holder has, or 0."""
    wants: bool
    """The holder wants a lease, or to go on with its lease."""
    ends: bool
    """The holder gives its lease back, and has no request under way."""
    in_flight: Connections
    """Requests of the holder under way."""
    needs: Connections
    """Requests that the holder would have under way: those that are, and those that wait."""
    most: Connections
    """Requests that the clock's sites let be under way at a time, or 0 if an unread robots.txt may let fewer be."""
    wait_s: Seconds
    """Seconds for which the clock must rest after the holder's last request."""
    delay_s: Seconds
    """The longest delay of the sites that the holder asks on this clock."""
    page: MaybeUrl = ""
    """A URL on this clock whose robots.txt the holder has not read, or empty."""


class LeaseClocks(Message, frozen=True):
    """A peer asks for leases, and gives leases back. Answered by ClocksLeased.

    A repeat is answered again. It gives nothing back twice, as each lease has a number.
    """

    holder: Contact
    """The peer that asks."""
    questions: Annotated[list[ClockQuestion], Meta(max_length=CLOCKS_MAX, min_length=1)]
    """The questions, each about another clock."""


class ClockTurn(Struct, frozen=True, array_like=True):
    """The answer about one clock."""

    lease: LeaseNumber
    """Number of the new lease, or 0 for none. An earlier lease that was not given back goes on to its end."""
    wait_s: Seconds
    """Seconds before the first request of the lease. Without a lease, seconds before the holder asks again."""
    connections: Connections = 0
    """Requests that may be under way by this lease. A lease with none is given back once the last request is over."""
    owner: Contact | None = None
    """The peer to ask instead, if the clock is not kept here."""
    robots: RobotsRecord | None = None
    """The rules for the URL of the question, as the owner of the clock has read them."""


class ClocksLeased(Message, frozen=True):
    """The answer to LeaseClocks: a turn for each of its questions, in their order."""

    turns: Annotated[list[ClockTurn], Meta(max_length=CLOCKS_MAX)]
    """The turns."""


class ClockFree(Message, frozen=True):
    """The owner of clocks tells the next peer in turn that they are free. Answered by ClockFreeNoted.

    A repeat is harmless: the peer asks once more.
    """

    clocks: Annotated[list[ClockName], Meta(max_length=CLOCKS_MAX, min_length=1)]
    """Names of the clocks."""


class ClockFreeNoted(Message, frozen=True):
    """The answer to ClockFree."""


ClockRequest = LeaseClocks | ClockFree
ClockReply = ClocksLeased | ClockFreeNoted
