"""Test how the bytes of a page become text."""

import codecs
import random

import pytest
import webencodings
from hypothesis import given, strategies as st

from kadcrawl.crawl.content import charset
from kadcrawl.crawl.content.charset import GUESS_BYTES, PIECE_BYTES, PRESCAN_BYTES, decode, encoding_of, pieces

KOREAN = "안녕하세요. 이 문서는 한국어로 작성되었습니다. 링크를 따라가면 다음 페이지로 이동할 수 있습니다. "
JAPANESE = "これは日本語の文書です。リンクをたどると次のページに移動できます。よろしくお願いします。"
FRENCH = "Où est le château ? Là-bas, à côté de la forêt : c'est là que les élèves étudient déjà l'été. "
RUSSIAN = "Это русский текст. Перейдите по ссылке, чтобы прочитать следующую страницу этого документа. "


@pytest.mark.parametrize(
    ("body", "content_type", "text", "encoding"),
    [
        (b"\xef\xbb\xbf\xc3\xa9", "text/html; charset=iso-8859-1", "é", "utf-8"),
        ("é".encode("utf-16-le").join([b"\xff\xfe", b""]), "", "é", "utf-16le"),
        (b"\xfe\xff" + "é".encode("utf-16-be"), "text/html; charset=utf-8", "é", "utf-16be"),
        (b"\x80\xe9", "text/html; charset=ISO-8859-1", "€é", "windows-1252"),
        (b"\x80\xe9", 'text/html;charset="latin1"', "€é", "windows-1252"),
        (b"\x80\xe9", "text/html; Charset = 'us-ascii'", "€é", "windows-1252"),
        ("한글 뷁".encode("cp949"), "text/html; charset=euc-kr", "한글 뷁", "euc-kr"),
        ("é".encode(), "text/html; charset=unheard-of", "é", "utf-8"),
        ("é".encode(), "text/html; charset=\udce9", "é", "utf-8"),
        (b"\xe9", "text/html; charset=utf-8", "\ufffd", "utf-8"),
        (b"", "", "", "utf-8"),
    ],
)
def test_mark_then_header(body: bytes, content_type: str, text: str, encoding: str) -> None:
    assert decode(body, content_type) == (text, encoding)
    assert encoding_of(body, content_type) == encoding


@pytest.mark.parametrize(
    ("head", "encoding"),
    [
        (b"<meta charset=euc-kr>", "euc-kr"),
        (b"<META CHARSET='EUC-KR' />", "euc-kr"),
        (b'<meta name=x><meta\ncharset = "euc-kr">', "euc-kr"),
        (b'<meta http-equiv="Content-Type" content="text/html; charset=windows-1251">', "windows-1251"),
        (b"<META content='text/html;charset=windows-1251' HTTP-EQUIV=content-type>", "windows-1251"),
        (b'<meta content="text/html; charset=windows-1251">', "utf-8"),
        (b"<!-- <meta charset=euc-kr> --><meta charset=koi8-r>", "koi8-r"),
        (b"<meta charset=koi8-r charset=euc-kr>", "koi8-r"),
        (b"<meta charset=unheard-of><meta charset=koi8-r>", "koi8-r"),
        (b"<meta charset=utf-16>", "utf-8"),
        (b"<meta charset=x-user-defined>", "windows-1252"),
        (b'<?xml version="1.0" encoding="iso-8859-2"?>', "iso-8859-2"),
        (b"<metal charset=euc-kr>", "utf-8"),
        (b"<meta charset=", "utf-8"),
    ],
)
def test_declaration_inside_the_page(head: bytes, encoding: str) -> None:
    assert encoding_of(head + b"<p>text", "text/html") == encoding
    assert encoding_of(head + b"<p>text", "text/html; charset=big5") == "big5"


def test_declaration_counts_only_at_the_beginning() -> None:
    meta = b"<meta charset=euc-kr>"
    assert encoding_of(b" " * (PRESCAN_BYTES - len(meta)) + meta, "") == "euc-kr"
    assert encoding_of(b" " * (PRESCAN_BYTES - len(meta) + 1) + meta, "") == "utf-8"


