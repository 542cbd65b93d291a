"""Orders about the scope name hosts or patterns, and the latest that matches a URL counts."""

import pytest

from kadcrawl import ConfigError, Job
from kadcrawl.settings.scope_orders import ScopeOrders, subject_of


def test_the_latest_order_that_matches_counts() -> None:
    orders = ScopeOrders()
    assert orders.verdict("http://a.example/") is None
    orders.follow([("/calendar/", False), ("b.a.example", True), ("*.a.example", False), ("/^http:..c/", True)])
    for url, verdict in (
        ("http://a.example/", False),
        ("http://b.a.example/", True),
        ("http://b.a.example/calendar/1", False),
        ("http://c.example/", True),
        ("http://d.example/", None),
    ):
        assert verdict == orders.verdict(url), url


def test_an_order_without_a_meaning_is_left_out() -> None:
    orders = ScopeOrders()
    orders.follow([("/(/", False), ("a.example", True)])
    assert orders.verdict("http://a.example/(") is True


@pytest.mark.parametrize(
    ("text", "subject"),
    [
        ("A.example", "a.example"),
        ("*.a.example", "*.a.example"),
        ("https://a.example/", "a.example"),
        ("/x+/", "/x+/"),
    ],
)
def test_a_person_names_hosts_or_a_pattern(text: str, subject: str) -> None:
    assert subject == subject_of(text, Job())


@pytest.mark.parametrize("text", ["*", "/(/", "a.example/path", "https://a.example/x", "http://a/?x", "(", "..", "{a}"])
def test_other_text_is_refused(text: str) -> None:
    with pytest.raises(ConfigError):
        subject_of(text, Job())
