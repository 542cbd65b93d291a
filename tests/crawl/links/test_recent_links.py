"""Test that recently sent links are remembered up to a number of URLs and characters, and forgotten in order."""

import pytest

from kadcrawl.crawl.links.recent_links import RecentlySent
from kadcrawl.settings.limits import Limits


@pytest.mark.parametrize(("urls_max", "chars_max"), [(3, 1_000), (1_000, 30), (1_000, 39)])
def test_the_oldest_is_forgotten_at_the_next_beyond_either_bound(urls_max: int, chars_max: int) -> None:
    recent: RecentlySent[int] = RecentlySent(urls_max, chars_max)
    urls = [f"http://h/{number}" for number in range(5)]
    for number, url in enumerate(urls[:3]):
        recent.keep(url, number)
    assert {urls[0]: 0, urls[1]: 1, urls[2]: 2} == recent
    recent.keep(urls[0], 7)
    assert 7 == recent[urls[0]], "what is known takes no more room"
    recent.keep(urls[3], 3)
    assert urls[1:4] == list(recent)
    recent.keep(urls[4], 4)
    assert urls[2:5] == list(recent)


def test_a_long_url_takes_the_room_of_many() -> None:
    recent: RecentlySent[int] = RecentlySent(1_000, 100)
    for number in range(10):
        recent.keep(f"http://h/{number}", 0)
    assert 10 == len(recent)
    recent.keep("http://h/".ljust(85, "x"), 0)
    assert ["http://h/9", "http://h/".ljust(85, "x")] == list(recent)
    recent.keep("http://h/".ljust(101, "x"), 0)
    assert not recent
    recent.keep("http://h/0", 0)
    recent.clear()
    for number in range(10):
        recent.keep(f"http://h/{number}", 0)
    assert 10 == len(recent)


def test_the_longest_urls_take_a_part_of_what_they_did() -> None:
    limits = Limits()
    longest = limits.recent_links_max * limits.url_chars_max
    assert limits.recent_chars_max * 6 < longest
    assert limits.recent_links_max * 300 < limits.recent_chars_max
