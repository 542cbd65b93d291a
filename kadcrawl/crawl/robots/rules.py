"""robots.txt (RFC 9309): the rules decide whether a URL may be fetched, and how often. A decision: no I/O, no clock.

`parse` reduces a file, once, to the rules for this crawler, and `Rules.allowed` applies them to each URL.
`Rules.to_bytes` writes the rules as a small robots.txt addressed to ``*``, which can be kept, and given to the next
owner of the site. A long file takes tenths of a second to parse, so `judging` and `Rules.reading` yield to other tasks.

Files are parsed and rules are weighed exactly as in Google's open-source parser, including the typing errors that it
accepts: site owners test their files with it. No library does this on every Python version that kadcrawl supports, so
the code is our own.

Two decisions. First, a file that cannot be fetched now (5xx, 429, no answer) allows nothing: `verdict` returns None,
and the site is left alone until the file can be fetched. Second, escapes are compared as Google does, not as RFC 9309
2.2.2: ``%c3`` equals ``%C3``, bytes outside ASCII equal their escapes, but ``%62`` does not equal ``b``. The standard
test cases demand this.
"""

import math
import re
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from kadcrawl.urls import URL_CHARS_MAX, canonical, path_of

ROBOTS_PARSED_BYTES_MAX = 500 * 1024
"""RFC 9309 2.5: parse at least 500 KiB; we parse exactly that."""
ROBOTS_LINE_BYTES_MAX = 2083 * 8 - 1
"""Bytes of a line beyond this number are ignored, as Google's parser does."""
SITEMAPS_MAX = 100
"""Sitemaps kept of one file."""
WILDCARDS_MAX = 1_000
"""Wildcards honored in one file, as each wildcard may cost a walk along the URL.

Beyond this number a Disallow forbids all paths with its prefix up to the first wildcard, and keeps its weight. An Allow
with a wildcard is dropped."""
PATTERN_CHARS_MAX = URL_CHARS_MAX + WILDCARDS_MAX
"""Characters of a pattern with honored wildcards: the text without its wildcards must fit into a URL."""

LINES_AT_ONCE = 1_000
"""Lines parsed before other tasks have their turn: they take 4 ms."""
RULE_BYTES = 180
"""Approximate bytes of a rule in memory beside its text."""

_Result = TypeVar("_Result")
_BOM = b"\xef\xbb\xbf"
_FIELD = re.compile(
    rb"(?P<agent>user[- ]?agent)|(?P<allow>allow)|(?P<disallow>disallow|dissallow|dissalow|disalow|diasllow|disallaw)"
    rb"|(?P<sitemap>site-?map)|(?P<delay>crawl-delay\Z)",
    re.IGNORECASE,
)
_BLANKS = re.compile(rb"[ \t]+")
_EVERYONE = re.compile(r"\*(?:\s|\Z)", re.ASCII)
_TOKEN = re.compile(r"[A-Za-z_-]*")
_ESCAPE = re.compile(r"%[0-9A-Fa-f]{2}")
_ESCAPED = {byte: f"%{byte:02X}" for byte in range(0x80, 0x100)}
_END = "\n"
"""The end of a path, in place of a pattern's ``$``. No canonical URL contains this character."""
_NO_RULE = 1
"""Strength of the default, by which all is allowed.

A Disallow has twice its length as strength, and an Allow has 1 more."""


