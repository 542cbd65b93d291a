"""Facts about patterns are proven: no URL of a fuzzer contradicts one."""

import re

import pytest
from hypothesis import given, strategies as st

from kadcrawl.settings.pattern_facts import SCHEMES, PatternFacts
from kadcrawl.urls import canonical


@pytest.mark.parametrize(
    ("pattern", "literals", "begin"),
    [
        ("/item/", ("/item/",), None),
        (r"^https://docs\.example\.org/(a|b)/c", ("https://docs.example.org/", "/c"), "https://docs.example.org/"),
        (r"\Ahttp(s)?://x", ("http", "://x"), "http"),
        (r"/item/\d+\.html$", ("/item/", ".html"), None),
        (r"(/a){2,}/b", ("/a/a", "/b"), None),
        (r"(/a){2}/b", ("/a/a/b",), None),
        (r"/x(?=y)z\b", ("/xz",), None),
        ("(?i)/ITEM/", (), None),
        ("(?i:/ITEM/)/a", ("/a",), None),
        ("a*|b", (), None),
        ("", (), None),
        ("^", (), ""),
        (r"(^http://a/)", ("http://a/",), None),
    ],
)
def test_literals_and_the_begin(pattern: str, literals: tuple[str, ...], begin: str | None) -> None:
    assert (literals, begin) == (PatternFacts(pattern).literals, PatternFacts(pattern).begin)


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("/über/", "ü"),
        ("/a b/", " "),
        ("#top", "#"),
        ("/%c3%bc", "%c3"),
        ("(/a|/b)?/c d", " "),
        ("/a.b/", None),
        ("(?i)/Über/", None),
        ("(?x) /a b/", None),
        ("[ ü]", None),
        ("/%C3%BC", None),
        ("( )?/a", None),
    ],
)
def test_what_no_canonical_url_has(pattern: str, text: str | None) -> None:
    assert text == PatternFacts(pattern).impossible


@pytest.mark.parametrize(
    ("pattern", "begins", "may"),
    [
        ("^https://b.org/", ["https://a.org/", "http://a.org/"], False),
        ("^https://a.org/docs/", ["https://a.org/", "http://a.org/"], True),
        ("^https://a", ["https://a.org/docs/"], True),
        ("^HTTPS://a.org/", SCHEMES, False),
        ("https://b.org/", ["https://a.org/"], True),
        ("^(https://b.org/|x)", ["https://a.org/"], True),
        ("(?i)^HTTPS://b.org/", ["https://a.org/"], True),
    ],
)
def test_what_a_url_may_begin_with(pattern: str, begins: list[str], may: bool) -> None:
    assert may is PatternFacts(pattern).may_begin(begins)


@pytest.mark.parametrize(
    ("earlier", "later", "always"),
    [
        ("/item/", r"/item/\d+", True),
        (r"/item/\d+", "/item/", False),
        (r"/item/\d", "/item/7/", True),
        ("item", "^https://a/items/", True),
        ("^https://a/", "^https://a/items/", True),
        ("^https://a/", "https://a/items/", False),
        ("/a$", "/a", False),
        (r"/a\b", "/a/b", False),
        ("/a(?!/b)", "/a/b", False),
        ("(?i)/ITEM/", "/item/x", True),
        ("/item/", "(?i)/item/x", False),
        ("/a/|/b/", "x/b/", True),
        ("a", "a", True),
        ("/a$", "/a$", True),
    ],
)
def test_a_pattern_that_is_found_wherever_another_is(earlier: str, later: str, always: bool) -> None:
    assert always is PatternFacts(earlier).found_with(PatternFacts(later))


@pytest.mark.parametrize(
    ("pattern", "begins", "always"),
    [
        (".*", SCHEMES, True),
        (".", SCHEMES, True),
        ("", SCHEMES, True),
        ("^https?://", SCHEMES, True),
        ("^https://", SCHEMES, False),
        ("/", SCHEMES, True),
        (".*$", SCHEMES, False),
        (r"a\.org", ["https://a.org/", "http://a.org/"], True),
        (r"a\.org/docs", ["https://a.org/"], False),
        ("x", [], False),
    ],
)
def test_a_pattern_that_is_found_in_every_url(pattern: str, begins: list[str], always: bool) -> None:
    assert always is PatternFacts(pattern).always_found(begins)


ATOMS = st.sampled_from(
    ["a", "b", "/", r"\.", ".", "^", "$", r"\b", "http", "://", "[ab]", r"\d", " ", "#", "ü", "%c3", "(?=a)", "(?!a)"]
)
PATTERNS = st.recursive(
    ATOMS,
    lambda inner: st.one_of(
        st.lists(inner, min_size=1, max_size=4).map("".join),
        st.tuples(inner, inner).map("({0[0]}|{0[1]})".format),
        st.tuples(inner, st.sampled_from(["*", "+", "?", "{2}", "{1,2}", "*?"])).map("(?:{0[0]}){0[1]}".format),
        inner.map("(?i:{})".format),
    ),
    max_leaves=6,
)
TAILS = st.text("ab/.1ü #%C3c?x", max_size=12)


@given(PATTERNS, PATTERNS, TAILS)
def test_no_url_contradicts_a_fact(pattern: str, other: str, tail: str) -> None:
    one, two = PatternFacts(pattern), PatternFacts(other)
    for start in ("http://a/", "https://b.a/", "http://aa/b"):
        url = canonical(start + tail)
        if url is None:
            continue
        if found := re.search(pattern, url):
            assert all(text in url for text in one.literals)
            assert one.begin is None or url.startswith(one.begin)
            assert one.impossible is None, (pattern, url, found)
            assert one.may_begin([url])
            assert not two.found_with(one) or re.search(other, url)
        if one.always_found():
            assert found
