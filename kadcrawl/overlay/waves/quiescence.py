"""Is the crawl over? Two waves in a row with the same members, nothing to do anywhere and no counter moved.

Why two: a tally is not taken at one instant, so work may slip from a peer not yet asked to one asked already. Take an
instant T after the first wave and before the second. Every peer was idle, with nothing unacknowledged, before T and
after T, and its activity counter did not move in between; so it was idle at T too, and nothing was on its way. Work
only begets work: without a seed or a recrawl from outside none can come again. Pure; `Termination` does the talking.
"""

from collections.abc import Iterable
from hashlib import blake2b

from kadcrawl.link.wire.messages import COUNT_MAX, Tally

NO_VIEW = bytes(16)


def own_view(peer_id: bytes, incarnation: bytes, activity: int) -> bytes:
    """Return one peer's share of the view: it changes when the peer restarts or does anything."""
    return blake2b(peer_id + incarnation + activity.to_bytes(8, "big"), digest_size=16).digest()


def add_up(tallies: Iterable[Tally]) -> Tally:
    """Return the tally of disjoint parts of the swarm taken together; a part that lies makes none too large to tell."""
    members = pending = unacknowledged = missing = view = 0
    due_s: float | None = None
    for tally in tallies:
        members += tally.members
        pending += tally.pending
        unacknowledged += tally.unacknowledged
        missing += tally.missing
        view ^= int.from_bytes(tally.view, "big")
        if tally.due_s is not None:
            due_s = tally.due_s if due_s is None else min(due_s, tally.due_s)
    members, pending, unacknowledged, missing = (
        min(count, COUNT_MAX) for count in (members, pending, unacknowledged, missing)
    )
    return Tally(members, view.to_bytes(16, "big"), pending, unacknowledged, missing, due_s)


MISSING = Tally(members=0, view=NO_VIEW, pending=0, unacknowledged=0, missing=1)
"""The tally of a subtree in which nobody answered."""


class Quiescence:
    """Judges one initiator's waves in a row."""

    def __init__(self) -> None:
        self._idle_view: bytes | None = None

    def observe(self, tally: Tally) -> bool:
        """Take the next wave's tally; True when it and the one before prove that the swarm is quiescent."""
        idle = tally.pending == 0 and tally.unacknowledged == 0 and tally.missing == 0
        proven = idle and tally.view == self._idle_view
        self._idle_view = tally.view if idle else None
        return proven

    @property
    def hopeful(self) -> bool:
        """The last wave found everybody idle: a second one is worth asking at once."""
        return self._idle_view is not None
