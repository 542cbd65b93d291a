"""The assigners follow their papers, the measures measure correctly, and joining well ends where halving allows."""

from random import Random

import numpy as np
import pytest

from kadcrawl.keys import ID_BITS, Cell, Key, anchor, cell_of, firstdiff
from sim.papers import assignment as experiment, joining as joins, properties
from sim.papers.assigners import Assigner, H, HashMod, Peers, Ring, TwoLevelHash, Xor, XorShedding
from sim.papers.double_hashing import lost_with_two, owned_backups
from sim.papers.joining import IdSwarm, best_ratio, by_load, by_range, draw_id, gini, grow
from sim.papers.properties import (
    arrivals,
    balance,
    churned,
    disagreement,
    least_disagreement,
    make_setting,
    moves,
)
from sim.papers.workload import CELL_BITS, Urls, alone, of_sites

PEERS = 20
POSSIBLE = 25
SETTING = make_setting(Random(1), PEERS)
ASSIGNERS = {one.name: one for one in SETTING.assigners}
MONOTONE = ["ring", "ring, 128 points", "XOR owner", "XOR owner, d = 8"]
SITES = of_sites(1, 10_000)
UNIFORM = alone(1, 10_000)


def peers(*numbers: int) -> Peers:
    return np.array(numbers, dtype=np.int64)


def hashing_to(*hashes: int) -> Urls:
    """URLs that have these hashes."""
    return Urls([Key(bytes(12) + one.to_bytes(8, "big")) for one in hashes], np.arange(len(hashes)))


# --- the assigners ---------------------------------------------------------------------------------------------------


def test_hash_mod_n_counts_the_alive() -> None:
    assert [3, 7, 9, 3] == HashMod().assign(hashing_to(0, 1, 2, 3), peers(3, 7, 9)).tolist()


def test_the_two_level_hash_asks_the_second_level_only_for_the_dead() -> None:
    owners = TwoLevelHash(5).assign(hashing_to(0, 1, 2, 3, 4, 9), peers(1, 3, 4))
    # 0, 2 are dead: alive[0 mod 3], alive[2 mod 3].
    assert [1, 1, 4, 3, 4, 4] == owners.tolist()


def test_a_ring_gives_each_url_to_the_next_point_and_wraps_around() -> None:
    ring = Ring(2, 1)
    low, high = sorted(ring._points.tolist())
    first, second = ring._peers.tolist()
    owners = ring.assign(hashing_to(0, low, low + 1, high, high + 1, 2**64 - 1), peers(0, 1))
    assert [first, first, second, second, first, first] == owners.tolist()


@pytest.mark.parametrize("count", [1, 2, 3, 20, 300])
def test_the_xor_owner_is_the_nearest_to_the_anchor(count: int) -> None:
    random = Random(count)
    # Some IDs differ below the cells only.
    ids = [random.getrandbits(ID_BITS) for _ in range(count)]
    ids += [ids[0] ^ 1 << 3, ids[-1] ^ 1 << 100]
    alive = peers(*range(0, len(ids), 2)) if count > 1 else peers(1, 2)
    cells = Xor(ids).cells(alive)
    for cell in random.sample(range(1 << CELL_BITS), 200):
        place = anchor(Cell(cell), CELL_BITS)
        assert min(alive.tolist(), key=lambda peer: ids[peer] ^ place) == cells[cell]


def test_urls_are_in_the_cells_of_their_keys_and_their_sites_at_one_peer() -> None:
    assert [cell_of(key, CELL_BITS) for key in SITES.keys[:50]] == SITES.cell[:50].tolist()
    owners = ASSIGNERS["XOR owner"].assign(SITES, SETTING.alive)
    for site in (0, 1, 700):
        assert 1 == len(set(owners[SITES.site == site].tolist()))
    assert 1 < len(set(ASSIGNERS["hash mod n"].assign(SITES, SETTING.alive)[SITES.site == 0].tolist()))


@pytest.mark.parametrize("name", ASSIGNERS)
@pytest.mark.parametrize("urls", [pytest.param(SITES, id="sites"), pytest.param(UNIFORM, id="uniform")])
def test_only_the_alive_are_assigned_anything(name: str, urls: Urls) -> None:
    owners = ASSIGNERS[name].assign(urls, SETTING.alive)
    assert len(urls) == len(owners)
    assert set(owners.tolist()) <= set(SETTING.alive.tolist())


