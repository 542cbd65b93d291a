"""Test the paths that robots.txt allows, and that our reader and Google's agree about every file."""

import json
import re
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

import pytest
from hypothesis import given, strategies as st

from kadcrawl.crawl.robots.rules import (
    ALLOW_ALL,
    DISALLOW_ALL,
    LINES_AT_ONCE,
    ROBOTS_LINE_BYTES_MAX,
    ROBOTS_PARSED_BYTES_MAX,
    SITEMAPS_MAX,
    WILDCARDS_MAX,
    Rules,
    judging,
    parse,
    records,
    verdict,
)
from kadcrawl.urls import URL_CHARS_MAX, canonical

try:
    from jwm.robotstxt import googlebot
except ImportError:
    googlebot = None

needs_google = pytest.mark.skipif(
    googlebot is None, reason="Google's parser (jwm-robotstxt) cannot be had for this Python, so none is compared with"
)
CASES = Path(__file__).parents[4] / "shared" / "conformance" / "robots_spec_cases.json"


class Case(NamedTuple):
    file: str
    body: bytes
    agent: str
    url: str
    allowed: bool
    type: str


@pytest.fixture(scope="module")
def cases() -> list[Case]:
    if not CASES.exists():
        pytest.skip("the folder with robotstxt-spec-test's cases is not here")
    return [
        Case(raw["file"], raw["robots_latin1"].encode("latin-1"), raw["ua"], raw["url"], raw["allowed"], raw["type"])
        for raw in json.loads(CASES.read_text())
    ]


def as_asked(url: str) -> str:
    """Return a URL as a case spells it, but with the slash that path_of relies on."""
    return url if "/" in url[8:] else canonical(url) or ""


def test_agrees_with_all_standard_cases(cases: list[Case]) -> None:
    standard = [case for case in cases if case.type == "STANDARD"]
    assert len(standard) == 378
    wrong = [case for case in standard if parse(case.body, case.agent).allowed(as_asked(case.url)) != case.allowed]
    assert wrong == []


def test_agrees_with_googles_own_cases_about_urls(cases: list[Case]) -> None:
    """Four of the 22 ask about the empty URL, which no crawl has."""
    special = [case for case in cases if case.type != "STANDARD" and case.url]
    assert len(special) == 18
    wrong = [case for case in special if parse(case.body, case.agent).allowed(as_asked(case.url)) != case.allowed]
    assert wrong == []


def test_standard_cases_hold_for_canonical_urls_too(cases: list[Case]) -> None:
    """Two cases forbid a path because it is not percent-encoded. Canonical URLs always are, and are allowed."""
    wrong = []
    for case in cases:
        url = canonical(case.url)
        if url and parse(case.body, case.agent).allowed(url) != case.allowed:
            wrong.append((case.file, case.url))
    assert wrong == [("correctness/non-ascii-paths.textproto", "http://foo.bar/foo/bar/ツ")] * 2


def test_kept_rules_are_read_again_as_they_were(cases: list[Case]) -> None:
    for case in cases:
        rules = parse(case.body, case.agent)
        assert Rules.from_bytes(rules.to_bytes()) == rules


