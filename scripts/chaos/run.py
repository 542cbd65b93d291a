"""One crawl of a real swarm under faults, and the verdict on it. `chaos` makes many of them.

Every run begins with empty directories and ends with the same questions. Was every reachable page fetched, were few
fetched twice, was no site hurried, did the swarm end by itself? The web's own access log, the page logs of all
peers, also of dead ones, and the exit codes give the answers. Only a network split is an excuse, and only for requests
of the other side (see parted.py).
"""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from random import Random
from typing import Final

from scripts.chaos.dealt_web import DealtWeb
from scripts.chaos.machines import OnHub
from scripts.chaos.parted import Across, across, views
from scripts.chaos.peer_process import PeerProcess
from scripts.chaos.swarm import OverError, ProcessSwarm
from scripts.chaos.tun_hub import Counts, PacketConditions
from scripts.kadcrawl_run import page_lines
from sim.judge import Access, Expected, judge

PEERS: Final = 8
DELAY_S: Final = 0.4
"""Seconds between two requests to one site. The largest site has some 65 pages, so a crawl takes about half a
minute."""
FREEZE_S: Final = 30.0
DUPLICATES_MAX: Final = 0.01
"""Share of the pages that may be fetched twice."""
RUN_S_MAX: Final = 240.0
"""Most seconds of a run. A run that takes longer hangs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSize:
    """The size of a run."""

    peers: int = PEERS
    delay_s: float = DELAY_S
    freeze_s: float = FREEZE_S
    """The most seconds of a fault that passes by itself."""
    duplicates_max: float = DUPLICATES_MAX
    """Share of the pages that may be fetched twice, beside those of `unfinished_s`."""
    unfinished_s: float = 0.0
    """Seconds from a fetch to the finished page at its backups. A kill in between explains a second fetch."""
    options: tuple[str, ...] = ()
    """Further options of the first peer, which define the job."""
    leaves: int = 0
    stops: bool = False
    """The crawl would go on for ever, and is stopped once all pages are fetched."""


@dataclass(frozen=True, slots=True)
class Scenario:
    """A scenario of faults, victims and instants, with the name and docstring of its function."""

    happens: Callable[[ProcessSwarm, Random, RunSize], Awaitable[None]]
    slower: float = 1.0
    """Factor of the delay where the crawl must last until all has happened."""
    conditions: PacketConditions = field(default_factory=PacketConditions)
    """Conditions of the network, from before the first peer starts. On a hub only."""

    @property
    def name(self) -> str:
        return self.happens.__name__


@dataclass(frozen=True, slots=True, kw_only=True)
class ChaosOutcome:
    """The judge's verdict on one run."""

    scenario: str
    seed: int
    seconds: float
    pages: int
    fetched: int
    lost: int
    """Pages never fetched, or fetched and in no page log."""
    duplicates: int
    """Fetches of a page beyond its first, where neither a partition nor an unfinished page explains them."""
    hurried: int
    across: Across
    """The faults that a network split explains."""
    packets: dict[str, int]
    """The hub's counts of packets, or nothing on loopback."""
    events: list[str]
    faults: list[str]


