"""What a cell holds, in three numbers, so that two peers learn at once whether they hold the same.

A tally counts the records of a cell and folds them into a digest: the XOR of one contribution per record, which depends
on its key and its state. So a tally follows every change in constant time, in whatever order changes come, and the
tallies of parts add up to the tally of the whole. Equal tallies mean equal records, but for a chance of about 2**-128;
nobody gains by forging one, as a peer that lies about its cells could as well drop them. Retry state and depth are not
in it: they may differ for a while without anything being lost. All peers must compute it alike: it is part of the wire.
"""

from collections.abc import Iterable
from typing import NamedTuple

from kadcrawl.keys import ID_BYTES, Key
from kadcrawl.store.schema import DONE, PENDING, is_pending

DIGEST_BYTES = 16

_DIGEST_BITS_ALL = (1 << 8 * DIGEST_BYTES) - 1
# Odd, so that no two keys meet: bits of the golden ratio and of pi, which hide nothing.
_FACTOR = 0x9E3779B97F4A7C15F39CC0605CEDC835
_TERM = 0x243F6A8885A308D313198A2E03707344


class CellDigest(NamedTuple):
    """The records of a cell, or of a part of it."""

    keys: int
    """Records, pending and done."""
    pending: int
    """Those of them that are pending."""
    digest: int
    """XOR of the contributions of all of them; 128 bits."""

    def changed(self, key: Key, before: int | None, after: int) -> "CellDigest":
        """Return the tally once a record has gone from state `before` (None for a new one) to `after`."""
        pending = self.pending + is_pending(after) - (before is not None and is_pending(before))
        digest = self.digest ^ contribution(key, after)
        if before is None:
            return CellDigest(self.keys + 1, pending, digest)
        return CellDigest(self.keys, pending, digest ^ contribution(key, before))

    def minus(self, other: "CellDigest") -> "CellDigest":
        """Return the tally of these records without those others, which are among them."""
        return CellDigest(self.keys - other.keys, self.pending - other.pending, self.digest ^ other.digest)


EMPTY = CellDigest(0, 0, 0)


def contribution(key: Key, state: int) -> int:
    """Return the 128 bits by which a record changes the digest of its cell."""
    # A key's first bytes hardly differ within a cell.
    bits = int.from_bytes(key[ID_BYTES - DIGEST_BYTES :], "big")
    if state == PENDING:
        return bits
    if state == DONE:
        return (bits * _FACTOR + _TERM) & _DIGEST_BITS_ALL
    # Odd factors to a power are odd: in no state do two keys meet.
    return (bits * pow(_FACTOR, state - PENDING, _DIGEST_BITS_ALL + 1) + (state - PENDING) * _TERM) & _DIGEST_BITS_ALL


def digest_records(records: Iterable[tuple[Key, int]]) -> CellDigest:
    """Return the tally of (key, state) pairs, reading them one by one."""
    keys = pending = digest = 0
    for key, state in records:
        keys += 1
        pending += state % 2  # As `is_pending`, without a call for each of millions.
        digest ^= contribution(key, state)
    return CellDigest(keys, pending, digest)
