"""Canonical URLs and their parts."""

import json
import re
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from kadcrawl.errors import ConfigError
from kadcrawl.urls import (
    URL_CHARS_MAX,
    Partition,
    canonical,
    host_of,
    is_canonical,
    origin_of,
    path_of,
    seed,
    site_of,
    without_password,
)
from tests.support.cases import cases

CASES = Path(__file__).parents[2] / "shared" / "conformance" / "wpt_urltestdata.json"


@pytest.mark.parametrize(
    ("href", "expected"),
    [
        ("http://example.org", "http://example.org/"),
        ("HTTP://EXAMPLE.ORG:80/A", "http://example.org/A"),
        ("https://example.org:443/", "https://example.org/"),
        ("https://example.org:80/", "https://example.org:80/"),
        ("http://example.org/a/./b/../c", "http://example.org/a/c"),
        ("http://example.org/a#b", "http://example.org/a"),
        ("http://example.org/a #b", "http://example.org/a%20"),
        ("  http://example.org/a\n", "http://example.org/a"),
        ("http://example.org/a?", "http://example.org/a"),
        ("http://example.org/a?#b", "http://example.org/a"),
        ("http://example.org/a??", "http://example.org/a??"),
        ("http://example.org/a?b?", "http://example.org/a?b?"),
        ("http://example.org/%7e%2f%zz%", "http://example.org/%7E%2F%zz%"),
        ("http://user:pa:ss@example.org/@", "http://example.org/@"),
        ("http://user@example.org:8080?u@v", "http://example.org:8080/?u@v"),
        ("http://bücher.example/ü?ü", "http://xn--bcher-kva.example/%C3%BC?%C3%BC"),
        ("http:\\\\example.org\\a", "http://example.org/a"),
        ("http://0x7f.1/", "http://127.0.0.1/"),
        ("http://[0:0::1]/", "http://[::1]/"),
        ("ftp://example.org/", None),
        ("mailto:a@example.org", None),
        ("javascript:void(0)", None),
        ("data:text/html,x", None),
        ("http://", None),
        ("http://a b/", None),
        ("http://example.org:65536/", None),
        ("example.org", None),
        ("", None),
        ("http://example.org/\ud800", None),
    ],
)
def test_canonical_form(href: str, expected: str | None) -> None:
    assert canonical(href) == expected


@pytest.mark.parametrize(
    ("href", "expected"),
    [
        ("", "http://h/d/p?q"),
        ("#f", "http://h/d/p?q"),
        ("?r", "http://h/d/p?r"),
        ("x", "http://h/d/x"),
        ("../../x", "http://h/x"),
        ("//g", "http://g/"),
        ("https:x", "https://x/"),
        ("http:x", "http://h/d/x"),
        ("a\tb\nc", "http://h/d/abc"),
    ],
)
def test_relative_hrefs_are_read_from_the_base(href: str, expected: str) -> None:
    assert canonical(href, "http://h/d/p?q") == expected


def test_urls_up_to_the_limit_have_a_canonical_form() -> None:
    longest = "http://h/".ljust(URL_CHARS_MAX, "a")
    assert canonical(longest) == longest
    assert canonical(longest + "a") is None
    assert canonical(longest[:-1] + "ü") is None


URLISH = st.text(st.sampled_from("ahtps:/\\.?#@%[]:1234567890aAfF &\t\nüß\u00ad.。ﬀ"), max_size=40)


@given(st.one_of(URLISH, st.text()), st.sampled_from(["", "http://", "https://h/", "http://h/?", "http://u@"]))
def test_canonical_form_is_its_own_canonical_form(text: str, before: str) -> None:
    url = canonical(before + text, "http://base.example/d/p?q")
    if url is not None:
        assert canonical(url) == url
        assert is_canonical(url)
        assert url.isascii()
        assert origin_of(url) + path_of(url) == url
        assert host_of(url)
        assert site_of(url, "host")
        assert site_of(url, "domain")


@given(st.one_of(URLISH, st.text()), st.sampled_from(["", "http://h/%2", "https://h/", "http://h/\ud800"]))
def test_a_url_said_to_be_canonical_is_so_if_it_is_its_own_canonical_form(text: str, before: str) -> None:
    assert is_canonical(before + text) == (canonical(before + text) == before + text)


def _conformance_cases() -> list[dict[str, str]]:
    if not CASES.exists():
        return []
    return [case for case in json.loads(CASES.read_text()) if isinstance(case, dict)]


def test_agrees_with_the_web_platform_tests() -> None:
    if not (cases := _conformance_cases()):
        pytest.skip("the folder with the web-platform-tests' URL cases is not here")
    read = {"failing": 0, "http": 0, "other": 0}
    for case in cases:
        base = case["base"]
        if case.get("failure"):
            kind, expected = "failing", None
        elif case["protocol"] not in ("http:", "https:"):
            kind, expected = "other", None
        else:
            kind = "http"
            expected = f"{case['protocol']}//{case['host']}{case['pathname']}{case['search']}"
            expected = re.sub("%[0-9a-fA-F]{2}", lambda escape: escape[0].upper(), expected)
        read[kind] += 1
        assert canonical(case["input"], base) == expected, case
    assert read["failing"] >= 200
    assert read["http"] >= 200


