"""A behavior of a server, with the outcome of kadcrawl and that of a browser by its standards.

Tests: tests/scripts/test_odd_servers.py
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal

OK: Final = b"HTTP/1.1 200 OK\r\n"
CHUNKED: Final = OK + b"Transfer-Encoding: chunked\r\n\r\n"
RESET: Final = "reset the connection"
HANG: Final = "wait for the end of the test"
DRIP: Final = "send a byte now and then"
PAUSE: Final = "wait until the client has read what came before"
Step = bytes | str
Shows = Literal["body", "links", "target"]
"""The part of an answer that the page shows: its body, the links of the page, or the target of a redirect."""

Tls = Literal["expired", "self-signed", "wrong name", "unknown authority", "good", "none"]

HEAD: Final = b"<!doctype html><meta charset=utf-8>"
PAGE: Final = HEAD + b"<a href=b>b</a>"


@dataclass(frozen=True, slots=True)
class Behavior:
    """One row of the table."""

    does: str
    """The behavior of the server, in words."""
    steps: tuple[Step, ...]
    """The answer: bytes to send, and other steps. The server closes the connection afterwards."""
    kadcrawl: str
    """The outcome of kadcrawl, in the words of `clients.outcome`."""
    browser: str
    """The outcome of a browser by its standards, or an empty text where no standard says it."""
    shows: Shows = "body"
    tls: Tls | None = None
    more: Mapping[str, bytes] = field(default_factory=dict)
    """Other paths below that of the behavior, with their answers."""


@dataclass(frozen=True, slots=True)
class Topic:
    """Behaviors of one kind."""

    name: str
    """A word for the topic, in folders of the server and in the file of outcomes."""
    title: str
    text: str
    behaviors: tuple[Behavior, ...]


def length(count: int) -> bytes:
    """Return the head of an answer whose body has so many bytes."""
    return OK + b"Content-Length: %d\r\n\r\n" % count


def html(*fields: bytes, body: bytes = PAGE) -> bytes:
    """Return an HTML page with these further header lines."""
    lines = b"".join(line + b"\r\n" for line in fields)
    return OK + b"Content-Type: text/html\r\n" + lines + b"Content-Length: %d\r\n\r\n" % len(body) + body


def moved(to: bytes, *fields: bytes, status: int = 302) -> bytes:
    """Return a redirect."""
    lines = b"".join(line + b"\r\n" for line in (b"Location: " + to, b"Connection: close", *fields))
    return b"HTTP/1.1 %d Moved\r\n" % status + lines + b"Content-Length: 0\r\n\r\n"
