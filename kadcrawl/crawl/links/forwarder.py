"""Steps 1 and 2 of a URL's life: links found on a page travel to their owners and are acknowledged there.

A link met lately costs a dict look-up; one in the cell of its page, while that is open here, goes straight to the
intake, as whatever is told of the cell to its backups keeps the order: they have the link before they hear that the
page is DONE. All others go in batches, one per owner, which may be this peer. A page is
finished only when its `AckCountdown` is complete, that is, when every one of its links is safe: journaled at its
owner and the owner's backups. A link met before goes again if a sitemap says that its page has changed since it was
last told so. Delivery is tried until it succeeds, at whoever owns the cell by then; what is on its way is
bounded by the crawler, which starts nothing while too many pages are unfinished.
"""

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from kadcrawl.crawl.links.intake import Intake
from kadcrawl.crawl.links.recent_links import RecentlySent
from kadcrawl.crawl.scope.partitioner import Partitioner, UrlLocation
from kadcrawl.errors import RemoteError
from kadcrawl.keys import Cell
from kadcrawl.link.client import LinkClient
from kadcrawl.link.wire.messages import Accepted, Contact, DatedLink, DatedOffer, Link, Offer
from kadcrawl.settings.limits import Limits
from kadcrawl.system.min_interval import MinInterval

OFFER_DEADLINE_S = 10.0
RETRY_FIRST_S = 0.2
RETRY_MOST_S = 5.0
LINKS_PER_TURN_MAX = 1_000
"""Links of a page sent on before others have their turn: taking in so many of a cell of one's own takes 25 ms."""

AcceptHere = Callable[[list[tuple[Link, UrlLocation]]], Awaitable[list[int]]]
"""Takes links this peer owns and returns when they are safe: the indices of those that must be tried again."""


class Owners(Protocol):
    """What forwarding asks of the overlay."""

    async def owner(self, cell: Cell) -> Contact: ...
    def learn_owner(self, cell: Cell, owner: Contact) -> None: ...
    def suspect(self, contact: Contact) -> None: ...
    @property
    def me(self) -> Contact: ...


class AckCountdown:
    """Counts down the links of one page that are not acknowledged yet."""

    __slots__ = ("_left", "acknowledged")

    def __init__(self) -> None:
        self._left = 0
        self.acknowledged: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def expect(self) -> None:
        self._left += 1

    def settle(self) -> None:
        self._left -= 1
        if self._left == 0 and not self.acknowledged.done():
            self.acknowledged.set_result(None)

    def close(self) -> None:
        """No more links will be expected."""
        if self._left == 0:
            self.acknowledged.set_result(None)


@dataclass(slots=True)
class PendingLink:
    """A link on its way to its owner."""

    link: Link
    """As it was met nearest to a seed, with the latest date it was met with."""
    countdowns: list[AckCountdown]
    """Of the pages it was found on."""


def _no_seeds() -> int:
    return 0


