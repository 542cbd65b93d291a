"""A swarm that only counts its URLs, in virtual time: the effect of load balance decisions over a day (P1 2.2).

URLs arrive at each peer as a Poisson process, the same in every run of one seed. A peer crawls one URL after another,
each in 1/v seconds. Peers meet only at updates. At an update all levels are taken at one instant. The heavy peers
decide by these levels, in an order drawn anew each time, and a block moves in no time. Its URLs then count as crawled
at the peer that crawls them. Only the decisions are kadcrawl's: the model fetches and sends nothing.
"""

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count
from math import inf
from random import Random
from typing import Literal

from kadcrawl.balance.shedding import (
    Bucket,
    OfferRound,
    accepted_blocks,
    advertised_level,
    offers_as_published,
    spare_blocks,
    urls_to_keep,
)
from kadcrawl.balance.sizing import Rates, UpdateSchedule, WorkCounts, work_area_blocks
from kadcrawl.keys import ID_BITS, firstdiff

from .packing import Packing

Policy = Literal["none", "published", "ours"]
MEMORY_S = 3600.0
"""Seconds over which rates are counted: long enough to tell 0.083 from 0.1 URL/s."""


@dataclass(frozen=True, slots=True)
class Setting:
    """One peer, as Table 2 has it."""

    crawls: float
    """v, URL/s."""
    arrivals: float
    """The paper's lambda, URL/s."""
    blocks_wide: int
    """n = W / H."""


@dataclass(slots=True)
class Messages:
    """Counts of messages by kind. A question and an offer have an answer each, which is counted with them."""

    questions: int = 0
    offers: int = 0
    blocks: int = 0

    @property
    def all(self) -> int:
        return 2 * self.questions + 2 * self.offers + self.blocks


@dataclass(slots=True)
class Sample:
    """The measurements of one period."""

    ends_at: float
    lasted_s: float
    pages: int
    """Crawled by all peers."""
    arrived: int
    messages: Messages
    ratios: list[float]
    """Of each peer, its mean over the stretch."""


@dataclass(slots=True)
class LevelRun:
    """The result of one run."""

    pages: int = 0
    pending: int = 0
    """Pending URLs of all peers at the end."""
    pending_settled: int = 0
    """Pending URLs of all peers at the end of the transient."""
    flipped: int = 0
    """The number of times that a peer was not heavy before a transfer, and heavy after."""
    messages: Messages = field(default_factory=Messages)
    samples: list[Sample] = field(default_factory=list)
    crawled: list[int] = field(default_factory=list)
    """By each peer, its own and taken URLs."""
    lowest: list[float] = field(default_factory=list)
    """Of each peer, its lowest load ratio at any instant after the transient."""
    highest: list[float] = field(default_factory=list)


