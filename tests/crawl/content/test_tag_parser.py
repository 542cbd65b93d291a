"""An orderly tag is read without lexbor, and means what lexbor says."""

import pytest
from hypothesis import given, strategies as st

from kadcrawl.crawl.content import tag_parser
from kadcrawl.crawl.content.tag_parser import parsed

ATTRIBUTES = st.sampled_from(
    (
        *(' href="x"', " HREF='y'", " href=z", ' href=""', " href", ' rel="next canonical"', " REL=nofollow"),
        *('\ttitle="a>b"', "\nid=é", " data-x.y:z='1'", '\n xml:lang="E"', ' x="&amp;"', " x='a\rb'", ' x="\0"'),
        *(' _x="1"', ' é="1"', ' x = "1"', " x= 1", 'x="1"', '/x="1"', " content=\"0; url='u'\"", "/", " ", " =x"),
        *(' x="<a>"', " x=a`b", ' x="\'"', " x='\"'", " x=a=b", ' x="\ufeff\u2028\x85"', " name=robots", ' İ="K"'),
        *(" x=\x0b", "\x0b"),
    )
)
NAMES = st.sampled_from(["a", "A", "area", "base", "link", "LINK", "meta", "iframe", "Frame"])
ENDS = st.sampled_from([">", " >", "/>", " / >", " />"])


@given(NAMES, st.lists(ATTRIBUTES, max_size=6).map("".join), ENDS)
def test_an_orderly_tag_means_what_lexbor_says(name: str, attributes: str, end: str) -> None:
    tag = f"{name}{attributes}{end}".encode()
    if len(name) + len(attributes) and (attributes[:1] in ("", " ", "\t", "\n", "/")):
        text = tag_parser._FRAME.sub(b"embed", tag, count=1) if tag[:1] in b"iIfF" else tag
        assert tag_parser._parsed_by_lexbor(text.decode()) == parsed(tag)


@pytest.mark.parametrize(
    ("tag", "name", "attributes"),
    [
        (b'a href="x" HREF="y" class=c>', "a", {"href": "x", "class": "c"}),
        (b"LINK rel='next' href=\"\" />", "link", {"rel": "next", "href": ""}),
        (b"iframe src=x/>", "embed", {"src": "x/"}),
        (b"meta\n content='a\nb' name=\"\xff\">", "meta", {"content": "a\nb", "name": "\ufffd"}),
    ],
)
def test_an_orderly_tag_needs_no_lexbor(
    tag: bytes, name: str, attributes: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("selectolax.lexbor.LexborHTMLParser", None)
    assert (name, attributes) == parsed(tag)
