"""The walk over the buckets: which peers are asked, what they are offered, and where the walk ends."""

from collections.abc import Sequence
from random import Random

import pytest

from kadcrawl.balance.bucket_walk import ASKED_AT_ONCE, ASKED_MAX, ASKED_PER_BUCKET_MAX, BucketWalk
from kadcrawl.balance.drain import Backlog
from kadcrawl.balance.known_loads import PeerLoad
from kadcrawl.balance.shedding import BlockOffer
from tests.support.cases import cases

WORK_AREA_S = 10.0
IDLE, BUSY = Backlog(0, 1.0), Backlog(1000, 1.0)


def walk_of(
    own: Backlog, buckets: Sequence[Sequence[int]], known: dict[int, PeerLoad], block_urls: int = 1
) -> BucketWalk[int]:
    return BucketWalk(own, buckets, known, block_urls=block_urls, work_area_s=WORK_AREA_S)


def go(
    walk: BucketWalk[int], loads: dict[int, PeerLoad], takes: Random | None = None
) -> tuple[list[int], list[BlockOffer[int]]]:
    """Walk to the end, and return the peers asked and the offers made. Offers are taken, or in part by chance."""
    asked: list[int] = []
    offers: list[BlockOffer[int]] = []
    while walk.next_bucket():
        while questions := walk.questions():
            assert len(questions) <= ASKED_AT_ONCE
            asked += questions
            for peer in questions:
                walk.answered(peer, loads.get(peer))
        for offer in walk.offers():
            offers.append(offer)
            walk.lent(offer, takes.randint(0, offer.blocks) if takes else offer.blocks)
    return asked, offers


def test_a_near_bucket_with_enough_room_ends_the_walk() -> None:
    walk = walk_of(Backlog(30, 1.0), [[1, 2, 3], [4, 5]], {})
    asked, offers = go(walk, dict.fromkeys((1, 2, 3, 4, 5), IDLE))
    assert [1, 2, 3] == asked
    assert {1, 2, 3} == {offer.peer for offer in offers}
    assert not walk.has_blocks


def test_a_bucket_is_asked_no_further_than_needed() -> None:
    near = [*range(20)]
    asked, _ = go(walk_of(Backlog(30, 1.0), [near], {}), dict.fromkeys(near, IDLE))
    assert ASKED_AT_ONCE == len(asked)


def test_known_room_is_used_without_a_question() -> None:
    asked, offers = go(walk_of(Backlog(30, 1.0), [[1, 2], [3, 4]], {1: IDLE, 3: IDLE, 4: IDLE}), {2: BUSY})
    assert [2] == asked, "the near bucket might have room for the rest"
    assert [1, 3, 4] == [offer.peer for offer in offers]


@pytest.mark.parametrize(
    ("own", "known"),
    [
        pytest.param(Backlog(30, 1.0), {1: Backlog(30, 1.0)}, id="nobody is light"),
        pytest.param(Backlog(9, 1.0), {1: BUSY, 2: BUSY}, id="too little work for two updates"),
        pytest.param(Backlog(5, 1.0), {1: Backlog(5, 1.0), 2: Backlog(4, 1.0)}, id="as busy as all it knows"),
        pytest.param(Backlog(0, 1.0, 500.0), {1: IDLE}, id="borrowed work only"),
    ],
)
def test_no_blocks_are_offered_unless_a_peer_is_lighter(own: Backlog, known: dict[int, PeerLoad]) -> None:
    _, offers = go(walk_of(own, [[*known]], known), {})
    assert not offers


def test_without_enough_work_for_two_updates_it_still_lends_to_idle_peers() -> None:
    """At the end of a crawl a common end below the work area counts."""
    _, offers = go(walk_of(Backlog(8, 1.0), [[1]], {1: IDLE}), {})
    assert [BlockOffer(1, 4)] == offers


def test_no_peer_is_lent_more_than_its_work_area_and_a_block() -> None:
    _, offers = go(walk_of(Backlog(1000, 1.0), [[1, 2], [3]], {1: IDLE, 2: Backlog(6, 1.0), 3: Backlog(0, 0.1)}, 4), {})
    assert [BlockOffer(1, 3), BlockOffer(2, 2), BlockOffer(3, 26)] == sorted(offers)


def test_a_cold_peer_is_tried() -> None:
    _, offers = go(walk_of(Backlog(100, 1.0), [[1], [2]], {}), {1: 2, 2: BUSY})
    assert [BlockOffer(1, 2)] == offers


