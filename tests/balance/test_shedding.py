"""Offers of heavy blocks: they go to peers with room, make no peer heavy, and never go back and forth."""

from dataclasses import dataclass, field
from random import Random

import pytest
from hypothesis import given, settings, strategies as st

from kadcrawl.balance.level import BlockLoad
from kadcrawl.balance.shedding import (
    BlockOffer,
    Bucket,
    OfferRound,
    accepted_blocks,
    advertised_level,
    block_offers_by_level,
    offers_as_published,
    room,
    spare_blocks,
    urls_to_keep,
)

H = 20


@pytest.mark.parametrize(
    ("level", "blocks", "buckets", "expected"),
    [
        pytest.param(2.0, 2, [[("a", -3.0)]], [("a", 2)], id="all to one that has room"),
        pytest.param(5.0, 5, [[("a", -3.0)]], [("a", 3)], id="as much as there is room for"),
        pytest.param(
            4.0, 4, [[("a", -3.9), ("b", -6.0)]], [("a", 3), ("b", 1)], id="the first light one, then the next"
        ),
        pytest.param(2.0, 2, [[("a", -0.9), ("b", 0.0), ("c", 7.0)]], [], id="nobody has room for a whole block"),
        pytest.param(2.0, 2, [[("near", -6.0)], [("far", -6.0)]], [("near", 2)], id="near before far"),
        pytest.param(
            2.0,
            2,
            [[("near", -6.0), ("heavy", 9.0)], [("far", -6.0)]],
            [("far", 2)],
            id="a region that has room for all before one that is heavy itself",
        ),
        pytest.param(
            9.0,
            9,
            [[("near", -2.0)], [("far", -6.0)]],
            [("near", 2), ("far", 6)],
            id="more than any region has room for",
        ),
        pytest.param(2.0, 2, [[("a", -2.0)]], [("a", 2)], id="a sum of exactly 0 still leaves room"),
        pytest.param(0.0, 0, [[("a", -6.0)]], [], id="nothing to give"),
        pytest.param(2.0, 2, [], [], id="nobody known"),
    ],
)
def test_offers_go_to_light_peers_near_to_far(
    level: float, blocks: int, buckets: list[Bucket[str]], expected: list[tuple[str, int]]
) -> None:
    assert expected == block_offers_by_level(level, blocks, buckets)


@pytest.mark.parametrize(
    ("level", "blocks", "threshold", "buckets", "expected"),
    [
        pytest.param(2.0, 2, 0.0, [[("a", -3.0)]], [("a", 2)], id="all to the first light one"),
        pytest.param(2.0, 2, 0.0, [[("a", -2.0), ("b", -3.0)]], [("b", 2)], id="to the first below the threshold"),
        pytest.param(2.0, 2, -2.0, [[("a", -3.0), ("b", -5.0)]], [("b", 2)], id="another threshold"),
        pytest.param(5.0, 5, 0.0, [[("a", -3.0), ("b", -4.0)]], [], id="more than one has room for: nothing"),
        pytest.param(2.0, 2, 0.0, [[("a", -6.0), ("b", 9.0)]], [], id="a heavy region is passed over"),
        pytest.param(
            2.0, 2, 0.0, [[("a", -6.0), ("b", 9.0)], [("c", -3.0)]], [("c", 2)], id="and the next one looked at"
        ),
        pytest.param(2.0, 2, 0.0, [[("a", -2.0)]], [], id="a sum of exactly 0 does not allow it"),
        pytest.param(2.0, 2, 9.0, [[("a", 0.5), ("b", -9.0)]], [("b", 2)], id="never to one that is not light"),
        pytest.param(0.5, 0, 0.0, [[("a", -3.0)]], [], id="nothing to give"),
    ],
)
def test_offers_as_published(
    level: float, blocks: int, threshold: float, buckets: list[Bucket[str]], expected: list[tuple[str, int]]
) -> None:
    assert expected == offers_as_published(level, blocks, buckets, threshold)


@pytest.mark.parametrize(
    ("level", "offered", "taken"),
    [(-3.0, 2, 2), (-3.0, 3, 3), (-3.0, 4, 3), (-2.9, 3, 2), (-0.9, 1, 0), (0.0, 1, 0), (5.0, 1, 0), (-3.0, -1, 0)],
)
def test_a_borrower_takes_what_it_has_room_for(level: float, offered: int, taken: int) -> None:
    assert taken == accepted_blocks(level, offered)


