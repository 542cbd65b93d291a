"""Load balance by load level: the contacts that a heavy peer asks, and its offers."""

from collections.abc import Iterator
from typing import cast

import pytest

from kadcrawl.balance.shedding import BlockOffer
from kadcrawl.lending.blocks import Blocks
from kadcrawl.lending.level_policy import LevelPolicy
from kadcrawl.link.wire.messages import Contact, GetLoad, Load
from tests.support.links.contacts import contact
from tests.support.swarm.peers import JOB

HEAVY, LIGHT = 3.0, -9.0
WORK_AREA = JOB.block_urls


class Heavy:
    """Simulate a peer with six blocks too many and a contact in each bucket. The ports say who takes a block."""

    job = JOB
    own = WORK_AREA + 6 * JOB.block_urls
    borrowed = 0
    has_spare_connections = True

    def __init__(self, levels: dict[int, float], takes: dict[int, int]) -> None:
        self.levels, self.takes = levels, takes
        self.asked: list[int] = []
        self.offered: list[tuple[int, int]] = []

    def me(self) -> Contact:
        return contact(99)

    def is_paused(self) -> bool:
        return False

    def buckets(self) -> Iterator[list[Contact]]:
        for port in self.levels:
            yield [contact(port)]

    async def ask(self, of: Contact, question: GetLoad) -> Load:
        self.asked.append(of.number)
        return Load(self.levels[of.number], None)

    async def lend_blocks(self, offer: BlockOffer[Contact]) -> int:
        self.offered.append((offer.peer.number, offer.blocks))
        return min(offer.blocks, self.takes[offer.peer.number])


@pytest.mark.parametrize(
    ("levels", "takes", "offered", "asked"),
    [
        pytest.param([LIGHT, LIGHT, LIGHT], [9, 9, 9], [(1, 6)], [1], id="the nearest takes all"),
        pytest.param([LIGHT, LIGHT, LIGHT], [2, 9, 9], [(1, 6), (2, 4)], [1, 2], id="it takes less than it said"),
        pytest.param([LIGHT, HEAVY, LIGHT], [2, 0, 9], [(1, 6), (3, 4)], [1, 2, 3], id="a heavy one between"),
        pytest.param([-2.0, -2.0, -2.0], [2, 2, 2], [(1, 2), (2, 2), (3, 2)], [1, 2, 3], id="a part of it for each"),
        pytest.param([HEAVY, HEAVY, HEAVY], [0, 0, 0], [], [1, 2, 3], id="nobody has room"),
        pytest.param([LIGHT, LIGHT], [0, 0], [(1, 6), (2, 6)], [1, 2], id="nobody takes any"),
    ],
)
async def test_whom_a_heavy_peer_asks_from_near_to_far_and_what_it_offers(
    levels: list[float], takes: list[int], offered: list[tuple[int, int]], asked: list[int]
) -> None:
    heavy = Heavy(dict(enumerate(levels, 1)), dict(enumerate(takes, 1)))
    await LevelPolicy(cast(Blocks, heavy), WORK_AREA).shed()
    assert offered == heavy.offered
    assert asked == heavy.asked
