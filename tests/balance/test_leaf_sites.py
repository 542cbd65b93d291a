"""The sites of the leaves: each site keeps its leaf, and no leaf is idle while sites wait."""

from collections import Counter

import pytest
from hypothesis import given, settings, strategies as st

from kadcrawl.balance import leaf_sites
from kadcrawl.balance.leaf_sites import PLACES, TURN_S, LeafSites
from kadcrawl.keys import id_bytes, site_hash
from kadcrawl.lending.leaf_host import LEAVES_MAX

SITES = [f"http://site{number}.test" for number in range(400)]
LEAVES = [id_bytes(number) for number in (1, 2, 3, 40, 1 << 100)]
"""The third and the fourth would have the same place."""


def host(*leaves: bytes) -> LeafSites:
    sites = LeafSites()
    for leaf in leaves:
        sites.arrive(leaf)
    return sites


def deal(sites: LeafSites) -> dict[str, bytes]:
    return {site: sites.leaf_of(site) for site in SITES}


def test_there_is_a_place_for_every_leaf_of_a_peer() -> None:
    assert LEAVES_MAX <= PLACES
    sites = host(*(id_bytes(number * PLACES) for number in range(PLACES)))
    with pytest.raises(ValueError, match="let a leaf go first"):
        sites.arrive(id_bytes(1))
    sites.depart(id_bytes(5 * PLACES))
    sites.arrive(id_bytes(1))


def test_sites_go_to_their_leaves_by_the_two_level_hash() -> None:
    sites = host(id_bytes(3), id_bytes(5))
    for site, leaf in deal(sites).items():
        number = int.from_bytes(site_hash(site), "big")
        first = {3: id_bytes(3), 5: id_bytes(5)}.get(number % PLACES)
        assert leaf == (first or (id_bytes(3), id_bytes(5))[number % 2])


def test_sites_are_dealt_evenly() -> None:
    dealt = Counter(deal(host(*LEAVES)).values())
    assert set(LEAVES) == set(dealt)
    assert max(dealt.values()) < 1.5 * len(SITES) / len(LEAVES)


def test_two_peers_with_the_same_leaves_deal_alike_and_a_restart_too() -> None:
    some = [id_bytes(number) for number in (1, 2, 3, 1 << 100)]
    assert deal(host(*some)) == deal(host(*reversed(some)))


@settings(max_examples=50)
@given(st.lists(st.tuples(st.sampled_from(["arrive", "depart", "take"]), st.sampled_from(LEAVES)), max_size=12))
def test_only_the_sites_of_a_leaf_that_goes_are_dealt_anew(steps: list[tuple[str, bytes]]) -> None:
    sites, alive = host(LEAVES[0]), {LEAVES[0]}
    for number, (step, leaf) in enumerate(steps):
        before = deal(sites)
        kept = before
        if step == "arrive":
            sites.arrive(leaf)
            alive.add(leaf)
        elif step == "depart" and alive != {leaf}:
            sites.depart(leaf)
            alive.discard(leaf)
            kept = {site: other for site, other in before.items() if other != leaf}
        elif step == "take" and leaf in alive:
            sites.note_lent(leaf, SITES[number], ())
            kept = {**before, SITES[number]: leaf}
        now = deal(sites)
        assert set(now.values()) <= alive
        assert kept == {site: now[site] for site in kept}


def test_a_leaf_that_comes_back_has_its_place_again() -> None:
    sites = host(*LEAVES)
    sites.depart(LEAVES[1])
    sites.arrive(LEAVES[1])
    assert deal(host(*LEAVES)) == deal(sites)


def test_a_site_waits_its_turn_for_its_leaf_and_then_goes_to_any_leaf_that_wants_work() -> None:
    sites = host(*LEAVES[:2])
    site = next(site for site in SITES if sites.leaf_of(site) == LEAVES[0])
    ready = [(site, 7)]
    sites.note_ready([site], 10.0)
    assert ([], []) == sites.sites_for(LEAVES[1], ready, 10.0 + 0.9 * TURN_S)
    assert ([], ready) == sites.sites_for(LEAVES[1], ready, 10.0 + TURN_S)
    assert (ready, []) == sites.sites_for(LEAVES[0], ready, 10.0)
    sites.note_lent(LEAVES[1], site, ())
    assert (ready, []) == sites.sites_for(LEAVES[1], ready, 12.0)
    # Its next URLs wait a turn as well.
    sites.note_ready([site], 20.0)
    assert ([], []) == sites.sites_for(LEAVES[0], ready, 20.0)


def test_the_turn_begins_anew_when_a_site_had_no_urls() -> None:
    sites = host(*LEAVES[:2])
    site = next(site for site in SITES if sites.leaf_of(site) == LEAVES[0])
    for at, ready in ((0.0, [site]), (5.0, []), (6.0, [site])):
        sites.note_ready(ready, at)
    assert ([], []) == sites.sites_for(LEAVES[1], [(site, 1)], 6.0 + 0.9 * TURN_S)


def test_a_site_of_several_connections_stays_with_the_leaf_that_works_on_it() -> None:
    sites = host(*LEAVES[:2])
    site = next(site for site in SITES if sites.leaf_of(site) == LEAVES[0])
    sites.note_lent(LEAVES[1], site, {LEAVES[0]})
    assert LEAVES[0] == sites.leaf_of(site)


def test_the_number_of_remembered_sites_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leaf_sites, "SITES_DEALT_MAX", 3)
    sites = host(*LEAVES[:2])
    deal(sites)
    assert SITES[-3:] == [*sites._dealt]