KEYS = st.one_of(
    st.sampled_from(["user-agent", "User-Agents", "useragent:", "user agent", "user  agent", "user\tagent"]),
    st.sampled_from(["allow", "Allowed", " allow", "allow\v", "disallow", "Dissallow", "dissalow", "disalow"]),
    st.sampled_from(["diasllow", "disallaw", "disalloww", "sitemap", "site-map", "site_map", "Crawl-delay"]),
    st.sampled_from(["crawl-delays", "noindex", ""]),
)
PATHS = st.one_of(
    st.text(st.sampled_from("/ab*$%c3é? :\0"), max_size=6),
    st.sampled_from(["/a/index.html", "/index.htm", "/a/index.htm*", "/a*/index.html"]),
    st.sampled_from(["/%c3%a9", "/é", "*", "/*$", "$", "/a$*b", "/a*a$"]),
)
AGENTS = st.sampled_from(["ours", "OURS/2", "ours*", "ours-not", "other", "*", "* x", "*x", "*\t", "ours other", "é"])
VALUES = PATHS | AGENTS | st.sampled_from(["1", "1.5", "http://h/s", "a b", "a\tb"])
ANY_LINE = st.one_of(
    st.builds("".join, st.tuples(KEYS, st.sampled_from([":", " : ", " ", "\t", "\v", "::", ""]), VALUES)),
    st.text(st.sampled_from("ad: \t\v\f#\0/é"), max_size=8),
)
PLAIN_LINE = st.one_of(
    st.builds("user-agent: {}".format, AGENTS),
    st.builds("{}: {}".format, st.sampled_from(["Allow", "Disallow"]), PATHS),
)
FILES = st.builds(
    lambda mark, lines, end: mark + end.join(lines),
    st.sampled_from(["", "\ufeff", "\ufeff\ufeff"]),
    st.lists(ANY_LINE | PLAIN_LINE | st.builds("{} # x".format, PLAIN_LINE), max_size=12),
    st.sampled_from(["\n", "\r\n", "\r", "\n\r"]),
)
PATHS_ASKED = ["/", "/a", "/b", "/a/", "/a/b?a", "/ab", "/aa", "/aba", "/é", "/%C3%A9b", "/a/index.html", "/aa/", "/c3"]
URLS = [canonical("http://h" + path) or "" for path in [*PATHS_ASKED, "/a$", "/a$b", "/a*b", "/a:b?/a"]]


def escaped(value: str) -> str:
    """Return a value with the characters outside ASCII as escapes, all in upper case."""
    value = "".join(char if char.isascii() else quote(char) for char in value)
    return re.sub("%[0-9a-fA-F]{2}", lambda escape: escape[0].upper(), value)


def google_records(text: str) -> list[tuple[str, str]]:
    """Return the result of Google's parser for each line that it knows, and the crawl-delays among the others."""
    read: list[tuple[str, str]] = []

    class Recorder(googlebot.RobotsParseHandler):  # type: ignore[misc]
        def HandleUserAgent(self, _: int, value: str) -> None:
            read.append(("agent", escaped(value)))

        def HandleAllow(self, _: int, value: str) -> None:
            read.append(("allow", escaped(value)))

        def HandleDisallow(self, _: int, value: str) -> None:
            read.append(("disallow", escaped(value)))

        def HandleSitemap(self, _: int, value: str) -> None:
            read.append(("sitemap", escaped(value)))

        def HandleUnknownAction(self, _: int, action: str, value: str) -> None:
            if action.lower() == "crawl-delay":
                read.append(("delay", escaped(value)))

        def HandleRobotsStart(self) -> None: ...
        def HandleRobotsEnd(self) -> None: ...
        def ReportLineMetadata(self, *_: object) -> None: ...

    googlebot.ParseRobotsTxt(text, Recorder())
    return read


def our_records(body: bytes) -> list[tuple[str, str]]:
    return [(name, escaped(value)) for name, value in records(body)]


@pytest.mark.parametrize(
    ("line", "record"),
    [
        *(
            (f"{key}: x", ("agent", "x"))
            for key in ("user-agent", "USER-AGENT", "useragent", "user agent", "user-agents")
        ),
        *((f"{key}: x", ("disallow", "x")) for key in ("disallow", "dissallow", "dissalow", "disalow", "diasllow")),
        *((f"{key}: x", ("disallow", "x")) for key in ("disallaw", "Disallowed", " disallow ", "disallow\v")),
        *((f"{key}: x", ("sitemap", "x")) for key in ("sitemap", "site-map", "Sitemaps")),
        *((f"{key}: x", ("allow", "x")) for key in ("allow", "Allowed")),
        *(
            (f"{key}: x", None)
            for key in ("", "user_agent", "user  agent", "site map", "dis", "noindex", "crawl-delays")
        ),
        ("Crawl-Delay: 1", ("delay", "1")),
        ("allow /a", ("allow", "/a")),
        ("allow \t /a", ("allow", "/a")),
        ("allow /a b", None),
        ("allow\v/a", None),
        ("allow", None),
        ("allow:", ("allow", "")),
        ("allow: /a:b c", ("allow", "/a:b c")),
        ("allow: /a#b", ("allow", "/a")),
        ("allow: /a\0b", ("allow", "/a")),
        ("#allow: /a", None),
        ("\0allow: /a", None),
        ("\v\f\tallow:\v\f\t/a\v\f\t", ("allow", "/a")),
        ("allow: /é", ("allow", "/%C3%A9")),
    ],
)
def test_a_line_is_read_with_its_typing_errors(line: str, record: tuple[str, str] | None) -> None:
    assert list(records(line.encode())) == ([record] if record else [])


