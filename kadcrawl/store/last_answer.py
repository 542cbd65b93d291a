"""`LastAnswer`: the last answer 200 of a page with a body of its own, and the place of that body in a WARC file.

A later visit may bring no body: the page was unchanged, failed, or was not asked for. The visit keeps the last answer
as a text (`Visit.answer`), which moves with the page's cell, so every page line can say where the body is.

Tests: tests/store/test_last_answer.py
"""

from typing import Annotated

import msgspec
from msgspec import Meta

MIME_CHARS_MAX = 100
"""Characters of a media type. A longer one is cut off."""
ANSWER_CHARS_MAX = 600
"""Characters of an answer as text. With the longest values there are some 500."""

_Count = Annotated[int, Meta(ge=0, le=2**53)]


class LastAnswer(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """The last answer 200 of a page. Its fields are those of the page line of that visit."""

    mime: Annotated[str, Meta(max_length=MIME_CHARS_MAX, pattern=r"^[ -~]*\Z")]
    bytes: _Count
    digest: Annotated[str, Meta(pattern=r"^sha1:[A-Z2-7]{32}\Z")]
    fetched_at: Annotated[str, Meta(pattern=r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z\Z")]
    peer: Annotated[str, Meta(pattern=r"^[0-9a-f]{16}\Z")]
    warc: Annotated[str, Meta(max_length=200, pattern=r"^warc/[!-.0-~]+\Z")]
    offset: _Count

    def encoded(self) -> str:
        """Return the answer as a text."""
        return msgspec.json.encode(self).decode()


_DECODER = msgspec.json.Decoder(LastAnswer)


def decoded(text: str) -> LastAnswer | None:
    """Return the answer in a text, or None if the text is empty or holds no answer."""
    if not text or len(text) > ANSWER_CHARS_MAX:
        return None
    try:
        return _DECODER.decode(text)
    except (msgspec.DecodeError, RecursionError, UnicodeEncodeError):
        return None


def printable_mime(mime: str) -> str:
    """Return a media type as an answer holds it, which is empty if the server sent bytes that are not ASCII."""
    return mime[:MIME_CHARS_MAX] if mime.isascii() and mime.isprintable() else ""
