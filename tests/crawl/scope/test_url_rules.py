"""Test that the rules of a job give each URL one form, which is canonical, and leave other URLs as they are."""

import pytest
from hypothesis import given, settings, strategies as st

from kadcrawl.crawl.scope.url_rules import UrlRules
from kadcrawl.settings.job import Job
from kadcrawl.urls import canonical, is_canonical

SITE = "http://a.test"
ID = "0123456789abcdef0123456789abcdef"


def plain(url: str, *names: str, sort: bool = False) -> str:
    return UrlRules(Job(strip_parameters=names, sort_query=sort)).plain(SITE + url).removeprefix(SITE)


@pytest.mark.parametrize(
    ("names", "url", "expected"),
    [
        (("utm",), "/?utm_source=x&a=1&utm_campaign=&b", "/?a=1&b"),
        (("utm",), "/?UTM_Source=x", "/"),
        (("utm",), "/?utm=1&my_utm_source=2", "/?utm=1&my_utm_source=2"),
        (("utm",), "/utm_source=x?a=utm_source", "/utm_source=x?a=utm_source"),
        (("click-ids",), "/x?fbclid=a&gclid=b&id=1", "/x?id=1"),
        (("mail", "analytics"), "/?mc_eid=1&_ga=2.3&pk_campaign=c&q=x", "/?q=x"),
        (("ref",), "/?ref=a&refs=b&ref", "/?refs=b"),
        (("ref*",), "/?ref=a&refs=b&xref=c", "/?xref=c"),
        (("*_id",), "/?a_id=1&_id=2&id=3", "/?id=3"),
        (("a.c",), "/?abc=1&a.c=2", "/?abc=1"),
        (("*",), "/?a=1&b", "/"),
        (("a",), "/?a=1&&b", "/?&b"),
        (("a",), "/?a=1&", "/"),
        (("a",), "/?b=/?a=1", "/?b=/?a=1"),
        ((), "/?utm_source=x", "/?utm_source=x"),
    ],
)
def test_parameters_are_taken_out_by_name(names: tuple[str, ...], url: str, expected: str) -> None:
    assert expected == plain(url, *names)


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("/?b=1&a=2", "/?a=2&b=1"),
        ("/?a=2&b&a=1", "/?a=2&a=1&b"),
        ("/?b&&a&", "/?a&b"),
        ("/?&&", "/"),
        ("/?a", "/?a"),
        ("/b/a", "/b/a"),
        ("/?B&a&%41", "/?%41&B&a"),
    ],
)
def test_queries_are_sorted_by_name(url: str, expected: str) -> None:
    assert expected == plain(url, sort=True)
    assert url == plain(url)


def test_a_session_and_a_parameter_go_together() -> None:
    assert "/x?a&b" == plain(f"/x;jsessionid={ID}?b&utm_id=1&a", "utm", sort=True)
    rules = UrlRules(Job(strip_parameters=("utm",), sort_query=True))
    assert "parameters" == rules.cause(f"{SITE}/x;jsessionid={ID}?utm_id=1")
    assert "session_id" == rules.cause(f"{SITE}/x;jsessionid={ID}?b")
    assert rules.cause(f"{SITE}/?b&&a") is None
    assert ("utm_id", "utm_source") == rules.stripped(f"{SITE}/?utm_id=1&a&utm_source&utm_id=2")
    assert () == rules.stripped(f"{SITE}/utm_id=1")


def test_kept_sessions_are_kept_by_the_rules() -> None:
    rules = UrlRules(Job(session_ids="keep", strip_parameters=("utm",)))
    assert f"{SITE}/x;jsessionid={ID}" == rules.plain(f"{SITE}/x;jsessionid={ID}?utm_id=1")


def test_a_url_that_has_its_form_is_returned_uncopied() -> None:
    rules = UrlRules(Job(strip_parameters=("utm",), sort_query=True))
    for url in (f"{SITE}/", f"{SITE}/?a&b"):
        assert rules.plain(url) is url


@settings(max_examples=300)
@given(st.text("ab=&?/%4u_tm;#*.", max_size=30), st.booleans())
def test_the_form_is_canonical_and_its_own_form(query: str, sort: bool) -> None:
    rules = UrlRules(Job(strip_parameters=("utm", "a", "b*b"), sort_query=sort))
    url = canonical(f"{SITE}/?{query}")
    assert url is not None
    form = rules.plain(url)
    assert is_canonical(form)
    assert form == rules.plain(form)
    assert len(form) <= len(url)
