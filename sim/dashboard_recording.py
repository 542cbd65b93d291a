"""Records what the gatherer of a dashboard says of a large simulated swarm while peers join, leave, die and lend.

    python -m sim.dashboard_recording --peers 200 recording.json

A browser cannot talk to a world in virtual time. So one simulated peer gathers as for a viewer, and the file has what
it gathered, with the times. The server of the dashboard shows it to browsers later, as if it gathered at that moment.

Tests: tests/sim/test_dashboard_recording.py
"""

import asyncio
import gc
import warnings
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest import mock

import click
import msgspec

from kadcrawl.peer.dashboard.source import dashboard_source
from kadcrawl.peer.dashboard.swarm_access import access_of
from kadcrawl.peer.monitoring.monitored_peer import of_full_peer
from kadcrawl.system.open_files import raise_limit

from .big import SPARING, Alike
from .machines import Machine
from .plan import Event, Kind, Plan
from .trial import BOOT_MOST_S, Trial, run

PAGES_PER_PEER = 20
PEERS_PER_SITE = 2
"""Some peers have no site of their own, so that others lend to them."""
DELAY_S = 1.0
"""Seconds between two requests to a site, so that the crawl is not over before the recording."""
BEGINS_BEFORE_S = 0.5
"""Virtual seconds before all have booted at which the first look begins: it sees some of them join."""
APART_S = 0.5
"""Virtual seconds between two looks, at least."""
SETTLED_S = 6.0
"""Virtual seconds after the last fault within which the swarm has noticed it. A look then is the last."""
GATHERS = 0
"""The machine that gathers. It never dies."""


class Gathered(msgspec.Struct, frozen=True):
    """One look at the swarm."""

    at: float
    """The second by the clock of the peer that looked."""
    document: dict[str, Any]


@dataclass(slots=True)
class Recording:
    """The looks of one world."""

    peers: int
    killed: int
    looks: list[Gathered] = field(default_factory=list)

    def write(self, file: Path) -> None:
        """Write the looks to a file."""
        file.write_bytes(msgspec.json.encode(self.looks))


class _Enough(Exception):
    """The recording is long enough, and the world may end."""


def read_recording(file: Path) -> list[Gathered]:
    """Return the looks in a file."""
    return msgspec.json.decode(file.read_bytes(), type=list[Gathered])


def plan_of(seed: int, peers: int) -> Plan:
    """Return the plan: all join, and then one machine joins, one leaves and one dies, twice."""
    events = []
    for turn in range(2):
        at_s = BOOT_MOST_S + 1.0 + turn
        events.append(Event(at_s, Kind.JOIN, (peers + turn,)))
        events.append(Event(at_s, Kind.LEAVE, (1 + turn,)))
        events.append(Event(at_s, Kind.KILL, (3 + turn,)))
    return Plan(seed, peers, tuple(events), delay_s=DELAY_S, own_delay_s=DELAY_S, balance="level")


def record(peers: int, seed: int = 1) -> Recording:
    """Run a swarm of so many peers until its faults are over, and return what one of them gathered meanwhile."""
    plan = plan_of(seed, peers)
    size = Alike(pages=PAGES_PER_PEER * peers, sites=max(1, peers // PEERS_PER_SITE))
    recorder = _Recorder(Recording(peers, killed=2), max(event.at_s for event in plan.events))
    raise_limit()
    with ExitStack() as stack:
        for name, value in SPARING.items():
            stack.enter_context(mock.patch(name, value))
        # The world ends in the middle of its work, and what it leaves open is no fault.
        stack.enter_context(warnings.catch_warnings())
        warnings.simplefilter("ignore", ResourceWarning)
        try:
            run(plan, size, watch=recorder.look)
        except _Enough:
            pass
        gc.collect()
    return recorder.recording


class _Recorder:
    """Has one machine gather, and ends the world after some looks."""

    def __init__(self, recording: Recording, faults_end_s: float) -> None:
        self.recording = recording
        self._faults_end_s = faults_end_s
        self._looking: asyncio.Task[None] | None = None
        self._is_over = False

    def look(self, trial: Trial) -> None:
        """Begin to gather, or end the world, when due. The trial calls this again and again."""
        machine = trial.machines.machines[GATHERS]
        if self._looking is None and machine.begun and trial.now > BOOT_MOST_S - BEGINS_BEFORE_S:
            self._looking = machine.host.spawn(self._gather(machine, trial))
        if self._looking is not None and self._looking.done():
            self._looking.result()
        if self._is_over:
            raise _Enough

    async def _gather(self, machine: Machine, trial: Trial) -> None:
        peer = machine.peer
        assert peer is not None, "it has begun"
        source = dashboard_source(of_full_peer(peer.runtime, lambda: 0), access_of(peer.runtime, peer.state_gossip))
        while True:
            document = await source.gather()
            self.recording.looks.append(Gathered(source.now(), document))
            self._is_over = trial.now > self._faults_end_s + SETTLED_S
            await asyncio.sleep(APART_S)


@click.command(help=__doc__)
@click.option("--peers", default=200, show_default=True, type=click.IntRange(10, 10_000))
@click.option("--seed", default=1, show_default=True)
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
def main(peers: int, seed: int, file: Path) -> None:
    """Record one world."""
    record(peers, seed).write(file)


if __name__ == "__main__":
    main()
