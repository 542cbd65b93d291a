"""`QueueCounter` counts the queue of one peer when a person asks, and keeps the counts for a while.

It counts some rows at a time. All who ask share one count. When nobody asks, nothing is counted. A dashboard asks again
and again: each question has the next count made, as often as that takes a small part of a core, and is answered with
the last one and its age.

Tests: tests/peer/swarm/test_queue_counter.py
"""

import asyncio
from collections.abc import Callable, Collection
from dataclasses import dataclass

import msgspec

from kadcrawl.crawl.build import CrawlComponents
from kadcrawl.keys import SITE_BYTES, Cell, site_hash
from kadcrawl.link.wire.basics import LONG_S_MAX, SMALL_MAX, URL_CHARS_MAX
from kadcrawl.link.wire.peer_row import SITE_SHOWN_MAX
from kadcrawl.link.wire.queue_messages import (
    AGES_S,
    DEPTHS_MAX,
    QueueCounts,
    QueuedSite,
    QueuedUrl,
    SurveyQueue,
)
from kadcrawl.store.arrival_marks import ArrivalMarks
from kadcrawl.store.frontier_entry import FrontierEntry
from kadcrawl.store.queue_scan import LAST, QueueScan
from kadcrawl.store.store import Store
from kadcrawl.system.clock import Clock
from kadcrawl.system.event import Event
from kadcrawl.system.printable import printable

FRESH_S = 10.0
"""Seconds for which a count is good: commands repeat a question until all peers have counted."""
RENEW_S = 0.5
"""Least age of a count at which a question starts the next count."""
RENEW_FACTOR = 33.0
"""Least such age as a multiple of the time of the count, so repeated questions cost 3 % of a core."""
RENEWED_FACTOR = RENEW_FACTOR + 2
"""A count that took long is good for so many times as long: until the next one is there."""
COUNTS_KEPT_MAX = 8
"""Counts in memory: of all sites, and of sites that were asked about."""


@dataclass(frozen=True, slots=True)
class _Count:
    """A count that is done."""

    queue: QueueCounts
    made_at: float
    took_s: float

    def is_good(self, now: float) -> bool:
        """Return whether the count may be told."""
        return now < self.made_at + max(FRESH_S, RENEWED_FACTOR * self.took_s)

    def is_to_be_renewed(self, now: float) -> bool:
        """Return whether a question has the count made anew, while this one is told."""
        return now >= self.made_at + max(RENEW_S, RENEW_FACTOR * self.took_s)


class QueueCounter:
    """The counts of the PENDING URLs of the cells that a peer owns."""

    def __init__(
        self, store: Store, components: CrawlComponents, owned: Callable[[], Collection[Cell]], me: bytes, clock: Clock
    ) -> None:
        """`owned` returns the cells that this peer owns, open or not."""
        self._store = store
        self._components = components
        self._owned = owned
        self._me = me
        self._clock = clock
        self._marks = ArrivalMarks(store.meta)
        self._counts: dict[SurveyQueue, _Count] = {}
        self._wanted: dict[SurveyQueue, None] = {}
        self._asked = Event()

    def note_arrivals(self) -> None:
        """Journal how many URLs have arrived by now, so that their ages are known later."""
        self._marks.note(self._clock.now(), self._store.frontier.last_seq)

    def counts(self, survey: SurveyQueue) -> QueueCounts | None:
        """Return the last counts with their age, or None while the first are being made."""
        count, now = self._counts.get(survey), self._clock.now()
        if count is not None and not count.is_good(now):
            count = None
        if (count is None or count.is_to_be_renewed(now)) and len(self._wanted) < COUNTS_KEPT_MAX:
            self._wanted[survey] = None
            self._asked.set()
        if count is None:
            return None
        return msgspec.structs.replace(count.queue, age_s=min(max(0.0, now - count.made_at), LONG_S_MAX))

    async def run(self) -> None:
        """Count as asked, until cancelled."""
        while True:
            await self._asked.wait()
            self._asked.clear()
            while self._wanted:
                survey = next(iter(self._wanted))
                began_at = self._clock.now()
                queue = await self._count(survey)
                now = self._clock.now()
                while len(self._counts) >= COUNTS_KEPT_MAX and survey not in self._counts:
                    del self._counts[next(iter(self._counts))]
                self._counts[survey] = _Count(queue, began_at, now - began_at)
                del self._wanted[survey]

    async def _count(self, survey: SurveyQueue) -> QueueCounts:
        now, store, by_url = self._clock.now(), self._store, self._components.job.partition == "url"
        older = [self._marks.older_than(now - age_s) for age_s in AGES_S]
        scan = QueueScan(
            store.journal,
            older,
            DEPTHS_MAX,
            host=survey.site if by_url else None,
            urls=survey.urls if survey.site else 0,
        )
        named = None
        if survey.site and not by_url:
            named = self._components.partitioner.cell(survey.site), site_hash(survey.site)
        for cell in sorted(self._owned()):
            digest = store.cells.get(cell)
            if digest is None or not digest.pending or (named is not None and cell != named[0]):
                continue
            first, last = (bound[:SITE_BYTES] for bound in store.scan.bounds(cell))
            first, last = (first, last) if named is None else (named[1], named[1])
            place: tuple[bytes, int, int] | None = (_before(first), LAST, 0)
            while place is not None:
                place = scan.step(place, last)
                await asyncio.sleep(0)
        return QueueCounts(
            scan.pending,
            scan.sites,
            scan.by_depth,
            scan.by_age,
            [self._site(name, pending) for name, pending in scan.top(survey.sites)],
            [_url(entry, now) for entry in scan.next if len(entry.url) <= URL_CHARS_MAX],
        )

    def _site(self, name: str, pending: int) -> QueuedSite:
        frontier, now = self._components.frontier, self._clock.now()
        wait_s, delay_s = 0.0, self._components.site_settings.delay_s(name)
        if self._components.job.partition != "url":
            wait_s, delay_s = frontier.clock(name, now)
        return QueuedSite(
            printable(name)[:SITE_SHOWN_MAX],
            pending,
            self._me,
            1,
            frontier.last_status(name),
            min(delay_s, LONG_S_MAX),
            min(wait_s, LONG_S_MAX),
            min(frontier.back_off(name).refusals, SMALL_MAX),
        )


def _url(entry: FrontierEntry, now: float) -> QueuedUrl:
    return QueuedUrl(
        entry.url, min(entry.depth, SMALL_MAX), min(entry.tries, SMALL_MAX), min(max(0.0, entry.due - now), LONG_S_MAX)
    )


def _before(first: bytes) -> bytes:
    """Return the bytes below this hash, or the hash itself if it is the least."""
    number = int.from_bytes(first, "big")
    return (number - 1).to_bytes(SITE_BYTES, "big") if number else b""