@dataclass(frozen=True, slots=True)
class Rules:
    """The rules of one robots.txt for this crawler."""

    rules: tuple[tuple[bool, str], ...] = ()
    """(is it Allow?, pattern), in the order of the file."""
    crawl_delay_s: float | None = None
    """Seconds between requests that the site asks for, 0 or more, without a limit. The longest, if the file has
    several."""
    sitemaps: tuple[str, ...] = ()
    """Canonical URLs, at most `SITEMAPS_MAX`."""
    _starts: tuple[str, ...] = field(init=False, repr=False, compare=False)
    """The sorted prefixes of all patterns, up to the first wildcard: a path must begin with a prefix to match."""
    _outer: "array[int]" = field(init=False, repr=False, compare=False)
    """The index of the longest other prefix that each prefix begins with, or -1."""
    _plain: "array[int]" = field(init=False, repr=False, compare=False)
    """The strength of the strongest rule that consists of each prefix alone, or 0."""
    _wild: dict[int, tuple[tuple[int, tuple[str, ...]], ...]] = field(init=False, repr=False, compare=False)
    """The rules with wildcards of a prefix: (strength, parts between and after the wildcards), the strongest first."""

    def __post_init__(self) -> None:
        plain: dict[str, int] = {}
        wild: dict[str, list[tuple[int, tuple[str, ...]]]] = {}
        for allow, pattern in self.rules:
            start, parts = _parts(pattern)
            strength = 2 * len(pattern) + allow
            plain[start] = max(plain.get(start, 0), 0 if parts else strength)
            if parts:
                wild.setdefault(start, []).append((strength, parts))
        starts = tuple(sorted(plain))
        object.__setattr__(self, "_starts", starts)
        object.__setattr__(self, "_outer", _outer(starts))
        object.__setattr__(self, "_plain", array("l", map(plain.__getitem__, starts)))
        ranked = {bisect_left(starts, start): tuple(sorted(rules, reverse=True)) for start, rules in wild.items()}
        object.__setattr__(self, "_wild", ranked)

    def allowed(self, url: str) -> bool:
        """Return whether a canonical URL may be fetched: the longest matching pattern decides, and Allow wins a tie."""
        path, starts, strongest = path_of(url) + _END, self._starts, _NO_RULE
        # All strings between a prefix of the path and the path have this prefix too: so walk from the last outwards.
        at = bisect_right(starts, path) - 1
        while at >= 0:
            if path.startswith(starts[at]):
                if self._plain[at] > strongest:
                    strongest = self._plain[at]
                for strength, parts in self._wild.get(at, ()):
                    if strength <= strongest:
                        break
                    if _in_order(parts, path, len(starts[at])):
                        strongest = strength
            at = self._outer[at]
        return strongest % 2 == 1

    def to_bytes(self) -> bytes:
        """Return these rules as a robots.txt, which `from_bytes` and any other parser can read."""
        lines = ["user-agent: *"]
        lines += (f"allow: {pattern}" if allow else f"disallow: {pattern}" for allow, pattern in self.rules)
        if self.crawl_delay_s is not None:
            lines.append(f"crawl-delay: {self.crawl_delay_s!r}")
        lines += (f"sitemap: {url}" for url in self.sitemaps)
        return "\n".join(lines).encode()

    @property
    def memory_bytes(self) -> int:
        """Approximate bytes of these rules in memory."""
        text_chars = sum(len(pattern) for _, pattern in self.rules) + sum(map(len, self.sitemaps))
        return text_chars + RULE_BYTES * (1 + len(self.rules) + len(self.sitemaps))

    @staticmethod
    def from_bytes(kept: bytes) -> "Rules":
        """Return the rules written by `to_bytes`."""
        return _run_to_end(Rules.reading(kept))

    @staticmethod
    def reading(kept: bytes) -> Generator[None, None, "Rules"]:
        """Return the rules written by `to_bytes`, and yield when other tasks should have their turn."""
        return _read(kept, "any")


def verdict(status: int | None, body: bytes, agent: str) -> Rules | None:
    """Return the result of `judging` at once."""
    return _run_to_end(judging(status, body, agent))


def judging(status: int | None, body: bytes, agent: str) -> Generator[None, None, Rules | None]:
    """Return the rules of an answer to the request for robots.txt, or None to leave the site alone.

    Yields when other tasks should have their turn. `status` is the status of the last answer after redirects, or None
    without an answer. `agent` is our product token. 2xx: the rules in `body`. 3xx (redirects given up) and 4xx:
    everything is allowed (RFC 9309 2.3.1.2-3). 5xx and no answer: None (2.3.1.4). 429 as well, as it asks for patience
    and not for more requests.
    """
    if status is not None and 200 <= status < 300:
        return (yield from _read(body[:ROBOTS_PARSED_BYTES_MAX], agent))
    if status is not None and 300 <= status < 500 and status != 429:
        return ALLOW_ALL
    return None


def parse(body: bytes, agent: str) -> Rules:
    """Return the rules of a robots.txt body for the product token `agent`. Never raises.

    Only the first `ROBOTS_PARSED_BYTES_MAX` bytes count. As in RFC 9309 2.2.1: the rules of all groups naming the
    agent, or else of all groups for ``*``.
    """
    return _run_to_end(_read(body[:ROBOTS_PARSED_BYTES_MAX], agent))


def records(body: bytes) -> Iterator[tuple[str, str]]:
    """Yield (field, value) of each line with a known field: agent, allow, disallow, sitemap or delay.

    Values are ASCII, as bytes outside ASCII are escaped.
    """
    return filter(None, map(_record, _lines(body)))


def _lines(body: bytes) -> list[bytes]:
    for byte in _BOM:
        if not body.startswith(bytes([byte])):
            break
        body = body[1:]
    return body.splitlines()


