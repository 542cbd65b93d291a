"""Test that the head filter ends a piece where a head ends, and gives the parser one Content-Length."""

from random import Random

import pytest

from kadcrawl.crawl.fetch.head_filter import HeadFilter, as_received

OK = b"HTTP/1.1 200 OK\r\n"


def pieces_of(head_filter: HeadFilter, data: bytes) -> list[bytes]:
    """Return the pieces for a parser that is still waiting for the head of the answer."""
    pieces = []
    while data:
        piece, data = head_filter.next(data)
        pieces.append(piece)
    return pieces


@pytest.mark.parametrize("end", [b"\r\n", b"\n"])
def test_a_piece_ends_where_a_head_ends(end: bytes) -> None:
    head = OK + b"A: b" + end + end
    assert [head, b"hello" + end] == pieces_of(HeadFilter(), head + b"hello" + end)
    assert [b"\r\n\r\n" + head, b"x"] == pieces_of(HeadFilter(), b"\r\n\r\n" + head + b"x")


def test_an_interim_head_is_a_piece_of_its_own() -> None:
    interim = b"HTTP/1.1 103 Early Hints\r\nContent-Length: 3\r\n\r\n"
    head = OK + b"Content-Length: 5\r\n\r\n"
    head_filter = HeadFilter()
    assert [interim, head, b"hello"] == pieces_of(head_filter, interim + head + b"hello")
    assert [] == head_filter.lengths


@pytest.mark.parametrize(
    ("fields", "parsed", "lengths"),
    [
        (b"Content-Length: 5\r\nContent-Length: 5\r\n", b"Content-Length: 5\r\n", [b"5", b"5"]),
        (b"Content-Length: 5\r\nA: b\r\nContent-Length : 05 \r\n", b"Content-Length: 5\r\nA: b\r\n", [b"5", b"05"]),
        (b"Content-Length: 5, 5 ,05\n", b"Content-Length: 5\r\n", [b"5, 5 ,05"]),
        (b"Content-Length: 5, 5\r\ncontent-length: 5\r\n", b"Content-Length: 5\r\n", [b"5, 5", b"5"]),
        (b"Content-Length: 5\r\n", b"Content-Length: 5\r\n", []),
        (b"Content-Length: 5\r\nContent-Length: 6\r\n", b"Content-Length: 5\r\nContent-Length: 6\r\n", []),
        (b"Content-Length: 5, 6\r\n", b"Content-Length: 5, 6\r\n", []),
        (b"Content-Length: +5\r\nContent-Length: +5\r\n", b"Content-Length: +5\r\nContent-Length: +5\r\n", []),
        (b"Content-Lengths: 5\r\nContent-Lengths: 5\r\n", b"Content-Lengths: 5\r\nContent-Lengths: 5\r\n", []),
        (b"A: Content-Length: 5\r\nContent-Length: 5\r\n", b"A: Content-Length: 5\r\nContent-Length: 5\r\n", []),
    ],
)
def test_the_parser_sees_equal_lengths_once(fields: bytes, parsed: bytes, lengths: list[bytes]) -> None:
    head_filter = HeadFilter()
    assert [OK + parsed + b"\r\n"] == pieces_of(head_filter, OK + fields + b"\r\n")
    assert lengths == [value for _, value in head_filter.lengths]


@pytest.mark.parametrize("seed", range(30))
def test_the_cuts_of_the_network_change_nothing(seed: int) -> None:
    random = Random(seed)
    data = OK + b"Content-Length: 7\r\nCookie: c\r\ncontent-length: 7\r\nC: d\r\nConte\r\n\r\nHTTP/1.1"
    head_filter = HeadFilter()
    given = []
    rest = data
    while rest:
        cut = random.randrange(1, 6)
        given += pieces_of(head_filter, rest[:cut])
        rest = rest[cut:]
    assert OK + b"Content-Length: 7\r\nCookie: c\r\nC: d\r\nConte\r\n\r\nHTTP/1.1" == b"".join(given)
    assert any(b"".join(given[: number + 1]).endswith(b"\r\n\r\n") for number in range(len(given)))
    assert 2 == len(head_filter.lengths)


def test_only_the_begin_of_a_length_waits_for_its_line() -> None:
    head_filter = HeadFilter()
    assert [b"SSH-2.0"] == pieces_of(head_filter, b"SSH-2.0")
    assert [b"-x\r\nA: b"] == pieces_of(head_filter, b"-x\r\nA: b")
    assert [b"\r\n"] == pieces_of(head_filter, b"\r\nconTENT-")
    assert [b""] == pieces_of(head_filter, b"length: 1")
    assert [b"conTENT-length: 1\r\n"] == pieces_of(head_filter, b"\r\n")


def test_headers_are_told_as_received() -> None:
    lengths = [(b"content-length", b"5"), (b"Content-Length", b"05")]
    headers = ((b"A", b"b"), (b"content-length", b"5"), (b"C", b"d"))
    assert ((b"A", b"b"), *lengths, (b"C", b"d")) == as_received(headers, lengths)
    assert headers == as_received(headers, [])
