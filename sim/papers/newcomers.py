"""Real peers that join a simulated swarm, and the ranges they own then. They crawl nothing."""

from unittest import mock

from kadcrawl.keys import firstdiff
from kadcrawl.peer.membership import node_id
from kadcrawl.settings.job import Job

from .swarm import NoWeb, Swarm, simulated


def ids_of(seed: int, peers: int, drawn: int, apart_s: float | None) -> list[int]:
    """Let `peers` peers join, each with `drawn` IDs to choose from. Return the chosen IDs.

    The peers come `apart_s` seconds apart. With None each comes when the peer before has joined.
    """

    async def story(swarm: Swarm) -> list[int]:
        await swarm.begin()
        await swarm.grow(peers, apart_s)
        return [peer.contact.number for peer in swarm.peers]

    with mock.patch.object(node_id, "DRAWN", drawn), simulated(seed, NoWeb(), job=Job()) as swarm:
        return swarm.run(story(swarm))


def shares(ids: list[int]) -> list[float]:
    """Return the share of the space that each of these peers owns."""
    return [2.0 ** -len({firstdiff(one, other) for other in ids if other != one}) for one in ids]
