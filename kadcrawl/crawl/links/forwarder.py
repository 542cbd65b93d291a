"""Sends the links of a page to their owners, and waits until the owners acknowledge them.

A link met recently costs one dict look-up. A link in the cell of its page goes straight to the intake while that cell
is open here: the backups of the cell receive the link before they hear that the page is DONE. All other links go in
batches, one per owner, and this peer may be the owner. A page is finished only when its `AckCountdown` is complete,
that is, when each of its links is safe: journaled at its owner and at the owner's backups. A link met before is sent
again if a sitemap reports a later change of its page. Delivery is tried until it succeeds, at the owner of the cell at
that time. The crawler bounds the links in flight: no attempt starts while too many pages are unfinished.
"""

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from typing import Protocol

from kadcrawl.crawl.links.intake import Intake
from kadcrawl.crawl.links.recent_links import RecentlySent
from kadcrawl.crawl.scope.partitioner import Partitioner, UrlLocation
from kadcrawl.errors import RemoteError
from kadcrawl.keys import Cell, Key
from kadcrawl.link.client import LinkClient
from kadcrawl.link.wire.messages import Accepted, Contact, DatedLink, DatedOffer, Link, Offer
from kadcrawl.settings.limits import Limits
from kadcrawl.system.duration_histogram import DurationHistogram
from kadcrawl.system.event import Event
from kadcrawl.system.min_interval import MinInterval
from kadcrawl.system.spaced_batches import SpacedBatches

OFFER_DEADLINE_S = 10.0
RETRY_FIRST_S = 0.2
RETRY_MOST_S = 5.0
"""Longest wait before links are sent again to an owner that did not answer, in seconds."""
GROUPS_MAX = 64
"""Limit on the closed cells whose links are accepted in groups of their own. By URL each link may have its own cell."""
LINKS_PER_TURN_MAX = 1_000
"""Links of a page sent before other tasks have their turn. To accept so many links of an own cell takes 25 ms."""

QueuedLink = tuple[Link, UrlLocation]

AcceptHere = Callable[[list[QueuedLink]], Awaitable[list[int]]]
"""Accepts links of this peer's cells until they are safe. Returns the indices of the links to try again."""


class Owners(Protocol):
    """The overlay, as far as forwarding needs it."""

    async def owner(self, cell: Cell) -> Contact: ...
    def known_owner(self, cell: Cell) -> Contact | None: ...
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
        """Expect no more links."""
        if self._left == 0:
            self.acknowledged.set_result(None)


@dataclass(slots=True)
class PendingLink:
    """A link on its way to its owner."""

    link: Link
    """The link at its least depth so far, with the latest date so far."""
    countdowns: list[AckCountdown]
    """The countdowns of the pages on which the link was found."""
    found_at: float
    """The wall-clock second at which the link was found first."""
    is_forgotten: bool = False
    """All links sent were forgotten since the link was found last. So its owner may refuse the offer under way."""


def _no_seeds() -> int:
    return 0


def _always() -> bool:
    return True


def _never() -> bool:
    return False


