"""Content codings are undone within limits (RFC 9110 8.4), after a body has arrived.

`decoding` turns a body as received into its content and never makes more than the allowed bytes: a decompression bomb
costs its limit and no more. It knows exactly the codings that `ACCEPT_ENCODING` offers. Pure: no I/O, no clock. WARC
keeps the body untouched.

A body need not have much content to take long. Empty blocks cost 0.1 s per megabyte of deflate, and 1.7 s per megabyte
of brotli, where a few bits make a table of 16,384 contexts. The amount of content is no measure either, as more content
costs only a few bits. So a long body is decoded in turns with the peer's other work, a body of ordinary size in one
turn, and a very long brotli body not at all.

Faults are judged as browsers and curl judge them. Bytes after the last gzip member or frame of zstd are ignored.
Several of them are one content. "deflate" is accepted with and without its zlib wrapper. An empty body is an empty
content in any coding.
"""

import re
import sys
import zlib
from collections.abc import Callable
from typing import Final

import brotlicffi
from isal import isal_zlib

from kadcrawl.system.cooperative import CooperativeWork, run_to_end

if sys.version_info >= (3, 14):
    from compression.zstd import DecompressionParameter, ZstdDecompressor, ZstdError
else:
    from backports.zstd import DecompressionParameter, ZstdDecompressor, ZstdError

ACCEPT_ENCODING: Final = "gzip, deflate, br, zstd"
CODINGS_MAX: Final = 2
"""Codings on one body. Honest servers send no more, and each coding costs another pass."""
INNER_TIMES_MAX: Final = 4
"""Limit on the growth of the outer coding of a twice-coded body, as a factor, with `INNER_BYTES` on top.

A second coding hardly shortens a body that is coded already, unless the body was made to be shortened.
"""
INNER_BYTES: Final = 64 * 1024
"""Bytes that the outer coding of a twice-coded body may give in any case."""
BROTLI_BYTES_MAX: Final = 8 * 1024 * 1024
"""A body in brotli: of text these are 30 MB and more, of tables for nothing 14 s of work."""
MEMBERS_MAX: Final = 16
"""Gzip members, or frames of zstd, in one body. The rest of the body is copied after each member, so 32 MB of empty
members would cost hours."""
ZSTD_WINDOW_LOG: Final = 23
"""Largest window of zstd, as a power of two in bytes: 8 MiB, as much as a coding of HTTP may need (RFC 9659)."""
GZIP_MAGIC: Final = b"\x1f\x8b"
"""The first bytes of a gzip stream."""
TURN_BYTES: Final = 64 * 1024
"""Bytes of a body decoded in one turn: at worst some 20 ms of work, and all of most bodies."""
TURN_CONTENT_BYTES: Final = 1024 * 1024
"""Bytes of content made in one turn."""


class BodyError(Exception):
    """The body cannot be decoded. The text says why."""


class BadEncodingError(BodyError):
    """A coding that was never offered, too many of them, or bytes that are not in the coding they claim."""


class IncompleteError(BodyError):
    """The coded stream stops before its end."""


class TooLargeError(BodyError):
    """The content is larger than allowed."""


def decoded(body: bytes, content_encoding: str, bytes_max: int) -> bytes:
    """Return the result of `decoding`, without a pause."""
    return run_to_end(decoding(body, content_encoding, bytes_max))


def decoding(body: bytes, content_encoding: str, bytes_max: int) -> CooperativeWork[bytes]:
    """Return the content of `body`, or `body` itself when no coding was applied.

    `content_encoding` is the header's value, all values joined by commas. The last coding was applied last. Yields when
    other work should have its turn. Raises BadEncodingError, IncompleteError, or TooLargeError for more than
    `bytes_max` bytes of content and for more brotli than is decoded.
    """
    codings = [part.strip() for part in content_encoding.lower().split(",")]
    codings = [coding for coding in codings if coding not in ("", "identity")]
    if len(codings) > CODINGS_MAX:
        raise BadEncodingError(f"{len(codings)} content codings")
    for left, coding in zip(reversed(range(len(codings))), reversed(codings), strict=True):
        decode = _DECODERS.get(coding)
        if decode is None:
            raise BadEncodingError(f"content coding {coding[:20]!r}")
        if coding == "br" and len(body) > BROTLI_BYTES_MAX:
            raise TooLargeError(f"{len(body)} bytes of brotli")
        if body and left:
            try:
                body = yield from decode(body, min(bytes_max, inner_bytes_max(len(body))))
            except TooLargeError:
                raise BadEncodingError("what was coded before became much shorter by another coding") from None
        elif body:
            body = yield from decode(body, bytes_max)
    if len(body) > bytes_max:
        raise TooLargeError("more content than allowed")
    return body


def inner_bytes_max(coded_bytes: int) -> int:
    """Return how many bytes may come out of so many if they are in a coding themselves."""
    return INNER_TIMES_MAX * coded_bytes + INNER_BYTES


def _joined(
    body: bytes,
    bytes_max: int,
    begin: re.Pattern[bytes],
    read: Callable[[bytes, int, int], CooperativeWork[tuple[bytes, int]]],
    members: str,
) -> CooperativeWork[bytes]:
    """Return the contents of all members that follow each other in a body. `begin` matches the begin of a member."""
    contents: list[bytes] = []
    at = 0
    while not contents or begin.match(body, at):
        if len(contents) == MEMBERS_MAX:
            raise BadEncodingError(f"more than {MEMBERS_MAX} {members}")
        content, at = yield from read(body, at, bytes_max)
        contents.append(content)
        bytes_max -= len(content)
    return contents[0] if len(contents) == 1 else b"".join(contents)


