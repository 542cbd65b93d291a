"""The character set of a page comes from byte order mark, header, meta element, then a guess (HTML 13.2.3).

Encodings are named and read as in the WHATWG Encoding Standard, so ``iso-8859-1`` means windows-1252 and ``euc-kr`` its
superset cp949. Without a declaration, bytes that are valid UTF-8 are UTF-8. Only other bytes are guessed at, from a
bounded stretch around the first invalid byte. Never raises: every page has some text. No I/O.

In single-byte encodings meaningless bytes cost no more than others, as a table has U+FFFD for them too. Python's codecs
stop at each such byte, which takes four seconds for 16 MB. In multi-byte encodings they do so here as well, so a caller
with other work decodes piece by piece.
"""

import codecs
import re
from collections.abc import Iterator
from functools import cache, lru_cache

import webencodings

PRESCAN_BYTES = 1024
"""Bytes of a page in which a meta element may declare the encoding (HTML 13.2.3.2)."""
GUESS_BYTES = 4096
"""Bytes that a guess is made from. Guessing costs a millisecond or two."""
UNKNOWN = "windows-1252"
"""The encoding that browsers use when all else fails."""

PIECE_BYTES = 128 * 1024
"""Decoded at a time: 10 ms of work if nothing in it means anything."""
LABELS_MAX = 64
"""Limit on the remembered meta elements that declare a charset, each at most `PRESCAN_BYTES` long."""
LABEL_CHARS_MAX = 64
"""Longer names of encodings are not remembered."""

_ESCAPING = frozenset(("iso-2022-jp", "iso-2022-kr", "hz-gb-2312"))
"""Decoded whole, which takes 0.2 s at most: Python's decoder cannot pause in the middle of a long escape sequence.
The last two only in releases of webencodings before 0.6."""
_OF_SEVERAL_BYTES = _ESCAPING.union(
    ("utf-8", "utf-16le", "utf-16be", "big5", "euc-jp", "euc-kr", "gb18030", "gbk", "shift_jis")
)
"""Encodings in which a byte may be part of a character."""
_REPLACEMENT = "replacement"
"""The standard's name for encodings that are never decoded: any text is one U+FFFD."""
_BOMS = ((b"\xef\xbb\xbf", "utf-8"), (b"\xfe\xff", "utf-16be"), (b"\xff\xfe", "utf-16le"))
_COMMENT = re.compile(rb"<!--.*?(?:-->|\Z)", re.DOTALL)
_META = re.compile(rb"<[mM][eE][tT][aA][\s/]([^>]*)>")
"""Without IGNORECASE, which would look at each byte for a letter in two cases."""
_XML = re.compile(rb"<\?xml\s[^>]*?encoding\s*=\s*[\"']([^\"'>]+)[\"']")
_ATTRIBUTE = re.compile(r"([^\s=\"'/>]+)\s*=\s*(?:\"([^\"]*)\"|'([^']*)'|([^\s\"'>]+))")
_CHARSET = re.compile(r"charset\s*+=\s*+[\"']?+\s*+([^\s\"';,>]+)", re.IGNORECASE)
_CANDIDATES = {
    **{f"cp{page}": f"windows-{page}" for page in (874, 1251, 1252, 1253, 1255, 1256)},
    **{"koi8_r": "koi8-r", "cp949": "euc-kr", "cp932": "shift_jis", "euc_jp": "euc-jp"},
    **{"big5": "big5", "gb18030": "gb18030"},
}
"""The candidates of a guess. Latin alphabets look alike, so only the commonest is among them."""


def decode(body: bytes, content_type: str) -> tuple[str, str]:
    """Return the text of `body` and the WHATWG name of its encoding. `content_type` is the header.

    Bytes that mean nothing in that encoding become U+FFFD. A byte order mark is left out.
    """
    encoding = encoding_of(body, content_type)
    return _decoded(_without_mark(body, encoding), encoding), encoding


