"""The part of the wire by which a leaf works: a peer that owns nothing and listens on nothing, so that it always asks.

A leaf *draws* pages of a full peer; what it is lent is a loan like any (`loan_messages`), on which it reports. Nothing
can be said to a leaf but in an answer: a loan that is called back is missing among those that stand, and what the swarm
does comes with what is drawn. Nothing a leaf says of itself is believed beyond the loans it has: it is shown, no more.
"""

from typing import Annotated, Literal

from msgspec import Meta

from kadcrawl.link.wire.basics import CONTACTS_MAX, PRINTABLE, Contact, Count, IdBytes, Message, PeerCounters
from kadcrawl.link.wire.loan_messages import Lend

GRANT_LOANS_MAX = 6
"""Loans in one answer: so that it is below 5 MB whatever their URLs, 8 KB each, and their robots.txt, 512 KB a loan."""
GRANT_URLS_MAX = 200
"""URLs of all loans in one answer."""
WORK_WAIT_S_MAX = 2.0
"""How long a question waits at the other end at most."""

NO_HOST, NO_PORT = "0.0.0.0", 1
"""Where a leaf is: nowhere. No address a question could be sent to (overlay/addresses.py)."""

LEAF_STATE = "leaf: "
"""How the state of a leaf begins where peers describe themselves (`PeerRow`)."""

SwarmActivity = Literal["crawling", "paused", "ended", "stopped"]
"""What the whole swarm does, as far as one peer knows; "stopped" if every peer was told to end."""


class WorkRequest(Message, frozen=True):
    """A leaf asks for up to `room` URLs to fetch. A repeat draws again."""

    leaf: IdBytes
    urls_max: Annotated[int, Meta(ge=0, le=GRANT_URLS_MAX)]
    wait_s: Annotated[float, Meta(ge=0, le=WORK_WAIT_S_MAX)]
    """How long the answer may wait for something to lend, or for the swarm to do something else than `known`."""
    known_activity: SwarmActivity
    state: Annotated[str, Meta(max_length=30, pattern=PRINTABLE)]
    """How the leaf describes itself, for a person; so all that follows."""
    in_flight: Count
    uptime_s: Count
    counters: PeerCounters


class WorkGrant(Message, frozen=True):
    """These, on a lease; they are over unless they are soon reported on."""

    lender: Contact
    loans: Annotated[list[Lend], Meta(max_length=GRANT_LOANS_MAX)]
    activity: SwarmActivity
    seeds: Count
    """How many the job has by now; the job itself is told by Welcome."""
    others: Annotated[list[Contact], Meta(max_length=CONTACTS_MAX)]
    """Some more peers to draw from."""


def leaf_contact(leaf: bytes) -> Contact:
    """Return how a leaf of this ID is called where a peer would be."""
    return Contact(leaf, NO_HOST, NO_PORT)


def is_leaf(contact: Contact) -> bool:
    """Say whether this is a leaf, to whom nothing can be sent."""
    return contact.host == NO_HOST