@pytest.mark.parametrize("name", MONOTONE)
def test_rings_and_xor_move_only_what_they_must(name: str) -> None:
    for peer in SETTING.alive.tolist():
        assert 0 == moves(ASSIGNERS[name], SITES, SETTING.alive, peer)[1]
        assert 0 == arrivals(ASSIGNERS[name], SITES, SETTING.alive, peer)[1]


def test_the_two_level_hash_is_monotone_only_while_nobody_is_dead() -> None:
    hashed, leaver = TwoLevelHash(POSSIBLE), 3
    assert 0 == moves(hashed, UNIFORM, peers(*range(POSSIBLE)), leaver)[1]
    some_dead = moves(hashed, UNIFORM, peers(*range(PEERS)), leaver)[1]
    # Nearly all that the dead would have had is shared out anew.
    assert pytest.approx((POSSIBLE - PEERS) / POSSIBLE, rel=0.15) == some_dead


def test_nobody_is_heavy_after_shedding_and_sites_are_split_only_then() -> None:
    work_area = XorShedding.work_area(len(SITES), PEERS)
    before = np.bincount(ASSIGNERS["XOR owner"].assign(SITES, SETTING.alive))
    after = np.bincount(ASSIGNERS["XOR owner + shedding"].assign(SITES, SETTING.alive))
    assert len(SITES) == after.sum()
    assert before.max() > work_area + H > after.max()
    # Who was light has what it had, and whole blocks.
    light = [peer for peer in SETTING.alive.tolist() if before[peer] < work_area]
    assert {0} == {int(after[peer] - before[peer]) % H for peer in light}
    assert 1 < balance(ASSIGNERS["XOR owner + shedding"], SITES, SETTING.alive).site_peers


def test_blocks_stay_where_they_are_when_somebody_far_off_leaves() -> None:
    shedding = ASSIGNERS["XOR owner + shedding"]
    for peer in SETTING.alive.tolist():
        left = SETTING.alive[SETTING.alive != peer]
        stays = shedding.assign(SITES, left, SETTING.alive)
        anew = shedding.assign(SITES, left)
        before = shedding.assign(SITES, SETTING.alive)
        assert (before != stays).mean() <= (before != anew).mean()
        assert peer not in set(stays.tolist())


def test_urls_are_sent_to_their_owner_whoever_has_them() -> None:
    to = ASSIGNERS["XOR owner + shedding"].address(SITES, SETTING.alive)
    assert ASSIGNERS["XOR owner"].assign(SITES, SETTING.alive).tolist() == to.tolist()


# --- the measures ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        pytest.param([3, 3, 3], 0.0, id="all alike"),
        pytest.param([0, 0, 0, 8], 0.75, id="one has all of four"),
        pytest.param([3, 1], 0.25, id="in any order"),
    ],
)
def test_gini(parts: list[float], expected: float) -> None:
    assert pytest.approx(expected) == gini(parts)


class Fixed:
    """An assigner that gives URL i to the i-th alive peer, cyclically, and records its arguments."""

    name = "fixed"

    def assign(self, urls: Urls, alive: Peers, earlier: Peers | None = None) -> Peers:
        return alive[np.arange(len(urls)) % len(alive)]

    address = assign


def test_balance_counts_those_without_any_url() -> None:
    one: Assigner = Fixed()
    lying = balance(one, hashing_to(1, 2, 3), peers(2, 5, 7, 9))
    assert (pytest.approx(4 / 3), 0.25) == (lying.ratio, pytest.approx(lying.gini))


def test_moves_tell_what_had_to_move_from_what_had_not() -> None:
    # 2 5 7 2 5 7 becomes 2 7 2 7 2 7 when 5 leaves, and back.
    urls, alive = hashing_to(*range(6)), peers(2, 5, 7)
    assert (pytest.approx(4 / 6), pytest.approx(2 / 6)) == moves(Fixed(), urls, alive, 5)
    assert (pytest.approx(4 / 6), pytest.approx(2 / 6)) == arrivals(Fixed(), urls, alive, 5)


def test_peers_with_equal_views_agree_and_others_differ_by_the_difference() -> None:
    same, other = peers(0, 1, 2, 3), peers(0, 1, 2)
    assert 0 == disagreement(HashMod(), hashing_to(*range(12)), [(same, same)])
    # 12 mod 4 and mod 3 agree on 0, 1, 2.
    assert pytest.approx(9 / 12 / 2) == disagreement(HashMod(), hashing_to(*range(12)), [(same, same), (same, other)])
    assert pytest.approx(1 / 4 / 2) == least_disagreement([(same, same), (same, other)])


