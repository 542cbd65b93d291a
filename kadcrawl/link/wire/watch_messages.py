"""What peers tell a person who watches the swarm on a dashboard, beside their rows: moves, events, failures and sinks.

Each peer tells the little of the last seconds, and a wave joins it on its way back (overlay/waves/watched_sum.py), so
that the answer has a limit at any size of the swarm.

Tests: tests/link/wire/test_messages.py, tests/overlay/waves/test_watched_sum.py
"""

from typing import Annotated, Literal

from msgspec import Meta, Struct, field

from kadcrawl.link.wire.basics import PRINTABLE, CellNumber, Count, IdBytes, LongSeconds, Reason

EVENTS_TOLD_MAX = 200
"""Events in one answer: the latest."""
MOVES_TOLD_MAX = 100
"""Moves in one answer: the latest."""
SAMPLES_TOLD_MAX = 200
"""Failed URLs in one answer."""
SAMPLES_OF_REASON_MAX = 5
"""Failed URLs of one reason in one answer."""
SINKS_TOLD_MAX = 50
"""Sinks in one answer."""
SINKS_OF_LEAF_MAX = 5
"""Sinks that one leaf tells, and sinks of leaves that one full peer tells."""
CELLS_NAMED_MAX = 5
"""Cells that one move names."""
TEXT_CHARS_MAX = 200
"""Characters of the text of an event, and of a failed URL."""

ShortText = Annotated[str, Meta(max_length=TEXT_CHARS_MAX, pattern=PRINTABLE)]
EventKind = Annotated[str, Meta(max_length=40, pattern=PRINTABLE)]


class WatchedEvent(Struct, frozen=True, array_like=True):
    """An event of one peer, as its log has it."""

    at: LongSeconds
    """Seconds since 1970, by the clock of the peer."""
    peer: IdBytes
    """The peer of the event."""
    kind: EventKind
    """The name of the event, such as disk.full."""
    text: ShortText
    """The fields of the event."""


class WatchedMove(Struct, frozen=True, array_like=True):
    """Cells that have gone from one peer to another, or URLs that one has lent to another, within a second."""

    at: LongSeconds
    """Seconds since 1970, by the clock of the giver."""
    kind: Literal["cells", "loan"]
    """Cells that have another owner, or URLs on loan."""
    giver: IdBytes
    """The former owner, or the lender."""
    taker: IdBytes
    """The new owner, or the borrower."""
    count: Count
    """Cells, or URLs of loans."""
    cells: Annotated[list[CellNumber], Meta(max_length=CELLS_NAMED_MAX)] = field(default_factory=list)
    """The first of the cells."""


class FailedUrl(Struct, frozen=True, array_like=True):
    """A URL that failed lately."""

    reason: Reason
    """The name under which the failure is counted."""
    url: ShortText
    """The URL, or its begin."""


class WatchedSink(Struct, frozen=True, array_like=True):
    """The sinks of one name at all peers."""

    name: Annotated[str, Meta(max_length=100, pattern=PRINTABLE)]
    """The sink as it may be shown."""
    written: Count
    """Bytes that were delivered in this run."""
    lag: Count
    """Bytes that are still to be delivered."""
    why: ShortText = ""
    """The last failure of one of them, or an empty text."""
    of_leaf: bool = False
    """True if leaves alone have told it. Sinks of full peers come first where there is no room for all."""


class Watched(Struct, frozen=True, array_like=True):
    """What one peer, or some peers together, tell a person who watches."""

    events: Annotated[list[WatchedEvent], Meta(max_length=EVENTS_TOLD_MAX)] = field(default_factory=list)
    """The latest events."""
    moves: Annotated[list[WatchedMove], Meta(max_length=MOVES_TOLD_MAX)] = field(default_factory=list)
    """The latest moves."""
    failed: Annotated[list[FailedUrl], Meta(max_length=SAMPLES_TOLD_MAX)] = field(default_factory=list)
    """Some URLs that failed lately."""
    sinks: Annotated[list[WatchedSink], Meta(max_length=SINKS_TOLD_MAX)] = field(default_factory=list)
    """The sinks."""