@pytest.mark.parametrize(
    ("text", "codec", "encoding"),
    [
        (KOREAN, "euc-kr", "euc-kr"),
        (JAPANESE, "shift_jis", "shift_jis"),
        (JAPANESE, "euc-jp", "euc-jp"),
        (RUSSIAN, "windows-1251", "windows-1251"),
        (KOREAN, "utf-8", "utf-8"),
    ],
)
def test_undeclared_text_is_recognized(text: str, codec: str, encoding: str) -> None:
    page = "<html><p>plain beginning</p>" + " " * 2 * GUESS_BYTES + f"<p>{text * 3}</p>"
    assert decode(page.encode(codec), "text/html") == (page, encoding)


def test_undeclared_western_text_is_readable() -> None:
    assert decode((FRENCH * 4).encode("windows-1252"), "")[0] == FRENCH * 4


def test_what_cannot_be_guessed_is_windows_1252() -> None:
    assert encoding_of(b"\xff\x00\xfe\x01\x80" * 3, "") == "windows-1252"


@given(
    st.binary(max_size=200), st.text(max_size=30), st.sampled_from(["", "iso-2022-jp", "hz-gb-2312", "utf-16", "big5"])
)
def test_every_page_has_some_text(body: bytes, content_type: str, label: str) -> None:
    text, encoding = decode(b"<meta " + body + b">" + body, f"{content_type}; charset={label}")
    assert isinstance(text, str)
    assert encoding


ENCODINGS = sorted(set(webencodings.LABELS.values()))
NONSENSE = random.Random(7)
BODIES = [
    bytes(range(256)) * 2,
    b"".join(bytes((first, second)) for first in range(256) for second in range(256)),
    *(NONSENSE.randbytes(60) for _ in range(20)),
    *(bytes(NONSENSE.choices(b"\x1b$B(JDI\x0e\x80\x81\x8e\x8f\xa1\xd8\xfe\xff\0aZ0~{}", k=60)) for _ in range(60)),
]


@pytest.mark.parametrize("name", [name for name in ENCODINGS if name != "replacement"])
def test_text_is_what_the_codec_says_whole_and_in_pieces(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for body in BODIES:
        text = webencodings.decode(body, name)[0]
        if not body.startswith((b"\xff\xfe", b"\xfe\xff", b"\xef\xbb\xbf")):
            assert (text, name) == decode(body, f"text/html; charset={name}")
        text = webencodings.lookup(name).codec_info.decode(charset._without_mark(body, name), "replace")[0]
        for size in (1, 3, 7) if len(body) < 1_000 else (1_000,):
            monkeypatch.setattr(charset, "PIECE_BYTES", size)
            assert text == "".join(pieces(body, name))


def test_a_mark_is_no_text() -> None:
    for mark, name in charset._BOMS:
        assert ["x"] == list(pieces(mark + "x".encode(name), name))


def test_what_nobody_should_read_is_one_replacement() -> None:
    for label in ("iso-2022-kr", "hz-gb-2312", "replacement"):
        # Releases of webencodings before 0.6 read two of them.
        if encoding_of(b"", f"text/html; charset={label}") == "replacement":
            assert ("\ufffd", "replacement") == decode(b"a" * 1_000, f"text/html; charset={label}")
            assert ("", "replacement") == decode(b"", f"text/html; charset={label}")
            assert ["\ufffd"] == list(pieces(b"a" * 1_000_000, "replacement"))


@pytest.mark.parametrize("name", [name for name in ENCODINGS if name not in charset._OF_SEVERAL_BYTES])
def test_bytes_that_mean_nothing_cost_no_more_than_others(name: str) -> None:
    """Each call of an error handler takes as long as decoding a hundred bytes."""
    calls = 0

    def counting(error: UnicodeError) -> tuple[str | bytes, int]:
        nonlocal calls
        calls += 1
        return codecs.replace_errors(error)

    decode(b"x", f"text/html; charset={name}")
    codecs.register_error("replace", counting)
    try:
        decode(bytes(range(256)) * 100, f"text/html; charset={name}")
        list(pieces(bytes(range(256)) * 1_000, name))
    finally:
        codecs.register_error("replace", codecs.replace_errors)
    assert 0 == calls


@pytest.mark.parametrize("name", [name for name in ENCODINGS if name not in charset._ESCAPING])
def test_a_piece_is_small(name: str) -> None:
    """A piece may leave half a character to the next piece."""
    assert PIECE_BYTES + 3 >= max(map(len, pieces(b"\x00\xd8" * PIECE_BYTES, name)))
