"""Faults of the network between the peers of a swarm, by name in `NETWORK`.

Seeds choose victims and instants. Every peer can reach the web all the time, as late and as badly as everything else: a
peer that is cut off crawls on, and so do the others.
"""

import asyncio
from random import Random
from typing import Final

from scripts.chaos.run import RunSize, Scenario
from scripts.chaos.swarm import ProcessSwarm
from scripts.chaos.tun_hub import PacketConditions

FEW: Final = 3 / 8
"""Share of the peers that a partition cuts off."""
ONE_WAY: Final = 2 / 3
"""The length of a cut in one direction, as a share of `RunSize.freeze_s`."""


async def lossy(swarm: ProcessSwarm, random: Random, size: RunSize) -> None:
    """Packets are late by about 60 ms, overtake each other, come twice or not at all, from beginning to end."""
    await swarm.until(1.0)


async def partition(swarm: ProcessSwarm, random: Random, size: RunSize) -> None:
    """Three of eight peers are cut off for half a minute. Both sides crawl on."""
    await swarm.until(random.uniform(0.05, 0.25))
    await swarm.part(swarm.chosen(random, round(FEW * size.peers)), size.freeze_s)


async def one_way(swarm: ProcessSwarm, random: Random, size: RunSize) -> None:
    """Packets of two peers are lost for 20 seconds. They hear the others all the time."""
    await swarm.until(random.uniform(0.05, 0.35))
    await swarm.part(swarm.chosen(random, 2), size.freeze_s * ONE_WAY, one_way=True)


async def partition_and_kill(swarm: ProcessSwarm, random: Random, size: RunSize) -> None:
    """Three of eight are cut off for half a minute, and meanwhile one of the five is killed."""
    await swarm.until(random.uniform(0.05, 0.25))
    few = round(FEW * size.peers)
    *cut_off, victim = swarm.chosen(random, few + 1)
    async with asyncio.TaskGroup() as group:
        group.create_task(swarm.part(cut_off, size.freeze_s))
        await asyncio.sleep(random.uniform(0.1, 0.9) * size.freeze_s)
        await swarm.kill([victim])


LAN: Final = PacketConditions(delay_s=0.002, jitter_s=0.001)
BAD: Final = PacketConditions(delay_s=0.06, jitter_s=0.02, loss=0.03, duplication=0.01)

NETWORK: Final[dict[str, Scenario]] = {
    scenario.name: scenario
    for scenario in (
        Scenario(lossy, conditions=BAD),
        Scenario(partition, slower=3.0, conditions=LAN),
        Scenario(one_way, slower=3.0, conditions=LAN),
        Scenario(partition_and_kill, slower=3.0, conditions=LAN),
    )
}
