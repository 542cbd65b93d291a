"""The parser of one tag reads its name and attributes, by lexbor, or by an expression if the tag is orderly.

An orderly tag has quoted or plain values without references, as most tags do. Lexbor (selectolax) makes a document of
each tag, which takes ten times as long. Both say the same. What is not orderly is lexbor's.

Tests: tests/crawl/content/test_tag_parser.py, tests/crawl/content/test_html_links.py
"""

import re
from itertools import islice

from kadcrawl.crawl.content.html_walk import END, KEY, SET, WHITE

TAG_BYTES_MAX = 64 * 1024
"""A longer tag is passed over."""
SHORT_BYTES = 256
"""The length of a tag whose attributes are all read. The parser compares attributes pair by pair, so a longer tag is
first freed of the attributes that are not needed. A longer tag is not remembered either."""
_FRAME = re.compile(rb"i?frame", re.IGNORECASE)
_ATTRIBUTE = re.compile(rb"[%b/]*+(%b)%b" % (WHITE, KEY, SET))
WANTED = frozenset((b"href", b"src", b"rel", b"name", b"content", b"http-equiv"))
_NAME_END = re.compile(END)

_SPACE = r"[\t\n\f\r ]"
_KEY = r"[a-zA-Z][a-zA-Z0-9_:.-]*+"
_IN_DOUBLE, _IN_SINGLE, _BARE = r"[^\"&\0\r]*+", r"[^'&\0\r]*+", r"[^\"'=<>`&\0\t\n\f\r ]++"
_ORDERLY = re.compile(
    rf"((?i:a|area|base|embed|link|meta))(?:(?>{_SPACE}++{_KEY}=(?:\"{_IN_DOUBLE}\"|'{_IN_SINGLE}'|{_BARE})))*+{_SPACE}*+/?>"
)
_ORDERLY_ATTRIBUTE = re.compile(rf"{_SPACE}++({_KEY})=(?:\"({_IN_DOUBLE})\"|'({_IN_SINGLE})'|({_BARE}))")


def parsed(tag: bytes) -> tuple[str, dict[str, str | None]]:
    """Return the name and attributes of a tag. A frame is called embed, which has no content either.

    The name is empty if the parser does not see exactly one tag.
    """
    if len(tag) > SHORT_BYTES:
        tag = _shortened(tag)
    if tag[0] in b"iIfF":
        tag = _FRAME.sub(b"embed", tag, count=1)
    text = tag.decode("utf-8", "replace")
    if orderly := _ORDERLY.fullmatch(text):
        found = _ORDERLY_ATTRIBUTE.findall(text)
        # The first of several attributes of a name counts.
        return orderly[1].lower(), {name.lower(): one or two or bare for name, one, two, bare in reversed(found)}
    return _parsed_by_lexbor(text)


def _parsed_by_lexbor(tag: str) -> tuple[str, dict[str, str | None]]:
    from selectolax.lexbor import LexborHTMLParser  # Not at the top: an idle peer does without the parser's 2 MB.

    root = LexborHTMLParser("<" + tag).root
    assert root is not None, "an HTML document has a root"
    # Not by css(), which first builds a selector engine: 45 us.
    nodes = [node for node in islice(root.traverse(), 1, None) if node.tag not in ("head", "body")]
    return (nodes[0].tag or "", nodes[0].attributes) if len(nodes) == 1 else ("", {})


def _shortened(tag: bytes) -> bytes:
    """Return a tag with no more than one each of the attributes we look at."""
    name = _NAME_END.split(tag, maxsplit=1)[0]
    if len(tag) > TAG_BYTES_MAX:
        return name + b">"
    kept: dict[bytes, bytes] = {}
    for attribute in _ATTRIBUTE.finditer(tag, len(name), len(tag) - 1):
        if (key := attribute[1].lower()) in WANTED:
            kept.setdefault(key, attribute[0])
    return b" ".join([name, *kept.values()]) + b">"
