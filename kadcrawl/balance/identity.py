"""The identity that a joiner takes: of d random IDs, the ID that splits the largest range. Decisions only.

A peer owns a share of the key space of 2**-(number of its non-empty k-buckets): each live peer at firstdiff i leaves it
the half in which bit i is its own. So the owner's mask of live buckets tells its range, and also the range of a
newcomer whose ID falls there. A newcomer halves the range it falls into wherever its ID is: any random ID in a range
will do.

With blindly drawn IDs the busiest of 8, 100 and 1,000 peers owns 2, 3.5 and 5 times the mean. With the best of 8 IDs it
owns 1.3, 1.6 and 2.0 times the mean, and halving allows no better than 1, 1.6 and 2.0 (sim/papers/joining.py). The
price is d lookups. Joiners ask for ranges, not for URLs: at the start no peer has URLs, and later many URLs are of one
site, which no split divides. A false range draws or repels newcomers, which costs balance, never a URL.

The power of d choices: Mitzenmacher 2001. For a space that is halved: Adler, Halperin, Karp and Vazirani 2003.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from kadcrawl.keys import NodeId, firstdiff


@dataclass(frozen=True, slots=True, kw_only=True)
class Range:
    """The range of one peer."""

    owner: NodeId
    live_mask: int
    """Bit i is set if the owner's bucket i (firstdiff i) has a live peer."""

    @property
    def halvings(self) -> int:
        """The number of halvings of the key space that give this range."""
        return self.live_mask.bit_count()

    @property
    def share(self) -> float:
        """The share of the key space in this range, up to 1."""
        return 2.0**-self.halvings

    def newcomer(self, node_id: NodeId) -> "Range":
        """Return the range of a newcomer whose ID falls into this range.

        Above their firstdiff, owner and newcomer see the same buckets. At it they see each other. Below it no peer is
        near the newcomer, or its ID would fall into another range. Raises ValueError for the owner's own ID.
        """
        shared = firstdiff(node_id, self.owner)
        if shared < 0:
            raise ValueError("a newcomer needs an ID of its own: draw another")
        return Range(owner=node_id, live_mask=self.live_mask >> (shared + 1) << (shared + 1) | 1 << shared)

    def shared_with(self, node_id: NodeId, expected: Iterable[NodeId]) -> "Range":
        """Return the range that `node_id` falls into once the `expected` peers have entered.

        Without them the ID falls into this range. An expected peer that is nearer to the ID than the owner is a
        newcomer of the owner, as no peer is between the two.
        """
        others = [other for other in expected if other != self.owner]
        nearest = min([self, *map(self.newcomer, others)], key=lambda range: range.owner ^ node_id)
        met = {firstdiff(other, nearest.owner) for other in others if other != nearest.owner}
        return replace(nearest, live_mask=nearest.live_mask | sum(1 << bit for bit in met))


@dataclass(frozen=True, slots=True, kw_only=True)
class IdCandidate:
    """A random ID, and the range that its lookup found."""

    node_id: NodeId
    range: Range
    """The range of the live peer nearest to the ID."""


def choose_id(candidates: Sequence[IdCandidate]) -> IdCandidate:
    """Return the candidate that splits the largest range. Raises ValueError if there is none.

    Among equal candidates, the choice is the candidate with the largest own range, as a newcomer has that halves
    several ranges at once. Then the first drawn candidate wins.
    """
    if not candidates:
        raise ValueError("draw at least one ID")
    return min(
        candidates,
        key=lambda candidate: (candidate.range.halvings, candidate.range.newcomer(candidate.node_id).halvings),
    )