@pytest.mark.parametrize(
    ("text", "expected"),
    [(" https://example.org ", "https://example.org/"), ("HTTP://127.0.0.1:8000", "http://127.0.0.1:8000/")],
)
def test_seed_is_made_canonical(text: str, expected: str) -> None:
    assert seed(text) == expected


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("example.org", "did you mean https://example.org/?"),
        ("//example.org/a", "did you mean https://example.org/a?"),
        ("localhost:8000", "did you mean http://localhost:8000/?"),
        ("example.org:8000/a", "did you mean https://example.org:8000/a?"),
        ("10.0.0.1", "did you mean http://10.0.0.1/?"),
        ("[::1]:8000", "did you mean http://[::1]:8000/?"),
        ("ftp://example.org/", "only http and https"),
        ("mailto:a@example.org", "only http and https"),
        ("http://", "is not a URL"),
        ("", "is not a URL"),
        ("http://h/" + "a" * URL_CHARS_MAX, "too long"),
        ("a" * (URL_CHARS_MAX + 1), "too long"),
        ("https://user@example.org/", "and give example.org an auth in a [[sites]] table"),
        ("https://user:pw@example.org:8080/", "and give example.org an auth in a [[sites]] table"),
    ],
)
def test_bad_seed_is_refused_with_a_hint(text: str, hint: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(hint)) as refused:
        seed(text)
    assert len(str(refused.value)) < 200


@pytest.mark.parametrize(
    "text",
    [
        "https://user:secret@example.org/",
        "https://:secret@example.org/",
        "https:user:secret@example.org/",
        "\\\\user:secret@example.org/",
        "//user:secret@example.org/",
        "user:secret@example.org/",
        "https://user:secret/secret?secret#secret@example.org/",
        "ftp://user:secret@example.org/",
        "https://user:secret@example.org/" + "a" * URL_CHARS_MAX,
        "https://user:se@cret secret@example.org/@",
    ],
)
def test_no_error_shows_a_password(text: str) -> None:
    with pytest.raises(ConfigError, match=re.escape("***@")) as refused:
        seed(text)
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize("url", ["https://example.org/@me", "https://example.org:8080/a:b@c", "http://h/?u:p@x"])
def test_a_sign_elsewhere_in_a_url_is_no_password(url: str) -> None:
    assert url == seed(url) == without_password(url)


@pytest.mark.parametrize(
    ("url", "partition", "expected"),
    [
        ("http://www.example.co.uk/a", "host", "www.example.co.uk"),
        ("https://www.example.co.uk/a", "host", "www.example.co.uk"),
        ("http://www.example.co.uk:8080/a", "host", "www.example.co.uk:8080"),
        ("http://example.org./", "host", "example.org"),
        ("http://example.org.:81/", "host", "example.org:81"),
        ("http://./", "host", "."),
        ("http://[::1]:81/", "host", "[::1]:81"),
        ("http://www.example.co.uk:8080/a", "domain", "example.co.uk"),
        ("http://example.org./", "domain", "example.org"),
        ("http://co.uk/", "domain", "co.uk"),
        ("http://localhost:81/", "domain", "localhost"),
        ("http://127.0.0.1:81/", "domain", "127.0.0.1"),
        ("http://[::1]:81/", "domain", "[::1]"),
        ("http://[::1]/", "domain", "[::1]"),
        ("http://example.org/a", "url", "http://example.org/a"),
    ],
)
def test_site(url: str, partition: Partition, expected: str) -> None:
    assert canonical(url) == url
    assert site_of(url, partition) == expected


@pytest.mark.parametrize(
    ("url", "host", "origin", "path"),
    [
        ("http://h/", "h", "http://h", "/"),
        ("https://h:81/a/?b=/", "h", "https://h:81", "/a/?b=/"),
        ("https://[::1]:81/a", "[::1]", "https://[::1]:81", "/a"),
        ("https://[::1]/a", "[::1]", "https://[::1]", "/a"),
    ],
)
def test_parts(url: str, host: str, origin: str, path: str) -> None:
    assert (host_of(url), origin_of(url), path_of(url)) == (host, origin, path)


PATHS = (
    "",
    "/",
    "/a",
    "/a/",
    "//",
    "/a//b",
    "/.",
    "/..",
    "/...",
    "/./a",
    "/a/..",
    "/.a",
    "/a.",
    "/%41",
    "/%7e",
    "/a'b",
    "/a|b",
)
QUERIES = ("", "?", "?a=b", "?a=/../?", "?'", "?a b", "?%C3%A9", "#f", "?a#", "\n")
HOSTS = (
    "h",
    "H",
    "h.example",
    "h.",
    "-h",
    "127.0.0.1",
    "127.1",
    "0x7f.1",
    "h:8080",
    "h:80",
    "h:",
    "h:x",
    "",
    "u@h",
    "[::1]",
    "xn--a",
)


@cases("scheme", ["http://", "https://", "HTTP://", "http:/", "ftp://"])
@cases("host", HOSTS)
def test_a_url_is_canonical_if_it_is_its_own_canonical_form(scheme: str, host: str) -> None:
    urls = [f"{scheme}{host}{path}{query}" for path in PATHS for query in QUERIES]
    urls += [f"{scheme}{host}/".ljust(URL_CHARS_MAX + more, "x") for more in (0, 1)]
    for url in urls:
        assert is_canonical(url) is (canonical(url) == url and "%7e" not in url), url
