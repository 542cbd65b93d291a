"""Test which URLs belong to the crawl."""

import pytest

from kadcrawl.crawl.scope.scope import Scope
from kadcrawl.settings.job import Job, ScopeKind
from kadcrawl.settings.limits import Limits
from kadcrawl.settings.site_rules import SiteRule

SEED = "http://www.example.org/docs/intro.html?v=1"


@pytest.mark.parametrize(
    ("kind", "url", "near"),
    [
        ("host", "http://www.example.org/", True),
        ("host", "https://www.example.org/x", True),
        ("host", "http://www.example.org:8080/docs/", False),
        ("host", "https://example.org/x", True),
        ("host", "https://www.www.example.org/x", False),
        ("prefix", "https://example.org/docs/x", True),
        ("prefix", "https://example.org/x", False),
        ("host", "http://shop.example.org/docs/", False),
        ("host", "http://www.example.org.evil.net/", False),
        ("domain", "https://example.org:8080/", True),
        ("domain", "https://other.example.org/", True),
        ("domain", "https://example.net/", False),
        ("prefix", "http://www.example.org/docs/", True),
        ("prefix", "https://www.example.org/docs/a/b", True),
        ("prefix", "http://www.example.org/docs", False),
        ("prefix", "http://www.example.org/docs2/a", False),
        ("prefix", "http://shop.example.org/docs/a", False),
        ("prefix", "http://www.example.org/a/docs/", False),
        ("prefix", "http://www.example.org/a?/docs/", False),
        ("prefix", "http://www.example.org/docs/?a", True),
        ("any", "http://anything.net/", True),
    ],
)
def test_nearness_to_a_seed(kind: ScopeKind, url: str, near: bool) -> None:
    scope = Scope(Job(seeds=(SEED,), scope=kind))
    assert scope.why_not(url, 1) == (None if near else "scope")
    assert scope.allows(url, 1) is near


@pytest.mark.parametrize("kind", ["host", "domain", "prefix", "any"])
def test_seed_is_in_its_own_scope_and_needs_no_include(kind: ScopeKind) -> None:
    scope = Scope(Job(seeds=(SEED,), scope=kind, include=("never",)))
    assert scope.allows(SEED, 0)
    assert scope.why_not("http://www.example.org/docs/a", 1) == "include"


def test_thousands_of_directories_of_one_site() -> None:
    seeds = [f"http://www.example.org/{number}/{number + 1}/x" for number in range(5000)]
    scope = Scope(Job(seeds=tuple(seeds), scope="prefix"))
    for number in range(5000):
        assert scope.allows(f"http://www.example.org/{number}/{number + 1}/a/b/c?d=/e", 1)
        assert not scope.allows(f"http://www.example.org/{number}/{number}/", 1)


@pytest.mark.parametrize("kind", ["host", "domain", "prefix"])
@pytest.mark.parametrize("origins_max", [0, 1, 100])
def test_links_met_before_do_not_change_what_is_near(
    kind: ScopeKind, origins_max: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kadcrawl.crawl.scope.scope.NEAR_ORIGINS_MAX", origins_max)
    scope = Scope(Job(seeds=(SEED,), scope=kind))
    urls = [
        f"{scheme}://{host}{path}"
        for path in ("/docs/a", "/b")
        for host in ("www.example.org", "example.org", "www.example.org:81", "a.example.org", "example.net")
        for scheme in ("http", "https")
    ]
    wanted = [Scope(Job(seeds=(SEED,), scope=kind)).is_near(url) for url in urls]
    for _ in range(2):
        assert wanted == [scope.is_near(url) for url in urls]


def test_exclude_binds_even_seeds_and_beats_include() -> None:
    scope = Scope(Job(seeds=(SEED,), include=("docs",), exclude=(r"\?v=", "private$")))
    assert scope.why_not(SEED, 0) == "exclude"
    assert scope.why_not("http://www.example.org/docs/private", 1) == "exclude"
    assert scope.why_not("http://www.example.org/docs/private/a", 1) is None


def test_a_site_that_is_off_is_out_even_for_seeds_and_the_rest_is_not() -> None:
    rules = (SiteRule(match=("*.a.test",), off=True), SiteRule(match=("b.a.test",), delay_s=1.0))
    scope = Scope(Job(seeds=("http://c.a.test/",), scope="any", sites=rules))
    why = [scope.why_not(f"http://{host}/", 0) for host in ("c.a.test", "b.a.test", "c.test")]
    assert ["site_off", None, None] == why


def test_one_match_of_several_includes_is_enough() -> None:
    scope = Scope(Job(seeds=(SEED,), include=("/a$", "/b$")))
    assert scope.allows("http://www.example.org/b", 1)
    assert scope.why_not("http://www.example.org/c", 1) == "include"


@pytest.mark.parametrize(
    ("max_depth", "depth", "allowed"), [(2, 2, True), (2, 3, False), (0, 0, True), (None, 99, True)]
)
def test_depth_is_bounded(max_depth: int | None, depth: int, allowed: bool) -> None:
    why_not = Scope(Job(seeds=(SEED,), max_depth=max_depth)).why_not("http://www.example.org/a", depth)
    assert why_not == (None if allowed else "depth")


def test_length_is_bounded() -> None:
    limit = 100
    scope = Scope(Job(seeds=(SEED,)), Limits(url_chars_max=limit))
    longest = "http://www.example.org/".ljust(limit, "a")
    assert scope.allows(longest, 1)
    assert scope.why_not(longest + "a", 1) == "length"


@pytest.mark.parametrize("kind", ["host", "domain", "prefix"])
def test_a_later_seed_extends_the_scope(kind: ScopeKind) -> None:
    scope = Scope(Job(seeds=(SEED,), scope=kind))
    beside = "http://other.net/blog/b"
    assert not scope.allows(beside, 1)
    scope.add_seeds(["http://other.net/blog/a", "http://other.net/news/a"])
    assert scope.allows(beside, 1)
    assert scope.allows("http://other.net/news/b", 1)
    assert scope.allows("http://www.example.org/docs/", 1)


def test_nothing_is_near_without_seeds() -> None:
    assert Scope(Job()).why_not("http://example.org/", 0) == "scope"
    assert Scope(Job(scope="prefix")).why_not("http://example.org/", 0) == "scope"


@pytest.mark.parametrize(
    ("url", "sitemaps", "why_not"),
    [
        ("http://www.example.org/sitemap.xml", True, None),
        ("https://www.example.org/maps/sitemap-1.xml.gz", True, None),
        ("http://www.example.org/sitemap.xml", False, "scope"),
        ("http://www.example.org/page", True, "scope"),
        ("http://www.example.org/docs/page", True, "include"),
        ("http://shop.example.org/sitemap.xml", True, "scope"),
        ("http://www.example.org/old/sitemap.xml", True, "exclude"),
    ],
)
def test_a_sitemap_need_neither_be_below_a_seeds_path_nor_included(
    url: str, sitemaps: bool, why_not: str | None
) -> None:
    job = Job(seeds=(SEED,), scope="prefix", include=("/a$",), exclude=("/old/",), sitemaps=sitemaps)
    assert why_not == Scope(job).why_not(url, 1)
