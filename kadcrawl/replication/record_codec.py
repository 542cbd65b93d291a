"""`Records` turns records of the store into batches for the wire, and merges batches into the store.

A batch holds the records in their state at that moment. A received batch is checked as if no peer had: a URL must be
canonical, and its location is computed here. Merging is a join in a lattice (later states, more tries, the later
instant), so batches may repeat, overtake each other, and meet URLs that have come another way.

Tests: tests/replication/test_cells.py
"""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

import msgspec

from kadcrawl.crawl.frontier.active_sites import SiteClock
from kadcrawl.crawl.frontier.frontier import Frontier
from kadcrawl.crawl.links.intake import Intake
from kadcrawl.crawl.recrawl.policy import sanitized
from kadcrawl.crawl.scope.partitioner import Partitioner
from kadcrawl.keys import Cell, Key
from kadcrawl.link.wire.messages import (
    JAR_BYTES_MAX,
    LONG_S_MAX,
    ROBOTS_BYTES_MAX,
    SMALL_MAX,
    URL_CHARS_MAX,
    BackOffRecord,
    Batch,
    Contact,
    CookiesRecord,
    DoneRun,
    Link,
    PendingRecord,
    RobotsRecord,
    SiteRecord,
    VisitRecord,
)
from kadcrawl.replication.done_runs import resolved
from kadcrawl.store.back_off import NO_REFUSALS, BackOff
from kadcrawl.store.bloom.cell_filters import EncodedFilter
from kadcrawl.store.bloom.expiring_filter import ExpiringFilter
from kadcrawl.store.frontier_entry import FrontierEntry
from kadcrawl.store.kept_cookies import NO_COOKIES, KeptCookies
from kadcrawl.store.record_reads import RecordReads
from kadcrawl.store.schema import DONE, is_pending
from kadcrawl.store.store import Store
from kadcrawl.store.visit import Visit
from kadcrawl.urls import is_canonical, origin_of

SEEN_AT_ONCE = 2_000
"""URLs looked up in epoch filters before other work gets its turn: some 10 ms."""
WAIT_MAX_S = 86_400.0
"""Longest wait on the wire."""
UNFINISHED_WAIT_S = 10.0
"""Time for which a fetched page is left to its fetcher, while its links travel. If the owner of a link has died, it
takes that long until another peer owns the link."""
COOKIES_BATCH_BYTES_MAX = 512 * 1024
"""Size of all cookies in one batch."""
ROBOTS_BATCH_BYTES_MAX = 512 * 1024
"""Size of all robots.txt in one batch. The rest are fetched again."""


def site_record(clock: SiteClock, now: float) -> SiteRecord:
    """Return the clock of a site as it travels."""
    known = clock.back_off
    back_off = None
    if known.version:
        left_s = min(max(0.0, known.until - now), WAIT_MAX_S)
        back_off = BackOffRecord(known.refusals, known.wait_s, known.status, left_s, known.version)
    kept, cookies = clock.cookies, None
    if kept.version and len(kept.jar) <= JAR_BYTES_MAX:
        cookies = CookiesRecord(kept.jar, kept.version)
    return SiteRecord(clock.site, min(clock.wait_s, WAIT_MAX_S), min(clock.delay_s, WAIT_MAX_S), back_off, cookies)


def cookies_of(record: SiteRecord) -> KeptCookies:
    """Return the cookies in a record."""
    return NO_COOKIES if record.cookies is None else KeptCookies(record.cookies.jar, record.cookies.version)


def with_bounded_cookies(records: list[SiteRecord]) -> list[SiteRecord]:
    """Return the records of one message, without the cookies for which it has no room: their sites begin new
    sessions."""
    left, bounded = COOKIES_BATCH_BYTES_MAX, []
    for record in records:
        if record.cookies is not None:
            left -= len(record.cookies.jar)
        bounded.append(record if left >= 0 else msgspec.structs.replace(record, cookies=None))
    return bounded