class CountedPeer:
    """One peer of the model."""

    def __init__(self, setting: Setting, block: int, arrivals: Iterator[float], rates: Rates) -> None:
        self.setting = setting
        self.stock = Packing(setting.blocks_wide, block)
        self.rates = rates
        self._arrivals = arrivals
        self._next_arrival = next(arrivals)
        self._next_done = inf
        self._now = 0.0
        self._mine: deque[bool] = deque()
        """Of each pending URL, the next to be crawled first, whether it is its own."""
        self.own = 0
        """Of its pending URLs, those it has not taken."""
        self.arrived = 0
        self.crawled = 0
        self.busy_s = 0.0
        self.url_seconds = 0.0
        """The integral of pending over time."""
        self.lowest = self.highest = 0.0
        """Ratios, since they were forgotten."""

    @property
    def level_advertised(self) -> float:
        return advertised_level(self.stock.load, self.rates.arrivals, self.rates.crawls)

    def advance(self, until: float) -> None:
        """Let URLs arrive and be crawled.

        Most of the model's work is here, so what changes with every URL has local names.
        """
        stock, arrivals, mine = self.stock, self._arrivals, self._mine
        now, next_arrival, next_done = self._now, self._next_arrival, self._next_done
        pending, url_seconds, busy_s = stock.pending, self.url_seconds, self.busy_s
        fewest, most = inf, -inf
        while True:
            at = next_arrival if next_arrival < next_done else next_done
            if at > until:
                at = until
            url_seconds += pending * (at - now)
            if next_done < inf:
                busy_s += at - now
            now = at
            if at == until:
                break
            if at == next_arrival:
                stock.arrived()
                mine.append(True)
                self.own += 1
                self.arrived += 1
                next_arrival = next(arrivals, inf)
                pending += 1
                if next_done == inf:
                    next_done = now + 1 / self.setting.crawls
            else:
                stock.crawled()
                self.crawled += 1
                self.own -= mine.popleft()
                pending -= 1
                next_done = now + 1 / self.setting.crawls if pending else inf
            if pending < fewest:
                fewest = pending
            if pending > most:
                most = pending
        self._now, self._next_arrival, self._next_done = now, next_arrival, next_done
        self.url_seconds, self.busy_s = url_seconds, busy_s
        self.lowest = min(self.lowest, fewest / stock.work_area)
        self.highest = max(self.highest, most / stock.work_area)

    def take(self, blocks: int) -> None:
        self.stock.taken(blocks)
        self._mine.extend([False] * (blocks * self.stock.block))
        if self._next_done == inf:
            self._begin()
        self.look()

    def give(self, blocks: int, any_of_them: bool = False) -> None:
        """Let go of the URLs that came last, its own only unless `any_of_them` will do."""
        self.stock.given(blocks)
        urls, kept_back = blocks * self.stock.block, 0
        while urls:
            if self._mine[-1] or any_of_them:
                self.own -= self._mine.pop()
                urls -= 1
            else:
                self._mine.pop()
                kept_back += 1
        self._mine.extend([False] * kept_back)
        self.look()

    def look(self) -> None:
        ratio = self.stock.pending / self.stock.work_area
        self.lowest = min(self.lowest, ratio)
        self.highest = max(self.highest, ratio)

    def forget(self) -> None:
        """Begin again with the lowest and the highest ratio."""
        self.lowest = self.highest = self.stock.pending / self.stock.work_area

    def check(self) -> None:
        """Fail if it has lost count."""
        assert len(self._mine) == self.stock.pending, "every pending URL is there"
        assert sum(self._mine) == self.own, "and known to be its own, or not"

    def _begin(self) -> None:
        self._next_done = self._now + 1 / self.setting.crawls if self.stock.pending else inf


def arrival_times(rng: Random, rate: float, until: float) -> Iterator[float]:
    """Yield the instants of a Poisson process of `rate` events a second."""
    now = 0.0
    while (now := now + rng.expovariate(rate)) < until:
        yield now
    yield inf


def buckets_of(ids: Sequence[int], me: int) -> list[list[int]]:
    """Return the k-buckets of peer number `me`, near to far: numbers of peers, all of them."""
    found: dict[int, list[int]] = {}
    for number, other in enumerate(ids):
        if number != me:
            found.setdefault(firstdiff(ids[me], other), []).append(number)
    return [found[distance] for distance in sorted(found)]


def run(
    settings: Sequence[Setting],
    *,
    seed: int,
    block: int,
    policy: Policy,
    interval_s: float,
    until: float,
    settled_at: float,
    sample_s: float,
    sized_within: int | None = None,
    draw: int = 0,
) -> LevelRun:
    """Run the swarm until `until` s. `interval_s` is T, and divides `settled_at`, from when on extremes count.

    Samples are taken at the first update after every `sample_s`.

    `sized_within` intervals: work areas by the paper's bounds from measured rates, at every update; None: as set.
    Another `draw` gives other node IDs, and the same arrivals.
    """
    rng = Random(f"levels {seed} {draw}")
    ids = [rng.getrandbits(ID_BITS) for _ in settings]
    buckets = [buckets_of(ids, me) for me in range(len(ids))]
    peers = [
        CountedPeer(
            setting,
            block,
            arrival_times(Random(f"arrivals {seed} {number}"), setting.arrivals, until),
            Rates(max(1, round(MEMORY_S / interval_s))),
        )
        for number, setting in enumerate(settings)
    ]
    result = LevelRun()
    sampler = _Sampler(peers, result)
    updates = UpdateSchedule(0.0, interval_s)
    now, sample_at = 0.0, sample_s
    for number in count(1):
        if now >= until:
            break
        now = min(updates.next_after(now), until)
        for peer in peers:
            peer.advance(now)
            peer.rates.add(WorkCounts(now, peer.arrived, peer.crawled, peer.busy_s))
            if sized_within is not None and number > 1:
                rates = peer.rates
                wide = work_area_blocks(rates.arrivals, rates.crawls, interval_s, block, sized_within)
                peer.stock.resized(wide)
        if policy == "published":
            _shed_as_published(peers, buckets, rng, result)
        elif policy == "ours":
            _shed(peers, buckets, rng, result, interval_s)
        if now == settled_at:
            result.pending_settled = sum(peer.stock.pending for peer in peers)
            for peer in peers:
                peer.forget()
        if now >= sample_at:
            sampler.take(now)
            sample_at += sample_s
    for peer in peers:
        peer.check()
    result.crawled = [peer.crawled for peer in peers]
    result.pages = sum(result.crawled)
    result.pending = sum(peer.stock.pending for peer in peers)
    result.lowest = [peer.lowest for peer in peers]
    result.highest = [peer.highest for peer in peers]
    return result


