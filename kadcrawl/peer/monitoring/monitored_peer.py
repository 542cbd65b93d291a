"""`MonitoredPeer`: the parts of a full peer or a leaf that its monitoring reads.

Tests: tests/peer/monitoring/test_listener.py
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kadcrawl.crawl.build import CrawlComponents
from kadcrawl.crawl.crawler import Crawler
from kadcrawl.lending.borrower import Borrower
from kadcrawl.link.wire.peer_state import PeerState
from kadcrawl.peer.resources import Resources
from kadcrawl.peer.status import state_of

if TYPE_CHECKING:  # A leaf does without the rooms of a full peer.
    from kadcrawl.peer.runtime import Runtime


@dataclass(frozen=True, slots=True, kw_only=True)
class MonitoredPeer:
    """One full peer or leaf, as its monitoring sees it.

    Each function may be called at any moment of the peer's life.
    """

    resources: Resources
    peer_id: Callable[[], bytes]
    """Returns the ID of the peer."""
    state: Callable[[], PeerState]
    """Returns the state of the peer."""
    messages: Callable[[], int]
    """Returns the number of messages sent to other peers, those of earlier runs included."""
    components: Callable[[], CrawlComponents | None]
    """Returns the parts of the crawl, or None until the job is known."""
    crawlers: Callable[[], tuple[Crawler, ...]]
    """Returns the crawlers that have begun."""
    borrower: Callable[[], Borrower | None]
    """Returns the borrower of the peer, or None until the job is known."""
    runtime: "Callable[[], Runtime | None]"
    """Returns the runtime of a full peer. None for a leaf."""


def of_full_peer(runtime: "Runtime", messages: Callable[[], int]) -> MonitoredPeer:
    """Return a full peer as its monitoring sees it. `messages` returns the number of messages sent."""

    def crawlers() -> tuple[Crawler, ...]:
        if not runtime.begun:
            return ()
        return runtime.components.crawler, runtime.balancing.loans.borrower.crawler

    return MonitoredPeer(
        resources=runtime.resources,
        peer_id=lambda: runtime.contact.id,
        state=lambda: state_of(runtime),
        messages=messages,
        components=lambda: runtime.components if runtime.begun else None,
        crawlers=crawlers,
        borrower=lambda: runtime.balancing.loans.borrower if runtime.begun else None,
        runtime=lambda: runtime,
    )
