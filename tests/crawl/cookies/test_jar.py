"""Test the cookies of one site: which are kept, which are sent where, and the bounds of a jar (RFC 6265)."""

import pytest

from kadcrawl.crawl.cookies.jar import COOKIE_CHARS_MAX, COOKIES_MAX, JAR_CHARS_MAX, LIFE_MAX_S, Cookie, Jar, parse
from kadcrawl.link.wire.messages import JAR_BYTES_MAX

NOW = 1_700_000_000.0
HOME = "https://www.example.org/docs/a"


def sent(url: str, *values: str, set_by: str = HOME, now: float = NOW) -> str:
    """Return the Cookie header for `url` after an answer with these Set-Cookie values."""
    jar = Jar()
    jar.learn(set_by, values, NOW)
    return Jar.from_bytes(jar.to_bytes()).header(url, now)


@pytest.mark.parametrize(
    ("value", "header"),
    [
        ("a=b", "a=b"),
        (" a = b ; HttpOnly", "a=b"),
        ("a=b=c", "a=b=c"),
        ('a="b c"', 'a="b c"'),
        ("a=", "a="),
        ("=b", ""),
        ("ab", ""),
        ("", ""),
        ("a=\u00e4", ""),
        ("a=b\x00", ""),
        ("a=b\r\nX: y", ""),
        ("a=b; path=/docs", "a=b"),
        ("a=b; path=/docs/", "a=b"),
        ("a=b; path=/doc", ""),
        ("a=b; path=docs", "a=b"),
        ("a=b; domain=example.org", "a=b"),
        ("a=b; Domain=.Example.org", "a=b"),
        ("a=b; domain=www.example.org", "a=b"),
        ("a=b; domain=org", ""),
        ("a=b; domain=other.org", ""),
        ("a=b; domain=x.www.example.org", ""),
        ("a=b; max-age=60", "a=b"),
        ("a=b; max-age=0", ""),
        ("a=b; max-age=-1", ""),
        ("a=b; max-age=soon", "a=b"),
        ("a=b; expires=Wed, 21 Oct 2099 07:28:00 GMT", "a=b"),
        ("a=b; expires=Wed, 21-Oct-2015 07:28:00 GMT", ""),
        ("a=b; expires=never", "a=b"),
        ("a=b; expires=Wed, 21 Oct 2015 07:28:00 GMT; max-age=60", "a=b"),
        ("__Host-a=b; secure; path=/", "__Host-a=b"),
        ("__Host-a=b; secure", ""),
        ("__Host-a=b; secure; path=/; domain=example.org", ""),
        ("__Secure-a=b", ""),
    ],
)
def test_a_cookie_is_kept_as_the_rfc_says(value: str, header: str) -> None:
    assert header == sent(HOME, value)


@pytest.mark.parametrize(
    ("value", "url", "is_sent"),
    [
        ("a=b", "https://www.example.org/docs/b?x=/y", True),
        ("a=b", "https://www.example.org/docs", True),
        ("a=b", "https://www.example.org/docsx", False),
        ("a=b", "https://www.example.org/", False),
        ("a=b; path=/", "https://www.example.org/x", True),
        ("a=b; path=/", "http://www.example.org/x", True),
        ("a=b; path=/; secure", "http://www.example.org/x", False),
        ("a=b; path=/; secure", "https://www.example.org/x", True),
        ("a=b; path=/", "https://example.org/", False),
        ("a=b; path=/", "https://x.www.example.org/", False),
        ("a=b; path=/; domain=example.org", "https://example.org/", True),
        ("a=b; path=/; domain=example.org", "https://x.example.org/", True),
        ("a=b; path=/; domain=example.org", "https://notexample.org/", False),
    ],
)
def test_a_cookie_goes_where_it_belongs(value: str, url: str, is_sent: bool) -> None:
    assert ("a=b" if is_sent else "") == sent(url, value)


@pytest.mark.parametrize(
    ("set_by", "value", "is_kept"),
    [
        ("http://www.example.org/", "a=b; secure", False),
        ("http://www.example.org/", "a=b", True),
        ("https://co.uk/", "a=b; domain=co.uk", True),
        ("https://x.co.uk/", "a=b; domain=co.uk", False),
        ("http://localhost:8080/", "a=b; domain=localhost", True),
        ("http://127.0.0.1/", "a=b; domain=127.0.0.1", True),
        ("http://127.0.0.1/", "a=b; domain=0.0.1", False),
        ("http://[::1]/", "a=b", True),
        ("http://example.org./", "a=b; domain=example.org", True),
    ],
)
def test_a_cookie_is_for_its_own_host_or_domain(set_by: str, value: str, is_kept: bool) -> None:
    assert is_kept == (parse(set_by, value, NOW) is not None)


def test_longer_paths_come_first_and_then_older_cookies() -> None:
    values = ["b=1; path=/", "a=1; path=/", "c=1; path=/docs", "b=2; path=/"]
    assert "c=1; a=1; b=2" == sent(HOME, *values)


def test_cookies_end_in_time() -> None:
    value = "a=b; max-age=60"
    assert "a=b" == sent(HOME, value, now=NOW + 59.9)
    assert "" == sent(HOME, value, now=NOW + 60)
    cookie = parse(HOME, "a=b; max-age=99999999999", NOW)
    assert cookie is not None
    assert NOW + LIFE_MAX_S == cookie.expires
    jar = Jar()
    assert jar.learn(HOME, [value], NOW)
    assert not jar.learn(HOME, [], NOW + 59)
    assert jar.learn(HOME, [], NOW + 61)
    assert 0 == len(jar)


def test_a_jar_changes_only_by_another_cookie() -> None:
    jar = Jar()
    assert jar.learn(HOME, ["a=b"], NOW)
    assert not jar.learn(HOME, ["a=b"], NOW)
    assert jar.learn(HOME, ["a=c"], NOW)
    assert jar.learn(HOME, ["a=; max-age=0"], NOW)
    assert 0 == len(jar)


def test_a_jar_is_bounded_and_the_oldest_cookies_go_first() -> None:
    jar = Jar()
    jar.learn(HOME, [f"n{number}=x" for number in range(COOKIES_MAX + 2)], NOW)
    assert COOKIES_MAX == len(jar)
    assert "n0=" not in jar.header(HOME, NOW)
    assert f"n{COOKIES_MAX + 1}=x" in jar.header(HOME, NOW)
    large = "x" * (COOKIE_CHARS_MAX - 2)
    jar.learn(HOME, [f"l{number}={large}" for number in range(3)], NOW)
    assert f"l1={large}; l2={large}" == jar.header(HOME, NOW)
    assert 2 * COOKIE_CHARS_MAX <= JAR_CHARS_MAX
    assert parse(HOME, f"a=xx{large}", NOW) is None
    jar.learn("https://www.example.org/" + "p" * 999 + "/", [f"p{number}=x" for number in range(COOKIES_MAX)], NOW)
    assert 0 < len(jar.to_bytes()) <= JAR_BYTES_MAX


@pytest.mark.parametrize(
    "told",
    [
        b"\xc1",
        b"\x90" * 20,
        Jar([Cookie("a\r\nHost: x", "b", "www.example.org", "/", True, False, None)]).to_bytes(),
        Jar([Cookie("a", "b; c", "www.example.org", "/", True, False, None)]).to_bytes(),
    ],
)
def test_a_jar_that_a_lying_member_told_sends_nothing(told: bytes) -> None:
    assert "" == Jar.from_bytes(told).header(HOME, NOW)