def _advertised(buckets: Sequence[Sequence[int]], levels: Sequence[float]) -> list[Bucket[int]]:
    return [[(peer, levels[peer]) for peer in bucket] for bucket in buckets]


def _move(lender: CountedPeer, borrower: CountedPeer, blocks: int, result: LevelRun, any_of_them: bool = False) -> None:
    was_heavy = borrower.stock.level > 0
    lender.give(blocks, any_of_them)
    borrower.take(blocks)
    result.messages.blocks += blocks
    result.flipped += not was_heavy and borrower.stock.level > 0


def _shed(
    peers: Sequence[CountedPeer],
    buckets: Sequence[Sequence[Sequence[int]]],
    rng: Random,
    result: LevelRun,
    interval_s: float,
) -> None:
    """One update by our rules."""
    loads = [peer.stock.load for peer in peers]
    levels = [peer.level_advertised for peer in peers]
    for me in rng.sample(range(len(peers)), len(peers)):
        lender, rates = peers[me], peers[me].rates
        keep = urls_to_keep(loads[me], rates.arrivals, rates.crawls, interval_s)
        if not (blocks := spare_blocks(loads[me], lender.own, keep)):
            continue
        result.messages.questions += len(peers) - 1
        shedding = OfferRound(levels[me], blocks, _advertised(buckets[me], levels))
        while offers := shedding.offers():
            for offer in offers:
                result.messages.offers += 1
                taken = accepted_blocks(peers[offer.peer].level_advertised, offer.blocks)
                if taken:
                    _move(lender, peers[offer.peer], taken, result)
                shedding.answered(offer, taken)


def _shed_as_published(
    peers: Sequence[CountedPeer], buckets: Sequence[Sequence[Sequence[int]]], rng: Random, result: LevelRun
) -> None:
    """Run an update by the paper's rules: receivers accept every offer."""
    levels = [peer.stock.level for peer in peers]
    blocks = [peer.stock.blocks for peer in peers]
    for me in rng.sample(range(len(peers)), len(peers)):
        if levels[me] <= 0:
            continue
        result.messages.questions += len(peers) - 1
        for offer in offers_as_published(levels[me], blocks[me], _advertised(buckets[me], levels)):
            _move(peers[me], peers[offer.peer], offer.blocks, result, any_of_them=True)


class _Sampler:
    """Takes samples of the changes since the last sample."""

    def __init__(self, peers: Sequence[CountedPeer], result: LevelRun) -> None:
        self._peers = peers
        self._result = result
        self._at = 0.0
        self._pages = self._arrived = 0
        self._url_seconds = [0.0] * len(peers)
        self._messages = Messages()

    def take(self, now: float) -> None:
        pages = sum(peer.crawled for peer in self._peers)
        arrived = sum(peer.arrived for peer in self._peers)
        sent, before = self._result.messages, self._messages
        self._result.samples.append(
            Sample(
                now,
                now - self._at,
                pages - self._pages,
                arrived - self._arrived,
                Messages(sent.questions - before.questions, sent.offers - before.offers, sent.blocks - before.blocks),
                [
                    (peer.url_seconds - was) / (now - self._at) / peer.stock.work_area
                    for peer, was in zip(self._peers, self._url_seconds, strict=True)
                ],
            )
        )
        self._at, self._pages, self._arrived = now, pages, arrived
        self._url_seconds = [peer.url_seconds for peer in self._peers]
        self._messages = Messages(sent.questions, sent.offers, sent.blocks)