class Forwarder:
    """Takes links to their owners."""

    def __init__(
        self,
        owners: Owners,
        client: LinkClient,
        intake: Intake,
        partitioner: Partitioner,
        limits: Limits,
        by_depth: bool,
        now: Callable[[], float],
        *,
        is_open: Callable[[Cell], bool],
        accept_here: AcceptHere,
        seeds_fingerprint: Callable[[], int] = _no_seeds,
    ) -> None:
        """`by_depth`: the job limits depth, so a link met again nearer to a seed is news to its owner.

        `is_open` says whether a cell may be crawled here just now.
        """
        self._owners = owners
        self._client = client
        self._intake = intake
        self._partitioner = partitioner
        self._limits = limits
        self._by_depth = by_depth
        self._now = now
        self._is_open = is_open
        self._accept_here = accept_here
        self._seeds_fingerprint = seeds_fingerprint
        self._recently_sent: RecentlySent[int] = RecentlySent(limits.recent_links_max, limits.recent_chars_max)
        """At which depth links were met nearest to a seed."""
        self._dates: RecentlySent[float] = RecentlySent(limits.recent_links_max, limits.recent_chars_max)
        """When pages changed last, as their owners were told lately."""
        self._pending_links: dict[str, PendingLink] = {}
        self._queue: list[tuple[Link, UrlLocation]] = []
        self._queued = asyncio.Event()

    @property
    def unacknowledged(self) -> int:
        """Links on their way to their owners, this peer included."""
        return len(self._pending_links)

    def not_recently_sent(self, urls: Iterable[str], depth: int) -> list[str]:
        """Return those of `urls` whose owners have not lately been told of them, at this depth or nearer to a seed."""
        recent = self._recently_sent
        if self._by_depth:
            return [url for url in urls if recent.get(url, depth + 1) > depth]
        return [url for url in urls if url not in recent]

    def forget(self) -> None:
        """Forget what was sent: its owners may have forgotten it as well."""
        self._recently_sent.clear()

    def newer_lastmod(self, modified: Mapping[str, float]) -> list[str]:
        """Return the URLs whose owners have not lately been told that their pages changed at this second, or later."""
        dates = self._dates
        return [url for url, at in modified.items() if at > dates.get(url, -1.0)]

    def forward(self, links: Iterable[Link], cell: Cell | None) -> AckCountdown:
        """Send canonical, in-scope links on their way; the receipt is complete when they are safe.

        `cell` is that of their page, None for seeds. Links in it are in the store's open transaction on return, if it
        is open.
        """
        receipt = AckCountdown()
        open_cell = cell if cell is not None and self._is_open(cell) else None
        for link in links:
            known_depth = self._recently_sent.get(link.url)
            if known_depth is not None and (known_depth <= link.depth or not self._by_depth):
                date = _date(link)
                if date is None or date <= self._dates.get(link.url, -1.0):
                    continue
            trip = self._pending_links.get(link.url)
            if trip is not None:
                receipt.expect()
                trip.countdowns.append(receipt)
                trip.link = self._joined(trip.link, link)
                continue
            place = self._partitioner.locate(link.url)
            if place.cell == open_cell:
                self._intake.accept(link, place, self._now())
                self._remember(link)
            else:
                receipt.expect()
                self._pending_links[link.url] = PendingLink(link, [receipt])
                self._send(link, place)
        receipt.close()
        return receipt

    async def forward_all(self, links: Sequence[Link], cell: Cell) -> None:
        """Send the links of a page in `cell` on their way, and return when they have arrived.

        A sitemap has so many that others get their turn in between; the first of them go at once.
        """
        receipts = []
        for start in range(0, len(links), LINKS_PER_TURN_MAX):
            if start:
                await asyncio.sleep(0)
            receipts.append(self.forward(links[start : start + LINKS_PER_TURN_MAX], cell))
        for receipt in receipts:
            await receipt.acknowledged

    async def run(self) -> None:
        """Deliver what is queued, until cancelled."""
        time, spacing = asyncio.get_running_loop().time, MinInterval(self._limits.batch_spacing_s)
        async with asyncio.TaskGroup() as deliveries:
            while True:
                await self._queued.wait()
                await asyncio.sleep(spacing.wait_s(time()))
                self._queued.clear()
                queue, self._queue = self._queue, []
                deliveries.create_task(self._deliver(queue), name="deliver")

    async def _deliver(self, links: list[tuple[Link, UrlLocation]]) -> None:
        wait_s = RETRY_FIRST_S
        while True:
            by_owner: dict[Contact, list[tuple[Link, UrlLocation]]] = defaultdict(list)
            for link, place in links:
                by_owner[await self._owners.owner(place.cell)].append((link, place))
            batches = [
                (owner, group[start : start + self._limits.batch_links_max])
                for owner, group in by_owner.items()
                for start in range(0, len(group), self._limits.batch_links_max)
            ]
            left = await asyncio.gather(*(self._offer(owner, batch) for owner, batch in batches))
            links = [one for batch in left for one in batch]
            if not links:
                return
            await asyncio.sleep(wait_s)
            wait_s = min(2 * wait_s, RETRY_MOST_S)

    async def _offer(self, owner: Contact, batch: list[tuple[Link, UrlLocation]]) -> list[tuple[Link, UrlLocation]]:
        """Offer one batch; return the links that are not acknowledged."""
        if owner.id == self._owners.me.id:
            left = set(await self._accept_here(batch))
        else:
            try:
                accepted = await self._client.ask(
                    owner, _offer([link for link, _ in batch], self._seeds_fingerprint()), Accepted, OFFER_DEADLINE_S
                )
            except RemoteError:
                self._owners.suspect(owner)
                return batch
            left = set()
            for one in accepted.redirects:
                if one.index < len(batch):
                    self._owners.learn_owner(batch[one.index][1].cell, one.owner)
                    left.add(one.index)
        for index, (link, place) in enumerate(batch):
            if index not in left:
                self._settle(link, place)
        return [one for index, one in enumerate(batch) if index in left]

    def _send(self, link: Link, location: UrlLocation) -> None:
        self._queue.append((link, location))
        self._queued.set()

    def _joined(self, known: Link, met: Link) -> Link:
        """Return what is to be told of a link on its way that is met again; `known` itself if there is no news.

        News is offered once what is on its way has arrived.
        """
        nearest = met if self._by_depth and met.depth < known.depth else known
        before, date = _date(known), _date(met)
        if date is None or (before is not None and before >= date):
            date = before
        if date == _date(nearest):
            return nearest
        return DatedLink(nearest.url, nearest.depth, nearest.hops, date)

    def _settle(self, link: Link, location: UrlLocation) -> None:
        """Its owner has the link; its trip is over unless there is more to tell by now."""
        trip = self._pending_links[link.url]
        if trip.link is not link:
            self._send(trip.link, location)
            return
        del self._pending_links[link.url]
        for receipt in trip.countdowns:
            receipt.settle()
        self._remember(link)

    def _remember(self, link: Link) -> None:
        self._recently_sent.keep(link.url, min(link.depth, self._recently_sent.get(link.url, link.depth)))
        if (date := _date(link)) is not None:
            if link.url in self._dates:
                self._dates.move_to_end(link.url)
            self._dates.keep(link.url, date)


def _date(link: Link) -> float | None:
    """Return the wall-clock second at which its page changed last, if the link says so."""
    return link.modified if isinstance(link, DatedLink) else None


def _offer(links: list[Link], seeds_fingerprint: int) -> Offer | DatedOffer:
    """Return the offer of these links, which is longer only if there are dates."""
    if not any(isinstance(link, DatedLink) for link in links):
        return Offer(links, seeds_fingerprint)
    return DatedOffer([DatedLink(link.url, link.depth, link.hops, _date(link)) for link in links], seeds_fingerprint)
