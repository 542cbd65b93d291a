"""Contacts of peers that need no network."""

from kadcrawl.keys import id_bytes
from kadcrawl.link.wire.messages import Contact
from kadcrawl.overlay.routing import Neighbor


def contact(number: int, port: int | None = None) -> Contact:
    """Return the contact of the peer with this node ID, by default on a port that depends on the ID."""
    return Contact(id_bytes(number), "10.0.0.1", 4160 + number % 1000 if port is None else port)


def neighbor(number: int, port: int = 1) -> Neighbor:
    """Return the peer with this node ID as an entry of a routing table."""
    return Neighbor(contact(number, port))
