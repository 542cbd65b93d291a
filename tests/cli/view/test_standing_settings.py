"""Test the sentence about the settings that a crawl keeps from an earlier command."""

from dataclasses import fields

import pytest

from kadcrawl import Job
from kadcrawl.cli.view.standing_settings import UNNAMED, VALUE_SHOWN_MAX, WITHOUT_VALUE, standing_settings
from kadcrawl.settings.job_file import KEYS

PREFIX = "settings of the earlier command that stand: "


@pytest.mark.parametrize(
    ("job", "said"),
    [
        (Job(exclude=("/private/", "a\x1bb"), max_pages=100), "--exclude /private/ a?b, --max-pages 100"),
        (Job(scope="any", delay_s=0.2, max_time_s=7200.0), "--scope any, --max-time 2h, --delay 0.2s"),
        (Job(max_bytes=5_000_000, sitemaps=True), "--max-bytes 5MB, --sitemaps"),
        (Job(max_bytes=5001, max_time_s=1234567.5), "--max-bytes 5001, --max-time 1234567.5s"),
        (Job(max_bytes=3 << 30, delay_s=0.0), "--max-bytes 3GiB, --delay 0s"),
        (Job(headers=("X-Key: secret",)), "--headers"),
        (Job(proxies=("http://u:secret@127.0.0.1:8080",), proxy_judge="http://a.example/"), "--proxies, --proxy-judge"),
    ],
)
def test_each_setting_is_named_as_its_option(job: Job, said: str) -> None:
    found = standing_settings(job, ())
    assert found == f"{PREFIX}{said}"
    assert "secret" not in found
    assert "\x1b" not in found


def test_settings_given_again_and_usual_settings_are_not_named() -> None:
    job = Job(exclude=("/private/",), delay_s=0.5, seeds=("http://a.example/",), contact="me@a.example")
    assert standing_settings(job, {"exclude"}) == f"{PREFIX}--delay 0.5s"
    assert standing_settings(job, {"exclude", "delay_s"}) == ""


@pytest.mark.parametrize("replaced", [set(), {"max_time_s"}], ids=["kept", "given again"])
def test_the_value_of_an_order_stands_whatever_a_command_gives(replaced: set[str]) -> None:
    job = Job(max_time_s=3.0, max_bytes=20_000)
    orders = {"max-time": 20.0, "max-pages": 7.0, "unknown": 1.0}
    said = "--max-bytes 20kB, --max-time 20s (by an order)"
    assert standing_settings(job, replaced, orders) == f"{PREFIX}{said}", "max-pages cannot change where it was not set"


def test_a_long_value_is_cut() -> None:
    found = standing_settings(Job(include=("x" * 1000,)), ())
    assert found == f"{PREFIX}--include {'x' * VALUE_SHOWN_MAX}..."


def test_each_field_has_an_option_or_is_a_table_or_is_not_named() -> None:
    options = {key.field for key in KEYS.values()}
    assert {field.name for field in fields(Job)} <= options | UNNAMED | WITHOUT_VALUE