def back_off_of(record: SiteRecord, now: float) -> BackOff:
    """Return the refusals in a record, by this peer's clock."""
    told = record.back_off
    if told is None:
        return NO_REFUSALS
    return BackOff(told.refusals, told.last_s, told.status, now + told.left_s, told.version)


class RecordTrust(Protocol):
    """The answers to whose records of a cell count. `TrustPolicy` is the real one."""

    def owns(self, cell: Cell) -> bool:
        """Return whether this peer owns the cell, so that no other peer knows better."""

    def is_nearest(self, sender: Contact, cell: Cell) -> bool:
        """Return whether no known peer is nearer to the cell than the sender."""

    def trusts(self, sender: Contact, cell: Cell, now: float) -> bool:
        """Return whether DONE records of the cell count if this peer sends them."""


class Records:
    """The records of one peer."""

    def __init__(
        self,
        store: Store,
        frontier: Frontier,
        intake: Intake,
        partitioner: Partitioner,
        is_taken: Callable[[FrontierEntry], bool],
        now: Callable[[], float],
        trust: RecordTrust,
    ) -> None:
        """Read nothing yet. `is_taken` says whether the crawler has an entry just now."""
        self._store = store
        self._reads = RecordReads(store.journal)
        self._frontier = frontier
        self._intake = intake
        self._partitioner = partitioner
        self._is_taken = is_taken
        self._now = now
        self._trust = trust
        self.merging = False
        """True if changes in the store just now come from another peer."""

    def replication_batch(self, keys: Sequence[Key], sites: Sequence[str]) -> Batch:
        """Return these records and the clocks of these sites as they are now."""
        done, entries, visits = self._read(keys, moving=False)
        return Batch(done, self._pending(entries, moving=False), self._sites(sites), [], visits)

    def moving(self, keys: Sequence[Key]) -> Batch:
        """Return these records with all that a new owner needs: clocks, delays and robots.txt of their sites."""
        done, entries, visits = self._read(keys, moving=True)
        sites = dict.fromkeys(entry.site for entry in entries)
        again = [visit.url for visit in visits if is_pending(visit.state)]
        sites |= dict.fromkeys(self._partitioner.locate(url).site for url in again)
        origins = dict.fromkeys(map(origin_of, [*(entry.url for entry in entries), *again]))
        records = self._pending(entries, moving=True)
        return Batch(done, records, self._sites(sites), self._robots(origins), visits)

    def lending(self, entries: Sequence[FrontierEntry]) -> Batch:
        """Return these entries, of one site, with all that another peer needs to fetch them."""
        origins = dict.fromkeys(origin_of(entry.url) for entry in entries)
        pending = [
            msgspec.structs.replace(record, rounds=min(self._store.rounds(entry.key), SMALL_MAX))
            for entry, record in zip(entries, self._pending(entries, moving=False), strict=True)
        ]
        return Batch([], pending, [self._site(entries[0].site)], self._robots(origins))

    def merge(
        self, batch: Batch, only: Cell | None = None, trust_done: bool = True, *, sender: Contact | None = None
    ) -> set[Cell]:
        """Merge a batch, or its records of the cell `only`, into the open transaction. Return the merged cells.

        With `only` the batch answers a question of this peer as the owner of that cell; else `sender` has sent it.
        Clocks and robots.txt count only from the owner of a site or from an asked peer: a false one hurries a site or
        leaves it alone. DONE records count with `only` if `trust_done`, else as the trust policy says. Other pages
        become PENDING if they are new here.
        """
        trusted: dict[Cell, bool] = {}

        def is_trusted(cell: Cell) -> bool:
            if only is not None or sender is None:
                return trust_done
            if cell not in trusted:
                trusted[cell] = self._trust.trusts(sender, cell, asyncio.get_running_loop().time())
            return trusted[cell]

        def sets_clocks(cell: Cell) -> bool:
            return cell == only if only is not None else sender is not None and self._trust.is_nearest(sender, cell)

        now = self._now()
        cells, origins = set(), set()
        self.merging = True
        try:
            for site in batch.sites:
                if sets_clocks(self._partitioner.cell(site.site)):
                    self._frontier.learn_clock(
                        site.site, site.wait_s, site.delay_s, now, back_off_of(site, now), cookies_of(site)
                    )
            for key in map(Key, batch.done):
                cell = self._store.cell_of(key)
                if (only is None or cell == only) and is_trusted(cell):
                    self._intake.merge_done(key, now)
                    cells.add(cell)
            for one in batch.pending:
                if not is_canonical(one.url):
                    continue
                place = self._partitioner.locate(one.url)
                if only is not None and place.cell != only:
                    continue
                link, order = Link(one.url, one.depth, one.hops, one.trail), one.drop_order
                if is_trusted(place.cell):
                    due = now + one.wait_s if one.wait_s else 0.0
                    even_seen = only is None and not self._trust.owns(place.cell)
                    self._intake.merge_pending(
                        link, place, now, one.tries, due, even_seen=even_seen, drop_order=one.drop_order
                    )
                else:
                    self._intake.merge_pending(link, place, now, 0, 0.0, drop_order=order)
                cells.add(place.cell)
                if sets_clocks(place.cell):
                    origins.add(origin_of(one.url))
            for visit in batch.visits:
                if (visited := self._merge_visit(visit, only, now, is_trusted)) is not None:
                    cells.add(visited)
                    if sets_clocks(visited):
                        origins.add(origin_of(visit.url))
            for robots in batch.robots:
                if robots.origin in origins:
                    self._store.sites.learn_robots(robots.origin, robots.rules, now - robots.age_s)
        finally:
            self.merging = False
        return cells

    def merge_runs(self, runs: Sequence[DoneRun], sender: Contact) -> tuple[set[Cell], list[int]]:
        """Merge runs of done pages into the open transaction. Return the merged cells, and the indices of runs that
        this store has otherwise. As with keys, those of a sender that is not trusted change nothing.
        """
        cells: set[Cell] = set()
        now, loop_s = self._now(), asyncio.get_running_loop().time()
        found = resolved(self._store, runs)
        self.merging = True
        try:
            for keys in found:
                cell = None if keys is None else self._store.cell_of(keys[0])
                if keys is not None and cell is not None and self._trust.trusts(sender, cell, loop_s):
                    for key in keys:
                        self._intake.merge_done(key, now)
                    cells.add(cell)
        finally:
            self.merging = False
        return cells, [index for index, keys in enumerate(found) if keys is None]

    def refused(self, batch: Batch, only: Cell) -> list[Key]:
        """Return the keys of a cell that are PENDING in a batch and DONE here by an epoch filter."""
        if self._store.expiring_filters is None:
            return []
        places = [self._partitioner.locate(one.url) for one in batch.pending if is_canonical(one.url)]
        return [place.key for place in places if place.cell == only and self._store.state(place.key) == DONE]

    async def merge_epoch_filters(self, cell: Cell, epoch_filters: Sequence[EncodedFilter], *, adopt: bool) -> None:
        """Merge epoch filters of a cell. `adopt` if its owner sent them.

        The filters may be hundreds, of a millisecond or more each, and the cell may have a million PENDING URLs. So
        other work gets its turn in between.
        """
        news: list[ExpiringFilter] = []
        for one in {one.epoch: one for one in epoch_filters}.values():
            news += self._store.join_epoch_filters(cell, [one], adopt=adopt)
            await asyncio.sleep(0)
        first: bytes | None = b"" if news else None
        while first is not None:
            self.merging = True
            try:
                first = self._intake.merge_filters(cell, news, first, SEEN_AT_ONCE, self._now())
            finally:
                self.merging = False
            await asyncio.sleep(0)

    def _merge_visit(
        self, record: VisitRecord, only: Cell | None, now: float, is_trusted: Callable[[Cell], bool]
    ) -> Cell | None:
        """Merge a visit. Return its cell, or None if its URL is not canonical or not of the cell `only`."""
        if not is_canonical(record.url) or self._store.expiring_filters is not None:
            return None
        place = self._partitioner.locate(record.url)
        if only is not None and place.cell != only:
            return None
        if not is_trusted(place.cell):
            self._intake.merge_pending(
                Link(record.url, record.depth, 0), place, now, 0, 0.0, drop_order=record.drop_order
            )
            return place.cell
        due = None if record.due_s is None else now + record.due_s
        visit = Visit(
            place.key,
            place.site,
            record.url,
            record.depth,
            due,
            record.period_s,
            *(record.etag, record.last_modified, record.digest, record.captured, record.gone),
            *(record.failed, record.order, record.answer),
        )
        again_at = now + record.wait_s if record.wait_s else 0.0
        self._intake.merge_visit(sanitized(visit), record.state, now, record.tries, again_at, record.drop_order)
        return place.cell

    def _read(self, keys: Sequence[Key], *, moving: bool) -> tuple[list[bytes], list[FrontierEntry], list[VisitRecord]]:
        """Return the records of these keys: those DONE, those PENDING, and those with visits."""
        done: list[bytes] = []
        pending, visits = [], []
        states = self._reads.states(keys)
        for key in keys:
            state = states.get(key)
            if state is None and not self._store.keeps_keys:
                state = self._store.state(key)
            if state is None:
                continue
            if (visit := self._store.visits.get(key)) is not None:
                visits.append(self._visit(visit, state, moving=moving))
            elif is_pending(state):
                pending.append(key)
            else:
                done.append(key)
        entries = self._reads.entries(pending)
        return done, [entries[key] for key in pending if key in entries], visits

    def _visit(self, visit: Visit, state: int, *, moving: bool) -> VisitRecord:
        tries, wait_s, drop_order = 0, 0.0, 0
        if is_pending(state) and (entry := self._store.entry(visit.key)) is not None:
            tries, wait_s, drop_order = entry.tries, self._wait_s(entry, moving=moving), entry.drop_order
        now = self._now()
        return VisitRecord(
            visit.url,
            visit.depth,
            state,
            tries,
            wait_s,
            None if visit.due is None else min(max(0.0, visit.due - now), LONG_S_MAX),
            visit.period_s,
            *(visit.etag, visit.last_modified, visit.digest, visit.captured, visit.gone),
            *(visit.failed, visit.order, visit.answer),
            drop_order,
        )

    def _wait_s(self, entry: FrontierEntry, *, moving: bool) -> float:
        unfinished = moving and self._is_taken(entry)
        return min(max(0.0, entry.due - self._now(), UNFINISHED_WAIT_S if unfinished else 0.0), WAIT_MAX_S)

    def _pending(self, entries: Sequence[FrontierEntry], *, moving: bool) -> list[PendingRecord]:
        return [
            PendingRecord(
                *(entry.url, entry.depth, entry.hops, entry.tries, self._wait_s(entry, moving=moving), entry.trail),
                drop_order=entry.drop_order,
            )
            for entry in entries
        ]

    def _sites(self, sites: Iterable[str]) -> list[SiteRecord]:
        return with_bounded_cookies([self._site(site) for site in sites])

    def _site(self, site: str) -> SiteRecord:
        now = self._now()
        return site_record(self._frontier.clock_of(site, now), now)

    def _robots(self, origins: Iterable[str]) -> list[RobotsRecord]:
        now = self._now()
        records = []
        left = ROBOTS_BATCH_BYTES_MAX
        for origin in origins:
            known = self._store.sites.robots(origin)
            if known is not None and len(known[0]) <= min(left, ROBOTS_BYTES_MAX) and len(origin) <= URL_CHARS_MAX:
                left -= len(known[0])
                records.append(RobotsRecord(origin, known[0], min(max(0.0, now - known[1]), WAIT_MAX_S)))
        return records