@pytest.mark.parametrize(
    ("pending", "work_area", "arrivals", "crawls", "level"),
    [
        pytest.param(0, 60, None, None, -2.5, id="half a block is kept free"),
        pytest.param(55, 60, None, None, 0.0, id="but nobody is heavy for that"),
        pytest.param(0, 20, None, None, -1.0, id="unless the work area has but one"),
        pytest.param(0, 60, 1.0, 2.0, -2.5, id="who crawls more than arrives is light"),
        pytest.param(0, 60, 2.0, 1.0, 0.0, id="who gains is not"),
        pytest.param(0, 60, 2.0, 2.0, -2.5, id="who only holds its own is"),
        pytest.param(100, 60, 1.0, 2.0, 2.0, id="heavy is heavy"),
        pytest.param(100, 60, 2.0, 1.0, 2.0, id="in either case"),
    ],
)
def test_a_peer_tells_what_others_may_fill(
    pending: int, work_area: int, arrivals: float | None, crawls: float | None, level: float
) -> None:
    assert level == advertised_level(BlockLoad(pending, work_area, H), arrivals, crawls)


@pytest.mark.parametrize(
    ("arrivals", "crawls", "interval_s", "urls"),
    [
        pytest.param(None, None, 10.0, 60, id="unknown rates: the work area"),
        pytest.param(None, 1.0, 10.0, 60, id="unknown arrivals"),
        pytest.param(1.0, 2.0, 10.0, 60, id="who does not gain: the work area"),
        pytest.param(2.0, 2.0, 10.0, 60, id="who only holds its own too"),
        pytest.param(2.0, 1.0, 10.0, 41, id="who gains: all but room for less than a block"),
        pytest.param(9.0, 5.0, 10.0, 51, id="but what it crawls until the next update"),
        pytest.param(99.0, 50.0, 10.0, 60, id="and no more than the work area"),
    ],
)
def test_a_lender_keeps_its_work_area_or_what_it_needs_of_it(
    arrivals: float | None, crawls: float | None, interval_s: float, urls: int
) -> None:
    assert urls == urls_to_keep(BlockLoad(100, 60, H), arrivals, crawls, interval_s)


@pytest.mark.parametrize(
    ("pending", "own", "keep", "blocks"),
    [
        pytest.param(60, 60, 41, 0, id="full is not heavy"),
        pytest.param(61, 61, 41, 1, id="one URL too many, rounded up"),
        pytest.param(79, 79, 60, 0, id="nineteen too many, rounded down"),
        pytest.param(80, 80, 60, 1, id="a block too many"),
        pytest.param(160, 160, 60, 5, id="five"),
        pytest.param(160, 59, 60, 2, id="only own ones go"),
    ],
)
def test_what_a_lender_has_to_spare(pending: int, own: int, keep: int, blocks: int) -> None:
    assert blocks == spare_blocks(BlockLoad(pending, 60, H), own, keep)


@pytest.mark.parametrize("keep", [40, 61])
def test_a_lender_that_could_take_its_blocks_back_is_refused(keep: int) -> None:
    with pytest.raises(ValueError):
        spare_blocks(BlockLoad(100, 60, H), 100, keep)


def test_refused_blocks_are_offered_to_the_next_peer_and_never_in_vain() -> None:
    shedding = OfferRound(5.0, 5, [[("a", -3.0)], [("b", -1.0), ("c", -4.0)]])
    assert [("a", 3), ("b", 1), ("c", 1)] == shedding.offers()
    for offer in shedding.offers():
        shedding.answered(offer, 1)
    assert [("c", 2)] == shedding.offers()
    shedding.answered(BlockOffer("c", 2), 0)
    assert [] == shedding.offers()
    assert 2 == shedding.blocks


def test_a_region_is_looked_at_again_by_what_is_left_to_give() -> None:
    shedding = OfferRound(4.0, 4, [[("a", -4.0), ("heavy", 9.0)], [("b", -3.0), ("heavy too", 9.0)], [("c", -3.0)]])
    assert [("a", 4)] == shedding.offers()
    shedding.answered(BlockOffer("a", 4), 2)
    assert [("c", 2)] == shedding.offers(), "2 blocks fit into the region of c, as 4 did not"


@pytest.mark.parametrize(("answer", "left"), [(3, 0), (99, 0), (2, 1), (0, 3), (-5, 3)])
def test_an_impossible_answer_is_cut_to_a_possible_one(answer: int, left: int) -> None:
    shedding = OfferRound(3.0, 3, [[("a", -3.0)]])
    shedding.answered(shedding.offers()[0], answer)
    assert left == shedding.blocks
    assert [] == shedding.offers()


@dataclass
class Url:
    """One URL, and how often it moved."""

    moves: int = 0


@dataclass
class Member:
    """One peer of a swarm whose URLs can be told apart."""

    work_area: int
    arrivals: float | None
    crawls: float | None
    own: list[Url] = field(default_factory=list)
    taken: list[Url] = field(default_factory=list)

    def load(self, block: int) -> BlockLoad:
        return BlockLoad(len(self.own) + len(self.taken), self.work_area, block)

    def told(self, block: int) -> float:
        return advertised_level(self.load(block), self.arrivals, self.crawls)


