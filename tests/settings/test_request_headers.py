"""Test the headers that a job may set, and the name by which a crawl calls itself."""

from typing import Any

import pytest

from kadcrawl.errors import ConfigError
from kadcrawl.settings.job import Job
from kadcrawl.settings.request_headers import HEADER_CHARS_MAX, HEADERS_MAX, normal_header, pairs
from kadcrawl.settings.site_rules import SiteRule
from kadcrawl.settings.site_settings import SiteSettings


@pytest.mark.parametrize(
    ("typed", "header"),
    [
        ("Accept-Language: de", "Accept-Language: de"),
        ("accept:text/html", "accept: text/html"),
        ("  X-Test :  a: b  ", "X-Test: a: b"),
        ("From: you@example.org", "From: you@example.org"),
    ],
)
def test_a_header_has_one_space_after_its_colon(typed: str, header: str) -> None:
    assert header == normal_header(typed)
    assert (header,) == Job(headers=(header,)).headers


@pytest.mark.parametrize(
    ("typed", "why"),
    [
        ("no colon", "is no header"),
        (": x", "has no name that HTTP allows"),
        ("a b: c", "has no name that HTTP allows"),
        ("X-Empty:", "must be printable ASCII, and not empty"),
        ("X-Line: a\r\nHost: b", "must be printable ASCII"),
        ("X-Umlaut: \u00e4", "must be printable ASCII"),
        ("X-Long: " + "x" * HEADER_CHARS_MAX, "is no header"),
        *(
            (f"{name}: x", "as HTTP itself decides it")
            for name in (
                "Host",
                "content-length",
                "Connection",
                "Transfer-Encoding",
                "TE",
                "Upgrade",
                "Proxy-Authorization",
            )
        ),
        ("If-None-Match: x", "makes a request conditional"),
        ("Accept-Encoding: zstd", "decodes what it asks for"),
        ("User-Agent: x", "use user-agent"),
        ("Authorization: Bearer x", "use auth of a"),
        ("Cookie: a=b", "use cookies of a"),
    ],
)
def test_a_header_that_breaks_the_protocol_or_holds_a_secret_is_refused(typed: str, why: str) -> None:
    with pytest.raises(ConfigError, match=why):
        normal_header(typed)


@pytest.mark.parametrize(
    ("headers", "why"),
    [
        (("X-A: 1", "x-a: 2"), "header x-a is given twice"),
        (("X-A:1",), "must have one space"),
        (tuple(f"X-{number}: 1" for number in range(HEADERS_MAX + 1)), f"at most {HEADERS_MAX} headers"),
        (("Host: a",), "as HTTP itself decides it"),
    ],
)
def test_the_headers_of_another_peers_job_are_checked(headers: tuple[str, ...], why: str) -> None:
    for make in (lambda: Job(headers=headers), lambda: SiteRule(match=("a.test",), headers=headers)):
        with pytest.raises(ConfigError, match=why):
            make()


def test_headers_are_pairs() -> None:
    assert [("X-A", "b: c"), ("From", "x")] == pairs(("X-A: b: c", "From: x"))


@pytest.mark.parametrize(
    ("user_agent", "robots_token", "token"),
    [
        ("", "", "kadcrawl"),
        ("", "KadCrawl", "KadCrawl"),
        ("", "crawl", "crawl"),
        ("mybot/1.0 (+https://example.org/bot)", "", "mybot"),
        ("Mozilla/5.0 (compatible; my-bot/1.0)", "my-bot", "my-bot"),
    ],
)
def test_a_robots_txt_speaks_to_the_name_in_the_user_agent(user_agent: str, robots_token: str, token: str) -> None:
    assert token == Job(user_agent=user_agent, robots_token=robots_token).robots_agent


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"user_agent": "Mozilla/5.0 (compatible)"}, "begins with no name of a crawler: give robots_token"),
        ({"user_agent": "5 bots"}, "begins with no name of a crawler"),
        ({"user_agent": "mybot/1", "robots_token": "Googlebot"}, "robots_token Googlebot must be part of user_agent"),
        ({"robots_token": "Googlebot"}, "robots_token Googlebot must be part of user_agent"),
        ({"robots_token": "kad crawl"}, "must have 1 to 100 letters"),
        ({"user_agent": "a\nb"}, "user_agent must be printable ASCII"),
        ({"user_agent": "x" * (HEADER_CHARS_MAX + 1)}, "user_agent must have at most"),
        (
            {"sites": (SiteRule(match=("a.test",), user_agent="other/1"),)},
            "user_agent of site a.test must contain kadcrawl",
        ),
    ],
)
def test_a_crawl_goes_by_one_name(fields: dict[str, Any], why: str) -> None:
    with pytest.raises(ConfigError, match=why):
        Job(**fields)


@pytest.mark.parametrize(
    ("user_agent", "contact", "sent"),
    [
        ("", "", "kadcrawl/1"),
        ("", "you@a.test", "kadcrawl/1 (+you@a.test)"),
        ("mybot/2", "", "mybot/2"),
        ("mybot/2", "you@a.test", "mybot/2 (+you@a.test)"),
        ("mybot/2 (+you@a.test; x)", "you@a.test", "mybot/2 (+you@a.test; x)"),
    ],
)
def test_the_contact_is_in_every_user_agent(user_agent: str, contact: str, sent: str) -> None:
    rule = SiteRule(match=("a.test",), user_agent=f"Mozilla/5.0 {user_agent or 'kadcrawl'}")
    settings = SiteSettings(Job(user_agent=user_agent, contact=contact, sites=(rule,)))
    assert sent == settings.user_agent(None, "kadcrawl/1")
    assert contact in settings.user_agent(rule, "kadcrawl/1")
