"""What the ways of balance have in common: to count what waits at this peer, to ask contacts, and to lend blocks.

Blocks are lent in pages of this peer's own sites, the largest sites first (`lending`).

Tests: tests/lending/test_drain_policy.py, tests/lending/test_level_policy.py
"""

import asyncio
from collections.abc import Callable, Iterator, Mapping
from math import inf
from typing import Protocol

from kadcrawl.balance.shedding import BlockOffer
from kadcrawl.crawl.frontier.frontier import Frontier
from kadcrawl.errors import RemoteError
from kadcrawl.lending.loans import Loans
from kadcrawl.link.client import LinkClient
from kadcrawl.link.wire.messages import LOANS_MAX, Contact, GetLoad, Load
from kadcrawl.settings.config import Job

LOAD_DEADLINE_S = 2.0


class LendingOverlay(Protocol):
    """What balance needs of the overlay."""

    load: int

    def subtrees(self) -> Mapping[int, list[Contact]]: ...
    def is_live(self, peer: bytes) -> bool: ...
    def suspect(self, contact: Contact) -> None: ...


class Blocks:
    """What one peer has before it, and what it lends of it."""

    def __init__(
        self,
        *,
        job: Job,
        overlay: LendingOverlay,
        client: LinkClient,
        frontier: Frontier,
        loans: Loans,
        me: Callable[[], Contact],
        is_paused: Callable[[], bool],
        now: Callable[[], float],
    ) -> None:
        """`holds` says whether this peer starts nothing just now; `now` gives wall-clock seconds."""
        self.job = job
        self.overlay = overlay
        self.loans = loans
        self.me = me
        self.is_paused = is_paused
        self._client = client
        self._frontier = frontier
        self._now = now

    @property
    def own(self) -> int:
        """Own URLs that are not with others."""
        return max(0, self._frontier.pending - self.loans.lender.urls)

    @property
    def borrowed(self) -> int:
        """URLs of others that are here."""
        return self.loans.borrower.urls

    @property
    def waited_for(self) -> bool:
        """Whether something could be fetched by now, and has to wait for this peer."""
        now = self._now()
        dues = (self._frontier.next_due(), self.loans.borrower.next_due())
        # Of a site without a delay others could use some connections, and their own lines and processors with them.
        return any(due is not None and due <= now for due in dues) or self._frontier.is_crowded

    @property
    def waiting(self) -> tuple[int, int]:
        """Return how many own URLs wait for this peer, and how many of others; the rest waits for its sites."""
        if not self.waited_for:
            return 0, 0
        return self._frontier.waiting(self._now()), self.loans.borrower.waiting

    @property
    def has_spare_connections(self) -> bool:
        """Whether there is a site of which something may be lent now."""
        return bool(self.loans.lender.sites_with_spare_connections())

    def buckets(self) -> Iterator[list[Contact]]:
        """Yield the live contacts, bucket by bucket, from near to far."""
        for _, contacts in sorted(self.overlay.subtrees().items()):
            yield [contact for contact in contacts if self.overlay.is_live(contact.id)]

    async def ask(self, contact: Contact, question: GetLoad) -> Load | None:
        """Ask a contact how loaded it is; None if it does not answer."""
        try:
            return await self._client.ask(contact, question, Load, LOAD_DEADLINE_S)
        except RemoteError:
            self.overlay.suspect(contact)
            return None

    async def lend_blocks(self, offer: BlockOffer[Contact], until: float = inf) -> int:
        """Lend a peer up to so many blocks of URLs, the largest sites first; return how many blocks it took.

        Of these first those with connections that are free.

        No loan is offered after `until` (seconds of the loop).
        """
        time = asyncio.get_running_loop().time
        left = offer.blocks * self.job.block_urls
        lending = self.loans.lender
        if not lending.may_lend_to(offer.peer):
            return 0
        # It has one loan of a site, and no second.
        tried = {site for site, taker in lending.sites() if taker == offer.peer.id}
        while left > 0 and len(tried) < LOANS_MAX and time() < until and not self.is_paused():
            lendable = [one for one in lending.sites_with_spare_connections() if one[0] not in tried]
            if not lendable:
                break
            # Whatever uses a connection may hang.
            site, _ = max(lendable, key=lambda one: (self._frontier.has_free(one[0]), one[1], one[0]))
            tried.add(site)
            taken = await lending.lend(offer.peer, site, left)
            if taken == 0:
                break
            left -= taken or 0
        return offer.blocks - left // self.job.block_urls
