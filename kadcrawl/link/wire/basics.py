"""The basics of all messages: the limits of the wire, the types of their fields, and the contact of a peer.

Tests: tests/link/wire/test_codec.py, tests/link/wire/test_messages.py
"""

from typing import Annotated

from msgspec import Meta, Struct

from kadcrawl.keys import ID_BYTES

WIRE_VERSION = 12
"""The version of the wire. Peers also talk with those of the version before and of the next version (`is_spoken`)."""
WIRE_VERSION_LEAST = 12
"""The first version whose peers ignore what a later version has added."""
DATAGRAM_BYTES_MAX = 1120
"""Bytes of a datagram before sealing. With the 77 bytes of the seal (members/sealing.py) it fits an IPv6 path without
fragments.
"""
CONTACTS_MAX = 20
"""Contacts in one reply: k of Kademlia."""
BATCH_MAX = 500
"""Links, records or cells in one message."""
ROWS_MAX = 10_000
"""Peers listed in a wave or its answer. No array or map of any message is longer."""
URL_CHARS_MAX = 8192
"""Characters of one URL, the limit of every canonical URL (urls.py)."""
MY_CELLS_MAX = 65_536
"""Cells in one MyCells: all cells there are, by default."""
ROBOTS_BYTES_MAX = 64 * 1024
"""Bytes of one robots.txt that moves with its site. A longer robots.txt is fetched again."""
REASONS_MAX = 80
"""Names of failures or limits in one `PeerCounters`: some more than there are (crawl/output/counters.py)."""

TRAIL_BYTES_MAX = 32 * 8
"""Bytes of the trail of a redirect: the hashes of 32 URLs, three times as many as are followed by default."""

COUNT_MAX = 2**53
"""Largest count. A JSON number and a float have room for it without loss."""
SMALL_MAX = 1_000_000
"""Largest of the numbers that are small in honest messages, such as depths and tries."""
LONG_S_MAX = 2.0**33
"""Seconds: two centuries."""

PRINTABLE = r"^[ -~]*\Z"
"""The pattern of words shown to a person: no character steers a terminal, or begins a line in a log. A ``$`` would let
a line end come last.
"""

IdBytes = Annotated[bytes, Meta(min_length=ID_BYTES, max_length=ID_BYTES)]
Host = Annotated[str, Meta(min_length=1, max_length=64, pattern=r"^[!-~]+\Z")]
Port = Annotated[int, Meta(ge=1, le=65_535)]
Url = Annotated[str, Meta(min_length=1, max_length=URL_CHARS_MAX)]
Count = Annotated[int, Meta(ge=0, le=COUNT_MAX)]
Small = Annotated[int, Meta(ge=0, le=SMALL_MAX)]
Fingerprint = Annotated[int, Meta(ge=0, lt=2**32)]
Seconds = Annotated[float, Meta(ge=0, le=86_400)]
LongSeconds = Annotated[float, Meta(ge=0, le=LONG_S_MAX)]
CellNumber = Annotated[int, Meta(ge=0, lt=2**24)]
Reason = Annotated[str, Meta(max_length=40, pattern=PRINTABLE)]
Reasons = Annotated[dict[Reason, Count], Meta(max_length=REASONS_MAX)]
Trail = Annotated[bytes, Meta(max_length=TRAIL_BYTES_MAX)]
Keys = Annotated[list[IdBytes], Meta(max_length=BATCH_MAX)]


def is_spoken(version: int) -> bool:
    """Return whether peers of a version of the wire and of this one understand each other."""
    return version >= WIRE_VERSION_LEAST and abs(version - WIRE_VERSION) <= 1


class Message(Struct, frozen=True, array_like=True, tag=True):
    """Base of all messages.

    A later version may add fields at the end, each with a default. A peer ignores those that it does not know.
    """


class Contact(Struct, frozen=True, array_like=True, order=False):
    """The contact of a peer: its ID, and the IP address and port that serve both UDP and TCP."""

    id: IdBytes
    host: Host
    port: Port

    @property
    def number(self) -> int:
        """The ID as a 160-bit number, for XOR."""
        return int.from_bytes(self.id, "big")

    @property
    def address(self) -> tuple[str, int]:
        return (self.host, self.port)

    def __str__(self) -> str:
        return f"{self.id.hex()[:8]}@{self.host}:{self.port}"


class PeerCounters(Struct, frozen=True, array_like=True):
    """Counters of one peer since its directory was made. Each number only grows, and they add up over peers."""

    pages: Count = 0
    """URLs answered, with any status."""
    bytes: Count = 0
    """Bytes of bodies as received."""
    urls: Count = 0
    """URLs this peer has accepted as their owner."""
    done: Count = 0
    """URLs among these that are finished, fetched or failed."""
    links_seen: Count = 0
    """Links found on pages, repeats included."""
    duplicates: Count = 0
    """Pages finished here that were finished before."""
    peer_messages: Count = 0
    """Messages sent to other peers, datagrams included."""
    failed: Reasons = {}
    """URLs recorded as failed, by reason."""
    left_out: Reasons = {}
    """Links found and not followed because of a limit, by limit, repeats included."""
    revisits: Count = 0
    """Pages fetched when they were due again, or by an order, also if no request was made for them before."""
    unchanged: Count = 0
    """Pages among these that had not changed."""
    records: Count = 0
    """Lines of records.jsonl."""
    record_errors: Count = 0
    """Pages with a record rule whose hook or selectors failed, so that they have no records."""
    retried: Reasons = {}
    """Done URLs that became pending again, due or by an order, by the reason of their failure, if any.

    They are among `failed` and `done`, of any peer."""


class ReasonCount(Struct, frozen=True, array_like=True):
    """A reason of failures, and how many URLs failed for it."""

    reason: Reason
    """As in the page line."""
    urls: Count
    """URLs that failed for it."""


class Tally(Struct, frozen=True, array_like=True):
    """The remaining work of a part of the swarm. Tallies of disjoint parts add up (overlay/waves/quiescence.py)."""

    members: Count
    view: Annotated[bytes, Meta(min_length=16, max_length=16)]
    """XOR over the members of H(ID, incarnation, activity counter): equal only if no member came, went or was active.
    """
    pending: Count
    """URLs accepted and not finished that may still be fetched."""
    unacknowledged: Count
    """Links and records on their way to other peers."""
    missing: Count
    """Subtrees without an answer."""
    due_s: LongSeconds | None = None
    """Seconds until the first page is due again, or None if no page is."""
    retried: Annotated[tuple[ReasonCount, ...], Meta(max_length=REASONS_MAX)] = ()
    """Answers to Retry: URLs that became pending by the order, by the reason of their failure. Answers to Steer: URLs
    that the orders have ended, by reason.

    No map: every answer to a wave would be packed once more, to see whether a key stands twice (codec.py).
    """
    retrying: Count = 0
    """Answers to Retry and Steer: cells that are still to be looked through. To SurveyQueue: peers that still count."""
