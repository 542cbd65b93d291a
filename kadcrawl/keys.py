"""Keys, node IDs and cells: the arithmetic of who is near to what. No I/O, no clock.

Node IDs and keys live in one 160-bit space. A node ID is an `int` here, a key its 20 bytes big-endian, the form in
which both are stored and sent. The key of a URL is ``H(site)[:12] + H(url)[:8]``, so that a site is one
contiguous range with one owner. A *cell* is the top
``cell_bits`` bits of a key, the unit in which history is placed; its *anchor* is the key whose remaining bits
are zero, and the owner of the cell is the peer XOR-closest to that anchor (P1 1.2).

Tests: tests/replication/placement/test_firstdiff_map.py, tests/overlay/test_routing.py
"""

from hashlib import blake2b
from typing import NewType

from kadcrawl.errors import KadcrawlError

ID_BITS = 160
ID_BYTES = ID_BITS // 8
SITE_BYTES = 12
"""Bytes of a key that come from its site; the other 8 come from the whole URL."""

Key = NewType("Key", bytes)
"""The place of a URL in the 160-bit space: 20 bytes."""
NodeId = NewType("NodeId", int)
"""The place of a peer in the same space."""
Cell = NewType("Cell", int)
"""The top ``cell_bits`` bits of a key, as a number."""


def site_hash(site: str) -> bytes:
    """Return the 12 bytes every key of `site` begins with."""
    return blake2b(site.encode(), digest_size=SITE_BYTES, person=b"kadcrawl site").digest()


def url_key(site: bytes, url: str) -> Key:
    """Return the key of a canonical URL, given its site's hash (see `site_hash`)."""
    return Key(site + blake2b(url.encode(), digest_size=ID_BYTES - SITE_BYTES, person=b"kadcrawl url").digest())


def cell_of(key: Key, cell_bits: int) -> Cell:
    """Return the cell a key lies in."""
    return Cell(int.from_bytes(key[:4], "big") >> (32 - cell_bits))


def anchor(cell: Cell, cell_bits: int) -> int:
    """Return the place, a 160-bit number, that stands for a cell when its owner is sought."""
    return cell << (ID_BITS - cell_bits)


def backup_key(cell: Cell, number: int, cell_bits: int) -> int:
    """Return the place, a 160-bit number, whose nearest peer keeps the cell's backup `number` (1 or 2; P1 1.2)."""
    place = blake2b(
        anchor(cell, cell_bits).to_bytes(ID_BYTES, "big"), digest_size=ID_BYTES, person=b"kadcrawl backup%d" % number
    )
    return int.from_bytes(place.digest(), "big")


def id_bytes(node_id: int) -> bytes:
    """Return a node ID or anchor as its 20 bytes big-endian."""
    return node_id.to_bytes(ID_BYTES, "big")


def firstdiff(a: int, b: int) -> int:
    """Return the position, counted from the low end, of the highest bit in which `a` and `b` differ.

    Larger is farther; -1 when they are equal (P1 1.3.1).
    """
    return (a ^ b).bit_length() - 1


class NoSuchCellError(KadcrawlError):
    """A cell number that this swarm does not have."""


def check_cell(cell: int, cell_bits: int) -> None:
    """Raise NoSuchCellError unless there is such a cell."""
    if cell >> cell_bits:
        raise NoSuchCellError(f"there is no cell {cell} of {cell_bits} bits")
