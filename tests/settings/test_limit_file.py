"""Test limits as people write them: in [limits] of a job file, and as NAME=VALUE."""

from pathlib import Path

import pytest

from kadcrawl.errors import ConfigError
from kadcrawl.settings.job_file import parse
from kadcrawl.settings.job_limits import OF_JOB, OF_MACHINE, OF_PROGRAM
from kadcrawl.settings.limit_file import SETTABLE, joined, limit, limit_shown
from kadcrawl.settings.limits import Limits
from tests.support.cases import cases

FILE = Path("kadcrawl.toml")


@pytest.mark.parametrize(
    ("name", "said", "value"),
    [
        ("body_bytes_max", "10 MB", 10_000_000),
        ("body-bytes-max", "1.5 MiB", 1_572_864),
        ("Body_Bytes_Max", 5000, 5000),
        ("fetch_timeout_s", "30 s", 30.0),
        ("fetch_timeout_s", "2 min", 120.0),
        ("robots_ttl_s", "1 day", 86_400.0),
        ("rate_min_bytes_s", "64 KiB/s", 65_536),
        ("links_per_page_max", "5_000", 5000),
        ("links_per_page_max", 5000, 5000),
        ("redirects_max", 0, 0),
        ("body_bytes_max", "none", None),
    ],
)
def test_a_limit_is_read_in_its_unit(name: str, said: object, value: float | None) -> None:
    assert (name.lower().replace("-", "_"), value) == limit(name, said)


@pytest.mark.parametrize(
    ("name", "said", "sentence"),
    [
        ("body_byte_max", 1, "there is no limit 'body_byte_max' to set; did you mean body_bytes_max?"),
        ("message_bytes_max", 1, "there is no limit 'message_bytes_max' to set"),
        ("foo", 1, "there is no limit 'foo' to set; there are url_chars_max, links_per_page_max"),
        ("body_bytes_max", "10 s", "body_bytes_max: '10 s' is no size, such as 500 kB"),
        ("fetch_timeout_s", "10 MB", "fetch_timeout_s: '10 MB' is no length of time"),
        ("rate_min_bytes_s", "1 min", "rate_min_bytes_s: '1 min' is no rate"),
        ("links_per_page_max", "many", "links_per_page_max: 'many' is no whole number"),
        ("links_per_page_max", 1.5, "links_per_page_max must be a whole number"),
        ("links_per_page_max", True, "links_per_page_max: a limit is a number, or a text"),
        ("body_bytes_max", 0, "body_bytes_max must be above 0"),
        ("body_bytes_max", "1 TB", "body_bytes_max must be at most 1.07374e+09"),
        ("fetches_max", 2**53, "fetches_max must be less than 2^53"),
    ],
)
def test_a_wrong_limit_is_told(name: str, said: object, sentence: str) -> None:
    with pytest.raises(ConfigError) as found:
        limit(name, said)
    assert str(found.value).startswith(sentence)


@cases("name", SETTABLE)
def test_a_limit_is_shown_as_it_is_read(name: str) -> None:
    value = getattr(Limits(), name)
    assert (name, value) == limit(name, limit_shown(name, value))


def test_a_person_sets_no_limit_of_programs() -> None:
    assert set(SETTABLE) == {*OF_JOB, *OF_MACHINE}
    assert not set(SETTABLE) & set(OF_PROGRAM)


def test_a_file_sets_limits_of_the_job_and_of_its_machine() -> None:
    file = parse("[limits]\nbody_bytes_max = '10 MB'\nwarc-bytes-max = '1 MiB'\n", FILE)
    assert (("body_bytes_max", 10_000_000),) == file.job.shared_limits
    assert {"body_bytes_max": 10_000_000, "warc_bytes_max": 1_048_576} == file.limits


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("limits = 5", "line 1: limits must be a table, begun by [limits]"),
        ("[[limits]]\nbody_bytes_max = 5", "line 1: limits must be a table, begun by [limits]"),
        ("delay = 1\n[limits]\nbody_bytes_max = '5 x'", "line 2: body_bytes_max: '5 x' is no size"),
        ("[limit]\nbody_bytes_max = 5", "line 1: there is no table [limit]; did you mean [limits]?"),
    ],
)
def test_a_wrong_table_is_told_with_its_line(text: str, sentence: str) -> None:
    with pytest.raises(ConfigError) as found:
        parse(text, FILE)
    assert str(found.value).startswith(f"kadcrawl.toml, {sentence}")


def test_what_is_said_later_wins_and_none_takes_back() -> None:
    before = (("body_bytes_max", 5), ("redirects_max", 6))
    by_file = {"body_bytes_max": 7.0, "robots_ttl_s": 8.0, "fetches_max": 9.0}
    assert joined(before, by_file) == (("body_bytes_max", 7.0), ("redirects_max", 6), ("robots_ttl_s", 8.0))
    assert joined(before, by_file, {"body_bytes_max": None, "redirects_max": None}) == (("robots_ttl_s", 8.0),)
