"""A person changes settings of a running crawl, as far as they can change, and a member cannot make up others."""

import pytest

from kadcrawl import ConfigError, Job
from kadcrawl.settings.job_changes import CHANGEABLE, changed, check_change, shown_value, value_of
from kadcrawl.settings.job_file import KEYS


@pytest.mark.parametrize(
    ("name", "text", "value", "shown"),
    [
        ("delay", "2.5s", 2.5, "2.5s"),
        ("delay", "5m", 300.0, "5m"),
        ("retries", "0", 0.0, "0"),
        ("refusals", "8", 8.0, "8"),
        ("max-pages", "20000", 20_000.0, "20000"),
        ("max-bytes", "10 GiB", 10 * 2.0**30, "10 GiB"),
        ("max-time", "2h", 7_200.0, "2h"),
    ],
)
def test_a_value_reads_as_its_option_does(name: str, text: str, value: float, shown: str) -> None:
    assert value == value_of(name, text)
    assert shown == shown_value(name, value)
    assert value_of(name, "default") is None


@pytest.mark.parametrize(
    ("name", "text", "why"),
    [
        ("max-depth", "3", "max-depth cannot change while the crawl runs: links beyond the depth were not kept"),
        ("max-depth", "3", "run the same command with another --max-depth. Then `kadcrawl add --again`"),
        ("partition", "url", "decides which peer owns which URL. These can: delay, retries"),
        ("user-agent", "me", "user-agent cannot change while the crawl runs: its peers work by the value"),
        ("anything", "3", r"there is no setting 'anything'\. These can change: delay, retries"),
        ("delays", "3", r"there is no setting 'delays', did you mean delay\? These can change: delay"),
        ("retries", "2.5", "is no whole number"),
        ("retries", "21", "retries must be from 0 to 20"),
        ("delay", "2d", "delay must be from 0 to 86400 seconds"),
        ("delay", "soon", "delay: "),
        ("max-pages", "0", "max-pages must be 1 or more"),
    ],
)
def test_what_cannot_be_is_refused_with_the_reason(name: str, text: str, why: str) -> None:
    with pytest.raises(ConfigError, match=why):
        value_of(name, text)


def test_a_limit_without_which_the_crawl_began_is_refused() -> None:
    for name in ("max-pages", "max-bytes", "max-time"):
        with pytest.raises(ConfigError, match=f"began without --{name}.*go on with the same command"):
            check_change(Job(), name, 5.0)
    check_change(Job(max_pages=3, max_time_s=5.0), "max-pages", 5.0)


def test_a_change_that_goes_ill_with_the_job_is_refused() -> None:
    with pytest.raises(ConfigError, match="max-site-pages cannot go with partition url"):
        check_change(Job(partition="url"), "max-site-pages", 5.0)
    with pytest.raises(ConfigError, match="delay-most must be at least delay"):
        check_change(Job(delay_factor=2.0, delay_most_s=10.0), "delay", 20.0)


def test_the_job_changes_as_far_as_the_orders_have_a_meaning() -> None:
    job = Job(max_pages=3)
    told = {
        "delay": 9.0,
        "max-pages": 7.0,
        "max-time": 5.0,
        "retries": 2.5,
        "name": 1.0,
        "max-site-pages": float(2**60),
    }
    after = changed(job, told)
    assert (9.0, 7, None, 3, None) == (
        *(after.delay_s, after.max_pages, after.max_time_s),
        *(after.retries, after.site_pages_max),
    )


def test_every_name_is_that_of_an_option() -> None:
    assert {name: one.field for name, one in CHANGEABLE.items()} == {name: KEYS[name].field for name in CHANGEABLE}
