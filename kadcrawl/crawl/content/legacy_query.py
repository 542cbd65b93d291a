"""The query of a link in a page's own legacy encoding, as its server expects it (URL 4.4).

Tests: tests/crawl/content/test_html_links.py
"""

import codecs
from urllib.parse import quote

import webencodings


def query_in(encoding: str, href: str) -> str:
    """Return `href` with its query percent-encoded in the page's encoding, as its server expects (URL 4.4)."""
    before, mark, rest = href.partition("?")
    query, hash_, fragment = rest.partition("#")
    known = webencodings.lookup(encoding)
    if "#" in before or known is None or encoding.startswith("utf-16"):
        return href
    octets = known.codec_info.encode(query, _AS_REFERENCE)[0]
    return before + mark + quote(octets, safe=_QUERY_SAFE) + hash_ + fragment


def _as_reference(error: UnicodeError) -> tuple[str, int]:
    assert isinstance(error, UnicodeEncodeError), "only used to encode"
    missing = error.object[error.start : error.end]
    return "".join(f"%26%23{ord(letter)}%3B" for letter in missing), error.end


_AS_REFERENCE = "kadcrawl.reference"
codecs.register_error(_AS_REFERENCE, _as_reference)
_QUERY_SAFE = "!$%&()*+,/:;=?@[\\]^`{|}\t\n\r "
"""ASCII the URL parser encodes by itself, or not at all."""