@pytest.mark.parametrize(
    ("lines", "allowed"),
    [
        ("user-agent: *\ndisallow: /", False),
        ("user-agent: * x\ndisallow: /", False),
        ("user-agent: *x\ndisallow: /", True),
        ("user-agent: *\x1c\ndisallow: /", True),
        ("user-agent: KadCrawl/2 (x)\ndisallow: /", False),
        ("user-agent: kadcrawl-x\ndisallow: /", True),
        ("user-agent: *\ndisallow: /\nuser-agent: kadcrawl\n", True),
        ("user-agent: kadcrawl\nuser-agent: x\ndisallow: /", False),
        ("user-agent: kadcrawl\nsitemap: x\ncrawl-delay: 1\nuser-agent: x\ndisallow: /", False),
        ("user-agent: kadcrawl\nallow:\nuser-agent: x\ndisallow: /", True),
        ("user-agent: kadcrawl\ndisallow: /b\nuser-agent: x\nuser-agent: kadcrawl\ndisallow: /", False),
        ("disallow: /\nuser-agent: *", True),
        ("user-agent: *\ndisallow: /\nallow: /index.html", True),
        ("user-agent: *\ndisallow: /\nallow: /index.htm", True),
        ("user-agent: *\ndisallow: /\nallow: /index.ht", False),
        ("user-agent: *\ndisallow: /index.htm", True),
    ],
)
def test_groups_speak_to_whom_they_name(lines: str, allowed: bool) -> None:
    assert parse(lines.encode(), "kadcrawl").allowed("http://h/") == allowed


@needs_google
def test_lines_of_all_cases_are_read_as_google_reads_them(cases: list[Case]) -> None:
    for case in cases:
        # Google's handlers are called with text only; what is not UTF-8 is compared by its answers, below.
        text = case.body.decode("utf-8", "ignore")
        assert our_records(text.encode()) == google_records(text)


@needs_google
@given(FILES)
def test_lines_are_read_as_google_reads_them(text: str) -> None:
    assert our_records(text.encode()) == google_records(text)


@needs_google
@given(FILES, st.sampled_from(["utf-8", "latin-1"]))
def test_answers_are_google_s(text: str, codec: str) -> None:
    body = text.encode(codec, "ignore")
    rules = parse(body, "ours")
    for url in URLS:
        assert rules.allowed(url) == googlebot.RobotsMatcher().OneAgentAllowedByRobots(body, "ours", url), (url, rules)


@needs_google
@pytest.mark.parametrize(
    "line", ["disallow: /", "disallow /", " " * ROBOTS_LINE_BYTES_MAX, "disallow:" + " " * ROBOTS_LINE_BYTES_MAX]
)
@pytest.mark.parametrize("fill", ["a", "é", " ", "*", "/a "])
def test_overlong_lines_are_read_as_google_reads_them(line: str, fill: str) -> None:
    text = f"user-agent: ours\n{line}{fill * ROBOTS_LINE_BYTES_MAX}b\ndisallow: /c"
    assert our_records(text.encode()) == google_records(text)


@given(FILES)
def test_kept_rules_are_read_again_whatever_they_are(text: str) -> None:
    rules = parse(text.encode(), "ours")
    assert Rules.from_bytes(rules.to_bytes()) == rules


@pytest.mark.parametrize("fill", ["a", "é", "*", "*a", "%c3"])
def test_the_longest_rules_are_kept_too(fill: str) -> None:
    for chars in (URL_CHARS_MAX, ROBOTS_LINE_BYTES_MAX - len("disallow:")):
        rules = parse(f"user-agent: *\ndisallow:{('/' + fill * chars)[:chars]}\nallow:/b".encode(), "kadcrawl")
        assert Rules.from_bytes(rules.to_bytes()) == rules


