"""How well a peer estimates the size of its swarm."""

from random import Random
from statistics import median

import pytest

from kadcrawl.keys import ID_BITS, firstdiff
from kadcrawl.overlay.settings import OverlaySettings
from kadcrawl.overlay.waves.swarm_size import ENOUGH, estimated_members


def estimates(peers: int, seed: int, per_bucket: int = OverlaySettings().k) -> list[int]:
    """Return the estimate of each peer, which knows so many contacts of each bucket."""
    random = Random(seed)
    ids = [random.getrandbits(ID_BITS) for _ in range(peers)]
    found = []
    for me in ids:
        subtrees: dict[int, list[int]] = {}
        for other in ids:
            if other != me and len(bucket := subtrees.setdefault(firstdiff(me, other), [])) < per_bucket:
                bucket.append(other)
        found.append(estimated_members(subtrees))
    return found


@pytest.mark.parametrize("peers", [1, 2, 5, ENOUGH])
def test_of_few_peers_the_number_is_exact(peers: int) -> None:
    assert estimates(peers, seed=1) == [peers] * peers


@pytest.mark.parametrize("peers", [40, 200, 1000])
def test_of_many_peers_most_estimates_are_off_by_a_factor_of_two_at_most(peers: int) -> None:
    found = estimates(peers, seed=2)
    assert peers / 2 <= median(found) <= peers * 2
    assert sum(peers / 2 <= one <= peers * 2 for one in found) >= 0.8 * peers
