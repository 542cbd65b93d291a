"""Test which page may name another as canonical, and how a Link header field names a page.

Two pages never replace each other.
"""

from itertools import permutations

import pytest

from kadcrawl.crawl.content.canonical_link import may_replace, named_by_header, simplicity

URLS = [
    "https://a.test/",
    "https://a.test/b",
    "https://a.test/c",
    "https://www.a.test/b",
    "https://a.test/?b",
    "https://a.test/?b&c",
    "https://a.test/b?c&d",
    "http://a.test/",
    "http://a.test:8080/b",
]
"""The simplest first."""


def test_of_two_urls_one_is_simpler() -> None:
    assert URLS == sorted(URLS, key=simplicity)
    for target, url in permutations(URLS, 2):
        assert may_replace(target, url) is not may_replace(url, target)
    assert not any(may_replace(url, url) for url in URLS)


@pytest.mark.parametrize(
    ("target", "url", "may"),
    [
        ("https://a.example.org/", "https://b.example.org/?c", True),
        ("https://example.org/", "http://example.org/", True),
        ("http://example.org/", "https://example.org/?a&b", False),
        ("https://example.net/", "https://example.org/?a", False),
        ("https://a.co.uk/", "https://b.co.uk/?a", False),
        ("http://127.0.0.2/", "http://127.0.0.3/?a", False),
    ],
)
def test_a_page_may_name_a_simpler_one_of_its_domain(target: str, url: str, may: bool) -> None:
    assert may is may_replace(target, url)


@pytest.mark.parametrize(
    ("link", "named"),
    [
        ('<http://b.test/x>; rel="canonical"', ["http://b.test/x"]),
        ("</x>;rel=canonical", ["http://a.test/x"]),
        ('<y>; title="a, <b>; \\"c"; REL="alternate  Canonical"', ["http://a.test/d/y"]),
        ("</1>; rel=next, </2>; rel=canonical, </3>; rel=canonical", ["http://a.test/2", "http://a.test/3"]),
        ("</1>; rel=next; rel=canonical", []),
        ('</1>; rel=canonical; anchor="#x"', []),
        ("<mailto:a@b.c>; rel=canonical", []),
        ("</1>; rev=canonical, </2>, rel=canonical", []),
        ("</1; rel=canonical", []),
        ("", []),
    ],
)
def test_what_a_link_header_names(link: str, named: list[str]) -> None:
    assert named == list(named_by_header(link, "http://a.test/d/e"))


@pytest.mark.parametrize("link", ["<", "<a>;", "<a>;b=", '<a>;b="', "<a>; ", "<a> ", ";", '<a>;"\\', '<a>;b="c"d'])
def test_a_link_header_is_read_in_linear_time(link: str) -> None:
    """The header has 65,536 bytes, the limit of a header. In quadratic time the test would take minutes."""
    assert [] == list(named_by_header(link * (65_536 // len(link)), "http://a.test/"))
