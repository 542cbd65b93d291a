"""`Readiness` decides whether a peer is ready: it has joined its swarm, and the cells that it took over are synced.

A crawl syncs a new cell for each new site, so a peer that was ready stays ready while such syncs run. It is not ready
any more once it leaves, or while it was away and asks whether its cells are still its own.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadinessFacts:
    """The facts about a peer that decide whether it is ready."""

    begun: bool
    """The peer knows its job, and has built its parts."""
    joining: bool
    """Waves of the swarm may still miss the peer."""
    leaving: bool
    """The peer hands its range over, or was told to stop."""
    in_doubt: bool
    """The peer was away, and does not know yet whether its cells are its own."""
    unsettled: int
    """Cells between two owners."""


class Readiness:
    """The answers of one peer to the question whether it is ready."""

    def __init__(self) -> None:
        self._was_synced = False

    def why_not(self, facts: ReadinessFacts) -> str:
        """Return the reason for which the peer is not ready, or an empty text."""
        if not facts.begun:
            return "the peer has not entered its swarm yet"
        if facts.leaving:
            return "the peer leaves or stops"
        if facts.joining:
            return "the peer is joining its swarm"
        if facts.in_doubt:
            self._was_synced = False
            return "the peer was away, and asks whether its cells are still its own"
        if facts.unsettled and not self._was_synced:
            return f"{facts.unsettled} cells are between two owners"
        self._was_synced = True
        return ""