class SheddingSwarm:
    """Simulate peers that all decide at the same time, by the levels that the others told."""

    def __init__(self, rng: Random) -> None:
        self.rng = rng
        self.block = rng.choice([1, 2, 5, 20])
        self.members = [self._member() for _ in range(rng.randint(2, 9))]
        self.levels = [member.told(self.block) for member in self.members]
        """The level that each peer told last."""
        self.moved = 0

    def _member(self) -> Member:
        wide, rng = self.rng.randint(1, 5), self.rng
        arrivals, crawls = (None, None) if rng.random() < 0.2 else (rng.random(), rng.random())
        urls = rng.choice([0, rng.randint(0, 10 * self.block)])
        return Member(wide * self.block, arrivals, crawls, own=[Url() for _ in range(urls)])

    def live(self) -> None:
        """Let URLs arrive and be crawled."""
        for member in self.members:
            member.own += [Url() for _ in range(self.rng.choice([0, self.rng.randint(0, 3 * self.block)]))]
            for urls in (member.own, member.taken):
                self.rng.shuffle(urls)
                del urls[: self.rng.randint(0, 2 * self.block)]

    def tell(self, share: float) -> None:
        """Let a share of the peers tell their level. The levels of the others stay old."""
        for number, member in enumerate(self.members):
            if self.rng.random() < share:
                self.levels[number] = member.told(self.block)

    def shed(self) -> None:
        """One update: each decides on the same levels; the borrower on its own."""
        gave, took = set[int](), set[int]()
        plans = []
        for number, member in enumerate(self.members):
            load = member.load(self.block)
            keep = urls_to_keep(load, member.arrivals, member.crawls, interval_s=1.0)
            if blocks := spare_blocks(load, len(member.own), keep):
                others = [(other, self.levels[other]) for other in range(len(self.members)) if other != number]
                self.rng.shuffle(others)
                cut = self.rng.randint(0, len(others))
                plans.append((number, OfferRound(load.level, blocks, [others[:cut], others[cut:]])))
        self.rng.shuffle(plans)
        waiting = [(number, plan, offer) for number, plan in plans for offer in plan.offers()]
        asked = 0
        while waiting:
            asked += 1
            assert asked <= 3 * len(self.members) ** 2, "offers come to an end"
            number, plan, offer = waiting.pop(self.rng.randrange(len(waiting)))  # They arrive in any order.
            if count := self._move(number, offer):
                gave.add(number)
                took.add(offer.peer)
            plan.answered(offer, count)
            if not any(other == number for other, _, _ in waiting):
                waiting += [(number, plan, again) for again in plan.offers()]
        assert not gave & took
        for number in gave:
            assert 0 == room(self.members[number].told(self.block)), "a lender has no room for a block"

    def _move(self, lender: int, offer: BlockOffer[int]) -> int:
        borrower = self.members[offer.peer]
        count = accepted_blocks(borrower.told(self.block), offer.blocks)
        for _ in range(count * self.block):
            url = self.members[lender].own.pop()
            url.moves += 1
            borrower.taken.append(url)
        self.moved += count
        assert not count or borrower.load(self.block).level <= 0, "no borrower becomes heavy by a block"
        return count

    def check(self) -> None:
        for member in self.members:
            assert all(url.moves == 0 for url in member.own)
            assert all(url.moves == 1 for url in member.taken), "no block goes on from its borrower"
            assert len(member.taken) <= member.work_area, "so what is beyond the work area is a peer's own"


@settings(max_examples=150, deadline=None)
@given(seed=st.integers(0, 2**32), told_share=st.sampled_from([1.0, 0.5]))
def test_no_block_bounces_and_no_peer_gets_heavy_if_all_decide_at_once(seed: int, told_share: float) -> None:
    swarm = SheddingSwarm(Random(seed))
    for _ in range(20):
        swarm.live()
        swarm.tell(told_share)
        swarm.shed()
        swarm.check()


@settings(max_examples=150, deadline=None)
@given(seed=st.integers(0, 2**32))
def test_a_swarm_left_alone_is_balanced_after_one_update(seed: int) -> None:
    swarm = SheddingSwarm(Random(seed))
    swarm.shed()
    moved = swarm.moved
    swarm.tell(1.0)
    swarm.shed()
    assert moved == swarm.moved
    giving = [
        spare_blocks(load, len(member.own), urls_to_keep(load, member.arrivals, member.crawls, interval_s=1.0))
        for member in swarm.members
        if (load := member.load(swarm.block))
    ]
    having_room = [room(member.told(swarm.block)) for member in swarm.members]
    assert not any(giving) or not any(having_room)


def test_swarms_of_these_tests_do_move_blocks() -> None:
    swarms = [SheddingSwarm(Random(seed)) for seed in range(20)]
    for swarm in swarms:
        swarm.shed()
    assert sum(swarm.moved for swarm in swarms) > 50
