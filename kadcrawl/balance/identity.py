"""Which identity a joiner takes: of d IDs it has drawn, the one that splits the largest range. Decides only.

A peer owns a share of the space that is 2**-(number of its non-empty k-buckets): each live peer at firstdiff i leaves
it the half in which bit i is its own. So one number tells a range, the owner's mask of live buckets, and it also tells
what a newcomer would own whose ID falls there. A newcomer halves the range it falls into wherever that is: there is no
middle to aim at, and any ID drawn at random in it will do.

With IDs drawn blindly the busiest of 8, 100 and 1,000 peers owns 2, 3.5 and 5 times the mean; with the best of 8 it is
1.3, 1.6 and 2.0, and halving allows no better than 1, 1.6 and 2.0 (sim/papers/joining.py). It costs d look-ups. Ranges
are asked for, not URLs: at the start nobody has any, and later many are of one site, which no split divides. What a
peer tells of its range may be a lie: it then draws or keeps off newcomers, which costs balance, never a URL.

The power of d choices: Mitzenmacher 2001; for a space that is halved: Adler, Halperin, Karp and Vazirani 2003.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from kadcrawl.keys import NodeId, firstdiff


@dataclass(frozen=True, slots=True, kw_only=True)
class Range:
    """What one peer owns."""

    owner: NodeId
    live_mask: int
    """Bit i tells whether the owner's bucket i (firstdiff i) has a live peer."""

    @property
    def halvings(self) -> int:
        """How often the space is halved to give this range."""
        return self.live_mask.bit_count()

    @property
    def share(self) -> float:
        """How much of the space this is, up to 1."""
        return 2.0**-self.halvings

    def newcomer(self, node_id: NodeId) -> "Range":
        """Return what a newcomer of this ID would own, this being the range its ID falls into.

        Above their firstdiff both see the same buckets; at it they see each other; below, nobody is near the newcomer,
        or the range its ID falls into would be another one.
        """
        shared = firstdiff(node_id, self.owner)
        if shared < 0:
            raise ValueError("a newcomer needs an ID of its own: draw another")
        return Range(owner=node_id, live_mask=self.live_mask >> (shared + 1) << (shared + 1) | 1 << shared)

    def shared_with(self, node_id: NodeId, expected: Iterable[NodeId]) -> "Range":
        """Return the range `node_id` will fall into when these have entered as well, this being the one without them.

        If one of them is nearer to the ID than the owner, it is the owner's newcomer: between the two there is nobody.
        """
        others = [one for one in expected if one != self.owner]
        nearest = min([self, *map(self.newcomer, others)], key=lambda one: one.owner ^ node_id)
        met = {firstdiff(one, nearest.owner) for one in others if one != nearest.owner}
        return replace(nearest, live_mask=nearest.live_mask | sum(1 << bit for bit in met))


@dataclass(frozen=True, slots=True, kw_only=True)
class IdCandidate:
    """An ID drawn, and what looking it up has told."""

    node_id: NodeId
    range: Range
    """Of the live peer nearest to the ID."""


def choose_id(candidates: Sequence[IdCandidate]) -> IdCandidate:
    """Return the candidate that splits the largest range. Raises ValueError if there is none.

    Of equals the one that gets most itself, as it does if it halves several ranges at once; then the first drawn.
    """
    if not candidates:
        raise ValueError("draw at least one ID")
    return min(candidates, key=lambda one: (one.range.halvings, one.range.newcomer(one.node_id).halvings))
