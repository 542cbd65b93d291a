"""Output and extension: pages a second while peers are added, by the real peer (P1 2.1, Fig 4 and 5).

A peer makes one request at a time and each page is answered after the same time, so what a peer can crawl is known and
no site is a bottleneck. As in the paper everybody has enough to crawl; how work is shared out is another question, and
a whole crawl that is shared out by ranges, with and without shedding, stands beside it.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import fmean

from kadcrawl.settings.job import Job
from kadcrawl.settings.limits import Limits
from kadcrawl.system.open_files import raise_limit

from ..big import COMPANY_S
from .alike_web import AlikeWeb
from .experiment import Figure, Finding, Progress, Result, Series, Table
from .swarm import Swarm, simulated

LIMITS = Limits(fetches_max=1, batch_spacing_s=COMPANY_S, commit_spacing_s=COMPANY_S)
SITES_PER_PEER = 8
LINEAR = 0.95
"""The target, as a share of linear speed-up."""

# The paper's: each peer crawls one URL in 10 s.
PERIOD_S = 180.0
PERIODS = 25
PAPER_ANSWER_S = 10.0
SCHEDULE = {0: 2, 5: 4, 10: 6, 15: 7, 20: 8}
"""Sampling period -> peers from its beginning on."""
PAPER_WARM_S = 60.0
"""Seconds before the first period. The first page, a hub, is then the only page to crawl."""
PAPER_SITES = SITES_PER_PEER * max(SCHEDULE.values())

# From one peer to many.
ANSWER_S = 2.0
WARM_S = 30.0
WINDOW_S = 20.0
SIZES = (1, 2, 4, 8, 16, 32, 64)
SIZES_FULL = (*SIZES, 250, 1_000)
ALIKE = 16
"""Peers in all worlds of one size together, at least: a few peers alone would count too few pages."""
JOINED_WITHIN_S = 20.0
APART_S = 0.1
SEEN = 8
"""Observations of idle peers per window."""

# One crawl to the end.
WHOLE_PEERS = 8
WHOLE_SITES = 32
WHOLE_PAGES = 25
WHOLE_ANSWER_S = 1.0
BLOCK, UPDATE_S = 5, 5.0
"""H, URLs, and T."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Speed:
    """The speed of swarms of one size."""

    pages_s: float
    """Pages a second of one peer, mean of all."""
    idle: float
    """Share of the peers without anything to crawl, mean over the window."""


def pages(swarm: Swarm) -> int:
    """Return how many pages have been fetched so far."""
    return sum(peer.counters.pages for peer in swarm.peers)


def stepped(seed: int, period_done: Callable[[], None]) -> list[int]:
    """Return the pages fetched in each sampling period of the paper's schedule."""
    web = AlikeWeb(seed, PAPER_SITES, PAPER_ANSWER_S)

    async def story(swarm: Swarm) -> list[int]:
        await swarm.begin()
        await swarm.grow(SCHEDULE[0])
        await swarm.wait(PAPER_WARM_S)
        began, counts = swarm.loop.time(), []
        for period in range(PERIODS):
            before = pages(swarm)
            await swarm.grow(SCHEDULE.get(period, 0))
            await swarm.wait(began + PERIOD_S * (period + 1) - swarm.loop.time())
            counts.append(pages(swarm) - before)
            period_done()
        return counts

    job = Job(seeds=web.seeds, scope="any", delay_s=0.0)
    with simulated(seed, web, job=job, limits=Limits(fetches_max=1)) as swarm:
        return swarm.run(story(swarm))


