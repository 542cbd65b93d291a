"""Links that other peers offer: a peer takes the links it owns, and names the owner of each other link.

This is where a URL enters its owner (Offer and DatedOffer in link/wire/messages.py). The answer comes when the links
taken are journaled here and at the backups of their cells.

Tests: tests/peer/test_swarm.py, tests/peer/swarm/test_state_gossip.py
"""

from collections.abc import Mapping

from kadcrawl.keys import anchor
from kadcrawl.link.handler import Handler
from kadcrawl.link.wire.messages import Accepted, Contact, DatedOffer, Link, Message, Offer, Redirect
from kadcrawl.peer.runtime import NotReadyError, Runtime
from kadcrawl.peer.swarm.state_gossip import StateGossip
from kadcrawl.urls import is_canonical


class OfferedLinks:
    """The answer of one peer to offers."""

    def __init__(self, runtime: Runtime, gossip: StateGossip) -> None:
        self._runtime = runtime
        self._gossip = gossip

    def handlers(self) -> Mapping[type[Message], Handler]:
        """Return the handler of each message type."""
        return {Offer: self.offer, DatedOffer: self.offer}

    async def offer(self, offer: Offer | DatedOffer) -> Accepted:
        """Take the links this peer owns, and name the owners of the others. Raises NotReadyError."""
        runtime = self._runtime
        components, cells, me = runtime.components, runtime.cells, runtime.contact
        mine = []
        indices = []
        redirects = []
        for index, link in enumerate(offer.links):
            location = components.partitioner.locate_offered(link.url)
            if location is None:
                components.intake.rejected += 1
            elif runtime.overlay.owns(location.cell) and not cells.holder_side.leaving:
                if self._comes_early(link, offer.seeds_fingerprint):
                    redirects.append(Redirect(index, me))
                else:
                    mine.append((link, location))
                    indices.append(index)
            else:
                redirects.append(Redirect(index, self._nearest_other(anchor(location.cell, runtime.job.bits))))
        redirects += [
            Redirect(indices[again], me) for again in await cells.accept(mine, components.intake.accept_offered)
        ]
        return Accepted(redirects)

    def _comes_early(self, link: Link, seeds_fingerprint: int) -> bool:
        """Return whether the sender may know seeds or orders that this peer must hear of before it judges the link."""
        runtime = self._runtime
        return (
            seeds_fingerprint not in (0, runtime.seeds_fingerprint)
            and is_canonical(link.url)
            and runtime.components.scope.why_not(link.url, link.depth) in ("scope", "scope_removed")
            and self._gossip.may_know_more(seeds_fingerprint)
        )

    def _nearest_other(self, target: int) -> Contact:
        """Return the peer nearest to `target`, this one excepted. Raises NotReadyError if none is known."""
        for contact in self._runtime.overlay.nearest_known(target, 2):
            if contact.id != self._runtime.contact.id:
                return contact
        raise NotReadyError("this peer is leaving and knows no other")
