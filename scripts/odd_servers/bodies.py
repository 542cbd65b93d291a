"""Odd servers: content codings, types and charsets, and slow or broken bodies."""

import gzip
import struct
import sys
import zlib
from typing import Final

import brotlicffi

from scripts.odd_servers.behaviors import DRIP, HANG, HEAD, OK, PAGE, PAUSE, RESET, Behavior, Topic, html, length

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

_READ: Final = "200, `hello`"
_B: Final = "200, links: `b`"


def _coded(coding: bytes, body: bytes) -> bytes:
    return OK + b"Content-Encoding: " + coding + b"\r\nContent-Length: %d\r\n\r\n" % len(body) + body


def _gz(content: bytes) -> bytes:
    return gzip.compress(content, mtime=0)


def _gz_zeros(megabytes: int) -> bytes:
    """Return what unpacks to this many zeros. The compressor runs once, as all blocks after a full flush are alike."""
    zeros = bytes(1_000_000)
    compressor = zlib.compressobj(9, zlib.DEFLATED, -zlib.MAX_WBITS)
    block, end = compressor.compress(zeros) + compressor.flush(zlib.Z_FULL_FLUSH), compressor.flush()
    checksum = 0
    for _ in range(megabytes):
        checksum = zlib.crc32(zeros, checksum)
    return _gz(b"")[:10] + block * megabytes + end + struct.pack("<II", checksum, megabytes * len(zeros))


CODINGS: Final = Topic(
    "coding",
    "Content codings",
    "kadcrawl asks for gzip, deflate, br and zstd, and undoes no other. A body that cannot be undone is in the WARC as "
    "it came.",
    (
        Behavior("gzip", (_coded(b"gzip", _gz(b"hello")),), _READ, "reads it (Fetch, handle content codings)"),
        Behavior(
            "deflate", (_coded(b"deflate", zlib.compress(b"hello")),), _READ, "reads it (Fetch, handle content codings)"
        ),
        Behavior(
            "deflate without its zlib wrapper",
            (_coded(b"deflate", zlib.compress(b"hello")[2:-4]),),
            _READ,
            "may read it (RFC 9110 8.4.1.2)",
        ),
        Behavior(
            "br", (_coded(b"br", brotlicffi.compress(b"hello")),), _READ, "reads it (Fetch, handle content codings)"
        ),
        Behavior(
            "zstd", (_coded(b"zstd", zstd.compress(b"hello")),), _READ, "reads it (Fetch, handle content codings)"
        ),
        Behavior(
            "zstd with a window of 2 GB",
            (_coded(b"zstd", b"\x28\xb5\x2f\xfd\0\xa8\x29\0\0hello"),),
            "200, fails: `bad_encoding`",
            "may fail (RFC 9659)",
        ),
        Behavior("gzip in two members", (_coded(b"gzip", _gz(b"he") + _gz(b"llo")),), _READ, "reads it (RFC 1952 2.2)"),
        Behavior("bytes after the end of gzip", (_coded(b"gzip", _gz(b"hello") + b"rest"),), _READ, ""),
        Behavior("gzip in gzip", (_coded(b"gzip, gzip", _gz(_gz(b"hello"))),), _READ, "reads it (RFC 9110 8.4)"),
        Behavior(
            "gzip that is cut off",
            (_coded(b"gzip", _gz(b"hello" * 99)[:-9]),),
            "200, fails: `truncated`",
            "fails (Fetch, handle content codings)",
        ),
        Behavior(
            "gzip by its header, plain text by its bytes",
            (_coded(b"gzip", b"hello"),),
            "200, fails: `truncated`",
            "fails (Fetch, handle content codings)",
        ),
        Behavior("gzip of an empty body", (_coded(b"gzip", b""),), "200, empty", ""),
        Behavior(
            "gzip of 100 MB in 100 kB",
            (_coded(b"gzip", _gz_zeros(100)),),
            "200, fails: `inflated_too_large`",
            "reads it",
        ),
        Behavior(
            "an unknown coding",
            (_coded(b"lzma", b"hello"),),
            "200, fails: `bad_encoding`",
            "reads it as it is (Fetch, handle content codings)",
        ),
        Behavior(
            "`Content-Encoding: none`",
            (_coded(b"none", b"hello"),),
            "200, fails: `bad_encoding`",
            "reads it as it is (Fetch, handle content codings)",
        ),
        Behavior("an empty Content-Encoding", (_coded(b"", b"hello"),), _READ, "reads it"),
    ),
)

