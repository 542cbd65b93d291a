"""The benchmark of overload crawls the whole web, and counts the pages at the web itself."""

from scripts.bench_overload import measure


def test_peers_of_one_process_crawl_by_url_to_the_end() -> None:
    found = measure("url", 2, 3, 4, 60.0, 0.0)
    assert (True, 12, 12, 0) == (found["ended"], found["pages"], found["fetched"], found["twice"])


def test_peers_of_one_process_that_is_stopped_for_some_seconds_fetch_all_pages_once() -> None:
    """The benchmark stops them for half a minute as well."""
    found = measure("url", 4, 10, 12, 90.0, 3.0)
    assert found["longest_stall_s"] > 2.5
    assert (True, 120, 120) == (found["ended"], found["pages"], found["done"])
    assert found["twice"] <= 1
