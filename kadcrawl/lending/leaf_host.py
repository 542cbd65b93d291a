"""The leaves of a full peer: what it answers when one draws pages (link/wire/leaf_messages.py), and how it shows them.

A leaf is believed nothing: it has no place in the routing table, holds no copy, owns no cell, and what it says of
itself is only shown. All it can do is fetch what it was lent, on a lease like any taker; how many leaves there are, and
how much one has in hand, is bounded. Whom it may ask as well it is told with every answer.
"""

import asyncio
from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING

from msgspec.structs import replace

from kadcrawl.balance.leaf_allotment import leaf_allotment
from kadcrawl.errors import KadcrawlError
from kadcrawl.link.wire.leaf_messages import (
    GRANT_LOANS_MAX,
    LEAF_STATE,
    SwarmActivity,
    WorkGrant,
    WorkRequest,
    is_leaf,
    leaf_contact,
)
from kadcrawl.link.wire.messages import LOANS_MAX, Contact, Lend, PeerRow
from kadcrawl.settings.config import why_no_leaf

if TYPE_CHECKING:
    from kadcrawl.peer.peer import Peer

LEAVES_MAX = 32
"""Leaves of one peer: each look for one that waits costs up to a millisecond."""
URLS_PER_LEAF_MAX = 1_000
"""URLs one leaf has in hand of one peer."""
OTHER_PEERS_NAMED = 8
"""Peers a leaf is told of at a time: drawn anew each time, they soon are all of a small swarm."""
WAITING_LEAF_POLL_S = 0.2
"""How often it is seen whether there is something for a leaf that waits."""
REASONS_SHOWN = 8
"""Reasons of failures, and limits, shown of one leaf, the most frequent: it names them itself, as long as it likes."""
LEAF_FORGOTTEN_S = 10.0
"""After so long without a question a leaf is not shown, and its place is another's."""


class NoLeafError(KadcrawlError):
    """This leaf draws nothing here."""


class LeafHost:
    """The leaves of one full peer."""

    def __init__(self, peer: "Peer") -> None:
        self._peer = peer
        self._heard: dict[bytes, tuple[float, WorkRequest]] = {}
        """By ID: when one last asked (second of the loop), and what."""
        self.stopped = False
        """Every peer of the swarm was told to stop."""

    async def grant(self, request: WorkRequest) -> WorkGrant:
        """Lend a leaf what it may have, once there is something, or news, or it waits no more. Raises NoLeafError."""
        time = asyncio.get_running_loop().time
        if (why := why_no_leaf(self._peer.job)) is not None:
            raise NoLeafError(why)
        self._hear(request, time())
        until = time() + request.wait_s
        while True:
            doing = self._doing()
            lends = await self._lend(request) if doing == "crawling" else []
            if lends or doing != request.known_activity or time() >= until:
                return WorkGrant(self._peer.contact, lends, doing, len(self._peer.job.seeds), self._others())
            await asyncio.sleep(WAITING_LEAF_POLL_S)

    def rows(self) -> list[PeerRow]:
        """Describe the leaves, each at the address of the peer it hangs on."""
        self._forget(asyncio.get_running_loop().time())
        me = self._peer.contact
        lent = Counter[bytes]()
        for loan in self._peer.balancing.loans.lender.loans():
            lent[loan.borrower.id] += len(loan.entries)
        return [
            PeerRow(
                contact=Contact(leaf, me.host, me.port),
                state=LEAF_STATE + draw.state,
                pending=0,  # Its loans are pending here.
                in_flight=draw.in_flight,
                uptime_s=draw.uptime_s,
                counters=replace(
                    draw.counters,
                    failed=_most_frequent(draw.counters.failed),
                    left_out=_most_frequent(draw.counters.left_out),
                ),
                allowance=0,
                granted=0,
                borrowed=lent[leaf],
            )
            for leaf, (_, draw) in self._heard.items()
        ]

    # --- inside --------------------------------------------------------------------------------------------------

    def _doing(self) -> SwarmActivity:
        peer = self._peer
        if self.stopped:
            return "stopped"
        if peer.ended:
            return "ended"
        if peer.leaving or "stopping" in peer.components.crawler.pause_reasons:
            raise NoLeafError("this peer is leaving; draw from another")
        return "paused" if peer.paused else "crawling"

    async def _lend(self, request: WorkRequest) -> list[Lend]:
        peer = self._peer
        lending = peer.balancing.loans.lender
        if not request.urls_max or peer.components.crawler.pause_reasons:
            return []
        taker = leaf_contact(request.leaf)
        if not lending.may_lend_to(taker):
            return []
        lent = [loan for loan in lending.loans() if is_leaf(loan.borrower)]
        own = [loan for loan in lent if loan.borrower == taker]
        sites = {loan.site for loan in own}  # It takes no second loan of a site.
        in_hand = sum(len(loan.entries) for loan in own)
        given = leaf_allotment(
            [one for one in lending.sites_with_spare_connections() if one[0] not in sites],
            leaves=len(self._heard),
            in_hand=in_hand,
            lent=sum(len(loan.entries) for loan in lent),
            room=min(request.urls_max, URLS_PER_LEAF_MAX - in_hand),
            block_urls=peer.job.block_urls,
            loans=min(GRANT_LOANS_MAX, LOANS_MAX - len(own)),
        )
        return await lending.offers(taker, given) if given else []

    def _others(self) -> list[Contact]:
        contacts = self._peer.overlay.contacts()
        return self._peer.random.sample(contacts, min(OTHER_PEERS_NAMED, len(contacts)))

    def _hear(self, request: WorkRequest, now: float) -> None:
        self._forget(now)
        if request.leaf == self._peer.contact.id or self._peer.overlay.is_live(request.leaf):
            raise NoLeafError("this ID is a full peer's")
        if request.leaf not in self._heard and len(self._heard) >= LEAVES_MAX:
            raise NoLeafError(f"this peer has {LEAVES_MAX} leaves already; draw from another")
        self._heard[request.leaf] = now, request

    def _forget(self, now: float) -> None:
        gone = [leaf for leaf, (heard_at, _) in self._heard.items() if heard_at + LEAF_FORGOTTEN_S <= now]
        for leaf in gone:
            del self._heard[leaf]


def _most_frequent(counts: Mapping[str, int]) -> dict[str, int]:
    return dict(Counter(counts).most_common(REASONS_SHOWN))