@given(st.binary() | st.binary().map(lambda raw: b"user-agent: *\ndisallow: /" + raw + b"\ncrawl-delay:" + raw))
def test_no_bytes_raise(body: bytes) -> None:
    rules = parse(body, "kadcrawl")
    rules.allowed("http://h/a?b")
    assert Rules.from_bytes(rules.to_bytes()).allowed("http://h/a?b") == rules.allowed("http://h/a?b")


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        (200, DISALLOW_ALL),
        (204, DISALLOW_ALL),
        (301, ALLOW_ALL),
        (304, ALLOW_ALL),
        (401, ALLOW_ALL),
        (404, ALLOW_ALL),
        (410, ALLOW_ALL),
        (429, None),
        (500, None),
        (503, None),
        (999, None),
        (None, None),
    ],
)
def test_verdict_by_status(status: int | None, expected: Rules | None) -> None:
    assert verdict(status, b"user-agent: *\ndisallow: /", "kadcrawl") == expected


def test_the_constants_mean_what_they_say() -> None:
    assert ALLOW_ALL.allowed("http://h/a")
    assert not DISALLOW_ALL.allowed("http://h/")
    assert Rules.from_bytes(ALLOW_ALL.to_bytes()) == ALLOW_ALL
    assert parse(b"", "kadcrawl") == ALLOW_ALL


@pytest.mark.parametrize(
    ("lines", "delay_s"),
    [
        ("user-agent: *\ncrawl-delay: 2.5", 2.5),
        ("user-agent: *\nCrawl-Delay:0", 0.0),
        ("user-agent: *\ncrawl-delay: 2\ncrawl-delay: 5\ncrawl-delay: 3", 5.0),
        ("user-agent: *\ncrawl-delay: 2\nuser-agent: kadcrawl\ndisallow:", None),
        ("user-agent: kadcrawl\ncrawl-delay: 3\nuser-agent: *\ndisallow: /\ncrawl-delay: 4", 4.0),
        ("user-agent: other\ncrawl-delay: 3", None),
        ("crawl-delay: 3", None),
        ("user-agent: *\ncrawl-delay: -1", None),
        ("user-agent: *\ncrawl-delay: inf", None),
        ("user-agent: *\ncrawl-delay: nan", None),
        ("user-agent: *\ncrawl-delay: soon", None),
    ],
)
def test_crawl_delay(lines: str, delay_s: float | None) -> None:
    rules = parse(lines.encode(), "kadcrawl")
    assert rules.crawl_delay_s == delay_s
    assert Rules.from_bytes(rules.to_bytes()).crawl_delay_s == delay_s


def test_sitemaps_are_canonical_distinct_and_bounded() -> None:
    body = b"sitemap: HTTP://h/a#b\nuser-agent: x\nSitemap: http://h/a\nsitemap: /relative\nsitemap: ftp://h/\n"
    assert parse(body, "kadcrawl").sitemaps == ("http://h/a",)
    many = "\n".join(f"sitemap: http://h/{number}" for number in range(SITEMAPS_MAX + 1))
    assert len(parse(many.encode(), "kadcrawl").sitemaps) == SITEMAPS_MAX


def test_a_long_file_is_read_in_turns() -> None:
    text = "user-agent: *\n" + "allow: /x\n" * (3 * LINES_AT_ONCE)
    judged = list(judging(200, text.encode(), "us"))
    assert len(judged) == 3
    assert not list(judging(200, text.encode()[: 10 * (LINES_AT_ONCE - 1)], "us"))
    assert len(list(Rules.reading(parse(text.encode(), "us").to_bytes()))) == 0
    different = "user-agent: *\n" + "".join(f"allow: /{n}\n" for n in range(3 * LINES_AT_ONCE))
    assert len(list(Rules.reading(parse(different.encode(), "us").to_bytes()))) == 4


def test_rules_behind_the_byte_limit_are_not_read() -> None:
    head = b"user-agent: *\ndisallow: /a\n"
    rule = b"disallow: /b"
    inside = head.ljust(ROBOTS_PARSED_BYTES_MAX - len(rule) - 1, b"#") + b"\n" + rule
    assert not parse(inside, "kadcrawl").allowed("http://h/b")
    behind = parse(head.ljust(ROBOTS_PARSED_BYTES_MAX, b"#") + b"\n" + rule, "kadcrawl")
    assert [False, True] == [behind.allowed("http://h/a"), behind.allowed("http://h/b")]
    assert not parse(inside + rule, "kadcrawl").allowed("http://h/a")


