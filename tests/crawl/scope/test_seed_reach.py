"""The reach of streamed seeds: what it covers, and how two sets of it merge."""

from random import Random

import pytest

from kadcrawl.crawl.scope import seed_reach
from kadcrawl.crawl.scope.scope import Scope
from kadcrawl.crawl.scope.seed_reach import SeedReach, digest_of_ids, id_of
from kadcrawl.link.wire.seed_messages import SEGMENT_FINGERPRINTS_MAX
from kadcrawl.settings.job import Job, ScopeKind
from tests.support.cases import cases

SEED = "http://www.example.org/docs/intro.html?v=1"


def reach_with(urls: list[str], kind: ScopeKind = "host") -> SeedReach:
    reach = SeedReach(kind)
    for segment in reach.segments_of(urls):
        assert reach.add(segment) is not None
    return reach


@cases(
    "url",
    [
        "http://www.example.org/",
        "https://www.example.org/docs/a/b",
        "http://www.example.org:8080/docs/",
        "https://other.example.org/docs/",
        "http://example.org/docs/a",
        "http://example.org:8080/docs/a",
        "http://www.example.org/docs2/a",
        "http://www.example.org/a?/docs/",
        "http://www.example.org/docs/?a",
        "http://www.example.org/sitemap.xml",
        "http://other.net/sitemap.xml",
    ],
)
@cases("kind", ["host", "domain", "prefix", "any"])
@cases("sitemaps", [False, True])
def test_a_streamed_seed_reaches_as_far_as_a_seed_of_the_job(kind: ScopeKind, url: str, sitemaps: bool) -> None:
    named = Scope(Job(seeds=(SEED,), scope=kind, sitemaps=sitemaps))
    streamed = Scope(Job(scope=kind, sitemaps=sitemaps))
    for segment in streamed.segments_of([SEED]):
        streamed.reach.add(segment)
    assert named.why_not(url, 1) == streamed.why_not(url, 1)
    assert (None, None) == (named.why_not(SEED, 0), streamed.why_not(SEED, 0, 0))


def test_a_seed_near_another_has_no_reach_of_its_own() -> None:
    scope = Scope(Job(seeds=(SEED,)))
    assert [] == scope.segments_of(["http://www.example.org/", SEED])
    assert [] == Scope(Job(scope="any")).segments_of(["http://other.net/"])


def test_a_url_without_a_link_to_it_is_a_seed_and_needs_no_include() -> None:
    scope = Scope(Job(seeds=(SEED,), include=("never",), exclude=("secret",)))
    assert (None, "include") == (scope.why_not("http://www.example.org/", 0, 0), scope.why_not(SEED[:-4], 0, 1))
    assert "exclude" == scope.why_not("http://www.example.org/secret", 0, 0)
    assert "scope" == scope.why_not("http://other.net/", 0, 0), "another host needs a reach"


def test_sets_merge_in_any_order_and_repeats_change_nothing() -> None:
    urls = [f"http://h{number}.example/" for number in range(20_000)]
    one, other = reach_with(urls[:12_000]), reach_with(urls[8_000:])
    for mine, theirs, of_theirs in ((one, other, urls[8_000:]), (other, one, urls[:12_000])):
        segments = {id_of(segment): segment for segment in reach_with([], "host").segments_of(of_theirs)}
        for segment_id in mine.lacking(theirs.ids):
            if segment_id in segments:
                mine.add(segments[segment_id])
                assert mine.add(segments[segment_id]) is None
    assert (20_000, 20_000) == (len(one), len(other))
    assert one.digest == other.digest == digest_of_ids(one.ids) != 0
    assert [] == one.lacking(other.ids)
    assert all(one.covers(url) for url in urls)
    assert not one.covers("http://h20000.example/")


def test_many_hosts_are_found_and_no_others() -> None:
    random = Random(1)
    names = {f"http://{random.getrandbits(48):x}.example/" for _ in range(50_000)}
    reach = reach_with(sorted(names))
    assert len(names) == len(reach)
    assert all(map(reach.covers, names))
    assert not any(reach.covers(f"http://{random.getrandbits(48):x}.test/") for _ in range(10_000))


@pytest.mark.parametrize(
    "segment",
    [
        b"",
        b"1234567",
        bytes(16),
        (2).to_bytes(8, "big") + (1).to_bytes(8, "big"),
        b"".join(number.to_bytes(8, "big") for number in range(SEGMENT_FINGERPRINTS_MAX + 1)),
    ],
    ids=["empty", "torn", "repeated", "unsorted", "too long"],
)
def test_a_malformed_segment_is_left_alone(segment: bytes) -> None:
    reach = SeedReach("host")
    assert reach.add(segment) is None
    assert (0, b"") == (len(reach), reach.ids)


def test_the_set_has_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(seed_reach, "REACH_MAX", 10)
    monkeypatch.setattr(seed_reach, "SEGMENTS_MAX", 3)
    reach = reach_with([f"http://h{number}.example/" for number in range(8)])
    [too_many] = reach.segments_of([f"http://x{number}.example/" for number in range(3)])
    assert reach.add(too_many) is None
    for number in range(2):
        assert reach.add(reach.segments_of([f"http://y{number}.example/"])[0]) is not None
    [one_more] = reach.segments_of(["http://z.example/"])
    assert reach.add(one_more) is None
    assert [] == reach.lacking(id_of(one_more))
