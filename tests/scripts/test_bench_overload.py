"""The benchmark of overload crawls the whole web, and counts the pages at the web itself."""

from scripts.bench_overload import measure


def test_peers_of_one_process_crawl_by_url_to_the_end() -> None:
    found = measure("url", 2, 3, 4, 60.0, 0.0)
    assert (True, 12, 12, 0) == (found["ended"], found["pages"], found["fetched"], found["twice"])