def pieces(body: bytes, encoding: str) -> Iterator[str]:
    """Yield the text that `decode` returns of a body in this encoding, some `PIECE_BYTES` of it at a time."""
    body = _without_mark(body, encoding)
    if len(body) <= PIECE_BYTES or encoding in _ESCAPING or encoding == _REPLACEMENT:
        yield _decoded(body, encoding)
        return
    if encoding not in _OF_SEVERAL_BYTES:
        for start in range(0, len(body), PIECE_BYTES):
            yield _decoded(body[start : start + PIECE_BYTES], encoding)
        return
    decoder = webencodings.lookup(encoding).codec_info.incrementaldecoder("replace")
    for start in range(0, len(body), PIECE_BYTES):
        end = start + PIECE_BYTES
        yield decoder.decode(body[start:end], end >= len(body))


def encoding_of(body: bytes, content_type: str) -> str:
    """Return the WHATWG name of the encoding of `body` without decoding it more than is needed to know."""
    for mark, name in _BOMS:
        if body.startswith(mark):
            return name
    declared = _label(content_type) or _declared(body[:PRESCAN_BYTES])
    if declared is not None:
        return declared
    try:
        body.decode()
    except UnicodeDecodeError as error:
        return _guessed(body, error.start)
    return "utf-8"


def _without_mark(body: bytes, encoding: str) -> bytes:
    return next((body.removeprefix(mark) for mark, name in _BOMS if name == encoding), body)


def _decoded(body: bytes, encoding: str) -> str:
    if encoding in _OF_SEVERAL_BYTES:
        text: str = webencodings.lookup(encoding).codec_info.decode(body, "replace")[0]
        return text
    if encoding == _REPLACEMENT:
        body = body[:1]
    return codecs.charmap_decode(body, "strict", _table(encoding))[0]


@cache
def _table(encoding: str) -> str:
    """Return the characters of all bytes of a single-byte encoding."""
    decode_one = webencodings.lookup(encoding).codec_info.decode
    return "".join(decode_one(bytes((byte,)), "replace")[0] for byte in range(256))


def _label(text: str) -> str | None:
    """Return the encoding named by ``charset=`` in a Content-Type, or None."""
    found = _CHARSET.search(text) if "=" in text else None
    return _known(found[1]) if found else None


def _declared(head: bytes) -> str | None:
    """Return the encoding that a meta element or an XML declaration declares (HTML 13.2.3.2)."""
    if xml := _XML.match(head):
        return _readable(_known(xml[1].decode("ascii", "replace")))
    for meta in _META.findall(_COMMENT.sub(b"", head) if b"<!--" in head else head):
        if b"charset" in meta.lower() and (label := _in_meta(meta)) is not None:
            return _readable(label)
    return None


@lru_cache(maxsize=LABELS_MAX)
def _in_meta(meta: bytes) -> str | None:
    """Return the encoding that the attributes of a meta element name. Most pages of a site have the same element."""
    attributes = {
        name.lower(): double or single or bare
        for name, double, single, bare in reversed(_ATTRIBUTE.findall(meta.decode("ascii", "replace")))
    }
    if "charset" in attributes:
        return _known(attributes["charset"])
    if attributes.get("http-equiv", "").lower() == "content-type":
        return _label(attributes.get("content", ""))
    return None


def _known(label: str) -> str | None:
    # A label is ASCII; webencodings encodes what it is asked about, which a lone surrogate would not survive.
    if not label.isascii():
        return None
    return _name_of(label) if len(label) <= LABEL_CHARS_MAX else _name_of.__wrapped__(label)


@lru_cache(maxsize=LABELS_MAX)
def _name_of(label: str) -> str | None:
    encoding = webencodings.lookup(label)
    return encoding.name if encoding else None


def _readable(name: str | None) -> str | None:
    """Return the usable meaning of a declaration inside the page: a page in UTF-16 could not have been read so far."""
    if name is None:
        return None
    return {"utf-16le": "utf-8", "utf-16be": "utf-8", "x-user-defined": UNKNOWN}.get(name, name)


def _guessed(body: bytes, start: int) -> str:
    """Guess from the stretch around `start`, where UTF-8 ended."""
    from charset_normalizer import from_bytes  # Slow to load, and hardly ever asked.

    begin = max(0, start - GUESS_BYTES // 4)
    best = from_bytes(body[begin : begin + GUESS_BYTES], cp_isolation=list(_CANDIDATES)).best()
    return UNKNOWN if best is None else _CANDIDATES.get(best.encoding, UNKNOWN)
