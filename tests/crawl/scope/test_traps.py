"""Test that URLs of a trap are recognized by their form, and that honest URLs never are."""

import re

import pytest
from hypothesis import given, strategies as st

from kadcrawl.crawl.scope.scope import Scope
from kadcrawl.crawl.scope.traps import Traps, _repeats, without_session
from kadcrawl.errors import ConfigError
from kadcrawl.settings.job import URL_PARTS_MAX, Job
from kadcrawl.settings.limits import Limits
from kadcrawl.urls import canonical
from sim.synthetic_web import SyntheticWeb

SITE = "https://example.org"
HEX = "0123456789abcdef0123456789ABCDEF"
DEFAULT = Job()


def joined_path(*parts: object) -> str:
    return "".join(f"/{part}" for part in parts)


@pytest.mark.parametrize(
    "target",
    [
        "/",
        "/2011/11/11/11",
        "/0/0/0/7.html",
        "/files/000/000/001/original/cat.jpg",
        "/en/docs/en/docs/en/docs/",
        "/1/12/123/1234/12345",
        "/1/1/1/11",
        "/a1/1/1/1",
        "/a//b//c//d",
        "/?q=/a/a/a/a/a/a",
        "/web/2020/https://example.net/",
        "/elastic/elasticsearch/blob/main/x-pack/plugin/esql/qa/server/single-node/src/javaRestTest/java/org/"
        "elasticsearch/xpack/esql/qa/single_node/expression/function/scalar/string/Test.java",
        "/AT&T/" + "&" * 60,
        "/search?" + "&".join(f"filter{n}=x" for n in range(50)),
    ],
)
def test_honest_urls_pass(target: str) -> None:
    assert Traps(DEFAULT).why_not(SITE + target) is None


def test_no_url_of_the_simulated_web_is_refused_or_changed() -> None:
    simulated = SyntheticWeb(1, sites=20, pages=1_000, seeds=4, trails=4, trail_pages=10)
    traps = Traps(DEFAULT)
    for url in (*simulated.truth(), *simulated.disallowed()):
        assert (None, url) == (traps.why_not(url), without_session(url))


@pytest.mark.parametrize(
    ("target", "why"),
    [
        ("/a/a/a/a", "path_repeats"),
        ("/a/a/a/a/", "path_repeats"),
        ("/x/a/a/a/a/y?z", "path_repeats"),
        ("/a/b" * 4, "path_repeats"),
        ("/x/y/a/b/c/a/b/c/a/b/c/a/b/c/z", "path_repeats"),
        ("/a/////b", "path_repeats"),
        (joined_path(*range(33)), "path_segments"),
        (joined_path(*range(32)) + "/", "path_segments"),
        ("/search?" + "&".join(f"filter{n}=x" for n in range(51)), "query_parameters"),
        ("/search?" + "&" * 50, "query_parameters"),
    ],
)
def test_urls_that_grow_for_ever_are_refused(target: str, why: str) -> None:
    assert why == Traps(DEFAULT).why_not(SITE + target)


SEGMENTS = st.lists(st.sampled_from(["", "a", "b", "aa", "ab"]), max_size=12)


@given(SEGMENTS, SEGMENTS.filter(bool), st.integers(1, 6), SEGMENTS, st.integers(1, 4))
def test_repeats_are_what_an_expression_says(
    before: list[str], again: list[str], count: int, after: list[str], times: int
) -> None:
    segments = before + again * count + after
    repeated = re.compile(rf"((?:/[^/]*+)+?)\1{{{times}}}(?=/|$)")
    assert (repeated.search(joined_path(*segments)) is not None) == _repeats(segments, times)


@given(st.lists(st.integers(0, 2_000), max_size=20), st.integers(1, 5), st.integers(0, 600), st.integers(1, 3))
def test_repeats_of_many_different_segments_are_found(again: list[int], count: int, start: int, times: int) -> None:
    """The segments are more than a byte can tell apart.

    Numbered in this order, they differ in one byte, in the other, or in both.
    """
    segments = [str(number) for number in [*range(600), *again * count, *range(start, 600, 256)]]
    repeated = re.compile(rf"((?:/[^/]*+)+?)\1{{{times}}}(?=/|$)")
    assert (repeated.search(joined_path(*segments)) is not None) == _repeats(segments, times)


def thue_morse(count: int) -> list[str]:
    """Return segments without any row that stands three times in a row."""
    return ["ab"[number.bit_count() % 2] for number in range(count)]


