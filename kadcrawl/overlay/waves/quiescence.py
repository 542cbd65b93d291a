"""Proof that the crawl is over: two waves in a row with the same members, no work anywhere and no counter changed.

Two waves are needed because a tally is not taken at one instant, so work may move from a peer not yet asked to a peer
already asked. Take an instant T after the first wave and before the second. Every peer was idle, with nothing
unacknowledged, before T and after T, and its activity counter did not change in between. So it was idle at T too, and
no message was on its way. Only work creates work: without a seed or a recrawl from outside none can come again. A
decision; `Termination` sends the waves.
"""

from collections import Counter
from collections.abc import Iterable
from hashlib import blake2b

from kadcrawl.link.wire.basics import REASONS_MAX, ReasonCount
from kadcrawl.link.wire.messages import COUNT_MAX, Tally

NO_VIEW = bytes(16)


def own_view(peer_id: bytes, incarnation: bytes, activity: int) -> bytes:
    """Return one peer's share of the view: it changes when the peer restarts or is active."""
    return blake2b(peer_id + incarnation + activity.to_bytes(8, "big"), digest_size=16).digest()


def add_up(tallies: Iterable[Tally]) -> Tally:
    """Return the sum of the tallies of disjoint parts of the swarm.

    Counts are capped, so that a part that lies cannot make the sum too large for the wire.
    """
    members = pending = unacknowledged = missing = view = retrying = 0
    due_s: float | None = None
    retried: Counter[str] = Counter()
    for tally in tallies:
        members += tally.members
        pending += tally.pending
        unacknowledged += tally.unacknowledged
        missing += tally.missing
        view ^= int.from_bytes(tally.view, "big")
        retrying += tally.retrying
        for one in tally.retried:
            retried[one.reason] += one.urls
        if tally.due_s is not None:
            due_s = tally.due_s if due_s is None else min(due_s, tally.due_s)
    members, pending, unacknowledged, missing, retrying = (
        min(count, COUNT_MAX) for count in (members, pending, unacknowledged, missing, retrying)
    )
    reasons = retried.most_common(REASONS_MAX) if retried else ()
    by_reason = tuple(ReasonCount(reason, min(urls, COUNT_MAX)) for reason, urls in reasons)
    return Tally(members, view.to_bytes(16, "big"), pending, unacknowledged, missing, due_s, by_reason, retrying)


MISSING = Tally(members=0, view=NO_VIEW, pending=0, unacknowledged=0, missing=1)
"""The tally of a subtree without any answer."""


class Quiescence:
    """The judgment of one initiator's waves in a row."""

    def __init__(self) -> None:
        self._idle_view: bytes | None = None

    def observe(self, tally: Tally) -> bool:
        """Note the next wave's tally. Return whether this tally and the last prove that the swarm is quiescent."""
        idle = tally.pending == 0 and tally.unacknowledged == 0 and tally.missing == 0
        proven = idle and tally.view == self._idle_view
        self._idle_view = tally.view if idle else None
        return proven

    @property
    def hopeful(self) -> bool:
        """The last wave found every peer idle, so that a second wave is worth sending at once."""
        return self._idle_view is not None
