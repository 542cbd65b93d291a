"""Content codings are undone as browsers do, and a bomb costs its limit at most."""

import gzip
import tracemalloc
import zlib
from collections.abc import Callable
from random import Random

import brotlicffi
import pytest
from hypothesis import given, settings, strategies as st

from kadcrawl.crawl.fetch import content_encoding
from kadcrawl.crawl.fetch.content_encoding import (
    INNER_BYTES,
    INNER_TIMES_MAX,
    MEMBERS_MAX,
    BadEncodingError,
    BodyError,
    IncompleteError,
    TooLargeError,
    decoded,
    decoding,
)
from tests.support.zstd import zstd


def gzipped(content: bytes) -> bytes:
    return gzip.compress(content, mtime=0)


def zstd_streamed(window_log: int) -> bytes:
    """Return the page in zstd by a server that does not know its length, with a window of this size."""
    stream = zstd.ZstdCompressor(options={zstd.CompressionParameter.window_log: window_log})
    return stream.compress(PAGE) + stream.flush()


def named(value: object) -> str:
    return value if isinstance(value, str) else getattr(value, "__name__", "")


PAGE = b"<a href=x>x</a>\n" * 1000
GZIP = gzipped(PAGE)
ZLIB = zlib.compress(PAGE)
BROTLI = brotlicffi.compress(PAGE)
ZSTD = zstd.compress(PAGE)
SKIPPED = b"\x5a\x2a\x4d\x18\4\0\0\0skip"
"""A frame of zstd that holds nothing."""
MANY = 10_000_000


@pytest.mark.parametrize(
    ("coding", "body"),
    [
        ("gzip", GZIP),
        ("GZIP", GZIP),
        (" gzip ", GZIP),
        ("x-gzip", GZIP),
        ("gzip", gzipped(PAGE[:100]) + gzipped(PAGE[100:])),
        ("gzip", GZIP + b"garbage"),
        ("gzip", GZIP + b"\0" * 8),
        ("deflate", ZLIB),
        ("deflate", ZLIB[2:-4]),
        ("deflate", ZLIB + b"garbage"),
        ("br", BROTLI),
        ("gzip, br", brotlicffi.compress(GZIP)),
        ("br,gzip", gzipped(BROTLI)),
        ("zstd", ZSTD),
        ("ZSTD", zstd.compress(PAGE[:100]) + SKIPPED + zstd.compress(PAGE[100:])),
        ("zstd", SKIPPED + ZSTD + b"garbage"),
        ("zstd, gzip", gzipped(ZSTD)),
        ("zstd", zstd_streamed(23)),
        ("identity", PAGE),
        ("identity, gzip,", GZIP),
    ],
    ids=named,
)
def test_what_was_coded_is_decoded(coding: str, body: bytes) -> None:
    assert decoded(body, coding, MANY) == PAGE


def test_a_body_without_coding_is_returned_uncopied() -> None:
    assert decoded(PAGE, "", MANY) is PAGE


@pytest.mark.parametrize("coding", ["gzip", "deflate", "br", "gzip, br", "zstd", ""])
def test_an_empty_body_is_empty_in_any_coding(coding: str) -> None:
    assert decoded(b"", coding, MANY) == b""


