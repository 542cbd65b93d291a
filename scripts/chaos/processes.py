"""Faults of the processes of a swarm, by name in `PROCESSES`.

Seeds choose victims and instants. These faults leave the network alone, so none of them has an excuse.
"""

import asyncio
from random import Random
from typing import Final

from scripts.chaos.run import RunSize, Scenario
from scripts.chaos.swarm import ProcessSwarm
from sim.plan import RECOVERY_S


async def two_killed(swarm: ProcessSwarm, random: Random, size: RunSize) -> None:
    """Two peers are killed at once. The cells that they owned, and backed up for others, are left with one peer
    each."""
    await swarm.until(random.uniform(0.05, 0.6))
    await swarm.kill(swarm.chosen(random, 2))


async def frozen(swarm: ProcessSwarm, random: Random, size: RunSize) -> None:
    """A peer is stopped for half a minute, and finds its sites in other hands when it goes on."""
    await swarm.until(random.uniform(0.03, 0.15))
    (victim,) = swarm.chosen(random)
    await swarm.freeze(victim, size.freeze_s)


async def restarted(swarm: ProcessSwarm, random: Random, size: RunSize) -> None:
    """A peer is killed, and started again on its disk a little later."""
    await swarm.until(random.uniform(0.05, 0.5))
    (victim,) = swarm.chosen(random)
    await swarm.kill([victim])
    await asyncio.sleep(random.choice([0.0, random.uniform(0.0, 6.0)]))
    await _join(swarm, victim.name, "started on its disk")


async def disk_lost(swarm: ProcessSwarm, random: Random, size: RunSize) -> None:
    """A peer is killed, its disk deleted, and a new peer started in its place."""
    await swarm.until(random.uniform(0.05, 0.5))
    (victim,) = swarm.chosen(random)
    await swarm.kill([victim])
    swarm.delete_disk(victim)
    await asyncio.sleep(random.uniform(0.0, 3.0))
    await _join(swarm, victim.name, "started without its disk")


async def two_join(swarm: ProcessSwarm, random: Random, size: RunSize) -> None:
    """Two peers join at once."""
    await swarm.until(random.uniform(0.05, 0.5))
    names = [f"peer-{len(swarm.processes) + 1}", f"peer-{len(swarm.processes) + 2}"]
    await asyncio.gather(*(_join(swarm, name, "joins") for name in names))


async def one_leaves(swarm: ProcessSwarm, random: Random, size: RunSize) -> None:
    """A peer is told to leave, by `kadcrawl leave`."""
    await swarm.until(random.uniform(0.05, 0.6))
    (victim,) = swarm.chosen(random)
    await swarm.leave(victim)


async def terminated(swarm: ProcessSwarm, random: Random, size: RunSize) -> None:
    """A peer gets a SIGTERM, as when its machine shuts down, and leaves."""
    await swarm.until(random.uniform(0.05, 0.6))
    (victim,) = swarm.chosen(random)
    swarm.terminate(victim)


async def rolled(swarm: ProcessSwarm, random: Random, size: RunSize) -> None:
    """All peers are restarted one after the other, by SIGTERM and the entry script of the containers."""
    await swarm.until(0.05)
    for victim in swarm.living:
        swarm.chosen(random)
        swarm.terminate(victim)
        await victim.process.wait()
        swarm.note("started again", victim.name)
        await swarm.enter_pod(victim.name)


async def everything(swarm: ProcessSwarm, random: Random, size: RunSize) -> None:
    """All faults happen in a single crawl, in any order, with time between for three copies again."""
    parts = [two_killed, frozen, restarted, disk_lost, two_join, random.choice([one_leaves, terminated])]
    random.shuffle(parts)
    for part in parts:
        await part(swarm, random, size)
        await asyncio.sleep(RECOVERY_S + random.uniform(0.0, 2.0))


PROCESSES: Final[dict[str, Scenario]] = {
    scenario.name: scenario
    for scenario in (
        Scenario(two_killed),
        Scenario(frozen, slower=2.25),
        Scenario(restarted),
        Scenario(disk_lost),
        Scenario(two_join),
        Scenario(one_leaves),
        Scenario(terminated),
        Scenario(rolled, slower=2.5),
        Scenario(everything, slower=6.5),
    )
}


async def _join(swarm: ProcessSwarm, name: str, what: str) -> None:
    swarm.note(what, name)
    await swarm.join(name)
