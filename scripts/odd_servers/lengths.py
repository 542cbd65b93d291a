"""Odd servers: the lengths of bodies, and their chunks."""

from typing import Final

from scripts.odd_servers.behaviors import CHUNKED, HANG, OK, PAUSE, Behavior, Topic, length

_READ: Final = "200, `hello`"

LENGTHS: Final = Topic(
    "length",
    "Content-Length",
    "A body that is longer than its Content-Length ends there, and so does the connection. Lengths that differ are a "
    "failure, because one of them is wrong and nobody knows which.",
    (
        Behavior(
            "the same Content-Length twice",
            (OK + b"Content-Length: 5\r\nContent-Length: 5\r\n\r\nhello", HANG),
            _READ,
            "reads it (Fetch, extract a length)",
        ),
        Behavior(
            "`Content-Length: 5, 5`",
            (OK + b"Content-Length: 5, 5\r\n\r\nhello", HANG),
            _READ,
            "reads it (Fetch, extract a length)",
        ),
        Behavior(
            "two Content-Lengths that differ",
            (OK + b"Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello!",),
            "fails: `protocol`",
            "fails (Fetch, extract a length)",
        ),
        Behavior(
            "more bytes than the Content-Length",
            (length(5) + b"hello, you", HANG),
            _READ,
            "reads so many bytes (RFC 9112 6.3)",
        ),
        Behavior(
            "more bytes later",
            (length(5) + b"hello", PAUSE, b", you", HANG),
            _READ,
            "reads so many bytes (RFC 9112 6.3)",
        ),
        Behavior(
            "another answer that nobody asked for",
            (length(5) + b"hello" + length(2) + b"no", HANG),
            _READ,
            "reads the first one, and closes (RFC 9112 9.2)",
        ),
        Behavior(
            "a body after `Content-Length: 0`",
            (length(0) + b"hello", HANG),
            "200, empty",
            "reads nothing (RFC 9112 6.3)",
        ),
        Behavior("fewer bytes, and closes", (length(9) + b"hello",), "200, fails: `truncated`", "fails (RFC 9112 8)"),
        Behavior("fewer bytes, and waits", (length(9) + b"hello", HANG), "200, fails: `idle`", "waits"),
        Behavior("no Content-Length, and closes", (OK + b"\r\nhello",), _READ, "reads it (RFC 9112 6.3)"),
        Behavior(
            "an empty Content-Length",
            (OK + b"Content-Length:\r\n\r\nhello",),
            "fails: `protocol`",
            "fails (RFC 9112 6.3)",
        ),
        Behavior(
            "`Content-Length: +5`",
            (OK + b"Content-Length: +5\r\n\r\nhello",),
            "fails: `protocol`",
            "fails (RFC 9112 6.3)",
        ),
        Behavior(
            "`Content-Length: -5`",
            (OK + b"Content-Length: -5\r\n\r\nhello",),
            "fails: `protocol`",
            "fails (RFC 9112 6.3)",
        ),
        Behavior(
            "a Content-Length of 30 digits",
            (OK + b"Content-Length: " + b"9" * 30 + b"\r\n\r\nhello",),
            "fails: `protocol`",
            "",
        ),
        Behavior(
            "a body after 204",
            (b"HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\nhello", HANG),
            "204, empty",
            "reads nothing (RFC 9112 6.3)",
        ),
        Behavior(
            "a Content-Length and a body after 304",
            (b"HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\nhello", HANG),
            "304, empty",
            "reads nothing (RFC 9112 6.3)",
        ),
        Behavior(
            "a Content-Length beside chunks",
            (OK + b"Content-Length: 9\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",),
            "fails: `protocol`",
            "may read the chunks (RFC 9112 6.3)",
        ),
    ),
)

CHUNKS: Final = Topic(
    "chunks",
    "Chunks",
    "`Transfer-Encoding: chunked`. Where the framing breaks, the answer has a status, and the body is no page.",
    (
        Behavior(
            "chunks with extensions and trailers",
            (CHUNKED + b"2;a=b\r\nhe\r\n3\r\nllo\r\n0\r\nX-A: b\r\n\r\n",),
            _READ,
            "reads it (RFC 9112 7.1)",
        ),
        Behavior(
            "sizes with leading zeros", (CHUNKED + b"0005\r\nhello\r\n000\r\n\r\n",), _READ, "reads it (RFC 9112 7.1)"
        ),
        Behavior("blanks after the size", (CHUNKED + b"5  \r\nhello\r\n0\r\n\r\n",), _READ, ""),
        Behavior("no last chunk", (CHUNKED + b"5\r\nhello\r\n",), "200, fails: `truncated`", "fails (RFC 9112 8)"),
        Behavior(
            "no empty line after the last chunk",
            (CHUNKED + b"5\r\nhello\r\n0\r\n",),
            "200, fails: `truncated`",
            "fails (RFC 9112 8)",
        ),
        Behavior("lines that end in LF alone", (CHUNKED + b"5\nhello\n0\n\n",), "200, fails: `protocol`", ""),
        Behavior(
            "a size with `0x`",
            (CHUNKED + b"0x5\r\nhello\r\n0\r\n\r\n",),
            "200, fails: `protocol`",
            "fails (RFC 9112 7.1)",
        ),
        Behavior(
            "a size of 17 digits",
            (CHUNKED + b"F" * 17 + b"\r\nhello",),
            "200, fails: `protocol`",
            "fails (RFC 9112 7.1)",
        ),
        Behavior(
            "a body that is not in chunks", (CHUNKED + b"hello",), "200, fails: `protocol`", "fails (RFC 9112 7.1)"
        ),
        Behavior(
            "more bytes after the last chunk",
            (CHUNKED + b"5\r\nhello\r\n0\r\n\r\nmore", HANG),
            _READ,
            "reads the chunks (RFC 9112 6.3)",
        ),
        Behavior(
            "chunks from HTTP/1.0",
            (b"HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",),
            _READ,
            "reads it, and closes afterwards (RFC 9112 6.1)",
        ),
        Behavior("`Transfer-Encoding: identity`", (OK + b"Transfer-Encoding: identity\r\n\r\nhello",), _READ, ""),
    ),
)