def speed(seed: int, peers: int) -> Speed:
    """Return the speed of swarms of `peers` peers."""
    raise_limit()
    runs = [_one(1_000 * seed + run, peers) for run in range(max(1, ALIKE // peers))]
    return Speed(pages_s=fmean(one.pages_s for one in runs), idle=fmean(one.idle for one in runs))


def _one(seed: int, peers: int) -> Speed:
    web = AlikeWeb(seed, SITES_PER_PEER * peers, ANSWER_S)

    async def story(swarm: Swarm) -> Speed:
        await swarm.begin()
        await swarm.grow(peers, min(APART_S, JOINED_WITHIN_S / peers))
        await swarm.wait(WARM_S)
        before, idle = pages(swarm), 0
        for _ in range(SEEN):
            await swarm.wait(WINDOW_S / SEEN)
            idle += sum(not peer.pending for peer in swarm.peers)
        return Speed(pages_s=(pages(swarm) - before) / peers / WINDOW_S, idle=idle / peers / SEEN)

    job = Job(seeds=web.seeds, scope="any", delay_s=0.0)
    with simulated(seed, web, job=job, limits=LIMITS) as swarm:
        return swarm.run(story(swarm))


def whole(seed: int, *, shedding: bool) -> float:
    """Return the pages a second of one peer, mean over all peers and a whole crawl."""
    web = AlikeWeb(seed, WHOLE_SITES, WHOLE_ANSWER_S, WHOLE_PAGES)

    async def story(swarm: Swarm) -> float:
        await swarm.begin()
        await swarm.grow(WHOLE_PEERS)
        began, before = swarm.loop.time(), pages(swarm)
        expected = WHOLE_SITES * WHOLE_PAGES + len(web.seeds)
        await swarm.until(lambda: sum(peer.counters.done for peer in swarm.peers) >= expected)
        return (pages(swarm) - before) / WHOLE_PEERS / (swarm.loop.time() - began)

    job = Job(
        seeds=web.seeds,
        scope="any",
        delay_s=0.0,
        balance="level" if shedding else "off",
        block_urls=BLOCK,
        update_s=UPDATE_S,
    )
    with simulated(seed, web, job=job, limits=Limits(fetches_max=1)) as swarm:
        return swarm.run(story(swarm))


def output(seed: int, progress: Progress, *, sizes: Sequence[int] = SIZES) -> Result:
    """Add peers as the paper does, and go on to many more. `sizes` are the numbers of peers."""
    done, steps = 0.0, PERIODS + sum(sizes) + 2 * WHOLE_PEERS

    def advance(by: float = 1.0) -> None:
        nonlocal done
        done += by
        progress(done / steps)

    counts = stepped(seed, advance)
    speeds = {}
    for peers in sizes:
        speeds[peers] = speed(seed, peers)
        advance(peers)
    crawls = {}
    for shedding in (False, True):
        crawls[shedding] = whole(seed, shedding=shedding)
        advance(WHOLE_PEERS)
    there = [max(at for at in SCHEDULE if at <= period) for period in range(PERIODS)]
    standing = [SCHEDULE[at] for at in there]
    by_size = {
        peers: 60 / PERIOD_S * fmean(count for count, have in zip(counts, standing, strict=True) if have == peers)
        for peers in sorted(SCHEDULE.values())
    }
    first, last = min(by_size), max(by_size)
    alone = speeds[min(speeds)].pages_s
    most = max(speeds)
    return Result(
        title="Output: pages a second as peers are added",
        paper="P1 2.1, Fig 4 and 5",
        how=(
            f"The paper's run: two peers, each crawling one URL in {PAPER_ANSWER_S:.0f} s (here: one request at a "
            f"time, answered after that time), sampled every {PERIOD_S / 60:.0f} minutes; two more every 5 periods, "
            "one between the 15th and the 20th, and the eighth, of which the text does not say when it comes, at the "
            f"20th. Then from 1 peer to {most:,}, pages answered after {ANSWER_S:g} s, {WINDOW_S:.0f} s counted once "
            f"all have joined and {WARM_S:.0f} s have passed. All are real peers in a simulated network, and the web "
            f"is without end, {SITES_PER_PEER} sites a peer, so that everybody has enough to crawl, which is the "
            "paper's condition too: what is measured is whether a peer is slowed down by the others being there, not "
            "how work is shared out. So no delay between requests, and time that passes only where the "
            "network and the answers take it: the processor of a peer is not modelled, and `make bench` measures "
            "what one core gives. How work is shared out shows in "
            f"a crawl that ends: {WHOLE_PEERS} peers, {WHOLE_SITES} sites of {WHOLE_PAGES} pages, with its start and "
            "its end, when most have nothing left to do."
        ),
        seed=seed,
        findings=[
            Finding(
                what=f"speed of a peer among {last}, of one among {first} (the paper's schedule)",
                ours=(by_size[last] / last) / (by_size[first] / first),
                bound=1.0,
                least=LINEAR,
            ),
            Finding(
                what=f"speed of a peer in the slowest of the swarms of up to {most:,}, of one alone",
                ours=min(one.pages_s for one in speeds.values()) / alone,
                bound=1.0,
                least=LINEAR,
            ),
            *(
                Finding(
                    what=f"speed of a peer over a whole crawl by {WHOLE_PEERS}, of one a second, shedding {name}",
                    ours=crawls[shedding] * WHOLE_ANSWER_S,
                    bound=1.0,
                )
                for shedding, name in ((False, "off"), (True, "by level"))
            ),
        ],
        tables=[
            Table(
                title="The paper's schedule: mean of all sampling periods with so many peers",
                heading=["peers", "pages / min", "pages / min / peer", "of linear from two"],
                rows=[
                    [peers, rate, rate / peers, (rate / peers) / (by_size[first] / first)]
                    for peers, rate in by_size.items()
                ],
            ),
            Table(
                title="From one peer to many",
                heading=[
                    "peers",
                    "pages / s",
                    "pages / s / peer",
                    "of linear from one",
                    "peers with nothing to crawl, %",
                ],
                rows=[
                    [peers, one.pages_s * peers, one.pages_s, one.pages_s / alone, 100 * one.idle]
                    for peers, one in speeds.items()
                ],
            ),
        ],
        figures=[
            Figure(
                name="output-steps",
                title="Pages a minute, by sampling period",
                x="sampling period",
                y="pages / min",
                series=[
                    Series(label="ours", xs=range(1, PERIODS + 1), ys=[60 / PERIOD_S * count for count in counts]),
                    Series(
                        label=f"one page in {PAPER_ANSWER_S:.0f} s each",
                        xs=range(1, PERIODS + 1),
                        ys=[60 / PAPER_ANSWER_S * peers for peers in standing],
                        dashed=True,
                    ),
                ],
            ),
            Figure(
                name="output-peers",
                title="Pages a second, by peers",
                x="peers",
                y="pages / s",
                series=[
                    Series(label="ours", xs=[*speeds], ys=[peers * one.pages_s for peers, one in speeds.items()]),
                    Series(
                        label="linear from one peer", xs=[*speeds], ys=[peers * alone for peers in speeds], dashed=True
                    ),
                ],
                logarithmic="xy",
            ),
        ],
    )
