"""Test that filters of both engines err as designed, answer alike singly and together, and need the stated memory."""

import sys
from math import exp
from random import Random

import pytest

from kadcrawl.errors import ConfigError
from kadcrawl.keys import Key, site_hash, url_key
from kadcrawl.store.bloom.engines import ENGINES, engine
from kadcrawl.store.bloom.filter import Filter, Shape, error_of, fingerprint_of, likely_count, shape_for

ASKED = 40_000
engines = pytest.mark.parametrize("make", [engine(name) for name in ENGINES], ids=list(ENGINES))


def places(seed: int, count: int) -> list[int]:
    random = Random(seed)
    return [random.getrandbits(64) for _ in range(count)]


def filter_with(make: type[Filter], shape: Shape, added: list[int]) -> Filter:
    one = make(shape)
    for place in added:
        one.add(place)
    return one


def test_urls_of_one_site_have_places_of_their_own() -> None:
    site = site_hash("example.org")
    keys = [url_key(site, f"https://example.org/{number}") for number in range(2_000)]
    assert len(keys) == len({fingerprint_of(key) for key in keys})


@pytest.mark.parametrize(("error", "hashes", "bits_per_key"), [(1e-2, 7, 9.6), (1e-4, 14, 19.2), (1e-6, 20, 28.8)])
def test_a_shape_is_the_papers_formula(error: float, hashes: int, bits_per_key: float) -> None:
    shape = shape_for(100_000, error)
    assert hashes == shape.hashes
    assert pytest.approx(bits_per_key, abs=0.05) == shape.bits / shape.capacity
    assert shape.size_bytes * 8 == shape.bits


@engines
@pytest.mark.parametrize("capacity", [1024, 5_000])
@pytest.mark.parametrize("error", [0.05, 1e-3])
def test_a_full_filter_has_all_that_was_added_and_errs_as_designed(
    make: type[Filter], capacity: int, error: float
) -> None:
    added = places(1, capacity)
    one = filter_with(make, shape_for(capacity, error), added)
    assert all(place in one for place in added)
    wrong = sum(place in one for place in places(2, ASKED))
    deviation = (ASKED * error) ** 0.5
    assert ASKED * error - 5 * deviation < wrong < ASKED * error + 5 * deviation
    assert pytest.approx(error, rel=0.35) == error_of(one)


@engines
@pytest.mark.parametrize("differs", [slice(0, 4), slice(8, 12), slice(12, 16), slice(16, 20)])
def test_keys_that_differ_in_a_few_bits_err_no_more(make: type[Filter], differs: slice) -> None:
    def place(number: int) -> int:
        key = bytearray(20)
        key[differs] = number.to_bytes(4, "big")
        return fingerprint_of(Key(bytes(key)))

    one = filter_with(make, shape_for(2_000, 1e-3), [place(number) for number in range(2_000)])
    assert sum(place(number) in one for number in range(2_000, 2_000 + ASKED)) <= 1.5 * 1e-3 * ASKED


@engines
@pytest.mark.parametrize("keys_per_bit", [0.02, 0.04, 0.08, 0.16])
def test_with_six_hashes_the_error_is_the_formulas(make: type[Filter], keys_per_bit: float) -> None:
    """P4 4, Table 2: k = 6, and bits as many as there are."""
    shape = Shape(capacity=10_000, error=0.5, hashes=6, part_bits=8192)
    keys = int(keys_per_bit * shape.bits)
    one = filter_with(make, shape, places(3, keys))
    expected = (1 - exp(-keys / shape.part_bits)) ** 6
    wrong = sum(place in one for place in places(4, ASKED)) / ASKED
    assert abs(wrong - expected) <= 5 * (expected / ASKED) ** 0.5 + 0.05 * expected
    assert pytest.approx(expected, rel=0.2) == error_of(one)


@engines
def test_filters_asked_together_say_what_each_would(make: type[Filter]) -> None:
    shapes = [shape_for(1_000, 0.06), shape_for(1_000, 1e-3), shape_for(1_000, 0.06), shape_for(3_000, 0.02)]
    filters = [filter_with(make, shape, places(number, shape.capacity)) for number, shape in enumerate(shapes)]
    ask = make.asking(filters)
    asked = [*places(0, 1_000), *places(3, 3_000), *places(9, 5_000)]
    assert [any(place in one for one in filters) for place in asked] == [ask(place) for place in asked]


@engines
def test_bits_say_all_there_is_to_know(make: type[Filter]) -> None:
    added = places(5, 700)
    shape = shape_for(1_000, 1e-4)
    one = filter_with(make, shape, added)
    again = make(shape, one.bits)
    assert (one.bits, one.ones) == (again.bits, again.ones)
    assert all(place in again for place in added)
    assert pytest.approx(700, rel=0.02) == again.count
    again.add(1)
    assert 1 in again
    assert 1 not in one


@engines
def test_two_filters_merge_into_what_both_cover(make: type[Filter]) -> None:
    shape = shape_for(1_000, 1e-4)
    one, other = filter_with(make, shape, places(6, 400)), filter_with(make, shape, places(7, 400))
    both = one.merged(other)
    assert both.bits == other.merged(one).bits == filter_with(make, shape, places(6, 400) + places(7, 400)).bits
    assert [True, True, False, False] == [both.covers(one), both.covers(both), one.covers(both), one.covers(other)]
    assert pytest.approx(800, rel=0.02) == both.count


@engines
def test_nothing_raises_beyond_capacity(make: type[Filter]) -> None:
    one = filter_with(make, shape_for(100, 1e-2), places(8, 500))
    assert all(place in one for place in places(8, 500))
    assert 100 == likely_count(one.shape, one.shape.bits)


def test_engines_do_not_take_each_other_for_their_own() -> None:
    tags = [engine(name).tag for name in ENGINES]
    assert len(tags) == len(set(tags))


def test_an_unknown_engine_is_refused() -> None:
    with pytest.raises(ConfigError, match="choose one of pybloom, rbloom"):
        engine("redis")


def test_without_its_package_rbloom_is_refused_with_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "rbloom", None)
    monkeypatch.delitem(sys.modules, "kadcrawl.store.bloom.rbloom", raising=False)
    with pytest.raises(ConfigError, match=r"kadcrawl\[fast-history\]"):
        engine("rbloom")


def test_places_are_the_same_on_every_machine() -> None:
    assert 2917394212576059053 == fingerprint_of(Key(bytes(range(20))))
