"""The status of a peer and of a whole swarm, as a program sees them: figures and words, without types of the wire.

`Peer.status` and `Peer.figures` return them.

Tests: tests/peer/test_crawl_status.py
"""

from collections.abc import Sequence
from dataclasses import dataclass

from kadcrawl.link.wire.given_order import GivenOrder
from kadcrawl.link.wire.messages import PeerRow, SwarmStatus
from kadcrawl.link.wire.peer_state import GONE, MACHINE_PAUSES, PeerState, state_text
from kadcrawl.link.wire.unresolved import still_done, still_failed, urls_found


@dataclass(frozen=True, slots=True)
class PeerStatus:
    """The figures of one peer or leaf."""

    id: str
    """ID of the peer, 20 bytes in hex."""
    address: tuple[str, int]
    """Address (host, port) at which other peers reach the peer. For a leaf, that of the peer that it asks."""
    state: str
    """State in words, as `kadcrawl status` shows it."""
    is_leaf: bool
    """True if a full peer tells the figures of one of its leaves."""
    pending: int
    """URLs that the peer owns and that are not finished."""
    in_flight: int
    """Requests under way."""
    lent: int
    """Pending URLs that other peers fetch for this peer."""
    borrowed: int
    """URLs that this peer fetches for others."""
    pages: int
    """URLs that the peer fetched and a server answered, with any status."""
    bytes: int
    """Bytes of bodies as received."""
    urls: int
    """URLs that the peer accepted as their owner."""
    done: int
    """URLs that the peer finished, each once, without those that are pending again."""
    failed: dict[str, int]
    """URLs whose last visit failed at this peer, by reason."""
    uptime_s: int
    """Seconds since the peer started."""

    @classmethod
    def of(cls, row: PeerRow) -> "PeerStatus":
        """Return the row of a peer as a program sees it."""
        counters = row.counters
        return cls(
            id=row.contact.id.hex(),
            address=row.contact.address,
            state=row.state_text,
            is_leaf=row.hosted_leaf,
            pending=row.pending,
            in_flight=row.in_flight,
            lent=row.lent,
            borrowed=row.borrowed,
            pages=counters.pages,
            bytes=counters.bytes,
            urls=counters.urls,
            done=still_done([counters]),
            failed=still_failed([counters]),
            uptime_s=row.uptime_s,
        )


@dataclass(frozen=True, slots=True)
class CrawlStatus:
    """The figures of a whole swarm."""

    state: str
    """State of the swarm in words, as `kadcrawl status` shows it."""
    pages: int
    """URLs that a server answered, with any status. Another visit counts again."""
    bytes: int
    """Bytes of bodies as received."""
    urls: int
    """URLs that the peers accepted as their owners, at least those done and pending."""
    done: int
    """URLs that are finished, fetched or failed, without those that are pending again. A URL that two peers finished,
    as after a crash, counts at both."""
    pending: int
    """URLs that are not finished."""
    failed: dict[str, int]
    """URLs whose last visit failed, by reason."""
    paused: bool
    """True if a person paused the swarm."""
    ended: bool
    """True if nothing is left to fetch anywhere, as far as the asked peer knows."""
    limit_reached: str
    """The limit of the whole crawl that a peer has reached: `pages`, `bytes` or `time`. Empty otherwise."""
    next_due_s: float | None
    """Seconds until the first page is fetched again, or None if no page is."""
    orders: tuple[GivenOrder, ...]
    """The orders of people that stand, the latest first."""
    peers: tuple[PeerStatus, ...]
    """The peers and leaves that are there."""
    left: tuple[PeerStatus, ...]
    """The peers and leaves that have left. Their figures are in the totals."""
    unanswered: int
    """Parts of the swarm that did not answer. Their figures are missing in the totals."""

    @classmethod
    def of(cls, answer: SwarmStatus, orders: Sequence[GivenOrder], *, paused: bool, ended: bool) -> "CrawlStatus":
        """Return the answer to a census as a program sees it."""
        rows = answer.rows
        return cls(
            state=state_of_swarm(rows, paused=paused, ended=ended),
            pages=sum(row.counters.pages for row in rows),
            bytes=sum(row.counters.bytes for row in rows),
            urls=urls_found(rows),
            done=still_done(row.counters for row in rows),
            pending=sum(row.pending for row in rows),
            failed=still_failed(row.counters for row in rows),
            paused=paused,
            ended=ended,
            limit_reached=next((row.limit for row in rows if row.limit), ""),
            next_due_s=min((row.due_s for row in rows if row.due_s is not None), default=None),
            orders=tuple(orders),
            peers=tuple(PeerStatus.of(row) for row in rows if row.state not in GONE),
            left=tuple(PeerStatus.of(row) for row in rows if row.state in GONE),
            unanswered=answer.tally.missing,
        )


@dataclass(frozen=True, slots=True)
class RetriedUrls:
    """The failed URLs that an order has made pending again."""

    urls: dict[str, int]
    """The number of URLs, by the reason of their failure."""
    cells_left: int
    """Parts of the crawl in which failed URLs are still being looked for."""
    parts_missing: int
    """Parts of the swarm that did not answer. They hear of the order when they can be reached."""


@dataclass(frozen=True, slots=True)
class DroppedUrls:
    """The pending URLs that an order has ended."""

    urls: int
    """URLs ended so far."""
    cells_left: int
    """Parts of the crawl in which URLs are still being ended."""
    parts_missing: int
    """Parts of the swarm that did not answer. They hear of the order when they can be reached."""


def state_of_swarm(rows: Sequence[PeerRow], *, paused: bool, ended: bool) -> str:
    """Return the state of the swarm of these peers in words."""
    there = [row for row in rows if row.state not in GONE]
    full = [row for row in there if not row.hosted_leaf]
    states = {row.state for row in full or there}  # The directory of a leaf has no other row.
    for every in (PeerState.RESTING, PeerState.NOT_RUNNING):
        if states == {every}:
            return state_text(every)
    if paused:
        return "paused"
    if ended:
        return "done"
    if len(states) == 1 and states <= MACHINE_PAUSES:
        return state_text(next(iter(states)))  # Nobody crawls, and all for the same reason.
    return "crawling"
