"""Test that a path gets its limit of URLs with a query, with any other counts."""

import pytest

from kadcrawl.crawl.scope.query_limits import PathQueries
from kadcrawl.errors import ConfigError
from kadcrawl.settings.job import Job

SITE = "http://a.test"


def accepted_urls(queries: PathQueries, *targets: str) -> list[str]:
    """Return which of these new URLs an owner takes."""
    found = []
    for target in targets:
        if not queries.is_full(SITE + target):
            queries.count(SITE + target)
            found.append(target)
    return found


def test_each_path_has_as_many_queries_as_it_may_and_no_query_is_none() -> None:
    queries = PathQueries(2)
    assert ["/a?1", "/a?2", "/b?1", "/a", "/a/?1"] == accepted_urls(
        queries, "/a?1", "/a?2", "/a?3", "/b?1", "/a", "/a/?1"
    )
    assert [] == accepted_urls(queries, "/a?4")
    assert 3 == len(queries), "what has no query is not counted"


def test_parameter_order_makes_another_query_and_a_second_mark_no_new_path() -> None:
    assert ["/a?x=1&y=2", "/a?y=2&x=1"] == accepted_urls(
        PathQueries(2), "/a?x=1&y=2", "/a?y=2&x=1", "/a?x?y", "/a?x=1?z"
    )


def test_scheme_and_host_belong_to_the_path() -> None:
    queries = PathQueries(1)
    for origin in ("http://a.test", "https://a.test", "http://b.a.test", "http://a.test:81"):
        assert not queries.is_full(f"{origin}/a?1")
        queries.count(f"{origin}/a?1")
        assert queries.is_full(f"{origin}/a?2")


def test_what_is_counted_is_bounded_and_paths_still_met_stay() -> None:
    queries = PathQueries(1, paths_max=3)
    assert ["/a?1", "/b?1", "/c?1"] == accepted_urls(queries, "/a?1", "/b?1", "/c?1")
    assert [] == accepted_urls(queries, "/a?2")
    assert ["/d?1"] == accepted_urls(queries, "/d?1")
    assert 3 == len(queries)
    assert ["/b?2"] == accepted_urls(queries, "/a?3", "/b?2"), "only the path met longest ago begins anew"


def test_a_limit_of_queries_needs_sites_of_more_than_one_url() -> None:
    with pytest.raises(ConfigError, match="path_queries_max cannot go with partition url"):
        Job(partition="url", path_queries_max=10)
    with pytest.raises(ConfigError, match="path_queries_max must be 1 or more"):
        Job(path_queries_max=0)