async def run(scenario: Scenario, seed: int, web: DealtWeb, directory: Path, size: RunSize) -> ChaosOutcome:
    """Let one crawl of `web` go through a scenario, and judge it."""
    web.access_log.clear()
    random = Random(f"{scenario.name} {seed}")
    delay_s = size.delay_s * scenario.slower
    counts = _conditions(web, scenario)
    loop = asyncio.get_running_loop()
    began = loop.time()
    faults: list[str] = []
    async with ProcessSwarm(directory, web, delay_s) as swarm:
        try:
            async with asyncio.timeout(RUN_S_MAX):
                try:
                    await swarm.begin(size.peers, size.options, size.leaves)
                    await scenario.happens(swarm, random, size)
                except OverError:
                    swarm.note("over before the rest could happen")
                if size.stops:
                    await swarm.stop()
        except (RuntimeError, TimeoutError) as error:
            faults.append(f"{type(error).__name__}: {error}")
        late = await swarm.end(max(10.0, began + RUN_S_MAX - loop.time()))
        faults += [f"{name} did not end by itself" for name in late]
        faults += _exits(swarm.processes, late)
    verdict = judge(web.access_log, expected_requests(web))
    delays = dict.fromkeys(web.origins, delay_s)
    judged = (judge(view, {}, (), delays).hurried for view in views(web.access_log, swarm.parting))
    hurried = dict.fromkeys(sentence for sentences in judged for sentence in sentences)
    unknowing = across(web.access_log, swarm.parting, delay_s)
    lines = Counter(line.url for line in page_lines(directory))
    unlogged = sorted(web.truth.keys() - lines.keys())
    unfinished = cut_short(web.access_log, swarm.kills, size.unfinished_s)
    duplicates = web.fetched.total() - len(web.fetched) - unknowing.repeated - unfinished
    faults += [f"never fetched: {url}" for url in verdict.missing]
    faults += [f"in no page log: {url}" for url in unlogged if url in web.fetched]
    faults += [f"nobody links to: {url}" for url in verdict.extra]
    faults += [f"hurried: {what}" for what in hurried]
    if duplicates > size.duplicates_max * len(web.truth):
        faults += [f"{duplicates} of {len(web.truth)} fetched twice", *verdict.duplicates]
    faults += bugs(directory)
    return ChaosOutcome(
        scenario=scenario.name,
        seed=seed,
        seconds=round(loop.time() - began, 1),
        pages=len(web.truth),
        fetched=len(web.fetched),
        lost=len(set(verdict.missing) | set(unlogged)),
        duplicates=duplicates,
        hurried=len(hurried),
        across=unknowing,
        packets={} if counts is None else asdict(counts),
        events=swarm.events,
        faults=faults,
    )


def _conditions(web: DealtWeb, scenario: Scenario) -> Counts | None:
    """Set the network's conditions. Return the counts of packets, if there is a hub."""
    if not isinstance(web.machines, OnHub):
        return None
    faults = web.machines.faults
    faults.conditions, faults.counts = scenario.conditions, Counts()
    return faults.counts


def expected_requests(web: DealtWeb) -> dict[str, Expected]:
    """Return the requests that the access log must show. Repeats are judged apart."""
    pages = {url: Expected(status, 1, 1) for url, status in web.truth.items()}
    return pages | {f"{origin}/robots.txt": Expected(404, 0, len(web.access_log)) for origin in web.origins}


def cut_short(log: Sequence[Access], kills: Sequence[float], unfinished_s: float) -> int:
    """Return the number of fetches that were followed by a kill within `unfinished_s` seconds, and by another fetch."""
    last = {access.url: access.time for access in log}
    return sum(
        access.time < last[access.url] and any(0 <= kill - access.time <= unfinished_s for kill in kills)
        for access in log
        if access.path != "/robots.txt"
    )


def _exits(processes: Sequence[PeerProcess], late: Sequence[str]) -> Iterator[str]:
    for peer in processes:
        code = peer.process.returncode
        if code != peer.exit_expected and peer.name not in late:
            yield f"{peer.name} exited with {code}, not {peer.exit_expected}"


def bugs(directory: Path, excused: Mapping[str, str] | None = None) -> Iterator[str]:
    """Yield the log lines of peers about bugs of their own, without those with the `excused` text of a peer's name."""
    for log in sorted([*directory.glob("*.said"), *directory.glob("*/peer.log")]):
        said = [line for line in log.read_text().splitlines() if " ERROR " in line or line.startswith("Traceback")]
        name = log.parent.name if log.name == "peer.log" else log.name.partition(".")[0]
        excuse = (excused or {}).get(name)
        said = [line for line in said if excuse is None or excuse not in line]
        if said:
            yield f"{log.relative_to(directory)}: {said[0]}" + (f" and {len(said) - 1} more" if said[1:] else "")
