"""A proxy is read as people write it, and never shown with its password."""

from pathlib import Path

import pytest

from kadcrawl.errors import ConfigError
from kadcrawl.settings.job import Job
from kadcrawl.settings.job_file import proxy_fields
from kadcrawl.settings.proxy_list import LIST_BYTES_MAX, PROXIES_MAX, Proxy, lines, parse, read_file, shown

SECRET = "s3cret"


@pytest.mark.parametrize(
    ("text", "proxy"),
    [
        ("http://203.0.113.7:3128", Proxy("http", "203.0.113.7", 3128)),
        ("HTTPS://Proxy.Example.ORG/", Proxy("https", "proxy.example.org", 443)),
        ("http://proxy", Proxy("http", "proxy", 80)),
        ("socks5://[2001:DB8::1]:9050", Proxy("socks5", "2001:db8::1", 9050)),
        ("socks5h://a.example", Proxy("socks5", "a.example", 1080)),
        ("http://me:p%40ss%23@a.example:1", Proxy("http", "a.example", 1, "me", "p@ss#")),
        ("http://me@a.example:1", Proxy("http", "a.example", 1, "me")),
    ],
)
def test_what_is_a_proxy(text: str, proxy: Proxy) -> None:
    assert proxy == parse(text)
    assert proxy == parse(proxy.url)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (f"me:{SECRET}@203.0.113.7:3128", "scheme in front"),
        (f"socks4://me:{SECRET}@a.example:1", "not socks4://"),
        (f"http://me:{SECRET}@a.example:99999", "port"),
        (f"http://:{SECRET}@a.example:1", "needs a user"),
        (f"http://m%3Ae:{SECRET}@a.example", "no colon"),
        (f"http://me:{SECRET}%0A@a.example", "printable"),
        (f"http://me:{SECRET}%C3%A9@a.example", "ASCII"),
        (f"http://me:{SECRET * 30}@a.example", "at most"),
        (f"http://me:{SECRET}@a.example/path", "not the URL"),
        (f"http://me:{SECRET}@[::g]:1", "not the URL"),
        (f"http://me:{SECRET}@[1:2]:1", "IPv6"),
        (f"http://me:{SECRET}@" + "a" * 400, "not the URL"),
    ],
)
def test_what_is_none_is_said_without_showing_it(text: str, why: str) -> None:
    with pytest.raises(ConfigError) as found:
        parse(text)
    assert why in str(found.value)
    assert SECRET not in str(found.value)


def test_a_password_is_never_shown() -> None:
    proxy = parse(f"http://me:{SECRET}@a.example:1")
    job = Job(proxies=(proxy.url,), proxy_judge="http://judge.example/")
    source = Job(proxies_from=f"https://list.example/?key={SECRET}", proxy_judge="http://judge.example/")
    texts = [str(proxy), repr(proxy), repr(job), repr(source)]
    texts += [shown(job.proxies, None), shown((), source.proxies_from)]
    assert not [text for text in texts if SECRET in text]
    assert ["http://a.example:1", "1 proxy", "from https://list.example"] == [texts[0], *texts[4:]]


def test_a_file_has_one_a_line_and_comments(tmp_path: Path) -> None:
    path = tmp_path / "proxies.txt"
    path.write_text("# ours\n\nhttp://a.example:1  # near\r\n  socks5://b.example\nhttp://a.example:1\n")
    assert ("http://a.example:1", "socks5://b.example:1080") == read_file(path)
    assert {"proxies": read_file(path), "proxies_from": None} == proxy_fields(str(path))
    assert {"proxies": (), "proxies_from": "https://list.example/x"} == proxy_fields("HTTPS://list.example/x")
    assert {"proxies": (), "proxies_from": None} == proxy_fields("")


@pytest.mark.parametrize(
    ("raw", "why"),
    [
        (f"http://a.example\n\nme:{SECRET}@b.example\n".encode(), "line 3: not the URL"),
        (b"# nothing\n", "names no proxies"),
        (b"http://a.example\n\xff\n", "line 2: not UTF-8"),
        (b"#" * (LIST_BYTES_MAX + 1), "too large"),
        (b"".join(b"http://a%d.example\n" % number for number in range(PROXIES_MAX + 1)), f"at most {PROXIES_MAX}"),
    ],
)
def test_a_bad_line_of_a_file_is_named(raw: bytes, why: str, tmp_path: Path) -> None:
    path = tmp_path / "proxies.txt"
    path.write_bytes(raw)
    with pytest.raises(ConfigError) as found:
        read_file(path)
    assert why in str(found.value)
    assert SECRET not in str(found.value)


@pytest.mark.parametrize("said", ["socks5://me:s3cret@a.example:1", ["http://me:s3cret@a.example"], "/no/such/file"])
def test_what_is_neither_file_nor_url_is_told_apart(said: object) -> None:
    with pytest.raises(ConfigError) as found:
        proxy_fields(said)
    assert SECRET not in str(found.value)


def test_bad_lines_of_a_source_are_told_from_good_ones() -> None:
    found = list(lines("nonsense\nhttp://a.example\n<html>\n"))
    assert [1, 2, 3] == [number for number, _ in found]
    assert [False, True, False] == [isinstance(one, Proxy) for _, one in found]


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"proxies": ("http://a.example",)}, "need proxy_judge"),
        ({"proxies_from": "http://a.example/"}, "need proxy_judge"),
        ({"proxies": ("nonsense",), "proxy_judge": "http://j.example/"}, "proxy 1 of 1"),
        ({"proxies": ("http://a.example",) * 1_001, "proxy_judge": "http://j.example/"}, "at most 1000"),
        ({"proxies_from": "http://A.example", "proxy_judge": "http://j.example/"}, "canonical"),
        ({"proxies_from": "http://a.example/", "proxy_judge": "j.example"}, "canonical"),
        (
            {"proxies": ("http://a.b",), "proxies_from": "http://a.example/", "proxy_judge": "http://j.example/"},
            "together",
        ),
    ],
)
def test_a_job_with_such_proxies_is_none(fields: dict[str, object], why: str) -> None:
    with pytest.raises(ConfigError, match=why):
        Job(**fields)  # type: ignore[arg-type]


@pytest.mark.parametrize(("chars", "fits"), [(60, True), (100, False)])
def test_credentials_must_fit_once_they_are_escaped(chars: int, fits: bool) -> None:
    text = f"http://{'(' * chars}:{'(' * chars}@h"
    if fits:
        assert parse(parse(text).url) == parse(text)
    else:
        with pytest.raises(ConfigError, match="at most 400 characters, once its credentials are escaped"):
            parse(text)