def test_views_differ_more_the_longer_news_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    shares = []
    for lag_s in (0.001, 5.0, 20.0):
        monkeypatch.setattr(properties, "LAG_S", lag_s)
        views = list(churned(Random(3), 100, 40))
        assert all(0 in view for pair in views for view in pair)
        assert 0.7 < np.mean([len(one) / 100 for one, _ in views]) < 0.9
        shares.append(least_disagreement(views))
    assert shares[0] < 0.0005 < shares[1] < shares[2]


# --- joining ---------------------------------------------------------------------------------------------------------


def masks_by_comparison(ids: list[int]) -> list[int]:
    return [sum({1 << firstdiff(one, other) for other in ids if other != one}) for one in ids]


def test_a_swarm_knows_everybodys_range() -> None:
    random, swarm = Random(7), IdSwarm(60)
    for size in range(1, 61):
        swarm.join(draw_id(random))
        masks = masks_by_comparison(swarm.node_ids)
        assert masks == [swarm.range_of(peer).live_mask for peer in range(size)]
        assert [2.0 ** -mask.bit_count() for mask in masks] == swarm.shares.tolist()
    place = draw_id(random)
    assert min(range(60), key=lambda peer: swarm.node_ids[peer] ^ place) == swarm.nearest(place)


def test_a_swarm_knows_everybodys_urls() -> None:
    swarm = IdSwarm(PEERS, *SITES.cell_loads())
    grow(swarm, PEERS, by_load(2), Random(2))
    owners = Xor(swarm.node_ids).assign(SITES, np.arange(PEERS))
    assert np.bincount(owners, minlength=PEERS).tolist() == swarm.loads.tolist()


@pytest.mark.parametrize(("size", "expected"), [(1, 1.0), (8, 1.0), (12, 1.5), (100, 100 / 64), (1_000, 1_000 / 512)])
def test_the_best_that_halving_allows(size: int, expected: float) -> None:
    assert expected == best_ratio(size)


def test_more_choices_relieve_the_busiest_but_never_beyond_halving() -> None:
    ratios = []
    for choices in (1, 2, 8):
        swarms = [grow(IdSwarm(100), 100, by_range(choices), Random(f"{choices} {run}")) for run in range(30)]
        worst = [float(swarm.shares.max()) * 100 for swarm in swarms]
        assert min(worst) >= best_ratio(100)
        ratios.append(np.mean(worst))
    assert ratios[0] > ratios[1] > ratios[2] + 0.5
    assert ratios[2] < joins.TWICE


# --- the experiments, made small -------------------------------------------------------------------------------------


def test_the_same_seed_gives_the_same_findings(monkeypatch: pytest.MonkeyPatch) -> None:
    for module, changes in (
        (properties, {"COMPARED": PEERS, "SWARMS": {8: 2, PEERS: 1}, "MOMENTS": {8: 5, PEERS: 5}, "URLS": 8_000}),
        (properties, {"URLS_MOVED": 2_000, "URLS_ASKED": 2_000, "ALIVE_OF": (PEERS, POSSIBLE)}),
        (experiment, {"COMPARED": PEERS, "URLS": 8_000}),
    ):
        for name, value in changes.items():
            monkeypatch.setattr(module, name, value)
    shares: list[float] = []
    first = experiment.assignment(5, shares.append)
    assert sorted(shares) == shares
    assert pytest.approx(1.0) == shares[-1]
    assert first == experiment.assignment(5, lambda share: None)
    assert first.findings != experiment.assignment(6, lambda share: None).findings
    assert [True, True] == [one.reached for one in first.findings[:2]]


def test_joining_is_told_with_its_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(joins, "RUNS", {100: 2, 1_000: 1})
    monkeypatch.setattr(joins, "REAL", {"4 peers": (4, None, 1), "3 at once": (3, 0.0, 2)})
    monkeypatch.setattr(joins, "URL_RUNS", 1)
    monkeypatch.setattr(joins, "URLS", 10_000)
    shares: list[float] = []
    first = joins.joining(5, shares.append)
    assert pytest.approx(1.0) == shares[-1]
    assert first == joins.joining(5, lambda share: None)
    assert all(one.bound is not None and one.ours >= one.bound for one in first.findings)
    ratios = first.tables[-1].rows
    assert {len(first.tables[-1].heading)} == {len(row) for row in ratios}


def test_as_printed_a_backup_is_often_the_owner_and_two_deaths_lose_urls() -> None:
    same = owned_backups(1)
    assert 1 / 8 < same < 2 / 8, "random ranges are unequal, and the largest is chosen twice most often"
    assert same / 4 < lost_with_two(same) < same
    assert lost_with_two(0.0) == pytest.approx(1 / 28)
