"""An estimate of the number of peers in the swarm, by the contacts of one peer.

A peer knows all peers near to it, and few of those far away. IDs are spread evenly, so the peers in a part of the key
space around this peer tell how many there are in all. A decision.

Tests: tests/overlay/waves/test_swarm_size.py
"""

from collections.abc import Mapping, Sized

from kadcrawl.keys import ID_BITS

ENOUGH = 12
"""Contacts in the counted part of the key space. The estimate is then off by a factor of two at most, mostly. A bucket
keeps more, so the buckets of that part rarely lack any."""


def estimated_members(subtrees: Mapping[int, Sized]) -> int:
    """Return the estimated number of peers, this peer included, given its contacts by their firstdiff.

    The number is exact in a swarm in which this peer knows few others.
    """
    known = 0
    for index in sorted(subtrees):
        known += len(subtrees[index])
        if known >= ENOUGH:
            # These contacts agree with this peer in so many bits.
            return (known + 1) << (ID_BITS - 1 - index)
    return known + 1
