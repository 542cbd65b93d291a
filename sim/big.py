"""One large swarm: a thousand peers, a hundred thousand pages, one world in one process.

The web's sites are all alike, so that they end at about the same time, and few of its pages are slow: what takes
time in a large swarm is to be the swarm, not one page. Now and then a machine may be killed for good. What it takes is
measured whole: the processor, the memory of the process, and the files of all disks, which are in memory as well.
"""

import gc
import resource
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, replace
from random import Random
from unittest import mock

from kadcrawl.settings.limits import Limits
from kadcrawl.store.journal import SMALL_PAGE_BYTES
from kadcrawl.system.open_files import files_allowed, has_room, how_to_allow, raise_limit

from .few_files import FILES_OF_A_PEER, few_files
from .huge_pages import collect_heap
from .plan import Event, Kind, Plan
from .synthetic_sites import Mix
from .synthetic_web import SyntheticWeb
from .trial import BOOT_MOST_S, LIMITS, SEEDS, WEB_ADDRESS, Size, Trial, TrialOutcome, run

PAGES_PER_SITE = 50
DELAY_S = 0.25
KILLS_APART_S = 5.0
"""Virtual seconds between two kills. The swarm notices and repairs a death within about 10 s, so two peers are
exposed at most."""
SLOW = 0.001
"""Share of the pages that take seconds."""
SHOWN_APART_S = 0.5
"""Wall-clock seconds between two calls of `show`."""
COLLECTED_APART_S = 10.0
"""Wall-clock seconds between two collections of the heap into huge pages. Most of them find little that is new."""
MEASURED_APART_S = 10.0
"""Virtual seconds between two measurements of all disks, and between two collections of garbage: a closed connection is
25 kB in cycles. The loop collects no garbage by itself, because the moment would be chance."""
COMPANY_S = 0.5
"""Least seconds between two batches of links or copies, and between two commits: each costs as much as a request."""
SPARING = {
    "kadcrawl.store.journal.PAGE_BYTES": SMALL_PAGE_BYTES,
    "kadcrawl.store.wal.CHECKPOINT_BYTES": 256 * 1024,
    "kadcrawl.link.client_connection.KEPT_IDLE_S": 2.0,
}
"""Smaller limits than in production, because here all files and connections share one machine's memory."""
FILES_MORE = 500
"""Files of this process, and archives that peers are just writing."""


class Alike(Size):
    """A web whose sites are all of one size."""

    @property
    def limits(self) -> Limits:
        return replace(LIMITS, batch_spacing_s=COMPANY_S, commit_spacing_s=COMPANY_S)

    def web(self, plan: Plan) -> SyntheticWeb:
        return SyntheticWeb(
            plan.seed,
            sites=self.sites,
            pages=self.pages,
            seeds=min(SEEDS, self.sites),
            zipf=0.0,
            mix=Mix(crawl_delay_s=plan.own_delay_s, slow=SLOW),
            addresses=(WEB_ADDRESS,),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class SwarmSnapshot:
    """The progress of a swarm at one instant."""

    virtual_s: float
    peers: int
    """Machines whose peer is part of the swarm."""
    pages: int
    """URLs finished by the peers that are up."""
    pages_all: int


@dataclass(frozen=True, slots=True, kw_only=True)
class WorldCost:
    """The resources that one world used."""

    cpu_s: float
    wall_s: float
    memory_bytes: int
    """The peak of this process (resident)."""
    disk_bytes: int
    """The peak of all disks together, as measured."""


def plan_of(seed: int, peers: int, kills: int) -> Plan:
    """Return the plan: all join, and after that `kills` machines are killed, one at a time."""
    killed = Random(f"big {seed}").sample(range(peers), kills)
    events = [
        Event(BOOT_MOST_S + KILLS_APART_S * (1 + place), Kind.KILL, (machine,)) for place, machine in enumerate(killed)
    ]
    return Plan(seed, peers, tuple(events), delay_s=DELAY_S, own_delay_s=DELAY_S, balance="drain")


def crawl(
    plan: Plan, pages: int, sites: int | None = None, show: Callable[[SwarmSnapshot], None] = lambda sight: None
) -> tuple[TrialOutcome, WorldCost]:
    """Run the trial and call `show` from time to time with its progress. For many peers see `files_lacking`."""
    raise_limit()
    watcher = Watcher(show)
    began, began_cpu = time.perf_counter(), time.process_time()
    with ExitStack() as stack:
        for name, value in SPARING.items():
            stack.enter_context(mock.patch(name, value))
        stack.enter_context(few_files())
        outcome = run(plan, Alike(pages=pages, sites=sites or max(1, pages // PAGES_PER_SITE)), watch=watcher.look)
    cost = WorldCost(
        cpu_s=time.process_time() - began_cpu,
        wall_s=time.perf_counter() - began,
        memory_bytes=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
        disk_bytes=watcher.disk_bytes,
    )
    return outcome, cost


def files_lacking(peers: int) -> str | None:
    """Return what is to do before so many peers can be simulated here, or None if they have files enough.

    A machine without files would try to join again and again, and its world would never end.
    """
    raise_limit()
    needed = peers * FILES_OF_A_PEER + FILES_MORE
    if has_room(needed):
        return None
    allowed = files_allowed() or needed
    most = max(1, (allowed - FILES_MORE) // FILES_OF_A_PEER)
    return (
        f"{peers:,} simulated peers keep about {needed:,} files open, and this process may open {allowed:,}: "
        f"{how_to_allow(needed)}, or take --peers {most}"
    )


class Watcher:
    """Measures a trial from time to time."""

    def __init__(self, show: Callable[[SwarmSnapshot], None]) -> None:
        self.disk_bytes = 0
        self._show = show
        self._shown_at = 0.0
        self._measured_at = 0.0
        self._collected_at = 0.0
        self._frozen = False

    def look(self, trial: Trial) -> None:
        """Measure disks, collect garbage and the heap, and show progress when due. The trial calls this after each look
        of its observer."""
        if trial.now >= self._measured_at + MEASURED_APART_S:
            self._measured_at = trial.now
            self.disk_bytes = max(self.disk_bytes, trial.machines.disk_bytes)
            gc.collect()
            if not self._frozen and all(machine.begun for machine in trial.machines.live):
                # The objects of the peers stay, and they are most of the heap.
                self._frozen = True
                trial.set_aside()
        now = time.perf_counter()
        if now >= self._collected_at + COLLECTED_APART_S:
            self._collected_at = now
            collect_heap()
        if now >= self._shown_at + SHOWN_APART_S:
            self._shown_at = now
            peers = [machine.peer for machine in trial.machines.live if machine.peer is not None and machine.begun]
            pages = sum(peer.counters.done for peer in peers)
            self._show(
                SwarmSnapshot(virtual_s=trial.now, peers=len(peers), pages=pages, pages_all=trial.observer.pages)
            )