@pytest.mark.parametrize(
    ("coding", "body", "error"),
    [
        ("zstd", b"x", BadEncodingError),
        ("zstd", PAGE, BadEncodingError),
        ("zstd", ZSTD[:20] + b"\xff" * 20 + ZSTD[40:], BadEncodingError),
        ("zstd", zstd.compress(b"") * (MEMBERS_MAX + 1), BadEncodingError),
        ("zstd", zstd_streamed(24), BadEncodingError),
        ("zstd", ZSTD[:-1], IncompleteError),
        ("zstd", ZSTD + ZSTD[:-1], IncompleteError),
        ("zstd", ZSTD[:2], IncompleteError),
        ("compress", b"x", BadEncodingError),
        ("utf-8", PAGE, BadEncodingError),
        ("gzip, gzip, gzip", b"", BadEncodingError),
        ("gzip", PAGE, BadEncodingError),
        ("deflate", PAGE, BadEncodingError),
        ("br", PAGE, BadEncodingError),
        ("gzip", GZIP[:30] + b"\xff" * 20 + GZIP[50:], BadEncodingError),
        ("gzip", GZIP[:-8] + b"wrongcrc", BadEncodingError),
        ("gzip", gzipped(b"") * (MEMBERS_MAX + 1), BadEncodingError),
        ("gzip", GZIP[:1], IncompleteError),
        ("gzip", GZIP[:30], IncompleteError),
        ("gzip", GZIP[:-8], IncompleteError),
        ("gzip", GZIP + GZIP[:-1], IncompleteError),
        ("deflate", ZLIB[:-1], IncompleteError),
        ("deflate", ZLIB[2:-10], IncompleteError),
        ("br", BROTLI[:-1], IncompleteError),
    ],
    ids=named,
)
def test_what_cannot_be_decoded_says_how(coding: str, body: bytes, error: type[BodyError]) -> None:
    with pytest.raises(error):
        decoded(body, coding, MANY)


def test_as_many_gzip_members_as_allowed_are_one_content() -> None:
    assert decoded(gzipped(b"x") * MEMBERS_MAX, "gzip", MANY) == b"x" * MEMBERS_MAX


@pytest.mark.parametrize(
    ("coding", "body"),
    [
        ("gzip", GZIP),
        ("gzip", gzipped(PAGE[:-1]) + gzipped(PAGE[-1:])),
        ("deflate", ZLIB),
        ("deflate", ZLIB[2:-4]),
        ("br", BROTLI),
        ("br, gzip", gzipped(BROTLI)),
        ("zstd", ZSTD),
        ("zstd", zstd.compress(PAGE[:-1]) + zstd.compress(PAGE[-1:])),
        ("", PAGE),
    ],
    ids=named,
)
def test_the_limit_itself_is_allowed_and_one_byte_more_is_not(coding: str, body: bytes) -> None:
    assert decoded(body, coding, len(PAGE)) == PAGE
    with pytest.raises(TooLargeError):
        decoded(body, coding, len(PAGE) - 1)


ZEROS = bytes(30_000_000)
BOMBS: dict[str, tuple[str, Callable[[], bytes]]] = {
    "one member": ("gzip", lambda: gzipped(ZEROS)),
    "members each within the limit": ("gzip", lambda: gzipped(ZEROS[:1_000_000]) * MEMBERS_MAX),
    "zlib": ("deflate", lambda: zlib.compress(ZEROS)),
    "brotli": ("br", lambda: brotlicffi.compress(ZEROS)),
    "zstd": ("zstd", lambda: zstd.compress(ZEROS)),
    "frames each within the limit": ("zstd", lambda: zstd.compress(ZEROS[:1_000_000]) * MEMBERS_MAX),
    "nested zstd": ("zstd, zstd", lambda: zstd.compress(zstd.compress(ZEROS))),
    "nested": ("gzip, gzip", lambda: gzipped(gzipped(ZEROS))),
    "nested brotli": ("br, gzip", lambda: gzipped(brotlicffi.compress(ZEROS))),
}


@pytest.mark.parametrize("bomb", BOMBS)
def test_a_bomb_costs_its_limit_and_not_its_content(bomb: str) -> None:
    coding, made = BOMBS[bomb]
    body = made()
    tracemalloc.start()
    try:
        with pytest.raises(TooLargeError):
            decoded(body, coding, 1_000_000)
        assert tracemalloc.get_traced_memory()[1] < 6_000_000
    finally:
        tracemalloc.stop()


EMPTY_BLOCK = b"\0\0\0\xff\xff"
"""An empty block of deflate: a server that flushes sends this now and then, and a hostile server a million times."""


def turns(body: bytes, coding: str) -> int:
    return sum(1 for _ in decoding(body, coding, 100 * MANY))


