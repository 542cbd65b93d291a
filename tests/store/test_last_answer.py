"""Test the last answer of a page as a text: it comes back as it was, and nothing else counts as one."""

import json

import msgspec
import pytest

from kadcrawl.link.wire import cell_messages
from kadcrawl.store.last_answer import ANSWER_CHARS_MAX, MIME_CHARS_MAX, LastAnswer, decoded, printable_mime

ANSWER = LastAnswer(
    "text/html",
    5120,
    "sha1:3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ",
    "2026-11-21T10:00:00.123Z",
    "a6da4c0e7b1f2d38",
    "warc/kadcrawl-docs-a6da4c0e-00001.warc.gz",
    4096,
)


def test_an_answer_comes_back_as_it_was() -> None:
    assert decoded(ANSWER.encoded()) == ANSWER


def test_the_longest_answer_fits_the_journal_and_the_wire() -> None:
    longest = msgspec.structs.replace(
        ANSWER, mime='"' * MIME_CHARS_MAX, bytes=2**53, warc="warc/" + "x" * 195, offset=2**53
    )
    assert decoded(longest.encoded()) == longest
    assert len(longest.encoded()) <= ANSWER_CHARS_MAX == cell_messages.ANSWER_CHARS_MAX


@pytest.mark.parametrize(
    ("place", "value"),
    [
        (0, "text/\x1b[2J"),
        (0, "x" * (MIME_CHARS_MAX + 1)),
        (1, -1),
        (1, 2**53 + 1),
        (1, "5120"),
        (2, ""),
        (2, "sha1:3I42"),
        (3, "yesterday"),
        (4, "A6DA4C0E7B1F2D38"),
        (5, "warc/../../etc/passwd"),
        (5, "/etc/passwd"),
        (5, "warc/a b.warc.gz"),
        (5, "warc/" + "x" * 196),
        (6, None),
    ],
)
def test_nothing_else_counts_as_an_answer(place: int, value: object) -> None:
    fields = json.loads(ANSWER.encoded())
    fields[place] = value
    assert decoded(json.dumps(fields)) is None


@pytest.mark.parametrize("text", ["", "{}", "[]", "null", "[1", '["a"]', "[" * 500, " " * (ANSWER_CHARS_MAX + 1)])
def test_a_text_of_another_form_is_no_answer(text: str) -> None:
    assert decoded(text) is None


@pytest.mark.parametrize(
    ("mime", "kept"),
    [("text/html", "text/html"), ("", ""), ("x" * 200, "x" * MIME_CHARS_MAX), ("téxt", ""), ("a\x00b", "")],
)
def test_a_media_type_is_cut_to_what_an_answer_holds(mime: str, kept: str) -> None:
    assert kept == printable_mime(mime)
