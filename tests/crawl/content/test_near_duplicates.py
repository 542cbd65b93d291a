"""Test that pages which differ in at most three bits of their SimHash are found, and no others.

The position of the three bits does not matter.
"""

from itertools import combinations
from random import Random

import pytest

from kadcrawl.crawl.content.near_duplicates import NearDuplicates
from kadcrawl.errors import ConfigError
from kadcrawl.settings.job import Job

SITE = "a.test"
TEXT = 0x0123_4567_89AB_CDEF


def remembering(*simhashes: int, **bounds: int) -> NearDuplicates:
    """Return an index of pages /0, /1, ... with these SimHashes."""
    twins = NearDuplicates(**bounds)
    for number, simhash in enumerate(simhashes):
        twins.remember(SITE, f"/{number}", simhash)
    return twins


def test_the_first_is_told_whichever_three_bits_differ_and_not_if_four_do() -> None:
    chance = Random(1)
    twins = remembering(TEXT, *(chance.getrandbits(64) for _ in range(200)))
    for count in range(4):
        for bits in list(combinations(range(64), count))[:: 1 if count < 3 else 37]:
            assert "/0" == twins.first(SITE, "/x", TEXT ^ sum(1 << bit for bit in bits)), bits
    for _ in range(1_000):
        assert twins.first(SITE, "/x", TEXT ^ sum(1 << bit for bit in chance.sample(range(64), 4))) is None


def test_what_is_found_is_what_a_comparison_with_all_finds() -> None:
    chance = Random(2)
    centre = chance.getrandbits(64)
    twins, known, outcomes = NearDuplicates(), dict[str, int](), set[bool]()
    for number in range(600):
        sought = centre ^ sum(1 << bit for bit in chance.sample(range(64), chance.randrange(9)))
        near = {url for url, other in known.items() if (other ^ sought).bit_count() <= 3}
        first = twins.first(SITE, "/x", sought)
        assert first in near if near else first is None
        outcomes.add(first is None)
        twins.remember(SITE, f"/{number}", sought)
        if not near:
            known[f"/{number}"] = sought
        assert len(known) == len(twins), "of pages near to each other one is remembered"
    assert {True, False} == outcomes


@pytest.mark.parametrize("simhash", [0, (1 << 64) - 1, 1 << 63, 1, 0xFFFF << 48, 0xFFFF])
def test_simhashes_at_the_edges_are_found(simhash: int) -> None:
    assert "/0" == remembering(simhash).first(SITE, "/x", simhash ^ 0b101)


def test_sites_are_apart() -> None:
    assert remembering(TEXT).first("b.test", "/x", TEXT) is None


def test_a_page_met_again_is_not_its_own_near_duplicate_nor_counted_twice() -> None:
    twins = remembering(TEXT)
    assert twins.first(SITE, "/0", TEXT ^ 1) is None
    twins.remember(SITE, "/0", TEXT ^ 1)
    twins.remember(SITE, "/0", TEXT)
    assert 1 == len(twins)
    twins.remember(SITE, "/0", TEXT ^ 0xFFFF)
    assert 2 == len(twins), "but it may have become quite another"
    assert "/0" == twins.first(SITE, "/x", TEXT ^ 0xFFFF)


def test_who_was_first_stays_first() -> None:
    twins = remembering(TEXT, TEXT ^ 0b1111)
    assert twins.first(SITE, "/1", TEXT ^ 0b1100) is None, "it is near to both by now"
    assert twins.first(SITE, "/0", TEXT ^ 0b1100) is None
    twins.remember(SITE, "/2", TEXT)
    assert ("/0", 2) == (twins.first(SITE, "/x", TEXT), len(twins))


@pytest.mark.parametrize("bounds", [{"site_pages_max": 2}, {"pages_max": 2}, {"chars_max": 5}])
def test_the_oldest_is_forgotten_first(bounds: dict[str, int]) -> None:
    texts = [TEXT, ~TEXT & (1 << 64) - 1, TEXT ^ 0xFFFF]
    twins = remembering(*texts, **bounds)
    assert [None, "/1", "/2"] == [twins.first(SITE, "/x", text) for text in texts]
    assert 2 == len(twins)


@pytest.mark.parametrize("bounds", [{"pages_max": 3}, {"sites_max": 2}])
def test_the_site_met_longest_ago_forgets_first(bounds: dict[str, int]) -> None:
    twins = NearDuplicates(**bounds)
    for site in "ab":
        twins.remember(site, "/0", TEXT)
    twins.remember("b", "/1", TEXT ^ 0xFF)
    assert "/0" == twins.first("a", "/x", TEXT)
    twins.remember("c", "/0", TEXT)
    sites_max = "sites_max" in bounds
    assert ["/0", None, "/0"] == [twins.first(site, "/x", TEXT) for site in "abc"]
    assert (None if sites_max else "/1", 2 if sites_max else 3) == (twins.first("b", "/x", TEXT ^ 0xFF), len(twins))


def test_looking_for_near_duplicates_needs_sites_of_more_than_one_url() -> None:
    with pytest.raises(ConfigError, match="twins skip cannot go with partition url"):
        Job(partition="url", twins="skip")
    with pytest.raises(ConfigError, match="twins must be follow or skip"):
        Job(twins="keep")  # type: ignore[arg-type]


def test_what_is_forgotten_with_its_site_takes_no_room() -> None:
    twins = NearDuplicates(sites_max=1, pages_max=2, chars_max=4)
    for site, url, simhash in (("a", "/0", TEXT), ("b", "/0", TEXT), ("b", "/1", TEXT ^ 0xFF)):
        twins.remember(site, url, simhash)
    assert ["/0", "/1"] == [twins.first("b", "/x", simhash) for simhash in (TEXT, TEXT ^ 0xFF)]
