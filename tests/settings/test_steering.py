"""The orders in force: the narrowest name of a site decides, and a name is a host, a domain or a URL."""

import pytest

from kadcrawl import ConfigError
from kadcrawl.settings.host_matches import lies_below, most_specific
from kadcrawl.settings.steering import Steering, match_of
from kadcrawl.urls import Partition


@pytest.mark.parametrize(
    ("site", "paused"),
    [
        ("a.example", True),
        ("a.example:8080", True),
        ("a.example:81", False),
        ("sub.a.example", False),
        ("b.example", True),
        ("deep.sub.b.example", True),
        ("free.b.example", False),
        ("xb.example", False),
        ("http://a.example/page", True),
        ("[::1]:80", False),
    ],
)
def test_the_narrowest_name_decides(site: str, paused: bool) -> None:
    steering = Steering("host")
    steering.follow({"a.example": True, "a.example:81": False, "*.b.example": True, "free.b.example": False}, {})
    assert paused == steering.is_paused(site)


def test_hosts_of_a_domain_have_its_orders_where_the_domain_is_the_site() -> None:
    steering = Steering("domain")
    steering.follow({"a.example": True}, {"b.example": 3.0})
    assert [True, True] == [steering.is_paused(site) for site in ("a.example", "http://www.a.example/page")]
    assert [3.0, 3.0, 0.0] == [steering.delay_s(one) for one in ("b.example", "http://x.b.example:81/", "a.example")]
    assert 3.0 == steering.delay_max_s


def test_the_latest_order_to_drop_counts_however_wide_it_is() -> None:
    steering = Steering("host")
    assert (False, 0) == (steering.has_drops, steering.drop_order("a.b.example"))
    steering.follow({}, {}, {}, {"a.b.example": 5, "*.b.example": 7, "c.example": 9})
    assert [7, 7, 0] == [steering.drop_order(site) for site in ("a.b.example", "x.b.example:81", "d.example")]


def test_new_orders_take_the_place_of_all_others() -> None:
    steering = Steering("host")
    steering.follow({"a.example": True}, {"a.example": 3.0})
    steering.follow({}, {})
    assert (False, 0.0, 0.0) == (steering.is_paused("a.example"), steering.delay_s("a.example"), steering.delay_max_s)


@pytest.mark.parametrize(
    ("text", "partition", "match"),
    [
        ("Example.ORG", "host", "example.org"),
        (" *.example.org", "host", "*.example.org"),
        ("https://example.org:8443/", "host", "example.org:8443"),
        ("https://example.org", "url", "example.org"),
        ("*.example.org", "domain", "*.example.org"),
        ("127.0.0.1", "domain", "127.0.0.1"),
    ],
)
def test_a_name_is_read_as_people_type_it(text: str, partition: Partition, match: str) -> None:
    assert match == match_of(text, partition)


@pytest.mark.parametrize(
    ("text", "partition"),
    [
        ("", "host"),
        ("*", "host"),
        ("a b", "host"),
        ("*.*", "host"),
        ("ftp://a.example/", "host"),
        ("x.a.org", "domain"),
        ("http://a.example/page", "host"),
        ("http://a.example/?page", "url"),
        ("http://(/", "host"),
    ],
)
def test_anything_else_is_refused(text: str, partition: Partition) -> None:
    with pytest.raises(ConfigError):
        match_of(text, partition)


@pytest.mark.parametrize(
    ("match", "other", "below"),
    [
        ("a.example", "*.example", True),
        ("a.example:81", "*.example", True),
        ("*.a.example", "*.example", True),
        ("example", "*.example", True),
        ("*.example", "*.example", False),
        ("xexample", "*.example", False),
        ("*.example", "*.a.example", False),
        ("a.example:81", "a.example", True),
        ("a.example", "a.example", False),
        ("a.example", "a.example:81", False),
        ("[::1]:81", "[::1]", True),
        ("[::1]", "*.example", False),
    ],
)
def test_a_narrower_name_is_known(match: str, other: str, below: bool) -> None:
    assert below == lies_below(match, other)


def test_a_value_of_zero_counts() -> None:
    assert 0 == most_specific({"a.example": 0, "*.example": 1}, "a.example:81")
    assert most_specific({"a.example": 0}, "b.example") is None
