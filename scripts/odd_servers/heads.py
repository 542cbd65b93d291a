"""Odd servers: status lines and headers."""

from typing import Final

from scripts.odd_servers.behaviors import HANG, OK, Behavior, Topic, length

_HELLO: Final = b"Content-Length: 5\r\n\r\nhello"
_READ: Final = "200, `hello`"

STATUS_LINES: Final = Topic(
    "status",
    "Status lines",
    "The first line of an answer. RFC 9112 is strict about it, so what is not HTTP fails with `protocol`.",
    (
        Behavior("no reason phrase after the status", (b"HTTP/1.1 200\r\n" + _HELLO,), _READ, "reads it (RFC 9112 4)"),
        Behavior("`HTTP/1.0`", (b"HTTP/1.0 200 OK\r\n\r\nhello",), _READ, "reads it (RFC 9110 2.5)"),
        Behavior("`HTTP/2.0` in plain text", (b"HTTP/2.0 200 OK\r\n" + _HELLO,), _READ, ""),
        Behavior(
            "`HTTP/1.2`",
            (b"HTTP/1.2 200 OK\r\n" + _HELLO,),
            "fails: `protocol`",
            "reads it as HTTP/1.1 (RFC 9110 2.5)",
        ),
        Behavior("`http/1.1` in lower case", (b"http/1.1 200 OK\r\n" + _HELLO,), "fails: `protocol`", ""),
        Behavior("two blanks before the status", (b"HTTP/1.1  200 OK\r\n" + _HELLO,), "fails: `protocol`", ""),
        Behavior("status 999", (b"HTTP/1.1 999 No\r\n" + _HELLO,), "999, fails: `http_999`", "shows it (RFC 9110 15)"),
        Behavior("status 1000", (b"HTTP/1.1 1000 No\r\n" + _HELLO,), "fails: `protocol`", "fails (RFC 9112 4)"),
        Behavior("status 20", (b"HTTP/1.1 20 No\r\n" + _HELLO,), "fails: `protocol`", "fails (RFC 9112 4)"),
        Behavior("`ICY 200 OK`, as radio servers", (b"ICY 200 OK\r\n\r\nhello",), "fails: `protocol`", ""),
        Behavior("HTML without any head (HTTP/0.9)", (b"<p>hello",), "fails: `protocol`", ""),
        Behavior("an SSH greeting", (b"SSH-2.0-OpenSSH_9.2\r\n", HANG), "fails: `protocol`", "fails (RFC 9112 4)"),
        Behavior("empty lines before the status line", (b"\r\n\r\n" + length(5) + b"hello",), _READ, ""),
        Behavior(
            "100 Continue before the answer",
            (b"HTTP/1.1 100 Continue\r\n\r\n" + length(5) + b"hello",),
            _READ,
            "reads the answer (RFC 9110 15.2)",
        ),
        Behavior(
            "103 Early Hints before the answer",
            (b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n" + length(5) + b"hello",),
            _READ,
            "reads the answer (RFC 9110 15.2)",
        ),
        Behavior(
            "101 to a protocol that nobody asked for",
            (b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n", HANG),
            "fails: `protocol`",
            "",
        ),
    ),
)

HEADERS: Final = Topic(
    "header",
    "Headers",
    "Fields of the head. All of them together may have 64 kB, and there may be 256 of them.",
    (
        Behavior(
            "lines that end in LF alone",
            (b"HTTP/1.1 200 OK\nContent-Length: 5\n\nhello",),
            _READ,
            "may read it (RFC 9112 2.2)",
        ),
        Behavior("a line without a colon", (OK + b"no colon\r\n" + _HELLO,), "fails: `protocol`", ""),
        Behavior("a blank before the colon", (OK + b"Content-Length : 5\r\n\r\nhello",), _READ, ""),
        Behavior("a field in two lines", (OK + b"X-A: one\r\n  two\r\n" + _HELLO,), _READ, "reads it (RFC 9112 5.2)"),
        Behavior("a field without a name", (OK + b": x\r\n" + _HELLO,), "fails: `protocol`", ""),
        Behavior("a NUL in a value", (OK + b"X-A: a\0b\r\n" + _HELLO,), "fails: `protocol`", "may fail (RFC 9110 5.5)"),
        Behavior(
            "a CR alone in a value", (OK + b"X-A: a\rb\r\n" + _HELLO,), "fails: `protocol`", "may fail (RFC 9110 5.5)"
        ),
        Behavior(
            "bytes above 127 in a value", (OK + b"X-A: \xff\xfe\r\n" + _HELLO,), _READ, "reads it (Fetch, header value)"
        ),
        Behavior("bytes above 127 in a name", (OK + b"X-\xe9: a\r\n" + _HELLO,), "fails: `protocol`", ""),
        Behavior("a field of 20 kB", (OK + b"Set-Cookie: a=" + b"x" * 20_000 + b"\r\n" + _HELLO,), _READ, ""),
        Behavior(
            "a field of 200 kB", (OK + b"X-A: " + b"x" * 200_000 + b"\r\n" + _HELLO,), "fails: `headers_too_large`", ""
        ),
        Behavior("400 fields", (OK + b"X-A: b\r\n" * 400 + _HELLO,), "fails: `headers_too_large`", ""),
    ),
)
