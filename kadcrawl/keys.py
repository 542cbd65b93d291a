"""Keys, node IDs and cells, and the distances between them. No I/O, no clock.

Node IDs and keys are points of one 160-bit space. A node ID is an `int`, a key is 20 bytes, big-endian, the form in
which both are stored and sent. The key of a URL is ``H(site)[:12] + H(url)[:8]``, so a site is one contiguous range
with one owner. A *cell* is the top ``cell_bits`` bits of a key, the unit in which history is placed. Its *anchor* is
the key whose other bits are zero. The owner of the cell is the peer XOR-closest to the anchor (P1 1.2).

Tests: tests/replication/placement/test_firstdiff_map.py, tests/overlay/test_routing.py
"""

from hashlib import blake2b
from typing import NewType

from kadcrawl.errors import KadcrawlError

ID_BITS = 160
ID_BYTES = ID_BITS // 8
SITE_BYTES = 12
"""Number of bytes of a key that come from its site."""
URL_BYTES = ID_BYTES - SITE_BYTES
"""Number of bytes of a key that come from the whole URL: 8."""

Key = NewType("Key", bytes)
"""The point of a URL in the 160-bit space, as 20 bytes."""
NodeId = NewType("NodeId", int)
"""The point of a peer in the same space, as a number."""
Cell = NewType("Cell", int)
"""The top ``cell_bits`` bits of a key, as a number."""


def site_hash(site: str) -> bytes:
    """Return the first 12 bytes of all keys of a site."""
    return blake2b(site.encode(), digest_size=SITE_BYTES, person=b"kadcrawl site").digest()


def url_key(site: bytes, url: str) -> Key:
    """Return the key of a canonical URL, given its site's hash (see `site_hash`)."""
    return Key(site + url_hash(url))


def url_hash(url: str) -> bytes:
    """Return the last 8 bytes of the key of a canonical URL."""
    return blake2b(url.encode(), digest_size=URL_BYTES, person=b"kadcrawl url").digest()


def cell_of(key: Key, cell_bits: int) -> Cell:
    """Return the cell of a key."""
    return Cell(int.from_bytes(key[:4], "big") >> (32 - cell_bits))


def anchor(cell: Cell, cell_bits: int) -> int:
    """Return the anchor of a cell, a 160-bit number. A lookup of the anchor finds the owner of the cell."""
    return cell << (ID_BITS - cell_bits)


def backup_key(cell: Cell, number: int, cell_bits: int) -> int:
    """Return the 160-bit number whose nearest peer keeps backup `number` (1 for the first) of a cell (P1 1.2)."""
    place = blake2b(
        anchor(cell, cell_bits).to_bytes(ID_BYTES, "big"), digest_size=ID_BYTES, person=b"kadcrawl backup%d" % number
    )
    return int.from_bytes(place.digest(), "big")


def id_bytes(node_id: int) -> bytes:
    """Return a node ID or an anchor as 20 bytes, big-endian."""
    return node_id.to_bytes(ID_BYTES, "big")


def firstdiff(a: int, b: int) -> int:
    """Return the position, counted from the low end, of the highest bit in which `a` and `b` differ.

    A larger position is a larger distance. Equal numbers give -1 (P1 1.3.1).
    """
    return (a ^ b).bit_length() - 1


class NoSuchCellError(KadcrawlError):
    """A message names a cell that this swarm does not have."""


def check_cell(cell: int, cell_bits: int) -> None:
    """Raise NoSuchCellError unless the cell exists."""
    if cell >> cell_bits:
        raise NoSuchCellError(f"there is no cell {cell} of {cell_bits} bits")
