"""When this peer looks at its load level, and what a heavy one then does (P1 1.4.2; balance/shedding.py decides).

At each update, at the same instants everywhere, a peer counts what it has to crawl. Only a heavy one asks others: its
contacts, bucket by bucket from near to far, until those that answered have room for all it has too much. It offers them
pages of its own sites, the largest first; whoever is offered any looks at its own level again.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Protocol

from kadcrawl.balance.level import Load
from kadcrawl.balance.shedding import Offer, Round, accepted, kept, room, spare, told
from kadcrawl.balance.sizing import Rates, Tally, Updates, work_area_blocks
from kadcrawl.config import Job
from kadcrawl.crawl.frontier import Frontier
from kadcrawl.crawl.totals import Totals
from kadcrawl.errors import RemoteError
from kadcrawl.keys import anchor
from kadcrawl.link.client import LinkClient
from kadcrawl.link.messages import LOANS_MAX, Contact, GetLevel, Lend, Loaded
from kadcrawl.peer.loans import Loans

if TYPE_CHECKING:
    from kadcrawl.peer.peer import Peer

RATES_INTERVALS = 6
"""Updates over which rates are counted."""
LOOK_S = 0.5
"""How often it is seen whether anything waits for this peer."""
IDLE_BLOCKS = 4
"""Room of a peer for which nothing waits, whatever is pending: it waits for its sites, and no lending would help."""
LEVEL_DEADLINE_S = 2.0

log = logging.getLogger(__name__)


class Overlay(Protocol):
    """What balancing needs of the overlay."""

    load: int

    def subtrees(self) -> Mapping[int, list[Contact]]: ...
    def is_live(self, peer: bytes) -> bool: ...
    def suspect(self, contact: Contact) -> None: ...


class Balancing:
    """The load level of one peer."""

    def __init__(
        self,
        *,
        job: Job,
        updates: Updates,
        overlay: Overlay,
        client: LinkClient,
        frontier: Frontier,
        work_area: int | None,
        totals: Totals,
        loans: Loans,
        holds: Callable[[], bool],
        now: Callable[[], float],
    ) -> None:
        """`updates` in seconds of the loop; `now` gives wall-clock seconds; `work_area` in URLs, None for by its rates.

        `holds` says whether this peer starts nothing just now.
        """
        self._job = job
        self.updates = updates
        self._overlay = overlay
        self._client = client
        self._frontier = frontier
        self._work_area = work_area
        self._totals = totals
        self.loans = loans
        self._holds = holds
        self._now = now
        self._rates = Rates(RATES_INTERVALS)
        self._busy_s = 0.0

    @property
    def wait_s(self) -> float:
        """Seconds until the next update, for a joiner."""
        return self.updates.wait_s(asyncio.get_running_loop().time())

    @property
    def load(self) -> Load:
        """What there is to crawl here: own URLs that are not with others, and borrowed ones."""
        lent, borrowed = self.loans.lending.urls, self.loans.borrowing.urls
        pending = max(0, self._frontier.pending - lent) + borrowed
        return Load(pending, self._blocks(pending) * self._job.block_urls, self._job.block_urls)

    def told(self) -> float:
        """Return the level told to others."""
        return told(self.load, self._rates.arrivals, self._rates.crawls)

    def wants(self, urls: int) -> bool:
        """Return whether this peer is light enough for so many URLs more."""
        blocks = -(-urls // self._job.block_urls)
        return not self._holds() and accepted(self.told(), blocks) == blocks

    def take(self, lend: Lend) -> bool:
        """Somebody offers a loan; return whether it is taken."""
        return self._job.balance != "off" and self.loans.borrowing.take(lend)

    async def run(self) -> None:
        """Watch over the loans, and look at the level at each update; until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self.loans.run(), name="loans")
            if self._job.balance != "off":
                group.create_task(self._update(), name="update")

    # --- inside --------------------------------------------------------------------------------------------------

    async def _update(self) -> None:
        loop = asyncio.get_running_loop()
        self._note(loop.time())
        while True:
            at = self.updates.next_after(loop.time())
            while (left := at - loop.time()) > 0:
                await asyncio.sleep(min(left, LOOK_S))
                if self._waited_for:
                    self._busy_s += min(left, LOOK_S)
            self._note(loop.time())
            self._overlay.load = max(0, round(100 * self.load.level))
            if not self._holds():
                await self._shed()

    def _blocks(self, pending: int) -> int:
        """Return n: the work area in blocks."""
        block = self._job.block_urls
        if self._work_area is not None:
            return max(1, self._work_area // block)
        if self._rates.crawls is None:
            return pending // block + IDLE_BLOCKS
        return work_area_blocks(self._rates.arrivals, self._rates.crawls, self._job.update_s, block, RATES_INTERVALS)

    @property
    def _waited_for(self) -> bool:
        """Whether something could be fetched by now, and has to wait for this peer."""
        now = self._now()
        dues = (self._frontier.next_due(), self.loans.borrowing.next_due())
        return any(due is not None and due <= now for due in dues)

    def _note(self, at: float) -> None:
        self._rates.note(Tally(at, self._totals.urls, self._totals.pages, self._busy_s))

    async def _shed(self) -> None:
        load, arrivals, crawls = self.load, self._rates.arrivals, self._rates.crawls
        own = load.pending - self.loans.borrowing.urls
        blocks = spare(load, own, kept(load, arrivals, crawls, self._job.update_s))
        if not blocks:
            return
        buckets = await self._levels(blocks)
        lent = Round(load.level, blocks, buckets)
        while (offers := lent.offers()) and not self._holds():
            for offer in offers:
                taken = await self._give(offer)
                lent.answered(offer, taken)
                if taken < offer.blocks and not self._frontier.lendable(self._now()):
                    return
        log.info("balance.shed level=%.2f blocks=%d left=%d", load.level, blocks, lent.blocks)

    async def _levels(self, blocks: int) -> list[list[tuple[Contact, float]]]:
        """Ask contacts for their levels, near to far, until those asked have room for so many blocks."""
        buckets: list[list[tuple[Contact, float]]] = []
        found = 0
        for _, contacts in sorted(self._overlay.subtrees().items()):
            live = [contact for contact in contacts if self._overlay.is_live(contact.id)]
            levels = await asyncio.gather(*(self._level(contact) for contact in live))
            bucket = [(contact, level) for contact, level in zip(live, levels, strict=True) if level is not None]
            buckets.append(bucket)
            found += sum(room(level) for _, level in bucket)
            if found >= blocks:
                break
        return buckets

    async def _level(self, contact: Contact) -> float | None:
        try:
            return (await self._client.ask(contact.address, GetLevel(), Loaded, LEVEL_DEADLINE_S)).level
        except RemoteError:
            self._overlay.suspect(contact)
            return None

    async def _give(self, offer: Offer[Contact]) -> int:
        """Lend a peer up to so many blocks of URLs, the largest sites first; return how many blocks it took."""
        left = offer.blocks * self._job.block_urls
        lending = self.loans.lending
        # It has one connection of a site, and no second.
        tried = {site for site, taker in lending.sites() if taker == offer.peer.id}
        while left > 0 and len(tried) < LOANS_MAX and not self._holds():
            lendable = [one for one in self._frontier.lendable(self._now()) if one[0] not in tried]
            if not lendable:
                break
            site, _ = max(lendable, key=lambda one: (one[1], one[0]))
            tried.add(site)
            taken = await lending.lend(offer.peer, site, left)
            if not taken:
                break
            left -= taken
        return offer.blocks - left // self._job.block_urls


def balanced(peer: "Peer", first_update_s: float | None) -> Balancing:
    """Put the balance of a peer together, whose other parts are there.

    The levels are first looked at after so many seconds, as the bootstrap peer says, or after a whole interval.
    """
    parts, job = peer.parts, peer.job

    def may_lend(giver: Contact, site: str) -> bool:
        cell = parts.placer.cell(site)
        nearest = peer.overlay.nearest_known(anchor(cell, job.cell_bits), 1)[0]
        if not peer.overlay.is_live(giver.id):
            peer.overlay.suspect(giver)  # We may not know each other yet.
        return nearest == giver and not peer.overlay.owns(cell) and cell not in peer.cells.holdings.owned

    loans = Loans(
        parts=parts,
        cells=peer.cells,
        store=peer.store,
        client=peer.client,
        me=lambda: peer.overlay.me,
        activity=peer.activity,
        clock=peer.clock,
        random=peer.random,
        limits=peer.config.limits,
        may_lend=may_lend,
        wants=lambda urls: peer.balancing.wants(urls),
        spawn=peer.cells.spawn,
    )
    first_at = asyncio.get_running_loop().time() + (job.update_s if first_update_s is None else first_update_s)
    return Balancing(
        job=job,
        updates=Updates(first_at, job.update_s),
        overlay=peer.overlay,
        client=peer.client,
        frontier=parts.frontier,
        work_area=peer.config.work_area,
        totals=peer.totals,
        loans=loans,
        holds=lambda: bool(parts.crawler.holds) or peer.leaving,
        now=peer.clock.now,
    )
