"""`SwarmView`: the whole swarm at one moment, as one peer or leaf was told.

Tests: tests/peer/dashboard/test_facts.py
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from kadcrawl.link.wire.messages import PeerRow, SwarmStatus, Watched
from kadcrawl.settings.job import Job


@dataclass(frozen=True, slots=True, kw_only=True)
class SwarmView:
    """The rows of all peers that answered, and what they know of the crawl."""

    rows: Sequence[PeerRow] = ()
    unacknowledged: int = 0
    """Links and records on their way to other peers."""
    missing: int = 0
    """Parts of the swarm that did not answer."""
    job: Job | None = None
    """None until the peer knows the job."""
    paused: bool = False
    ended: bool = False
    watched: Watched = field(default_factory=Watched)
    """What happened lately."""

    @classmethod
    def of_status(
        cls, status: SwarmStatus, job: Job, watched: Watched | None, *, paused: bool, ended: bool
    ) -> "SwarmView":
        """Return the view that the answers to a census give."""
        tally = status.tally
        return cls(
            rows=status.rows,
            unacknowledged=tally.unacknowledged,
            missing=tally.missing,
            job=job,
            paused=paused,
            ended=ended,
            watched=watched or Watched(),
        )
