"""The head filter lets the HTTP parser read two kinds of odd answers, as curl and browsers read them.

Some servers send a body that is longer than its Content-Length. The parser takes the rest for the head of another
answer, finds it broken, and gives up the answer before it as well, if both came in one piece. So the filter ends a
piece where a head ends: the answer is known by then, and whatever follows its body only ends the connection.

Some servers send the same Content-Length twice, in two lines or as a list. RFC 9112 6.3 allows to read that as one.
Content-Lengths that differ go to the parser, which refuses them: one of them would be wrong.

A decision: no I/O, no clock. The connection asks for each piece until the answer is there.

Tests: tests/crawl/fetch/test_head_filter.py
"""

import re
from typing import Final

NAME: Final = b"content-length"
_HEAD_END: Final = re.compile(rb"\n\r?\n")
_LENGTH: Final = re.compile(rb"content-length[ \t]*:[ \t]*([0-9]{1,19}(?:[ \t]*,[ \t]*[0-9]{1,19})*)[ \t]*\r?\n", re.I)


class HeadFilter:
    """Reads the heads that come by one connection, until the head of the answer has come."""

    def __init__(self) -> None:
        self._held = b""
        """The begin of a line that may become a Content-Length, or the end of a head."""
        self._is_within_line = False
        """The begin of the line was given to the parser already."""
        self._has_lines = False
        """The head has a line. Empty lines before it end no head."""
        self._length: int | None = None
        self.lengths: list[tuple[bytes, bytes]] = []
        """The Content-Lengths of the head as received, names and values, if the parser sees less of them."""
        self._seen: list[tuple[bytes, bytes]] = []

    def next(self, data: bytes) -> tuple[bytes, bytes]:
        """Return the next piece for the parser, at most to the end of a head, and the rest of the data."""
        if (end := self._end_of_plain_head(data)) > 0:
            self.lengths = []
            return data[:end], data[end:]
        data, self._held = self._held + data, b""
        piece: list[bytes] = []
        at = 0
        while cut := data.find(b"\n", at) + 1:
            line, at = data[at:cut], cut
            is_whole, self._is_within_line = not self._is_within_line, False
            if is_whole and line in (b"\r\n", b"\n"):
                piece.append(line)
                if self._has_lines:
                    self._has_lines, self._length, self._seen = False, None, []
                    return b"".join(piece), data[at:]
                continue
            if not self._has_lines:
                self._has_lines, self.lengths = True, []
            if is_whole and line[:1] in b"cC" and (found := _LENGTH.match(line)):
                line = self._one_length(line, found[1])
            piece.append(line)
        last = data[at:]
        if not self._is_within_line and _may_matter(last):
            self._held = last
        elif last:
            self._is_within_line = True
            piece.append(last)
        return b"".join(piece), b""

    def _end_of_plain_head(self, data: bytes) -> int:
        """Return the end of the head that is all of the next piece as it came, or 0 if the lines have to be read."""
        if self._held or self._is_within_line or self._has_lines or data[:1] in (b"\r", b"\n"):
            return 0
        found = _HEAD_END.search(data)
        if found is None:
            return 0
        head = data[: found.end()].lower()
        at = head.find(NAME)
        if at >= 0 and (head.find(NAME, at + 1) >= 0 or b"," in head[at : head.index(b"\n", at)]):
            return 0
        return found.end()

    def _one_length(self, line: bytes, value: bytes) -> bytes:
        """Return the line of a Content-Length without repeats: the line itself, a shorter one, or nothing."""
        numbers = {int(number) for number in value.split(b",")}
        self._seen.append((line[: len(NAME)], value))
        if len(numbers) > 1:
            return line
        (number,) = numbers
        if self._length is None:
            self._length = number
            if b"," not in value:
                return line
            self.lengths = self._seen
            return b"%b: %d\r\n" % (line[: len(NAME)], number)
        if number != self._length:
            return line
        self.lengths = self._seen
        return b""


def _may_matter(begin: bytes) -> bool:
    """Return whether the begin of a line has to wait for the rest of it."""
    low = begin[: len(NAME)].lower()
    return begin == b"\r" or (bool(low) and NAME.startswith(low))


def as_received(
    headers: tuple[tuple[bytes, bytes], ...], lengths: list[tuple[bytes, bytes]]
) -> tuple[tuple[bytes, bytes], ...]:
    """Return the parsed headers with the Content-Lengths as they came. The first one keeps its place."""
    if not lengths:
        return headers
    kept: list[tuple[bytes, bytes]] = []
    for name, value in headers:
        if name.lower() == NAME and lengths:
            kept += lengths
            lengths = []
        else:
            kept.append((name, value))
    return tuple(kept)
