"""`Blocks`: a policy's view of one peer, to count waiting URLs, to ask contacts for their load, and to lend blocks.

A block is lent in pages of this peer's own sites, the largest sites first (lending/lender.py).

Tests: tests/lending/test_blocks.py, tests/lending/test_drain_policy.py, tests/lending/test_balance.py
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
from kadcrawl.link.wire.messages import LOANS_MAX, SMALL_MAX, BacklogRecord, Contact, GetLoad, Load
from kadcrawl.overlay.routing import HeardLoad
from kadcrawl.settings.job import Job

LOAD_DEADLINE_S = 2.0


class LendingOverlay(Protocol):
    """The part of the overlay that load balance needs."""

    def subtrees(self) -> Mapping[int, list[Contact]]: ...
    def is_live(self, peer: bytes) -> bool: ...
    def suspect(self, contact: Contact) -> None: ...
    def set_load(self, level: int, backlog: BacklogRecord | None = None) -> None: ...

    @property
    def loads(self) -> Mapping[bytes, HeardLoad]: ...


class Blocks:
    """The work of one peer, and the way to lend it."""

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
        """Take the parts of the peer.

        Args:
            is_paused: returns whether this peer starts no pages at this moment.
            now: gives wall-clock seconds.
        """
        self.job = job
        self.loans = loans
        self.me = me
        self.is_paused = is_paused
        self._overlay = overlay
        self._client = client
        self._frontier = frontier
        self._now = now

    @property
    def own(self) -> int:
        """Own URLs that are not lent."""
        return max(0, self._frontier.pending - self.loans.lender.urls)

    @property
    def borrowed(self) -> int:
        """URLs borrowed from other peers."""
        return self.loans.borrower.urls

    @property
    def waited_for(self) -> bool:
        """True if a URL is due and has to wait for this peer."""
        now = self._now()
        dues = (self._frontier.next_due(), self.loans.borrower.next_due())
        # Other peers could use spare connections to a site without a delay, with their own lines and processors.
        return any(due is not None and due <= now for due in dues) or self._frontier.is_crowded

    @property
    def waiting(self) -> tuple[int, int]:
        """The own URLs and the borrowed URLs that wait for this peer. The other URLs wait for their sites."""
        if not self.waited_for:
            return 0, 0
        return self._frontier.waiting(self._now()), self.loans.borrower.waiting

    @property
    def has_spare_connections(self) -> bool:
        """True if a site can be lent now."""
        return bool(self.loans.lender.sites_with_spare_connections())

    def tell_load(self, load: Load) -> None:
        """Send this load with each heartbeat from now on."""
        level = min(max(-SMALL_MAX, round(100 * load.level)), SMALL_MAX)
        self._overlay.set_load(level, load.backlog)

    def heard_loads(self) -> Mapping[bytes, HeardLoad]:
        """Return the loads in the latest heartbeats of the live contacts, by ID."""
        return self._overlay.loads

    def buckets(self) -> Iterator[list[Contact]]:
        """Yield the live contacts bucket by bucket, from near to far."""
        for _, contacts in sorted(self._overlay.subtrees().items()):
            yield [contact for contact in contacts if self._overlay.is_live(contact.id)]

    async def ask(self, contact: Contact, question: GetLoad) -> Load | None:
        """Ask a contact how loaded it is, and return None if it does not answer."""
        try:
            return await self._client.ask(contact, question, Load, LOAD_DEADLINE_S)
        except RemoteError:
            self._overlay.suspect(contact)
            return None

    async def lend_blocks(
        self,
        offer: BlockOffer[Contact],
        until: float = inf,
        backlog: Callable[[], BacklogRecord | None] = lambda: None,
    ) -> int:
        """Lend a peer up to `offer.blocks` blocks of URLs, and return how many blocks it took.

        Sites with free connections come first, then larger sites. No loan is offered after the loop second `until`.
        Each loan tells the `backlog` of this peer at that moment.
        """
        time = asyncio.get_running_loop().time
        left = offer.blocks * self.job.block_urls
        lender = self.loans.lender
        if not lender.may_lend_to(offer.peer):
            return 0
        # A borrower takes no second loan of a site.
        tried = {site for site, borrower in lender.sites() if borrower == offer.peer.id}
        # A request that uses a connection may hang, so sites with free connections come first. All sites are looked at
        # once, and before a loan its own site again, or a peer with thousands of sites would pay for all at each loan.
        spare = sorted(
            (self._frontier.has_free(site), ready, site)
            for site, ready in lender.sites_with_spare_connections()
            if site not in tried
        )
        while left > 0 and spare and len(tried) < LOANS_MAX and time() < until and not self.is_paused():
            *_, site = spare.pop()
            if not lender.sites_with_spare_connections([site]):
                continue
            tried.add(site)
            taken = await lender.lend(offer.peer, site, left, backlog())
            if taken == 0:
                break
            left -= taken or 0
        return offer.blocks - left // self.job.block_urls