_LINK_E: Final = b"<a href='?\xe9'>e</a>"
"""A link with an e acute in windows-1252, in its query."""
_META: Final = b"<meta charset=windows-1252>"
_XHTML: Final = b"<html xmlns='http://www.w3.org/1999/xhtml'><a href='b'>b</a></html>"

TYPES: Final = Topic(
    "type",
    "Content types and charsets",
    "Links are found in HTML and XHTML, and in pages without a type. kadcrawl does not guess a type from the bytes.",
    (
        Behavior(
            "HTML without a Content-Type", (length(len(PAGE)) + PAGE,), _B, "shows a page (MIME Sniffing 7)", "links"
        ),
        Behavior(
            "HTML as `text/plain`",
            (OK + b"Content-Type: text/plain\r\n\r\n" + PAGE,),
            "200, no links",
            "shows text (MIME Sniffing 7)",
            "links",
        ),
        Behavior(
            "HTML as `application/octet-stream`",
            (OK + b"Content-Type: application/octet-stream\r\n\r\n" + PAGE,),
            "200, no links",
            "downloads it (HTML, loading a document)",
            "links",
        ),
        Behavior(
            "HTML as `TEXT/HTML ;charset=utf-8`",
            (OK + b"Content-Type: TEXT/HTML ;charset=utf-8\r\n\r\n" + PAGE,),
            _B,
            "shows a page (MIME Sniffing 4.4)",
            "links",
        ),
        Behavior(
            "two Content-Types, the second for HTML",
            (OK + b"Content-Type: text/plain\r\nContent-Type: text/html\r\n\r\n" + PAGE,),
            _B,
            "the last one counts (Fetch, extract a MIME type)",
            "links",
        ),
        Behavior(
            "XHTML as `application/xhtml+xml`",
            (OK + b"Content-Type: application/xhtml+xml\r\n\r\n" + _XHTML,),
            _B,
            "shows a page (HTML, loading a document)",
            "links",
        ),
        Behavior(
            "windows-1252 by the header, UTF-8 by the page",
            (OK + b"Content-Type: text/html; charset=windows-1252\r\n\r\n" + HEAD + _LINK_E,),
            "200, links: `?%E9`",
            "the header counts (HTML 13.2.3.2)",
            "links",
        ),
        Behavior(
            "UTF-16 by its byte-order mark, ASCII by the header",
            (OK + b"Content-Type: text/html; charset=us-ascii\r\n\r\n" + "\ufeff<a href=b>".encode("utf-16-le"),),
            _B,
            "the mark counts (HTML 13.2.3.2)",
            "links",
        ),
        Behavior(
            "a charset that does not exist",
            (OK + b"Content-Type: text/html; charset=foo\r\n\r\n" + _META + _LINK_E,),
            "200, links: `?%E9`",
            "the page counts (HTML 13.2.3.2)",
            "links",
        ),
        Behavior(
            "a charset that stands in the page alone",
            (html(body=_META + _LINK_E),),
            "200, links: `?%E9`",
            "reads it (HTML 13.2.3.2)",
            "links",
        ),
    ),
)

TIMES: Final = Topic(
    "time",
    "Connections and time",
    "Time-outs, resets and cut bodies are tried again (`--retries`) before they count as failures. The times are "
    "[limits](../reference/limits.md): here they are short.",
    (
        Behavior("closes at once", (), "fails: `disconnected`", "fails (Fetch, HTTP-network fetch)"),
        Behavior("resets at once", (RESET,), "fails: `disconnected`", "fails (Fetch, HTTP-network fetch)"),
        Behavior(
            "closes in the middle of the head",
            (b"HTTP/1.1 200 OK\r\nContent-Le",),
            "fails: `disconnected`",
            "fails (RFC 9112 8)",
        ),
        Behavior(
            "resets in the middle of the body",
            (length(9) + b"hello", PAUSE, RESET),
            "200, fails: `truncated`",
            "fails (RFC 9112 8)",
        ),
        Behavior(
            "resets after a body without a length",
            (OK + b"\r\nhello", PAUSE, RESET),
            "200, fails: `truncated`",
            "fails (RFC 9112 8)",
        ),
        Behavior("never answers", (HANG,), "fails: `timeout`", "waits"),
        Behavior("sends a head byte by byte", (OK + b"X-A: ", DRIP), "fails: `timeout`", "waits"),
        Behavior("sends a body byte by byte", (length(99_999), DRIP), "200, fails: `too_slow`", "waits"),
        Behavior("stops in the middle of the body", (length(9) + b"hello", HANG), "200, fails: `idle`", "waits"),
    ),
)
