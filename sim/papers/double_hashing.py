"""P1 1.2 as printed: one backup at a second hash, which may be the owner itself.

Peers have random IDs, and both hashes of a URL are random. The numbers are means over swarms.

Tests: tests/sim/test_papers_assignment.py
"""

from random import Random

from kadcrawl.keys import ID_BITS

PEERS = 8
SWARMS = 400
URLS = 500
"""URLs looked at in each swarm."""


def owned_backups(seed: int) -> float:
    """Return the share of the URLs of eight peers whose backup is their owner."""
    random, same = Random(f"double hashing {seed}"), 0
    for _ in range(SWARMS):
        ids = [random.getrandbits(ID_BITS) for _ in range(PEERS)]
        for _ in range(URLS):
            owner, backup = (
                min(ids, key=key.__xor__) for key in (random.getrandbits(ID_BITS), random.getrandbits(ID_BITS))
            )
            same += owner == backup
    return same / SWARMS / URLS


def lost_with_two(same: float) -> float:
    """Return the share of the URLs that are lost when two of eight peers die, if so many backups are the owner."""
    pairs = PEERS * (PEERS - 1) / 2
    return same * 2 / PEERS + (1 - same) / pairs