def test_one_very_heavy_peer_does_not_close_a_bucket() -> None:
    known: dict[int, PeerLoad] = {1: Backlog(10**6, 1.0), 2: Backlog(0, 0.1), 3: IDLE}
    asked, offers = go(walk_of(Backlog(40, 1.0), [[1, 2], [3, 4]], known), {})
    assert [2] == [offer.peer for offer in offers]
    assert not asked


def test_the_power_of_a_peer_counts_in_its_level() -> None:
    """A peer ten times as fast has room for ten times as much of what is too much here."""
    for url_s, enough in ((1.0, False), (0.1, True)):
        walk = walk_of(Backlog(60, 1.0), [[1], [2]], {1: Backlog(0, url_s), 2: BUSY})
        assert walk.next_bucket()
        assert walk.is_enough is enough


def test_a_division_may_be_given() -> None:
    def all_to_the_last(
        own: Backlog, others: Sequence[PeerLoad], block_urls: int, hand_over_s: float, end_s: float
    ) -> list[int]:
        assert (own, block_urls, hand_over_s) == (Backlog(60, 1.0), 5, 0.5)
        assert 0 < end_s < WORK_AREA_S
        return [0] * (len(others) - 1) + [7]

    walk = BucketWalk(
        Backlog(60, 1.0),
        [[1, 2]],
        {1: Backlog(80, 0.1), 2: Backlog(0, 0.1)},
        block_urls=5,
        work_area_s=WORK_AREA_S,
        hand_over_s=0.5,
        divide=all_to_the_last,
    )
    assert walk.next_bucket()
    assert [BlockOffer(2, 7)] == walk.offers()


@pytest.mark.parametrize(("luck", "most"), [(0.0, 5), (0.9, 6)])
def test_a_peer_leaves_room_for_other_heavy_peers(luck: float, most: int) -> None:
    """It may take twice its share, as not every heavy peer knows this light one: 2 / 4 of 11 blocks."""
    known: dict[int, PeerLoad] = {1: IDLE, 2: BUSY, 3: BUSY, 4: BUSY}
    for heavy, expected in ((known, most), ({1: IDLE}, 11)):
        walk = BucketWalk(Backlog(1000, 1.0), [[*heavy]], heavy, block_urls=1, work_area_s=WORK_AREA_S, luck=luck)
        assert walk.next_bucket()
        assert [BlockOffer(1, expected)] == walk.offers()


@cases("seed", range(300))
def test_properties_of_every_walk(seed: int) -> None:
    random = Random(seed)
    block = random.randint(1, 20)
    loads: dict[int, PeerLoad] = {
        peer: random.choice(
            (
                Backlog(0, random.uniform(0.01, 2)),
                Backlog(random.randrange(300), random.uniform(0.01, 2), random.choice((0.0, random.uniform(0, 30)))),
                random.randint(1, 8),
            )
        )
        for peer in range(random.randrange(150))
    }
    peers, buckets = [*loads], []
    while peers:
        size = random.randint(1, 50)
        buckets.append(peers[:size])
        peers = peers[size:]
    known = {peer: load for peer, load in loads.items() if random.random() < 0.4}
    own = Backlog(random.randrange(600), random.uniform(0.01, 2))
    walk = walk_of(own, buckets, known, block)
    asked, offers = go(walk, loads, random if seed % 2 else None)

    assert len(asked) == len({*asked}) <= ASKED_MAX, "no peer is asked twice"
    assert not {*asked} & known.keys(), "nor one of which something fresh is known"
    assert all(len({*asked} & {*bucket}) <= ASKED_PER_BUCKET_MAX for bucket in buckets)
    assert len(offers) == len({offer.peer for offer in offers}), "nor is a peer made two offers"
    assert sum(offer.blocks for offer in offers) * block <= own.pending or seed % 2
    assert walk.own.pending >= 0
    for offer in offers:
        load = loads[offer.peer]
        if isinstance(load, Backlog):
            before_last_s = load.drain_s + (offer.blocks - 1) * block * load.url_s
            assert before_last_s <= WORK_AREA_S, "enough is enough"
            assert before_last_s + block * load.url_s < own.drain_s, "it is done before the lender would have been"
        else:
            assert offer.blocks <= load
    if offers and not seed % 2:
        # Nearer buckets come first: a peer of a far bucket is used only while this peer was heavy before it.
        order = [peer for bucket in buckets for peer in bucket]
        assert [*map(order.index, asked)] == sorted(map(order.index, asked))
    if own.drain_s <= WORK_AREA_S:
        assert not asked, "a peer that is not heavy asks nobody"
    if seed % 2 == 0 and len(asked) < ASKED_MAX and walk.is_heavy:
        # It has gone through all buckets, and whoever it knows is not lighter or cannot be done sooner.
        assert not walk.next_bucket()
