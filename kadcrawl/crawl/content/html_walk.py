"""The walk over a page of HTML picks the tags that can carry a link, by one regular expression.

The expression follows HTML's tokenizer (13.2.5) as far as it must: comments, raw text, quoted values. `html_links` says
why no tree is built. The walk is linear in the page, and the native module (`native_links`) has the same walk.

Before 3.11.5 Python goes on behind what the last turn of ``(?:...)*+`` took, even if that turn failed. So such a group
is atomic inside, ``(?:(?>...))*+``, unless a failed turn takes only white space that would be skipped anyway.

Tests: tests/crawl/content/test_html_walk.py, tests/crawl/content/test_html_links.py
"""

import re
from itertools import islice

from kadcrawl.crawl.content.charset import pieces
from kadcrawl.crawl.content.native_links import NativeLinks
from kadcrawl.system.cooperative import CooperativeWork

MARKUP_MAX = 1_000_000
"""The most ``<`` of a page that are examined, as each tag takes 100 bytes for a while."""
WALK_BYTES = 512 * 1024
"""A page up to this is walked at once: 30 ms."""
WALK_TAGS = 20_000
"""Tags and comments of a longer page found at a time: 5 ms of work if none is long."""


def _any_case(*names: str) -> bytes:
    # re.IGNORECASE would double the time of the walk.
    return b"|".join("".join(f"[{letter}{letter.upper()}]" for letter in name).encode() for name in names)


WHITE = rb"\t\n\f\r "
"""White space is less than ``\\s``: a vertical tab is part of a name."""
END = rb"(?=[%b/>])" % WHITE
_NAME = rb"[a-zA-Z][^%b/>]*+" % WHITE
_VALUE = rb"[%b]*+(?:\"[^\"]*+(?:\"|\Z)|'[^']*+(?:'|\Z)|[^%b>]*+)" % (WHITE, WHITE)
KEY = rb"(?:=[^%b/>=]*+|[^%b/>=]++)" % (WHITE, WHITE)
"""The sign ``=`` begins a value after an attribute's name. Anywhere else ``=`` is the first letter of a name."""
SET = rb"(?:[%b]*+=%b)?+" % (WHITE, _VALUE)
_ATTRIBUTES = rb"(?:[%b/]*+%b%b)*+[%b/]*+" % (WHITE, KEY, SET, WHITE)
_USUAL = rb"[^>=]*+(?:(?>(?<=[\w-])=(?:\"[^\"]*+\"|'[^']*+'|[^%b\"'>][^%b>]*+)[^>=]*+))*+>" % (WHITE, WHITE)
"""The same and the ``>`` for most tags in half the time: a letter before each ``=``, so that it begins a value."""
_REST = rb"(?:%b|%b(?:>|\Z))" % (_USUAL, _ATTRIBUTES)
"""A tag after its name. What the end of the page cuts off is taken, so that no byte is looked at more than twice."""
_RAW = b"|".join(
    _any_case(name) + END + _REST + rb".*?(?:</" + _any_case(name) + END + rb"|\Z)"
    for name in ("script", "style", "textarea", "title", "xmp")
)
LINK_TAG = re.compile(
    rb"<(?:(?=[aAbBfFiIlLmM])((?:%b)%b(?:%b|%b>))|(?=[sStTxX])(?:%b)|%b%b"
    rb"|/(?:(?=[a-zA-Z])(?![^<>=]{0,65}+>)%b%b|[^a-zA-Z>][^>]*+)|!--(?:-?>|.*?(?:--!?>|\Z))|[!?][^>]*+)"
    % (
        _any_case("a", "area", "base", "frame", "iframe", "link", "meta"),
        *(END, _USUAL, _ATTRIBUTES, _RAW, _NAME, _REST, _NAME, _ATTRIBUTES),
    ),
    re.DOTALL,
)
"""Matches every tag, raw text and comment, except short end tags without values, which hold no surprise. Captures
link tags that end. Longer end tags are matched too, as many unended end tags would each be read to the end of the
page."""


def markup_of(body: bytes, encoding: str) -> CooperativeWork[bytes]:
    """Return as much of a page as we look at, in UTF-8."""
    if encoding != "utf-8":
        parts: list[bytes] = []
        for text in pieces(body, encoding):
            if parts:
                yield
            parts.append(text.encode("utf-8", "replace"))
        body = b"".join(parts)
    return _looked_through(body)


def link_tags(body: bytes, native: NativeLinks | None = None) -> CooperativeWork[list[bytes]]:
    """Return the link tags of a page in UTF-8, without their ``<``."""
    if len(body) <= WALK_BYTES:
        return native.tags(body, 0, len(body))[0] if native else list(filter(None, LINK_TAG.findall(body)))
    tags: list[bytes] = []
    if native:
        at = 0
        while at < len(body):
            more, at = native.tags(body, at, WALK_TAGS)
            tags += more
            yield
        return tags
    walk = LINK_TAG.finditer(body)
    while batch := list(islice(walk, WALK_TAGS)):
        tags += [tag for found in batch if (tag := found[1])]
        yield
    return tags


def _looked_through(body: bytes) -> bytes:
    """Return as much of the markup of a page as we look at."""
    if len(body) <= MARKUP_MAX or body.count(b"<") <= MARKUP_MAX:
        return body
    return body[: next(islice(re.finditer(b"<", body), MARKUP_MAX, None)).start()]
