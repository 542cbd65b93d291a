"""A run of a few peers that crawl their shares URL by URL, and meanwhile shed by seconds to drain.

The peers decide by their own knowledge: the pace measured so far (`balance.predict.ThroughputModel`; a peer that has
crawled nothing yet takes no part), and the expected end of the URL under way. No peer can crawl a block while the block
is on its way.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from math import inf
from random import Random

from kadcrawl.balance.drain import Backlog, accepts, block_offers
from kadcrawl.balance.predict import ThroughputModel


@dataclass(frozen=True, slots=True, kw_only=True)
class Shedding:
    """The parameters of shedding."""

    block_urls: int
    """H."""
    every_s: float
    """T."""
    hand_over_s: float


@dataclass(frozen=True, slots=True)
class Run:
    """The result of a run, for each peer."""

    ends_s: tuple[float, ...]
    crawled: tuple[int, ...]
    moved: int
    """URLs handed over, by all."""

    @property
    def makespan_s(self) -> float:
        return max(self.ends_s)


def crawl(
    urls_s: Sequence[float],
    shares: Sequence[int],
    random: Random,
    *,
    start_s: float,
    spread: float = 0.0,
    shedding: Shedding | None = None,
) -> Run:
    """Crawl to the end.

    Args:
        urls_s: seconds a URL takes, for each peer, on average.
        shares: URLs it has at the beginning.
        random: for the time of each URL.
        start_s: from when on all crawl.
        spread: standard deviation of the logarithm of the time of a URL.
        shedding: None to leave all where it is.
    """
    peers = [_Peer(url_s, share, start_s, random, spread) for url_s, share in zip(urls_s, shares, strict=True)]
    on_the_way: list[tuple[float, _Peer, int]] = []
    every_s = shedding.every_s if shedding else inf
    rounds = moved = 0
    while on_the_way or any(peer.pending for peer in peers):
        now = min([(rounds + 1) * every_s, *(at for at, _, _ in on_the_way)])
        for peer in peers:
            peer.crawl_until(now)
        for at, borrower, urls in on_the_way:
            if at <= now:
                borrower.take(urls, at)
        on_the_way = [each for each in on_the_way if each[0] > now]
        if shedding and now == (rounds + 1) * every_s:
            rounds += 1
            known = [peer for peer in peers if peer.url_s_measured()]
            backlogs = [
                peer.backlog(now, sum(urls for _, borrower, urls in on_the_way if borrower is peer)) for peer in known
            ]
            for lender, taker, urls in lent(backlogs, shedding):
                known[lender].pending -= urls
                on_the_way.append((now + shedding.hand_over_s, known[taker], urls))
                moved += urls
    return Run(tuple(peer.free_at for peer in peers), tuple(peer.crawled for peer in peers), moved)


def lent(backlogs: Sequence[Backlog], shedding: Shedding) -> list[tuple[int, int, int]]:
    """Return (lender, borrower, URLs) of all loans at one update, decided as peers do.

    Each lender makes its offers by what all had told before, and each borrower decides on each block at its turn.
    """
    told, loans = list(backlogs), []
    now = list(backlogs)
    for lender, own in enumerate(told):
        others = [peer for peer in range(len(told)) if peer != lender]
        offers = block_offers(own, [told[peer] for peer in others], shedding.block_urls, shedding.hand_over_s)
        for borrower, blocks in zip(others, offers, strict=True):
            taken = 0
            third = [now[peer] for peer in others if peer != borrower]
            while taken < blocks and accepts(
                now[borrower], now[lender], third, shedding.block_urls, shedding.block_urls, shedding.hand_over_s
            ):
                taken += 1
                now[lender] = replace(now[lender], pending=now[lender].pending - shedding.block_urls)
                more_s = shedding.block_urls * now[borrower].url_s
                now[borrower] = replace(now[borrower], busy_s=now[borrower].busy_s + more_s)
            if taken:
                loans.append((lender, borrower, taken * shedding.block_urls))
    return loans


@dataclass(eq=False, slots=True)
class _Peer:
    url_s: float
    pending: int
    free_at: float
    random: Random
    spread: float
    crawled: int = 0
    begun_at: float | None = None
    """The begin of the URL under way, or None."""
    throughput: ThroughputModel = field(default_factory=ThroughputModel)
    done: int = 0
    """The number of URLs, and their seconds, since the pace was last updated."""
    done_s: float = 0.0

    def crawl_until(self, now: float) -> None:
        """Begin all that begins before `now`."""
        while self.pending and self.free_at < now:
            self._finish()
            self.begun_at = self.free_at
            self.free_at += self.url_s * self.random.lognormvariate(-(self.spread**2) / 2, self.spread)
            self.pending -= 1
            self.crawled += 1
        if self.free_at <= now:
            self._finish()

    def take(self, urls: int, at: float) -> None:
        if not self.pending:
            self.free_at = max(self.free_at, at)
        self.pending += urls

    def url_s_measured(self) -> float:
        """Return the measured seconds per URL, with the latest URLs, or 0 without measurements."""
        if self.done:
            self.throughput.note_batch(self.done, self.done_s)
            self.done, self.done_s = 0, 0.0
        return self.throughput.seconds(1) or 0.0

    def backlog(self, now: float, coming: int) -> Backlog:
        """`coming` URLs are on their way here, and cannot be handed on."""
        url_s = self.throughput.seconds(1)
        assert url_s, "who has no pace has no backlog"
        left_s = 0.0 if self.begun_at is None else max(0.0, self.begun_at + url_s - now)
        return Backlog(self.pending, url_s, left_s + coming * url_s)

    def _finish(self) -> None:
        """Record the URL under way as done."""
        if self.begun_at is not None:
            self.done += 1
            self.done_s += self.free_at - self.begun_at
            self.begun_at = None
