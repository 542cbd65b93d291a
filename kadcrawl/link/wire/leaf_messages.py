"""Messages of a leaf: a peer that owns nothing and listens on nothing, so that it always asks.

A leaf requests pages from a full peer. They are loans like any other (`loan_messages`), on which it reports. A leaf
receives messages only as answers: a recalled loan is absent from the active loans, and the state of the swarm comes
with the work. A leaf's claims about itself are shown to a person and not believed beyond the loans it has.
"""

from typing import Annotated, Literal

from msgspec import Meta, Struct, field

from kadcrawl.link.wire.basics import CONTACTS_MAX, Contact, Count, Fingerprint, IdBytes, Message, PeerCounters
from kadcrawl.link.wire.loan_messages import Lend
from kadcrawl.link.wire.order_messages import STANDING_ORDERS_MAX, StandingOrder
from kadcrawl.link.wire.peer_row import PeerDetails
from kadcrawl.link.wire.peer_state import PeerState
from kadcrawl.link.wire.watch_messages import SINKS_OF_LEAF_MAX, WatchedSink

GRANT_LOANS_MAX = 6
"""Loans in one answer. It stays below 5 MB whatever their URLs, 8 KB each, and their robots.txt, 512 KB a loan."""
GRANT_URLS_MAX = 200
"""URLs of all loans in one answer."""
WORK_WAIT_S_MAX = 2.0
"""Longest wait of a request at the other end."""

NO_HOST, NO_PORT = "0.0.0.0", 1
"""The address of a leaf: none. No request can be sent to it (overlay/addresses.py)."""

SwarmActivity = Literal["crawling", "paused", "ended", "stopped"]
"""The activity of the whole swarm, as far as one peer knows. "stopped" means that every peer was told to end."""


class LeafDetails(Struct, frozen=True, array_like=True):
    """What a leaf tells of itself while somebody watches the swarm on a dashboard."""

    row: PeerDetails
    """Its release, level and memory. A leaf owns no cells, whatever it says."""
    sinks: Annotated[list[WatchedSink], Meta(max_length=SINKS_OF_LEAF_MAX)] = field(default_factory=list)
    """Some of its sinks."""


class WorkRequest(Message, frozen=True):
    """A leaf asks for up to `urls_max` URLs to fetch. Answered by WorkGrant. A repeat requests further work."""

    leaf: IdBytes
    urls_max: Annotated[int, Meta(ge=0, le=GRANT_URLS_MAX)]
    wait_s: Annotated[float, Meta(ge=0, le=WORK_WAIT_S_MAX)]
    """Seconds that the answer may wait for work to lend, or for another activity than `known_activity`."""
    known_activity: SwarmActivity
    state: PeerState
    """The leaf's description of itself, for a person, as are all fields below."""
    in_flight: Count
    uptime_s: Count
    counters: PeerCounters
    known_settings: Fingerprint = 0
    """The fingerprint of the changed settings and delays of sites that the leaf knows."""
    details: LeafDetails | None = None
    """The details of the leaf, if the last answer said that somebody watches."""


class WorkGrant(Message, frozen=True):
    """The answer to WorkRequest: loans on a lease. They end unless the leaf soon reports on them."""

    lender: Contact
    loans: Annotated[list[Lend], Meta(max_length=GRANT_LOANS_MAX)]
    activity: SwarmActivity
    seeds_fingerprint: Fingerprint
    """The fingerprint of all seeds known there. The job itself comes in Welcome, and the reach in GotSwarmState."""
    others: Annotated[list[Contact], Meta(max_length=CONTACTS_MAX)]
    """Further peers to request work from."""
    crawl_ms: Count = 0
    """Milliseconds for which the swarm has crawled, as far as the lender knows, or 0 without --max-time."""
    settings: Annotated[list[StandingOrder], Meta(max_length=STANDING_ORDERS_MAX)] | None = None
    """The orders that change settings of the job or slow sites down, lifted ones included, or None if the leaf knows
    them.
    """
    is_watched: bool = False
    """Somebody watches the swarm on a dashboard, so the leaf is to tell its details."""


def leaf_contact(leaf: bytes) -> Contact:
    """Return the contact of a leaf of this ID, for fields that name a peer."""
    return Contact(leaf, NO_HOST, NO_PORT)


def is_leaf(contact: Contact) -> bool:
    """Return whether this contact is a leaf's, which receives no requests."""
    return contact.host == NO_HOST
