"""Real peers with a history that expires: pages met again within the period are not fetched, and after it are (P4 4).

The swarm crawls the list of each day (or hour) once. Everything is counted at the web, but for the filters: they are
those of the running peers.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random
from typing import Protocol

from kadcrawl.keys import URL_BYTES, Cell, Key, cell_of, site_hash
from kadcrawl.peer import Peer
from kadcrawl.settings.job import Job
from kadcrawl.settings.recrawl_checks import CalendarGrain
from kadcrawl.store.bloom.cell_filters import EncodedFilter, ExpiringFilters
from kadcrawl.store.bloom.encoding import from_bytes

from ..synthetic_web import SyntheticResponse
from .swarm import Swarm, simulated

PEERS = 4
HOUR_S, DAY_S = 3_600.0, 86_400.0
LIST_AFTER = 0.25
"""The share of a day after which its list is added: early enough for all fetches of the day."""
ASKED = 50_000
"""Keys never added that each cell of a peer is asked for."""


class DatedWeb(Protocol):
    """Interface of a web with a list for each day."""

    def address(self, host: str) -> str | None:
        """Return the IP of a host name, or None if there is no such host."""

    def answer(self, host: str, target: str, asked: int) -> SyntheticResponse:
        """Return the answer to a GET of `target` that was asked for `asked` times before."""
        ...

    def seeds(self, day: int) -> list[str]:
        """Return the lists of a day, from 1 on."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Day:
    """The facts of one day: pages by URL, and the filters of the peers at its end."""

    fetched: tuple[str, ...]
    """URLs of posts in the order of their requests, repeats included."""
    live: int
    """Distinct URLs in the live filters."""
    held: int
    """Keys in the live filters of all peers: each URL counts at each peer that holds it."""
    filter_bytes: int
    """Bytes of all live filters of all peers, as they travel."""
    asked: int
    """Keys never added that the filters were asked for."""
    taken_for_known: int
    """Keys of these that a filter had."""
    error_by_bits: float
    """Share of all keys never added that the worst of the peers' cells would have, by the bits that are set."""


def job_of(day_s: float, days: int) -> Job:
    """Return a job that fetches a page again after so many days of `day_s` seconds, with a filter for each.

    Days and hours of the full length are those of the calendar.
    """
    calendar: dict[float, CalendarGrain] = {HOUR_S: "hour", DAY_S: "day"}
    grain = calendar.get(day_s)
    return Job(
        scope="any",
        delay_s=0.0,
        balance="off",
        history="bloom",
        recrawl_after_s=days * day_s,
        grain_s=day_s if grain is None else None,
        calendar_grain=grain,
    )


def crawl_days(
    seed: int, web: DatedWeb, job: Job, days: int, day_s: float, done: Callable[[], None], asked: int = ASKED
) -> list[Day]:
    """Let real peers crawl the list of each day, and return what was fetched on it.

    A day has `day_s` seconds, as the grain of the job. The first begins with the world. Each cell of a peer is asked
    for `asked` keys that were never added.
    """
    found: list[Day] = []

    async def story(swarm: Swarm) -> None:
        await swarm.begin()
        await swarm.grow(PEERS)
        assert swarm.loop.time() < LIST_AFTER * day_s, "the swarm is whole before the first list"
        first = swarm.machines.machines[0]
        for day in range(1, days + 1):
            begin = (day - 1) * day_s
            await swarm.wait(begin + LIST_AFTER * day_s - swarm.loop.time())
            assert first.peer is not None
            await first.host.spawn(first.peer.crawl(web.seeds(day)))
            await swarm.wait(begin + (1 - LIST_AFTER / 2) * day_s - swarm.loop.time())
            found.append(_day(swarm, seed, begin, begin + day_s, asked))
            done()

    with simulated(seed, web, job=job) as swarm:
        swarm.run(story(swarm))
    return found


def _day(swarm: Swarm, seed: int, begin: float, end: float, each: int) -> Day:
    log = [one for one in swarm.server.log if begin <= one.time < end and "/post/" in one.path]
    hosts = sorted({one.host for one in swarm.server.log})
    held = filter_bytes = asked = taken = live = 0
    error_by_bits = 0.0
    chance = Random(f"never added {seed} {begin}")
    for host in hosts:
        most = 0
        for peer in swarm.peers:
            if not (filters := _filters(peer, host)):
                continue
            keys = sum(one.label.keys for one in filters)
            held, most = held + keys, max(most, keys)
            filter_bytes += sum(len(one.bits) for one in filters)
            asked += each
            taken += _taken_for_known(peer, host, chance, each)
            error_by_bits = max(error_by_bits, _error_by_bits(peer, filters))
        live += most
    return Day(
        fetched=tuple(one.url for one in log),
        live=live,
        held=held,
        filter_bytes=filter_bytes,
        asked=asked,
        taken_for_known=taken,
        error_by_bits=error_by_bits,
    )


def _filters(peer: Peer, host: str) -> list[EncodedFilter]:
    """Return the live epoch filters that a peer has for the cell of a host."""
    filters, cell = _expiring(peer), _cell(peer, host)
    return [one for epoch in filters.labels(cell) if (one := filters.encoded(cell, epoch)) is not None]


def _error_by_bits(peer: Peer, filters: Sequence[EncodedFilter]) -> float:
    """Return the share of all keys that are in one of the filters by chance."""
    period, now = _expiring(peer).period, _expiring(peer).now()
    return sum(from_bytes(one.bits, period, now).false_positive_rate(now) for one in filters)


def _taken_for_known(peer: Peer, host: str, chance: Random, asked: int) -> int:
    """Return how many of so many random keys of a host a peer takes for done."""
    filters, cell = _expiring(peer), _cell(peer, host)
    return sum(filters.has(cell, _key(host, chance.randbytes(URL_BYTES))) for _ in range(asked))


def _expiring(peer: Peer) -> ExpiringFilters:
    filters = peer.runtime.resources.store.expiring_filters
    assert filters is not None, "the job keeps fingerprints"
    return filters


def _cell(peer: Peer, host: str) -> Cell:
    return cell_of(_key(host, bytes(URL_BYTES)), peer.job.bits)


def _key(host: str, rest: bytes) -> Key:
    return Key(site_hash(host) + rest)


def repeated(days: Sequence[Day], period: int) -> list[int]:
    """Return, for each day, the fetches of posts that were fetched on one of the `period` - 1 days before, or twice."""
    counts = []
    for number, day in enumerate(days):
        before = {url for each in days[max(0, number - period + 1) : number] for url in each.fetched}
        counts.append(len(day.fetched) - len(set(day.fetched) - before))
    return counts


def left_out(days: Sequence[Day], met: Sequence[set[str]], period: int) -> list[int]:
    """Return, for each day, the posts met on it that were fetched neither on it nor on the `period` - 1 days before."""
    counts = []
    for number in range(len(days)):
        known = {url for each in days[max(0, number - period + 1) : number + 1] for url in each.fetched}
        counts.append(len(met[number] - known))
    return counts