@pytest.mark.parametrize("mark", [b"\xef\xbb\xbf", b"\xef\xbb", b"\xef", b""])
def test_byte_order_mark_is_passed_over(mark: bytes) -> None:
    assert parse(mark + b"user-agent: *\ndisallow: /", "kadcrawl") == DISALLOW_ALL


@pytest.mark.parametrize("raw", ["/é".encode(), b"/\xc3\xa9", b"/%c3%a9", b"/%C3%A9"])
def test_bytes_outside_ascii_equal_their_escapes(raw: bytes) -> None:
    assert not parse(b"user-agent: *\ndisallow: " + raw, "kadcrawl").allowed("http://h/%C3%A9")


def test_escapes_of_ascii_are_not_decoded() -> None:
    """RFC 9309 2.2.2 calls these paths equal, but Google's cases do not."""
    rules = parse(b"user-agent: *\ndisallow: /%62%61%7A\ndisallow: /~joe", "kadcrawl")
    assert rules.allowed("http://h/baz")
    assert not rules.allowed("http://h/%62%61%7A")
    assert rules.allowed("http://h/%7Ejoe")


def test_too_many_wildcards_forbid_more_never_less() -> None:
    stars = "user-agent: *\n" + "\n".join(f"disallow: /{number}*x" for number in range(WILDCARDS_MAX))
    within = parse(stars.encode(), "kadcrawl")
    assert within.allowed(f"http://h/{WILDCARDS_MAX - 1}")
    beyond = parse((stars + "\ndisallow: /secret/*x\nallow: /0*\nallow: /1").encode(), "kadcrawl")
    assert not beyond.allowed("http://h/secret/")
    assert not beyond.allowed("http://h/0x")
    assert (True, "/1") in beyond.rules
    assert not parse(b"user-agent: *\ndisallow: /" + b"*" * URL_CHARS_MAX, "kadcrawl").allowed("http://h/")


STARS = f"user-agent: *\ndisallow: /{'*' * WILDCARDS_MAX}$none\n"
"""A file in which no further wildcard is honored."""


def test_a_disallow_cut_at_its_wildcard_still_beats_the_same_allows() -> None:
    beyond = parse(f"{STARS}disallow: /secret/*x\nallow: /secret/y\nallow: /secret/more".encode(), "kadcrawl")
    assert not beyond.allowed("http://h/secret/yx")
    assert not beyond.allowed("http://h/secret/y")
    assert beyond.allowed("http://h/secret/more")
    overlong = parse(f"{STARS}disallow: /{'*' * 2 * URL_CHARS_MAX}\nallow: /{'b' * (URL_CHARS_MAX - 1)}".encode(), "us")
    assert not overlong.allowed("http://h/" + "b" * (URL_CHARS_MAX - 1))


def test_an_allow_whose_wildcard_is_not_honored_allows_nothing() -> None:
    beyond = parse(f"{STARS}disallow: /secret/\nallow: /secret/open*\nallow: /secret/*x".encode(), "kadcrawl")
    assert not beyond.allowed("http://h/secret/open")
    assert not beyond.allowed("http://h/secret/x")


PATTERNS = st.text(st.sampled_from("ab*$"), max_size=4).map("/{}".format)


@given(st.lists(st.tuples(st.booleans(), PATTERNS), max_size=6), st.text(st.sampled_from("ab$"), max_size=5))
def test_whatever_is_cut_nothing_is_allowed_that_was_not(rules: list[tuple[bool, str]], path: str) -> None:
    lines = "".join(f"{'allow' if allow else 'disallow'}: {pattern}\n" for allow, pattern in rules)
    whole, cut = (parse((head + lines).encode(), "us") for head in ("user-agent: *\n", STARS))
    assert whole.allowed(f"http://h/{path}") >= cut.allowed(f"http://h/{path}")
    assert Rules.from_bytes(cut.to_bytes()) == cut


def test_cutting_a_rule_at_its_wildcard_makes_nothing_else_of_it() -> None:
    """A $ in the middle is a character, at the end it is the end."""
    beyond = parse(f"{STARS}disallow: /a$*x\ndisallow: /b *x\ndisallow: /c$*$".encode(), "kadcrawl")
    assert not beyond.allowed("http://h/a$bx")
    assert beyond.allowed("http://h/ab")
    assert not beyond.allowed("http://h/c$")
    assert Rules.from_bytes(beyond.to_bytes()) == beyond


