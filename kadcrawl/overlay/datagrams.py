"""The datagrams of the overlay: their bytes, and the counters of one socket.

A datagram is the wire version (1 byte), the kind of message (1 byte, its index in `KINDS`), the ID of the request
(8 bytes), and one message of `link.wire.messages`. A reply bears the ID of its request. In a swarm with a key all of
that is the plaintext of a sealed datagram (members/sealing.py). Bytes from the network become a message within its
limits, or MalformedError.

Tests: tests/overlay/test_protocol.py
"""

import struct
from dataclasses import dataclass

from kadcrawl.link.wire.codec import MalformedError, VersionError, pack, unpack
from kadcrawl.link.wire.messages import (
    DATAGRAM_BYTES_MAX,
    WIRE_VERSION,
    Contact,
    FindNode,
    GetRange,
    Leave,
    Left,
    Message,
    Nodes,
    OwnRange,
    Ping,
    Pong,
    is_spoken,
)

HEADER = struct.Struct("!BBQ")
NODES_BYTES = HEADER.size + 34
"""Bytes of a Nodes datagram without contacts: header, array, tag, sender, array."""
CONTACT_BYTES = 28
"""Bytes of one contact without its host: array, 20 bytes of ID, port, and the msgpack prefixes of bytes and text."""
KIND_AT = 1
"""Index of the kind in a datagram."""

Datagram = Ping | Pong | FindNode | Nodes | Leave | Left | GetRange | OwnRange
KINDS: tuple[type[Datagram], ...] = (Ping, Pong, FindNode, Nodes, Leave, Left, GetRange, OwnRange)
REPLY_TO: dict[type[Message], type[Message]] = {Ping: Pong, FindNode: Nodes, Leave: Left, GetRange: OwnRange}


@dataclass(slots=True)
class DatagramCounters:
    """Counts of datagrams of one socket since its start."""

    sent: int = 0
    received: int = 0
    malformed: int = 0
    """Datagrams that are no message of this wire, and contacts at addresses that no datagram can reach."""
    unexpected: int = 0
    """Replies to no pending request: late, repeated, or not proven to come from the peer asked."""
    timeouts: int = 0
    """Requests without a reply in time."""
    non_members: int = 0
    """Datagrams that no member sent to this peer, or that came a second time."""
    banned: int = 0
    """Datagrams of banned members."""


def encode(request_id: int, message: Message) -> bytes:
    """Return one datagram."""
    return HEADER.pack(WIRE_VERSION, KINDS.index(type(message)), request_id) + pack(message)


def decode(data: bytes) -> tuple[int, Datagram]:
    """Return request ID and message of one datagram.

    Raises VersionError for a version of the wire that this peer does not speak, and MalformedError for other bytes that
    are no datagram.
    """
    if len(data) < HEADER.size:
        raise MalformedError(f"{len(data)} bytes")
    version, kind, request_id = HEADER.unpack_from(data)
    if not is_spoken(version):
        raise VersionError(f"version {version}")
    if kind >= len(KINDS):
        raise MalformedError(f"kind {kind}")
    message: Datagram = unpack(data[HEADER.size :], KINDS[kind], DATAGRAM_BYTES_MAX - HEADER.size)
    return request_id, message


def is_leave(data: bytes) -> bool:
    """Return whether `data`, a datagram made by `encode`, says goodbye."""
    return data[KIND_AT] == KINDS.index(Leave)


def fitting(contacts: list[Contact], bytes_max: int = DATAGRAM_BYTES_MAX) -> list[Contact]:
    """Return the first of `contacts` that fit into one Nodes datagram: all k with IPv4, perhaps fewer with IPv6."""
    room = bytes_max - NODES_BYTES
    for count, contact in enumerate(contacts):
        room -= CONTACT_BYTES + len(contact.host)
        if room < 0:
            return contacts[:count]
    return contacts
