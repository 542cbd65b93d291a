"""Real peers that join a simulated swarm, and what each of them comes to own. They crawl nothing."""

from unittest import mock

from kadcrawl.keys import firstdiff
from kadcrawl.peer.membership import node_id
from kadcrawl.settings.job import Job

from .swarm import NoWeb, Swarm, simulated


def ids_of(seed: int, peers: int, drawn: int, apart_s: float | None) -> list[int]:
    """Let so many peers join, each with so many IDs to choose from; return the ID each has taken.

    They come `apart_s` seconds apart; None for each when the one before has entered.
    """

    async def story(swarm: Swarm) -> list[int]:
        await swarm.begin()
        await swarm.grow(peers, apart_s)
        return [peer.contact.number for peer in swarm.peers]

    with mock.patch.object(node_id, "DRAWN", drawn), simulated(seed, NoWeb(), job=Job()) as swarm:
        return swarm.run(story(swarm))


def shares(ids: list[int]) -> list[float]:
    """Return what each of these peers owns of the space."""
    return [2.0 ** -len({firstdiff(one, other) for other in ids if other != one}) for one in ids]
