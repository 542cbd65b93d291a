"""Test the names of sinks: their meaning, the errors of wrong names, and that no password is ever shown."""

import importlib.util
from pathlib import Path

import pytest

from kadcrawl.errors import ConfigError
from kadcrawl.sinks import sink_names
from kadcrawl.sinks.sink_names import check, parse


@pytest.mark.parametrize(
    ("text", "kind", "target"),
    [
        ("sqlite:///srv/a.db", "sqlite", "/srv/a.db"),
        ("sqlite:/srv/a.db", "sqlite", "/srv/a.db"),
        ("sqlite:a.db", "sqlite", str(Path("a.db").absolute())),
        ("jsonl:out", "jsonl", str(Path("out").absolute())),
        ("parquet:~/out", "parquet", str(Path("~/out").expanduser())),
        ("parquet:file:///srv/out", "parquet", "/srv/out"),
        ("jsonl:s3://bucket/out", "jsonl", "s3://bucket/out"),
        ("warc:memory://out", "warc", "memory://out"),
        ("warc-move:/srv/out", "warc-move", "/srv/out"),
        ("mongodb://h/db", "mongodb", "mongodb://h/db"),
        ("mongodb+srv://u:p@h/db?w=1", "mongodb+srv", "mongodb+srv://u:p@h/db?w=1"),
    ],
)
def test_a_sink_says_what_and_where(text: str, kind: str, target: str) -> None:
    found = parse(text)
    assert (kind, target) == (found.kind, found.target)
    assert parse(found.whole) == parse(parse(found.whole).whole)
    assert (kind, target) == (parse(found.whole).kind, parse(found.whole).target)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "is no sink"),
        ("results.db", "is no sink: write sqlite:FILE"),
        ("postgres://h/db", "is no sink"),
        ("sqlite:", "does not say where"),
        ("jsonl:/", "does not say where"),
        ("csv:-", "only kadcrawl export --to has"),
        ("sqlite:-", "jsonl:- and csv:-"),
        ("csv:pages.csv", "--to csv:- > FILE"),
        ("sqlite://host/a.db", "names a host before its path"),
        ("mongodb://h", "a host and a database"),
        ("mongodb:///db", "a host and a database"),
        ("mongodb://u:secret@h/", "mongodb://***@h/"),
    ],
)
def test_what_is_no_sink_is_said_in_a_sentence(text: str, says: str) -> None:
    with pytest.raises(ConfigError) as found:
        parse(text)
    assert says in str(found.value)
    assert "secret" not in str(found.value)


@pytest.mark.parametrize(
    "text",
    [
        "mongodb://me:s3cr%65t@h/db?authSource=hidden",
        "mongodb+srv://me:s3cr%65t@h/db",
        "parquet:ftp://me:s3cr%65t@h/out?token=hidden",
    ],
)
def test_no_password_is_shown(text: str) -> None:
    name = parse(text)
    said = name.clean(f"cannot reach {text} with s3cret, s3cr%65t, {name.target}")
    for shown in (name.shown, repr(name), str(name), said):
        assert "s3cr" not in shown
        assert "hidden" not in shown


@pytest.mark.parametrize(
    "text",
    [
        "mongodb://me:s3cr%65t@h/db",
        "mongodb://h/db?w=1&tlscertificatekeyfilepassword=s3cr%65t",
        "mongodb://h/db?authMechanismProperties=SERVICE_NAME:x%2CAWS_SESSION_TOKEN:s3cr%65t",
        "mongodb://h/db?w=1;%70assword=s3cr%65t",
        "parquet:abfs://c/out?sv=2022&sig=s3cr%65t",
        "jsonl:https://h/out?X-Amz-Signature=s3cr%65t",
        "jsonl:s3://b/out?AWSAccessKeyId=AKI&secretAccessKey=s3cr%65t",
        "jsonl:ftp://h/out?api_key=s3cr%65t&access-token=s3cr%65t",
    ],
)
def test_a_secret_anywhere_in_a_name_is_found_and_hidden_in_texts(text: str) -> None:
    name = parse(text)
    assert name.has_secret
    assert "s3cr" not in name.clean("the server said s3cret, s3cr%65t")
    assert "s3cr" not in name.shown


@pytest.mark.parametrize(
    "text",
    [
        "mongodb://me@h/db?tls=true&tlsCertificateKeyFile=/srv/key.pem",
        "mongodb://h/db?authMechanismProperties=ENVIRONMENT:azure,TOKEN_RESOURCE:x&authSource=%24external",
        "parquet:s3://b/out?keyspace=a&design=b&versionId=c",
        "jsonl:/srv/out?token=x",
    ],
)
def test_a_name_that_has_no_secret_may_be_an_argument(text: str) -> None:
    name = parse(text)
    assert not name.has_secret
    assert "a b c x /srv" == name.clean("a b c x /srv")


def test_a_password_that_breaks_the_name_is_not_shown_either() -> None:
    with pytest.raises(ConfigError) as found:
        parse("mongodb+srv://me:s3cr@et/@h/db")
    assert "s3cr" not in str(found.value)
    assert "et/" not in str(found.value)


@pytest.mark.parametrize(
    ("text", "missing", "says"),
    [
        ("mongodb://h/db", "pymongo", "pip install 'kadcrawl[mongodb]'"),
        ("parquet:out", "pyarrow", "pip install 'kadcrawl[parquet]'"),
        ("jsonl:memory://out", "fsspec", "pip install 'kadcrawl[fsspec]'"),
    ],
)
def test_what_is_not_installed_is_named(text: str, missing: str, says: str, monkeypatch: pytest.MonkeyPatch) -> None:
    check(parse(text))
    monkeypatch.setattr(
        sink_names, "find_spec", lambda name: None if name == missing else importlib.util.find_spec(name), raising=True
    )
    with pytest.raises(ConfigError, match="needs") as found:
        check(parse(text))
    assert says in str(found.value)


def test_a_bucket_names_the_extra_with_all_that_it_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else a person would install `kadcrawl[fsspec]` first, and then be told of `kadcrawl[s3]`."""
    monkeypatch.setattr(sink_names, "find_spec", lambda name: None)
    with pytest.raises(ConfigError, match=r"needs fsspec: pip install 'kadcrawl\[s3\]'"):
        check(parse("jsonl:s3://bucket/out"))


def test_a_protocol_nobody_knows_is_said_at_once() -> None:
    with pytest.raises(ConfigError, match="fsspec knows no zzz://"):
        check(parse("jsonl:zzz://bucket/out"))


@pytest.mark.skipif(importlib.util.find_spec("s3fs") is not None, reason="s3fs is installed")
def test_what_s3_needs_besides_is_an_extra() -> None:
    with pytest.raises(ConfigError, match=r"kadcrawl\[s3\]"):
        check(parse("warc:s3://bucket/out"))
