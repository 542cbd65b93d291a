"""`CrawlVerdict`: whether the crawl is done or, in one word, why it is not done yet, as far as one peer knows.

Tests: tests/peer/monitoring/test_verdict.py
"""

from dataclasses import dataclass
from enum import StrEnum

from kadcrawl.link.wire.peer_state import BLOCKED, PeerState


class CrawlVerdict(StrEnum):
    """The answer of one peer to the question whether the crawl is done."""

    DONE = "done"
    """The swarm has nothing left to do."""
    RESTING = "resting"
    """The swarm has nothing to do until a page is due again."""
    LIMIT_REACHED = "limit_reached"
    """The crawl has reached a limit of the whole swarm, and ends."""
    STARTING = "starting"
    """The peer has not entered its swarm yet."""
    JOINING = "joining"
    """The peer is entering its swarm, and does not know its cells yet."""
    ENDING = "ending"
    """The peer was told to stop or to leave, and finishes its work under way."""
    PAUSED = "paused"
    """A person paused the swarm, or the first seeds are still on their way."""
    BLOCKED = "blocked"
    """The peer waits for its machine, for a proxy, or for peers that accept its key."""
    NO_SEEDS = "no_seeds"
    """The job has no seeds yet."""
    FETCHING = "fetching"
    """The peer has requests under way, or URLs that it may fetch now."""
    WAITING_FOR_SITES = "waiting_for_sites"
    """All URLs of the peer wait for the pace of their sites, or for the retry of a passing failure."""
    LENT = "lent"
    """All URLs of the peer are lent to other peers, which have not reported them yet."""
    SYNCING = "syncing"
    """Cells of the peer are between two owners, so that no peer may crawl them just now."""
    ACKNOWLEDGING = "acknowledging"
    """Links, seeds or records are on their way to other peers."""
    OTHER_PEERS = "other_peers"
    """The peer has nothing left to do. Other peers have, or are being asked."""


BY_STATE = {
    PeerState.DONE: CrawlVerdict.DONE,
    PeerState.RESTING: CrawlVerdict.RESTING,
    PeerState.LIMIT_REACHED: CrawlVerdict.LIMIT_REACHED,
    PeerState.STARTING: CrawlVerdict.STARTING,
    PeerState.JOINING: CrawlVerdict.JOINING,
    PeerState.STOPPING: CrawlVerdict.ENDING,
    PeerState.LEAVING: CrawlVerdict.ENDING,
    PeerState.PAUSED: CrawlVerdict.PAUSED,
    **dict.fromkeys(BLOCKED - {PeerState.PAUSED}, CrawlVerdict.BLOCKED),
}
"""The verdicts that the state of the peer decides alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkLeft:
    """The work of one peer that keeps the crawl from its end."""

    has_seeds: bool = True
    """The job has seeds."""
    is_paused: bool = False
    """The crawler pauses for a reason that the state does not show."""
    pending: int = 0
    """URLs to be fetched in cells that the peer may crawl."""
    lent: int = 0
    """URLs among these that other peers fetch."""
    is_active: bool = False
    """Requests are under way, or a URL may be fetched now."""
    unsettled: int = 0
    """Cells between two owners, and URLs in cells that the peer may not crawl."""
    unacknowledged: int = 0
    """Links, seeds and records on their way to other peers."""


def verdict_of(state: PeerState, work: WorkLeft) -> CrawlVerdict:
    """Return the verdict of a peer in this state with this work. If several apply, the first in this order counts."""
    if state in BY_STATE:
        return BY_STATE[state]
    if work.is_paused:
        return CrawlVerdict.PAUSED
    if work.is_active:
        return CrawlVerdict.FETCHING
    if work.pending:
        return CrawlVerdict.LENT if work.lent >= work.pending else CrawlVerdict.WAITING_FOR_SITES
    if work.unsettled:
        return CrawlVerdict.SYNCING
    if work.unacknowledged:
        return CrawlVerdict.ACKNOWLEDGING
    return CrawlVerdict.OTHER_PEERS if work.has_seeds else CrawlVerdict.NO_SEEDS