def _record(line: bytes) -> tuple[str, str] | None:
    line = line[:ROBOTS_LINE_BYTES_MAX].partition(b"#")[0].partition(b"\0")[0].strip()
    key, colon, value = line.partition(b":")
    if not colon:
        words = _BLANKS.split(line)
        if len(words) != 2:
            return None
        key, value = words
    known = _FIELD.match(key.strip())
    if not known or not known.lastgroup:
        return None
    return known.lastgroup, value.strip().decode("latin-1").translate(_ESCAPED)


@dataclass(slots=True)
class _Group:
    rules: dict[tuple[bool, str], None] = field(default_factory=dict)
    delays_s: list[float] = field(default_factory=list)


def _run_to_end(reading: Generator[None, None, _Result]) -> _Result:
    try:
        while True:
            next(reading)
    except StopIteration as over:
        result: _Result = over.value
        return result


def _read(body: bytes, agent: str) -> Generator[None, None, Rules]:
    ours, everyones = _Group(), _Group()
    named = to_us = to_all = agents_over = False
    sitemaps: dict[str, None] = {}
    for number, line in enumerate(_lines(body), 1):
        if number % LINES_AT_ONCE == 0:
            yield
        record = _record(line)
        if record is None:
            continue
        key, value = record
        group = ours if to_us else everyones if to_all else None
        if key == "agent":
            if agents_over:
                to_us = to_all = agents_over = False
            if _EVERYONE.match(value):
                to_all = True
            elif (token := _TOKEN.match(value)) and token[0].lower() == agent.lower():
                to_us = named = True
        elif key == "sitemap":
            if len(sitemaps) < SITEMAPS_MAX and (url := canonical(value)):
                sitemaps[url] = None
        elif group is None:
            continue
        elif key == "delay":
            group.delays_s += _delay_s(value)
        else:
            agents_over = True
            group.rules.update((rule, None) for rule in _rules(key == "allow", value))
    group = ours if named else everyones
    if len(group.rules) > LINES_AT_ONCE:
        yield
    return Rules(tuple(dict.fromkeys(_bounded(group.rules))), max(group.delays_s, default=None), tuple(sitemaps))


def _rules(allow: bool, value: str) -> Iterator[tuple[bool, str]]:
    if not value or len(value) - value.count("*") > URL_CHARS_MAX:
        return  # No URL matches the rule, so each rule kept fits in a line.
    pattern = _ESCAPE.sub(lambda escape: escape[0].upper(), value)
    yield allow, pattern
    # As in Google's parser: a rule that allows the index page allows the directory.
    directory, slash, page = pattern.rpartition("/")
    if allow and slash and page.startswith("index.htm"):
        yield allow, directory + "/$"


def _delay_s(value: str) -> Iterator[float]:
    try:
        delay_s = float(value)
    except ValueError:
        return
    if math.isfinite(delay_s) and delay_s >= 0:
        yield delay_s


def _bounded(rules: Iterable[tuple[bool, str]]) -> Iterator[tuple[bool, str]]:
    """Yield the rules until `WILDCARDS_MAX`, and stricter rules from there on."""
    wildcards = 0
    for allow, pattern in rules:
        wildcards += pattern.count("*")
        if wildcards <= WILDCARDS_MAX or "*" not in pattern:
            yield allow, pattern
        elif not allow:
            # A shorter pattern would lose to an Allow that it beats. Stars keep the length and match anything.
            yield allow, pattern[: pattern.index("*")].ljust(min(len(pattern), PATTERN_CHARS_MAX + 1), "*")


def _outer(starts: Sequence[str]) -> "array[int]":
    """Return for each of some sorted strings the index of the longest other string that it begins with, or -1."""
    outer: array[int] = array("l")
    for at, start in enumerate(starts):
        around = at - 1
        while around >= 0 and not start.startswith(starts[around]):
            around = outer[around]
        outer.append(around)
    return outer


def _parts(pattern: str) -> tuple[str, tuple[str, ...]]:
    """Return the prefix of a pattern, and the parts that must follow the prefix in this order, anywhere."""
    pattern = pattern[:-1] + _END if pattern.endswith("$") else pattern.rstrip("*")
    start, *parts = pattern.split("*")
    return start, tuple(parts)


def _in_order(parts: tuple[str, ...], path: str, at: int) -> bool:
    """Return whether `path` has `parts` in this order from index `at` on.

    One walk is enough: the leftmost match always serves.
    """
    for part in parts:
        found = path.find(part, at)
        if found < 0:
            return False
        at = found + len(part)
    return True


ALLOW_ALL = Rules()
DISALLOW_ALL = Rules(rules=((False, "/"),))
