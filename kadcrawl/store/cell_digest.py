"""The digest of a cell, three numbers by which two peers see at once whether they hold the same records.

A digest counts the records of a cell and combines them by XOR of one contribution per record, which depends on the key
and the state. So a digest follows every change in constant time, in any order of changes, and the digests of parts add
up to the digest of the whole. Equal digests mean equal records, except with a probability of about 2**-128. A forged
digest gains nothing, as a peer that lies about its cells could just as well drop them. Retry state and depth are not
part of the digest: they may differ for a while, and nothing is lost. The digest is part of the wire, so all peers must
compute it in the same way.
"""

from collections.abc import Iterable, Sequence
from itertools import islice
from typing import NamedTuple

from kadcrawl.keys import ID_BYTES, Key
from kadcrawl.store.schema import DONE, PENDING, is_pending

DIGEST_BYTES = 16

_DIGEST_BITS_ALL = (1 << 8 * DIGEST_BYTES) - 1
# An odd factor keeps contributions of different keys different. Both constants are bits of the golden ratio and of pi,
# so nobody can have chosen them with a purpose.
_FACTOR = 0x9E3779B97F4A7C15F39CC0605CEDC835
_TERM = 0x243F6A8885A308D313198A2E03707344
_FOLDED = 1_024
"""Records whose contributions are combined at once."""


class CellDigest(NamedTuple):
    """The digest of the records of a cell, or of a part of a cell."""

    keys: int
    """Number of records, pending and done."""
    pending: int
    """Number of pending records."""
    digest: int
    """XOR of the contributions of all records, 128 bits."""

    def changed(self, key: Key, before: int | None, after: int) -> "CellDigest":
        """Return the digest after a record changes from state `before` (None for a new record) to `after`."""
        pending = self.pending + is_pending(after) - (before is not None and is_pending(before))
        digest = self.digest ^ contribution(key, after)
        if before is None:
            return CellDigest(self.keys + 1, pending, digest)
        return CellDigest(self.keys, pending, digest ^ contribution(key, before))

    def minus(self, other: "CellDigest") -> "CellDigest":
        """Return the digest of these records without `other`, a subset of them."""
        return CellDigest(self.keys - other.keys, self.pending - other.pending, self.digest ^ other.digest)


EMPTY = CellDigest(0, 0, 0)


def contribution(key: Key, state: int) -> int:
    """Return the 128 bits that a record contributes to the digest of its cell."""
    # The last bytes of a key, as the first bytes hardly differ within a cell.
    bits = int.from_bytes(key[ID_BYTES - DIGEST_BYTES :], "big")
    if state == PENDING:
        return bits
    if state == DONE:
        return (bits * _FACTOR + _TERM) & _DIGEST_BITS_ALL
    # A power of an odd factor is odd, so the contributions of different keys differ in every state.
    return (bits * pow(_FACTOR, state - PENDING, _DIGEST_BITS_ALL + 1) + (state - PENDING) * _TERM) & _DIGEST_BITS_ALL


def digest_records(records: Iterable[tuple[Key, int]]) -> CellDigest:
    """Return the digest of (key, state) pairs, without a list of them."""
    keys = pending = digest = 0
    rest = iter(records)
    while some := list(islice(rest, _FOLDED)):
        waiting = [key[ID_BYTES - DIGEST_BYTES :] for key, state in some if state == PENDING]
        digest ^= _xor(waiting)
        if len(waiting) < len(some):
            for key, state in some:
                if state != PENDING:
                    pending += state % 2  # As `is_pending`, without a call for each of millions of records.
                    digest ^= contribution(key, state)
        keys += len(some)
        pending += len(waiting)
    return CellDigest(keys, pending, digest)


def _xor(parts: Sequence[bytes]) -> int:
    """Return the XOR of parts of DIGEST_BYTES each: the parts as one number, whose halves are combined again and again.

    So the work is that of a few operations on large numbers, for most records of a crawl.
    """
    folded, count = int.from_bytes(b"".join(parts), "big"), len(parts)
    while count > 1:
        half = count + 1 >> 1
        bits = 8 * DIGEST_BYTES * half
        folded, count = folded & (1 << bits) - 1 ^ folded >> bits, half
    return folded
