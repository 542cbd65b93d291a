"""Content codings undone within limits (RFC 9110 8.4): what is made of a body once it is here.

`decoded` turns a body as received into its content and never makes more than the bytes allowed: a bomb costs
its limit and no more. It knows exactly the codings `ACCEPT_ENCODING` offers. Pure: no I/O, no clock. The
fetcher calls it, and who reads a packed sitemap; what goes to WARC is the body, untouched.

Faults, as browsers and curl judge them: bytes after the last gzip member are ignored, several members are one
content, "deflate" is taken with and without its zlib wrapper, an empty body is an empty content in any
coding.
"""

import zlib
from collections.abc import Callable
from typing import Final

import brotlicffi
from isal import isal_zlib

ACCEPT_ENCODING: Final = "gzip, deflate, br"
CODINGS_MAX: Final = 2
"""Codings on one body; nobody honest sends more, and each costs another pass."""
MEMBERS_MAX: Final = 16
"""Gzip members in one body: what follows a member is copied, so 32 MB of empty members would cost hours."""
GZIP_MAGIC: Final = b"\x1f\x8b"
"""How what is packed by gzip begins."""

_BROTLI_STEP_BYTES = 1024 * 1024


class BodyError(Exception):
    """The body cannot be decoded; the text says why."""


class BadEncodingError(BodyError):
    """A coding that was never offered, too many of them, or bytes that are not in the coding they claim."""


class IncompleteError(BodyError):
    """The coded stream stops before its end."""


class TooLargeError(BodyError):
    """The content is larger than allowed."""


def decoded(body: bytes, content_encoding: str, bytes_max: int) -> bytes:
    """Return the content of `body`; `body` itself when no coding was applied.

    `content_encoding` is the header's value, all of them joined by commas; the last coding was applied last.
    Raises BadEncodingError, IncompleteError, or TooLargeError for more than `bytes_max` bytes of content.
    """
    codings = [part.strip() for part in content_encoding.lower().split(",")]
    codings = [coding for coding in codings if coding not in ("", "identity")]
    if len(codings) > CODINGS_MAX:
        raise BadEncodingError(f"{len(codings)} content codings")
    for coding in reversed(codings):
        decode = _DECODERS.get(coding)
        if decode is None:
            raise BadEncodingError(f"content coding {coding[:20]!r}")
        if body:
            body = decode(body, bytes_max)
    if len(body) > bytes_max:
        raise TooLargeError("more content than allowed")
    return body


def _gunzip(body: bytes, bytes_max: int) -> bytes:
    members: list[bytes] = []
    while not members or body.startswith(GZIP_MAGIC):
        if len(members) == MEMBERS_MAX:
            raise BadEncodingError(f"more than {MEMBERS_MAX} gzip members")
        content, body = _inflate(body, bytes_max, zlib.MAX_WBITS + 16)
        members.append(content)
        bytes_max -= len(content)
    return members[0] if len(members) == 1 else b"".join(members)


def _undeflate(body: bytes, bytes_max: int) -> bytes:
    # RFC 9110 means the zlib wrapper; some servers send the bare stream. Two bytes tell (RFC 1950 2.2).
    wrapped = body[0] & 0x0F == zlib.DEFLATED and int.from_bytes(body[:2], "big") % 31 == 0
    return _inflate(body, bytes_max, zlib.MAX_WBITS if wrapped else -zlib.MAX_WBITS)[0]


def _inflate(body: bytes, bytes_max: int, window_bits: int) -> tuple[bytes, bytes]:
    """Return the content of one stream and the bytes after it."""
    stream = isal_zlib.decompressobj(window_bits)
    try:
        content: bytes = stream.decompress(body, bytes_max + 1)
    except isal_zlib.error as error:  # type: ignore[misc]  # its stub says instance, not class
        raise BadEncodingError(str(error)) from None
    if len(content) > bytes_max:
        raise TooLargeError("more content than allowed")
    if not stream.eof:
        raise IncompleteError("the compressed stream ends early")
    return content, stream.unused_data


def _unbrotli(body: bytes, bytes_max: int) -> bytes:
    stream = brotlicffi.Decompressor()
    pieces: list[bytes] = []
    while not stream.is_finished():
        try:
            piece = stream.decompress(body, output_buffer_limit=min(_BROTLI_STEP_BYTES, bytes_max + 1))
        except brotlicffi.error as error:
            raise BadEncodingError(f"not brotli: {error}") from None
        if len(piece) > bytes_max:
            raise TooLargeError("more content than allowed")
        if not piece and not stream.is_finished():
            raise IncompleteError("the compressed stream ends early")
        pieces.append(piece)
        bytes_max -= len(piece)
        body = b""  # the stream keeps what it has not used
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)


_DECODERS: Final[dict[str, Callable[[bytes, int], bytes]]] = {
    "gzip": _gunzip,
    "x-gzip": _gunzip,
    "deflate": _undeflate,
    "br": _unbrotli,
}
