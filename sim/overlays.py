"""Swarms of bare overlays on the simulated network, and an observer who sees them all.

For the promises that need many peers or much time: exact ownership, no live peer evicted, recovery after a kill.
"""

import asyncio
from collections.abc import Awaitable, Callable
from random import Random
from typing import Any

from kadcrawl.keys import Cell, NodeId, anchor
from kadcrawl.overlay import Overlay, OverlaySettings

from .loop import SimLoop
from .network import Host

CELL_BITS = 16


class OverlaySwarm:
    """Peers on one simulated network, and an observer that sees them all."""

    def __init__(self, loop: SimLoop, seed: int, settings: OverlaySettings | None = None) -> None:
        self.loop = loop
        self.random = Random(f"swarm {seed}")
        self.peers: list[tuple[Host, Overlay]] = []
        self._settings = settings

    async def grow(self, count: int) -> None:
        """Let `count` peers join, each after the peer before, by the address of a peer in the swarm."""
        for _ in range(count):
            number = len(self.loop.network.hosts)
            host = self.loop.network.host(f"10.0.{number // 250}.{number % 250 + 1}")
            node_id = NodeId(self.random.getrandbits(160))
            overlay = Overlay(node_id, Random(f"peer {node_id}"), cell_bits=CELL_BITS, settings=self._settings)
            await host.spawn(overlay.listen(host.ip, 4160))
            if self.peers:
                await host.spawn(overlay.join([self.random.choice(self.overlays).me.address]))
            self.peers.append((host, overlay))

    def kill(self, count: int) -> list[Overlay]:
        """Cut the power of `count` peers at random."""
        victims = self.random.sample(self.peers, count)
        for victim in victims:
            self.loop.kill(victim[0])
            self.peers.remove(victim)
        return [overlay for _, overlay in victims]

    @property
    def overlays(self) -> list[Overlay]:
        return [overlay for _, overlay in self.peers]

    def true_owner(self, cell: Cell) -> int:
        target = anchor(cell, CELL_BITS)
        return min((overlay.me.number for overlay in self.overlays), key=lambda number: number ^ target)

    def true_siblings(self, overlay: Overlay, count: int = 16) -> list[int]:
        others = (other.me.number for other in self.overlays if other is not overlay)
        return sorted(others, key=lambda number: number ^ overlay.me.number)[:count]

    async def wrong_owners(self, cells_per_peer: int) -> int:
        """Ask every peer for the owners of some cells at once, and return the number of wrong answers."""
        questions = []
        for host, overlay in self.peers:
            for _ in range(cells_per_peer):
                cell = Cell(self.random.getrandbits(CELL_BITS))
                questions.append((cell, host.spawn(overlay.owner(cell))))
        answers = await asyncio.gather(*(task for _, task in questions))
        return sum(answer.number != self.true_owner(cell) for (cell, _), answer in zip(questions, answers, strict=True))

    async def close(self) -> None:
        for _, overlay in self.peers:
            await overlay.close()


def simulate(
    story: Callable[[OverlaySwarm], Awaitable[Any]], seed: int = 1, settings: OverlaySettings | None = None
) -> str:
    """Run `story` on a new swarm and return the trace. An error in any task fails it."""
    loop = SimLoop(seed)
    errors: list[dict[str, Any]] = []
    loop.set_exception_handler(lambda _, context: errors.append(context))

    async def run() -> None:
        swarm = OverlaySwarm(loop, seed, settings)
        await story(swarm)
        await swarm.close()

    try:
        loop.run_until_complete(run())
        assert errors == []
        return loop.network.trace()
    finally:
        loop.close()