@pytest.mark.parametrize(
    ("coding", "code"),
    [("gzip", gzipped), ("deflate", zlib.compress), ("br", brotlicffi.compress), ("zstd", zstd.compress)],
)
def test_an_ordinary_body_decodes_at_once_and_a_long_body_in_turns(
    coding: str, code: Callable[[bytes], bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert 0 == turns(code(PAGE), coding)
    assert 0 == turns(code(Random(1).randbytes(50_000)), coding)
    assert 10 <= turns(code(Random(1).randbytes(1_000_000)), coding) <= 70
    assert 10 <= turns(code(bytes(20_000_000)), coding) <= 40


def test_blocks_that_hold_nothing_are_read_in_turns() -> None:
    body = EMPTY_BLOCK * 200_000 + b"\3\0"
    assert len(body) // content_encoding.TURN_BYTES <= turns(body, "deflate") + 1
    assert decoded(body, "deflate", MANY) == b""


@pytest.mark.parametrize(
    ("coding", "body"), [("br", BROTLI), ("br, gzip", gzipped(BROTLI)), ("gzip, br", brotlicffi.compress(GZIP))]
)
def test_more_brotli_than_is_decoded_is_not_begun(coding: str, body: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    brotli = body if coding.endswith("br") else BROTLI
    monkeypatch.setattr(content_encoding, "BROTLI_BYTES_MAX", len(brotli))
    assert PAGE == decoded(body, coding, MANY)
    monkeypatch.setattr(content_encoding, "BROTLI_BYTES_MAX", len(brotli) - 1)
    monkeypatch.setitem(content_encoding._DECODERS, "br", lambda *_: pytest.fail("begun"))
    with pytest.raises(TooLargeError):
        decoded(body, coding, MANY)


def test_blocks_of_zstd_that_hold_nothing_are_read_in_turns() -> None:
    empty_block = b"\0\0\0"
    body = b"\x28\xb5\x2f\xfd\0\x68" + empty_block * 200_000 + b"\1\0\0"
    assert len(body) // content_encoding.TURN_BYTES <= turns(body, "zstd") + 1
    assert decoded(body, "zstd", MANY) == b""


def test_an_outer_coding_hides_no_masses_of_inner_code() -> None:
    inner = EMPTY_BLOCK * 200_000 + b"\3\0"
    for outer, code in (("gzip", gzipped), ("br", brotlicffi.compress)):
        with pytest.raises(BadEncodingError, match="much shorter"):
            decoded(code(inner), f"deflate, {outer}", MANY)
    at_most = EMPTY_BLOCK * (INNER_BYTES // len(EMPTY_BLOCK)) + b"\3\0"
    assert INNER_TIMES_MAX * len(gzipped(at_most)) + INNER_BYTES >= len(at_most)
    assert decoded(gzipped(at_most), "deflate, gzip", MANY) == b""


@settings(max_examples=300, deadline=None)
@given(
    st.lists(st.binary(max_size=200) | st.integers(0, 3000).map(bytes), min_size=1, max_size=4),
    st.integers(1, 60),
    st.integers(1, 60),
    st.sampled_from(["gzip", "deflate", "br", "zstd", "gzip, br", "br, gzip", "zstd, gzip"]),
    st.binary(max_size=3),
)
def test_how_much_is_done_in_a_turn_makes_no_difference(
    contents: list[bytes], turn_bytes: int, content_bytes: int, coding: str, after: bytes
) -> None:
    body = b"".join(map(gzipped, contents)) if coding.startswith("gzip") else b"".join(contents)
    for one in coding.split(", ")[coding.startswith("gzip") :]:
        body = {"deflate": zlib.compress, "br": brotlicffi.compress, "gzip": gzipped, "zstd": zstd.compress}[one](body)

    def outcome(body: bytes) -> object:
        try:
            return decoded(body, coding, MANY)
        except BodyError as error:
            return type(error)

    cases = [body + after, body[: len(body) // 2], body[:-1]]
    expected = [outcome(case) for case in cases]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(content_encoding, "TURN_BYTES", turn_bytes)
        patch.setattr(content_encoding, "TURN_CONTENT_BYTES", content_bytes)
        assert expected == [outcome(case) for case in cases]