class Forwarder:
    """Sends links to their owners."""

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
        hurries: Callable[[], bool] = _always,
        is_laden: Callable[[], bool] = _never,
    ) -> None:
        """Make a forwarder over an overlay. With `by_depth` the job limits depth, so a link met nearer to a seed is new
        to its owner.

        `is_open` returns whether a cell may be crawled here now. `seeds_fingerprint` returns the fingerprint of the
        seeds that the scope knows here (peer/swarm/swarm_state.py). `hurries` returns whether this peer fetches
        nothing, so that links are not to wait for company, and `is_laden` whether it has so much to fetch that links
        may wait for longer.
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
        self._hurries = hurries
        self._is_laden = is_laden
        self._recently_sent: RecentlySent[int] = RecentlySent(limits.recent_links_max, limits.recent_chars_max)
        """The least depth at which links were met."""
        self._dates: RecentlySent[float] = RecentlySent(limits.recent_links_max, limits.recent_chars_max)
        """The latest change of pages that their owners were recently told."""
        self._pending_links: dict[str, PendingLink] = {}
        self._queue: list[QueuedLink] = []
        self._queued = Event()
        self._batches: SpacedBatches[Contact, QueuedLink] | None = None
        self.acknowledgement_times = DurationHistogram()
        """The times until all links of a page were acknowledged, for pages with links that had to be sent."""
        self.acknowledged: list[Callable[[Key, str, float], None]] = []
        """Functions that receive key and URL of each acknowledged link, and the wall-clock second it was found at."""

    @property
    def unacknowledged(self) -> int:
        """Links on their way to their owners, this peer included."""
        return len(self._pending_links)

    def not_recently_sent(self, urls: Iterable[str], depth: int) -> list[str]:
        """Return the URLs that were not recently sent to their owners at this depth or a smaller depth."""
        recent = self._recently_sent
        if self._by_depth:
            return [url for url in urls if recent.get(url, depth + 1) > depth]
        return [url for url in urls if url not in recent]

    def note_safe(self, url: str, depth: int) -> None:
        """Note that a URL is journaled at this depth by all holders of its cell, so that links to it are no news."""
        self._recently_sent.keep(url, min(depth, self._recently_sent.get(url, depth)))

    def forget(self) -> None:
        """Forget the links sent, as their owners may have forgotten them as well, or refused them.

        A link on its way is sent once more if it is found again.
        """
        self._recently_sent.clear()
        for pending in self._pending_links.values():
            pending.is_forgotten = True

    def newer_lastmod(self, modified: Mapping[str, float]) -> list[str]:
        """Return the URLs whose owners do not know that their pages changed at this second or later."""
        dates = self._dates
        return [url for url, at in modified.items() if at > dates.get(url, -1.0)]

    def forward(self, links: Iterable[Link], cell: Cell | None) -> AckCountdown:
        """Send canonical, in-scope links on their way, and return the countdown of their acknowledgements.

        `cell` is the cell of the page, or None for seeds. Links in this cell are in the store's open transaction on
        return, if the cell is open.
        """
        countdown = AckCountdown()
        open_cell = cell if cell is not None and self._is_open(cell) else None
        for link in links:
            known_depth = self._recently_sent.get(link.url)
            if known_depth is not None and (known_depth <= link.depth or not self._by_depth):
                date = _date(link)
                if date is None or date <= self._dates.get(link.url, -1.0):
                    continue
            pending = self._pending_links.get(link.url)
            if pending is not None:
                countdown.expect()
                pending.countdowns.append(countdown)
                pending.link = self._joined(pending.link, link)
                if pending.is_forgotten:
                    pending.link, pending.is_forgotten = copy(pending.link), False
                continue
            location = self._partitioner.locate(link.url)
            if location.cell == open_cell:
                self._intake.accept(link, location, self._now())
                self._remember(link)
            else:
                countdown.expect()
                self._pending_links[link.url] = PendingLink(link, [countdown], self._now())
                self._send(link, location)
        countdown.close()
        return countdown

    async def forward_all(self, links: Sequence[Link], cell: Cell) -> None:
        """Send the links of a page in `cell`, and return when all are acknowledged.

        A sitemap has so many links that other tasks have their turn in between. The first links go at once.
        """
        if not links:
            return
        time, countdowns = asyncio.get_running_loop().time, []
        began = time()
        for start in range(0, len(links), LINKS_PER_TURN_MAX):
            if start:
                await asyncio.sleep(0)
            countdowns.append(self.forward(links[start : start + LINKS_PER_TURN_MAX], cell))
        waits = any(not countdown.acknowledged.done() for countdown in countdowns)
        for countdown in countdowns:
            await countdown.acknowledged
        if waits:
            self.acknowledgement_times.observe(time() - began)

    def hurry(self) -> None:
        """Let links wait for no company any more: the peer stops, and its last pages wait for their links."""
        if self._batches is not None:
            self._batches.hurry()

    async def run(self) -> None:
        """Deliver queued links, until cancelled."""
        time, spacing_s = asyncio.get_running_loop().time, self._limits.batch_spacing_s
        spacing = MinInterval(spacing_s)
        async with asyncio.TaskGroup() as deliveries:

            def begin(owner: Contact, links: list[QueuedLink]) -> None:
                deliveries.create_task(self._deliver(owner, links, batches), name="deliver")

            batches = SpacedBatches(spacing_s, begin, self._is_laden, with_answers=True)
            self._batches = batches
            try:
                while True:
                    await self._queued.wait()
                    await asyncio.sleep(spacing.wait_s(time()))
                    self._queued.clear()
                    queue, self._queue = self._queue, []
                    deliveries.create_task(self._hand_on(queue, batches), name="find owners")
            finally:
                batches.close()

    async def _hand_on(self, links: list[QueuedLink], batches: SpacedBatches[Contact, QueuedLink]) -> None:
        """Put links into the batches of their owners."""
        for owner, group in (await self._by_owner(links)).items():
            batches.put(owner, group, hurries=owner.id == self._owners.me.id or self._hurries())

    async def _by_owner(self, links: list[QueuedLink]) -> dict[Contact, list[QueuedLink]]:
        by_owner: dict[Contact, list[QueuedLink]] = defaultdict(list)
        for link, location in links:
            by_owner[await self._owners.owner(location.cell)].append((link, location))
        return by_owner

    async def _deliver(
        self, owner: Contact, links: list[QueuedLink], batches: SpacedBatches[Contact, QueuedLink]
    ) -> None:
        """Offer links to their owner until all are acknowledged, and to other owners if they have others meanwhile."""
        left = await self._offer_all({owner: links})
        batches.answered(owner)
        wait_s = RETRY_FIRST_S
        while left:
            await asyncio.sleep(wait_s)
            wait_s = min(2 * wait_s, RETRY_MOST_S)
            left = await self._offer_all(await self._by_owner(left))

    async def _offer_all(self, by_owner: Mapping[Contact, list[QueuedLink]]) -> list[QueuedLink]:
        """Offer links to their owners, and return those without an acknowledgement."""
        batches = [
            (owner, group[start : start + self._limits.batch_links_max])
            for owner, all_links in by_owner.items()
            for group in (self._by_readiness(all_links) if owner.id == self._owners.me.id else [all_links])
            for start in range(0, len(group), self._limits.batch_links_max)
        ]
        if len(batches) == 1:  # As nearly always: without a task of its own.
            return await self._offer(*batches[0])
        left = await asyncio.gather(*(self._offer(owner, batch) for owner, batch in batches))
        return [pair for batch in left for pair in batch]

    def _by_readiness(self, links: list[QueuedLink]) -> Iterable[list[QueuedLink]]:
        """Group the links of this peer's own cells: one group for all open cells, and one for each closed cell.

        After a restart some cells open seconds after others. A page waits for its own links, not for all of a batch.
        """
        of_open: list[QueuedLink] = []
        of_others: list[QueuedLink] = []
        groups: dict[Cell, list[QueuedLink]] = {}
        for link, location in links:
            cell = location.cell
            if self._is_open(cell):
                of_open.append((link, location))
            elif cell in groups or len(groups) < GROUPS_MAX:
                groups.setdefault(cell, []).append((link, location))
            else:
                of_others.append((link, location))
        return [group for group in (of_open, *groups.values(), of_others) if group]

    async def _offer(self, owner: Contact, batch: list[QueuedLink]) -> list[QueuedLink]:
        """Offer one batch, and return the links without an acknowledgement."""
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
            for redirect in accepted.redirects:
                if redirect.index < len(batch):
                    self._owners.learn_owner(batch[redirect.index][1].cell, redirect.owner)
                    left.add(redirect.index)
        for index, (link, location) in enumerate(batch):
            if index not in left:
                self._settle(link, location)
        return [pair for index, pair in enumerate(batch) if index in left]

    def _send(self, link: Link, location: UrlLocation) -> None:
        self._queue.append((link, location))
        self._queued.set()

    def _joined(self, known: Link, met: Link) -> Link:
        """Return the pending link `known` joined with the same link met again, or `known` itself if nothing is new.

        The new part is offered once the link on its way has arrived.
        """
        nearest = met if self._by_depth and met.depth < known.depth else known
        before, date = _date(known), _date(met)
        if date is None or (before is not None and before >= date):
            date = before
        if date == _date(nearest):
            return nearest
        return DatedLink(nearest.url, nearest.depth, nearest.hops, nearest.trail, date)

    def _settle(self, link: Link, location: UrlLocation) -> None:
        """End the way of an acknowledged link, unless it has changed meanwhile and must be sent again."""
        pending = self._pending_links[link.url]
        if pending.link is not link:
            self._send(pending.link, location)
            return
        del self._pending_links[link.url]
        for countdown in pending.countdowns:
            countdown.settle()
        if not pending.is_forgotten:
            self._remember(link)
        for listener in self.acknowledged:
            listener(location.key, link.url, pending.found_at)

    def _remember(self, link: Link) -> None:
        self.note_safe(link.url, link.depth)
        if (date := _date(link)) is not None:
            if link.url in self._dates:
                self._dates.move_to_end(link.url)
            self._dates.keep(link.url, date)


def _date(link: Link) -> float | None:
    """Return the wall-clock second of the page's last change, or None if the link has no date."""
    return link.modified if isinstance(link, DatedLink) else None


def _offer(links: list[Link], seeds_fingerprint: int) -> Offer | DatedOffer:
    """Return the offer of these links. Only an offer with dates has the longer form."""
    if not any(isinstance(link, DatedLink) for link in links):
        return Offer(links, seeds_fingerprint)
    dated = [DatedLink(link.url, link.depth, link.hops, link.trail, _date(link)) for link in links]
    return DatedOffer(dated, seeds_fingerprint)