def test_wildcards_are_weighed_in_one_walk() -> None:
    """The test would not end with backtracking."""
    rules = parse(b"user-agent: *\ndisallow: /" + b"*a" * (WILDCARDS_MAX - 1) + b"*b", "kadcrawl")
    assert rules.allowed("http://h/" + "a" * 8000)
    assert not rules.allowed("http://h/" + "a" * 8000 + "b")


@pytest.mark.parametrize(
    ("pattern", "path", "matches"),
    [
        ("/a", "/ab", True),
        ("/a$", "/a", True),
        ("/a$", "/ab", False),
        ("/a$b", "/a$b", True),
        ("/*b$", "/abab", True),
        ("/*ab$", "/ab/abc", False),
        ("/a*a$", "/a", False),
        ("/a*a$", "/aa", True),
        ("/*$", "/", True),
        ("*", "/", True),
        ("a", "/a", False),
        ("$", "/", False),
        ("/a*b*c", "/aXbXc", True),
        ("/a*b*c", "/aXcXb", False),
        ("/a*b*b", "/ab", False),
        ("/a**b", "/ab", True),
    ],
)
def test_a_pattern_is_anchored_with_wildcards_and_an_end(pattern: str, path: str, matches: bool) -> None:
    assert parse(f"user-agent: *\ndisallow: {pattern}".encode(), "kadcrawl").allowed("http://h" + path) != matches


def test_the_longest_pattern_decides_and_allow_wins_a_tie() -> None:
    rules = parse(b"user-agent: *\ndisallow: /a\nallow: /a\ndisallow: /ab/\nallow: /a*c", "kadcrawl")
    assert rules.allowed("http://h/a")
    assert not rules.allowed("http://h/ab/d")
    assert rules.allowed("http://h/ab/c")


def weighed_one_by_one(rules: Rules, path: str) -> bool:
    """Return the verdict of the longest pattern that matches. The function tries every pattern."""
    strongest = (0, True)
    for allow, pattern in rules.rules:
        ends = pattern.endswith("$")
        regex = re.escape(pattern.removesuffix("$")).replace(r"\*", ".*") + (r"\Z" if ends else "")
        if re.match(regex, path):
            strongest = max(strongest, (len(pattern), allow))
    return strongest[1]


@given(st.lists(st.tuples(st.booleans(), PATTERNS), max_size=20), st.text(st.sampled_from("ab$/"), max_size=6))
def test_rules_sorted_say_what_each_of_them_tried_says(rules: list[tuple[bool, str]], path: str) -> None:
    sorted_rules = Rules(tuple(rules))
    assert sorted_rules.allowed(f"http://h/{path}") == weighed_one_by_one(sorted_rules, f"/{path}")


def test_only_what_a_rule_begins_with_is_tried_with_it() -> None:
    """The cost of a URL is about the same for any number of rules."""
    many = Rules((*((False, f"/{n:05}/") for n in range(40_000)), (True, "/20000/a"), (True, "/20000/a/b*")))
    assert not many.allowed("http://h/20000/")
    assert many.allowed("http://h/20000/a/b")
    within = {many._starts[at]: many._starts[outer] for at, outer in enumerate(many._outer) if outer >= 0}
    assert within == {"/20000/a/b": "/20000/a", "/20000/a": "/20000/"}


def test_rest_of_an_overlong_line_is_not_read() -> None:
    head = b"user-agent: *\n"
    rule = b"disallow: /a"
    inside = b"#" + b"x" * (ROBOTS_LINE_BYTES_MAX - 1)
    assert not parse(head + rule.rjust(ROBOTS_LINE_BYTES_MAX), "kadcrawl").allowed("http://h/a")
    assert not parse(head + rule.rjust(ROBOTS_LINE_BYTES_MAX + 1), "kadcrawl").allowed("http://h/b")
    assert parse(head + inside + rule, "kadcrawl") == ALLOW_ALL


def test_rules_are_small_when_the_file_speaks_to_others() -> None:
    others = "".join(f"user-agent: bot{number}\ndisallow: /{number}\n" for number in range(1000))
    rules = parse((others + "user-agent: *\ndisallow: /x").encode(), "kadcrawl")
    assert rules.to_bytes() == b"user-agent: *\ndisallow: /x"