def test_a_path_that_nearly_repeats_at_every_length_is_told_soon() -> None:
    """For an expression, 4,000 such segments take a second."""
    traps = Traps(Job(path_segments_max=URL_PARTS_MAX))
    segments = thue_morse(4_000)
    assert traps.why_not(SITE + joined_path(*segments)) is None
    assert "path_repeats" == traps.why_not(SITE + joined_path(*segments, *["c"] * 4))
    assert "path_repeats" == traps.why_not(SITE + joined_path(*segments[:900] * 4))
    assert traps.why_not(SITE + joined_path(*segments[:900] * 3)) is None


@pytest.mark.parametrize("most", [1, 2, 20])
def test_each_bound_holds_at_max_and_max_plus_one(most: int) -> None:
    segments = Traps(Job(path_segments_max=most))
    repeats = Traps(Job(path_repeats_max=most, path_segments_max=100))
    parameters = Traps(Job(query_parameters_max=most))
    got = [
        (
            segments.why_not(SITE + joined_path(*range(number))),
            repeats.why_not(SITE + "/a/b" * number),
            parameters.why_not(SITE + "/?" + "&".join(["x"] * number)),
        )
        for number in (most, most + 1)
    ]
    assert [(None, None, None), ("path_segments", "path_repeats", "query_parameters")] == got


def test_a_url_of_the_longest_length_is_judged_fast_and_passes_unbounded() -> None:
    free = Traps(
        Job(path_segments_max=URL_PARTS_MAX, path_repeats_max=URL_PARTS_MAX, query_parameters_max=URL_PARTS_MAX)
    )
    longest = Limits().url_chars_max
    for url in (SITE + "/" * (longest - len(SITE)), (SITE + "/?" + "&" * longest)[:longest]):
        assert free.why_not(url) is None


@pytest.mark.parametrize("name", ["path_segments_max", "path_repeats_max", "query_parameters_max"])
@pytest.mark.parametrize("value", [0, URL_PARTS_MAX + 1])
def test_bounds_that_cannot_be_are_refused(name: str, value: int) -> None:
    with pytest.raises(ConfigError, match=f"{name} must be"):
        Job(**{name: value})  # type: ignore[arg-type]


def test_a_limit_of_pages_needs_sites_of_more_than_one_url() -> None:
    with pytest.raises(ConfigError, match="partition url"):
        Job(partition="url", site_pages_max=10)
    with pytest.raises(ConfigError, match="1 or more"):
        Job(site_pages_max=0)


def test_a_seed_is_taken_as_it_is() -> None:
    seed = SITE + "/a/a/a/a"
    scope = Scope(Job(seeds=(seed,)))
    assert (None, "path_repeats") == (scope.why_not(seed, 0), scope.why_not(seed + "/a", 1))


@pytest.mark.parametrize(
    ("target", "plain"),
    [
        (f"/shop;jsessionid={HEX}", "/shop"),
        (f"/shop;jsessionid={HEX}.node1?item=7", "/shop?item=7"),
        (f"/shop;v=1;JSESSIONID={HEX}/basket", "/shop;v=1/basket"),
        (f"/shop;jsessionid={HEX};v=1", "/shop;v=1"),
        (f"/.;jsessionid={HEX}?a=1", "/?a=1"),
        (f"/shop/..;jsessionid={HEX}", "/"),
        ("/(S(abcdefghij0123456789abcd))/page.aspx", "/page.aspx"),
        ("/(X(1)S(abcdefghij0123456789abcd))/page.aspx?a=(S(1))", "/page.aspx?a=(S(1))"),
        (f"/?PHPSESSID={HEX}", "/"),
        (f"/page?a=1&phpsessid={HEX}", "/page?a=1"),
        (f"/page?phpsessid={HEX}&a=1", "/page?a=1"),
        (f"/page?a=1&sid={HEX}&b=2", "/page?a=1&b=2"),
        (f"/page?sid={HEX}&osCsid={HEX}&b=", "/page?b="),
        (f"/page?session_id={HEX}&sessionid={HEX}", "/page"),
        ("/page?CFID=1234567&CFTOKEN=87654321&b=2", "/page?b=2"),
    ],
)
def test_session_ids_are_taken_out(target: str, plain: str) -> None:
    assert plain == without_session(SITE + target).removeprefix(SITE)
    assert canonical(SITE + plain) == SITE + plain


@pytest.mark.parametrize(
    "target",
    [
        "/",
        "/story?sid=17",
        "/story?sid=13/01/05/1234",
        "/story?sid=the-long-story-of-a-very-long-road",
        f"/story?aside={HEX}",
        f"/story?x=sid={HEX}",
        f"/story/sid={HEX}",
        "/talks?session_id=2024-keynote",
        "/shop;jsessionid=short",
        f"/shop?note=;jsessionid={HEX}",
        "/page?cfid=1",
        "/wiki/Set_(S(x))/y",
    ],
)
def test_what_may_be_something_else_stays(target: str) -> None:
    assert SITE + target == without_session(SITE + target)