_GZIP_MEMBER: Final = re.compile(re.escape(GZIP_MAGIC))


def _gunzip(body: bytes, bytes_max: int) -> CooperativeWork[bytes]:
    return _joined(body, bytes_max, _GZIP_MEMBER, _gzip_member, "gzip members")


def _gzip_member(body: bytes, at: int, bytes_max: int) -> CooperativeWork[tuple[bytes, int]]:
    return _inflate(body, at, bytes_max, zlib.MAX_WBITS + 16)


def _undeflate(body: bytes, bytes_max: int) -> CooperativeWork[bytes]:
    # RFC 9110 means the zlib wrapper; some servers send the bare stream. Two bytes tell (RFC 1950 2.2).
    wrapped = body[0] & 0x0F == zlib.DEFLATED and int.from_bytes(body[:2], "big") % 31 == 0
    content, _ = yield from _inflate(body, 0, bytes_max, zlib.MAX_WBITS if wrapped else -zlib.MAX_WBITS)
    return content


def _inflate(body: bytes, at: int, bytes_max: int, window_bits: int) -> CooperativeWork[tuple[bytes, int]]:
    """Return the content of the stream that begins at byte `at` of the body, and the byte after its end."""
    stream = isal_zlib.decompressobj(window_bits)
    pieces: list[bytes] = []
    while True:
        coded: bytes | memoryview = stream.unconsumed_tail
        if not coded:
            coded = memoryview(body)[at : at + TURN_BYTES]
            at += len(coded)
        try:
            piece: bytes = stream.decompress(coded, min(TURN_CONTENT_BYTES, bytes_max + 1))
        except isal_zlib.error as error:  # type: ignore[misc]  # its stub says instance, not class
            raise BadEncodingError(str(error)) from None
        if len(piece) > bytes_max:
            raise TooLargeError("more content than allowed")
        pieces.append(piece)
        bytes_max -= len(piece)
        if stream.eof:
            return pieces[0] if len(pieces) == 1 else b"".join(pieces), at - len(stream.unused_data)
        if not coded and not piece:
            raise IncompleteError("the compressed stream ends early")
        if at < len(body) or stream.unconsumed_tail:
            yield


def _unbrotli(body: bytes, bytes_max: int) -> CooperativeWork[bytes]:
    stream = brotlicffi.Decompressor()
    pieces: list[bytes] = []
    at = 0
    # A quarter of a longer one: of brotli, tables for nothing cost several times what they do elsewhere.
    step = TURN_BYTES if len(body) <= TURN_BYTES else max(1, TURN_BYTES // 4)
    while True:
        coded = body[at : at + step] if stream.can_accept_more_data() else b""
        at += len(coded)
        try:
            piece = stream.decompress(coded, output_buffer_limit=min(TURN_CONTENT_BYTES, bytes_max + 1))
        except brotlicffi.error as error:
            raise BadEncodingError(f"not brotli: {error}") from None
        if len(piece) > bytes_max:
            raise TooLargeError("more content than allowed")
        pieces.append(piece)
        bytes_max -= len(piece)
        if stream.is_finished():
            break
        if not coded and not piece:
            raise IncompleteError("the compressed stream ends early")
        if at < len(body) or not stream.can_accept_more_data():
            yield
    if at < len(body):
        raise BadEncodingError("not brotli: there is more after its end")
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)


_ZSTD_FRAME: Final = re.compile(rb"\x28\xb5\x2f\xfd|[\x50-\x5f]\x2a\x4d\x18")
"""Matches the begin of a frame with content, or of a frame to skip (RFC 8878 3.1)."""


def _unzstd(body: bytes, bytes_max: int) -> CooperativeWork[bytes]:
    return _joined(body, bytes_max, _ZSTD_FRAME, _zstd_frame, "frames of zstd")


def _zstd_frame(body: bytes, at: int, bytes_max: int) -> CooperativeWork[tuple[bytes, int]]:
    """Return the content of the frame that begins at byte `at` of the body, and the byte after its end."""
    stream = ZstdDecompressor(options={DecompressionParameter.window_log_max: ZSTD_WINDOW_LOG})
    pieces: list[bytes] = []
    while True:
        coded = memoryview(body)[at : at + TURN_BYTES] if stream.needs_input else b""
        at += len(coded)
        try:
            piece = stream.decompress(coded, min(TURN_CONTENT_BYTES, bytes_max + 1))
        except ZstdError as error:
            raise BadEncodingError(f"not zstd: {error}") from None
        if len(piece) > bytes_max:
            raise TooLargeError("more content than allowed")
        pieces.append(piece)
        bytes_max -= len(piece)
        if stream.eof:
            return pieces[0] if len(pieces) == 1 else b"".join(pieces), at - len(stream.unused_data)
        if at == len(body) and stream.needs_input:
            raise IncompleteError("the compressed stream ends early")
        yield


_DECODERS: Final[dict[str, Callable[[bytes, int], CooperativeWork[bytes]]]] = {
    "gzip": _gunzip,
    "x-gzip": _gunzip,
    "deflate": _undeflate,
    "br": _unbrotli,
    "zstd": _unzstd,
}
