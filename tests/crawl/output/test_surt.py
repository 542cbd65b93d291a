"""The keys of an index are those that replay tools look for, as the library of the Wayback Machine makes them."""

import pytest
from hypothesis import given, settings, strategies as st

from kadcrawl.crawl.output.surt import surt_of
from kadcrawl.urls import seed

surt = pytest.importorskip("surt")

SESSION = "0123456789abcdef0123456789ABCDEF"


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("https://www.example.org/A/?b=2&a=1", "org,example)/a?a=1&b=2"),
        ("http://example.org/", "org,example)/"),
        ("http://www2.example.org:8080/x//y/./z/../", "org,example:8080)/x/y"),
        ("http://127.20.0.1:8000/p/1", "1,0,20,127:8000)/p/1"),
        ("http://user:pass@example.org/", "org,example)/"),
        ("https://example.org:443/?", "org,example)/"),
        ("https://example.org/%25%32%35%20/%C3%A4", "org,example)/%25%20/%c3%a4"),
        (f"http://example.org/?a=1&PHPSESSID={SESSION}&b=2", "org,example)/?a=1&b=2"),
        ("http://xn--bcher-kva.example/", "example,xn--bcher-kva)/"),
    ],
)
def test_pages_that_a_person_takes_for_one_have_one_key(url: str, expected: str) -> None:
    assert expected == surt_of(url)
    assert expected == surt.surt(url)


PIECES = st.sampled_from(
    [
        *(
            "a",
            "B",
            "/",
            "//",
            ".",
            "..",
            "/./",
            "/../",
            "?",
            "&",
            "=",
            "%41",
            "%2541",
            "%",
            "%20",
            "%23",
            "+",
            ";",
            "~",
        ),
        *("é", f"sid={SESSION}", f"&JSESSIONID={SESSION}", "cfid=1&cftoken=2", "(a(0123456789abcdefghijklmn))/x.aspx"),
        *("{", "|", "'"),
    ]
)
HOSTS = st.sampled_from(
    [
        *("example.org", "www.example.org", "www12.a.example", "WWW.wwwx.example:81", "10.0.0.1"),
        *("bücher.example", "a-b.c:443"),
    ]
)


@given(st.sampled_from(["http", "https"]), HOSTS, st.lists(PIECES, max_size=8))
@settings(max_examples=400, deadline=None)
def test_every_canonical_url_has_the_key_of_the_library(scheme: str, host: str, pieces: list[str]) -> None:
    url = seed(f"{scheme}://{host}/{''.join(pieces)}")
    assert surt.surt(url) == surt_of(url)
