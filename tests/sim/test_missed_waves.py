"""A wave misses a joining peer while datagrams are lost, and heartbeats reach that peer a few seconds later."""

import asyncio
from pathlib import Path

from kadcrawl.cli.local.peer_life import LOCAL
from kadcrawl.settings.job import Job
from sim.loop import world
from sim.machines import Machine, Machines
from sim.plan import Plan
from sim.trial import LIMITS, USUAL

WORLDS = [(49, 0.2), (52, 0.2), (75, 0.2), (57, 0.05)]
"""Seed, and share of lost datagrams. In each world the wave misses a peer, which once remained paused for ever."""
PEERS = 4
HEARTBEATS_S = 15.0
"""Seconds for several heartbeats, although some are lost."""


def begun_paused(seed: int, loss: float, directory: Path) -> tuple[list[int], list[int]]:
    """Start all but the first peer of a paused swarm at once, and resume the swarm when they have joined.

    Return the machines that were paused just after that, and those paused later.
    """
    web = USUAL.web(Plan(seed, PEERS, ()))
    job = Job(scope="any")
    with (
        world(seed) as loop,
        Machines(loop, web, job=job, limits=LIMITS, overlay=LOCAL, seed=seed, directory=directory) as machines,
    ):
        all_ = machines.machines

        def paused() -> list[int]:
            return [number for number, machine in all_.items() if machine.peer is not None and machine.peer.paused]

        async def resume(first: Machine) -> None:
            assert first.peer is not None
            await first.peer.state_gossip.order("resume")

        async def story() -> tuple[list[int], list[int]]:
            loop.network.conditions.loss, loop.network.conditions.jitter_s = loss, 0.0
            machines.start(0)
            await asyncio.sleep(2)
            first = all_[0]
            assert first.peer is not None
            first.peer.obey(first.peer.state_gossip.say("pause"))
            for number in range(1, PEERS):
                machines.join(number)
            while any(one.peer is None or not one.peer.begun or one.peer.joining for one in all_.values()):
                await asyncio.sleep(0.001)
            await first.host.spawn(resume(first))
            missed = paused()
            await asyncio.sleep(HEARTBEATS_S)
            return missed, paused()

        return loop.run_until_complete(story())


def test_who_comes_while_a_wave_goes_round_hears_it_later(tmp_path: Path) -> None:
    missed = []
    for seed, loss in WORLDS:
        at_first, later = begun_paused(seed, loss, tmp_path / str(seed))
        missed += at_first
        assert [] == later
    assert missed, "no wave misses anybody in these worlds any more: look for others"
