"""Test that a job file can state a whole job.

Each mistake gives a sentence with its place and a remedy.
"""

import os
import re
from dataclasses import fields
from pathlib import Path

import pytest

from kadcrawl.errors import ConfigError
from kadcrawl.settings.job import Job
from kadcrawl.settings.job_file import JOB_FILE_BYTES_MAX, KEYS, LINES_TRIED_MAX, RULE_READERS, parse, read
from kadcrawl.settings.unset import UNSET
from tests.support.cases import cases

FILE = Path("kadcrawl.toml")
ALL = """
seeds = ["HTTPS://Example.org:443/a/../b#c", "http://example.net"]
scope = "domain"
include = ['/docs/', 'x']
exclude = ['\\.pdf$']
max-depth = 4
max-site-pages = 8
max-path-queries = 9
max-path-segments = 7
max-path-repeats = 6
max-parameters = 5
session-ids = "keep"
recrawl-after = "1d"
recrawl-adaptive = true
recrawl-least = 3600
recrawl-most = "7d"
sitemaps = true
canonical = "honor"
strip-parameters = ["utm", "ref*"]
sort-query = true
nofollow = "ignore"
twins = "skip"
simhash = true
delay = 2
per-ip = true
retries = 0
delay-factor = 5
delay-most = "30s"
refusals = 7
network-wait = "1h"
partition = "domain"
copies = 5
balance = "off"
name = "docs"
contact = "you@example.org"
headers = ["accept-language:  de"]
user-agent = "Mozilla/5.0 (docsbot)"
robots-token = "docsbot"
"""
ALL_AS_JOB = Job(
    seeds=("https://example.org/b", "http://example.net/"),
    scope="domain",
    include=("/docs/", "x"),
    exclude=(r"\.pdf$",),
    max_depth=4,
    site_pages_max=8,
    path_queries_max=9,
    path_segments_max=7,
    path_repeats_max=6,
    query_parameters_max=5,
    session_ids="keep",
    recrawl_after_s=86_400.0,
    recrawl_adaptive=True,
    recrawl_least_s=3600.0,
    recrawl_most_s=604_800.0,
    sitemaps=True,
    canonical="honor",
    strip_parameters=("utm", "ref*"),
    sort_query=True,
    nofollow="ignore",
    twins="skip",
    simhash=True,
    delay_s=2.0,
    per_ip=True,
    retries=0,
    delay_factor=5.0,
    delay_most_s=30.0,
    refusals_max=7,
    network_wait_s=3600.0,
    partition="domain",
    copies=5,
    balance="off",
    name="docs",
    contact="you@example.org",
    headers=("accept-language: de",),
    user_agent="Mozilla/5.0 (docsbot)",
    robots_token="docsbot",
)


def mistake(text: str) -> str:
    with pytest.raises(ConfigError) as found:
        parse(text, FILE)
    sentence = str(found.value)
    assert "\n" not in sentence
    return sentence


def test_every_key_reaches_the_job() -> None:
    assert ALL_AS_JOB == parse(ALL, FILE).job
    lending = parse('balance = "level"\nblock = 7\nupdate = 0.5', FILE)
    assert Job(balance="level", block_urls=7, update_s=0.5) == lending.job
    assert Job(max_pages=9) == parse("max-pages = 9", FILE).job
    assert Job(max_bytes=1_500_000) == parse("max-bytes = '1.5 MB'", FILE).job
    assert Job(max_time_s=5400.0) == parse("max-time = '90 min'", FILE).job
    forgets = parse('history = "bloom"\nrecrawl-after = "7d"\ngrain = "1d"\nfilters = "rbloom"', FILE)
    assert Job(history="bloom", recrawl_after_s=604_800.0, grain_s=86_400.0, filters="rbloom") == forgets.job
    weekly = parse('history = "bloom"\nrecrawl-after = "30d"\ncalendar-grain = "week"', FILE).job
    assert (Job(history="bloom", recrawl_after_s=2_592_000.0, calendar_grain="week"), 5) == (weekly, weekly.grains)
    apart = {
        "block",
        "update",
        "max-pages",
        "max-bytes",
        "max-time",
        "history",
        "grain",
        "calendar-grain",
        "filters",
        "solver",
        "proxies",
        "proxy-judge",
        "ca-file",
    }
    assert set(KEYS) == {line.split(" = ")[0] for line in ALL.strip().splitlines()} | apart


def test_a_solver_is_for_predicted_times_alone() -> None:
    assert Job(balance="predictive", solver="pso") == parse('balance = "predictive"\nsolver = "pso"', FILE).job
    assert "use balance predictive" in mistake('balance = "drain"\nsolver = "pso"')
    assert "use balance predictive" in mistake('solver = "pso"')
    assert "solver would do nothing" in mistake('balance = "drain"\nsolver = "exact"')
    assert "solver" in mistake('balance = "predictive"\nsolver = "ant"')


@pytest.mark.parametrize("copies", [1, 6, 0, -1])
def test_a_number_of_copies_that_no_swarm_keeps_is_refused(copies: int) -> None:
    assert f"kadcrawl.toml, line 1: copies must be from 2 to 5, not {copies}" == mistake(f"copies = {copies}")


def test_every_field_of_a_job_but_the_cells_can_be_said() -> None:
    # `proxies` says the one or the other.
    assert {entry.name for entry in fields(Job)} - {"cell_bits", "proxies_from"} == {
        field for field, _ in KEYS.values()
    } | RULE_READERS.keys() | {"shared_limits"}


def test_an_empty_file_is_the_default_job_and_says_nothing() -> None:
    found = parse("# nothing\n", FILE)
    assert (Job(), {}) == (found.job, found.values)


def test_what_is_said_is_told_from_what_is_default() -> None:
    assert {"delay_s": 1.0, "retries": 3} == parse("retries = 3\ndelay = 1.0", FILE).values


def test_a_seed_given_twice_is_one() -> None:
    assert ("https://example.org/",) == parse(
        'seeds = ["https://example.org", "https://EXAMPLE.org/#x"]', FILE
    ).job.seeds


@cases("key", KEYS)
def test_a_slip_of_the_pen_is_told_from_the_key_that_was_meant(key: str) -> None:
    for slip in (key.replace("-", "_") + "x", key[:-1], key.upper()):
        assert (
            f"kadcrawl.toml, line 2: there is no key {slip} at the top of a job file; did you mean {key}?"
            == mistake(f"\n{slip} = 1")
        )


def test_a_key_like_no_other_is_answered_by_all_keys() -> None:
    keys = (
        f"the keys are {', '.join(KEYS)}, sinks; the tables [limits], [[roles]], [[records]], [[pools]] and [[sites]]"
    )
    assert mistake("zzz = 1").endswith(f"there is no key zzz at the top of a job file; {keys}")
    assert mistake("sink = []").endswith("; did you mean sinks?")


@pytest.mark.parametrize("key", [key for key, (field, _) in KEYS.items() if field in UNSET])
def test_an_optional_setting_is_unset_by_none(key: str) -> None:
    field = KEYS[key].field
    assert {field: UNSET[field]} == parse(f"{key} = 'none'", FILE).values


def test_a_setting_that_is_not_optional_has_no_none() -> None:
    more = {"query_parameters_max", "headers", "user_agent", "robots_token", "ca_pem", "strip_parameters"}
    optional = {"contact", "include", "exclude", "proxy_judge", "path_segments_max", "path_repeats_max"}
    assert {name for name in UNSET if getattr(Job(), name) is not None} == optional | more
    assert 'scope must be one of host, domain, prefix, any, in quotes, not "none"' in mistake("scope = 'none'")
    assert parse("name = 'none'", FILE).job.name == "none"
    assert ((), None) == (parse("proxies = 'none'", FILE).job.proxies, parse("proxies = 'none'", FILE).job.proxies_from)


@pytest.mark.parametrize(
    ("line", "seconds"),
    [("delay = '2 min'", 120.0), ("delay = '500 ms'", 0.5), ("delay = 3", 3.0), ("delay = '4'", 4.0)],
)
def test_a_delay_has_a_unit_or_is_in_seconds(line: str, seconds: float) -> None:
    assert seconds == parse(line, FILE).job.delay_s


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (
            "[politeness]\ndelay = 2\nretries = 1",
            "line 1: there is no table [politeness]; write delay, retries at the top",
        ),
        ("delay = 1\n\n[[seed]]\nurl = 'x'", "line 3: there is no table [seed]; did you mean seeds?"),
        ("delay = 1\n[seed.more]\n", "line 2: there is no table [seed]; did you mean seeds?"),
        ("seed.url = 1", "line 1: there is no table [seed]; did you mean seeds?"),
        (
            "delay = 1\n[scope]\ninclude = ['x']",
            "line 2: scope must be one of host, domain, prefix, any, in quotes, not a t",
        ),
    ],
)
def test_a_table_that_is_none_is_told_and_where_its_keys_belong(text: str, sentence: str) -> None:
    assert mistake(text).startswith(f"kadcrawl.toml, {sentence}")


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ('name = """\ndely = 1\n"""\ndely = 2', 4),
        ("seeds = [\n  # dely = 1\n]\n  dely  =  2", 4),
        ('\r\n\r\n"dely" = 1', 3),
        ("'dely' = 1", 1),
        ("dely = [\n 1,\n 2,\n]", 1),
    ],
)
def test_the_line_is_where_the_key_stands_not_where_a_text_mentions_it(text: str, line: int) -> None:
    assert mistake(text).startswith(f"kadcrawl.toml, line {line}: there is no key dely")


@pytest.mark.parametrize(
    "text",
    [
        '"d\\u0065ly" = 1',
        'name = """\n' + "dely = 1\n" * LINES_TRIED_MAX + '"""\ndely = 2',
    ],
)
def test_without_a_line_the_key_is_named_all_the_same(text: str) -> None:
    assert mistake(text).startswith("kadcrawl.toml: there is no key dely")


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("max-depth = 'three'", 'max-depth must be a whole number of links, not "three"'),
        ("max-depth = 1.5", "max-depth must be a whole number of links, not 1.5"),
        ("max-depth = true", "max-depth must be a whole number of links, not true"),
        ("max-depth = -1", "max-depth must be 0 or more, not -1"),
        ("max-pages = 0", "max-pages must be 1 or more, not 0"),
        ("max-bytes = 0", "max-bytes must be 1 or more, not 0"),
        (
            "max-bytes = 'much'",
            'max-bytes must be a size, such as "500 MB", "10 GiB", or a number of bytes, not "much"',
        ),
        ("max-time = 0", "max-time must be above 0, up to 3660 days, not 0"),
        ("max-time = '3661 days'", "max-time must be above 0, up to 3660 days, not 316310400.0"),
        ("max-pages = 66666666666666666666", f"max-pages must be at most {2**53}, not 66666666666666666666"),
        (
            "delay = '2 s.'",
            'delay must be a length of time, such as "90s", "12h", "7 days", or a number of seconds, not',
        ),
        (
            "include = ['none', 'x']",
            "include: none means no value, and cannot go with others; as a pattern write (none)",
        ),
        ("delay = nan", "delay must be from 0 to 86400 seconds, not NaN"),
        ("delay = 86401", "delay must be from 0 to 86400 seconds, not 86401"),
        ("retries = 21", "retries must be from 0 to 20, not 21"),
        ("delay-factor = 101", "delay-factor must be from 0 to 100, not 101"),
        ("block = 501", "block must be from 1 to 500, not 501"),
        ("update = 0", "update must be from 0.1 to 3600 seconds, not 0"),
        ("scope = 'hots'", 'scope must be one of host, domain, prefix, any, in quotes, not "hots"'),
        ("partition = 1", "partition must be one of host, domain, url, in quotes, not 1"),
        ("balance = 'on'", 'balance must be one of auto, level, drain, predictive, off, in quotes, not "on"'),
        ("name = ''", 'name must have 1 to 100 characters, not ""'),
        ("name = 2026-11-22", 'name must be a text in quotes, not "2026-11-22"'),
        ("contact = ['a@b.c']", 'contact must be a URL or an e-mail address, in quotes, not ["a@b.c"]'),
        ("contact = 'https://ü.example/'", 'contact must be printable ASCII, not "https://ü.example/"'),
        (
            "contact = 'me'",
            "contact must be a URL such as https://example.org/crawler, or an e-mail address such as you@example.org, "
            'not "me"',
        ),
        (
            "seeds = ['https://a:secret@example.org/']",
            "seeds: 'https://***@example.org/' has a user or a password, which would be dropped: leave them out",
        ),
        (
            "seeds = 'https://a:secret@example.org/'",
            'seeds must be a list of URLs, such as ["https://example.org/"], not "https://***@example.org/"',
        ),
        (
            "seeds = 'https://a.b/'",
            'seeds must be a list of URLs, such as ["https://example.org/"], not "https://a.b/"',
        ),
        ("seeds = ['a.b']", "seeds: 'a.b' has no scheme: did you mean https://a.b/?"),
        ("seeds = ['ftp://a.b']", "seeds: 'ftp://a.b' cannot be crawled: only http and https URLs can, not ftp"),
        ("include = 'x'", "include must be a list of regular expressions, such as ['/docs/', '\\.html$'], not \"x\""),
        ("exclude = ['(']", "exclude: pattern '(' is not a regular expression: missing ), unterminated subpattern"),
        (
            'exclude = ["/a\\b"]',
            "exclude: \\b in double quotes is a backspace; in 'single quotes' it is the edge of a wo",
        ),
        (f"name = '{'a' * 101}'", f'name must have 1 to 100 characters, not "{"a" * 56}...'),
    ],
)
def test_a_wrong_value_is_told_with_its_line_and_what_would_do(text: str, sentence: str) -> None:
    told = mistake(f"# a job\n{text}\n")
    assert told.startswith(f"kadcrawl.toml, line 2: {sentence}")


def test_a_file_has_as_many_seeds_as_a_job_and_no_more() -> None:
    most = [f"https://example.org/{n}" for n in range(10_000)]
    assert len(parse(f"seeds = {most}", FILE).job.seeds) == 10_000
    assert mistake(f"seeds = {[*most, 'https://example.org/']}").startswith(
        "kadcrawl.toml, line 1: seeds: a job has at most 10000 seeds"
    )


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("delay-most = 9", "delay-most would do nothing, as it is for delay-factor"),
        ("delay-factor = 2\ndelay = 61", "delay-most must be at least delay"),
        ("block = 1\nbalance = 'off'", "block would do nothing, as balance off lends no pages"),
        ("balance = 'off'\nupdate = 1\nblock = 1", "block and update would do nothing, as balance off lends no pages"),
    ],
)
def test_what_cannot_go_together_is_told_in_the_words_of_the_file(text: str, sentence: str) -> None:
    assert mistake(text).startswith(f"kadcrawl.toml: {sentence}")


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("delay = 1\nscope = host", "line 2, column 9: invalid value; a text stands in quotes"),
        (
            'include = ["\\d"]',
            "line 1, column 15: unescaped '\\' in a string; in 'single quotes' a backslash is nothing sp",
        ),
        ("delay 1\n", "line 1, column 7: expected '=' after a key in a key/value pair"),
        ("delay = 1\n\nseeds = [\n\n", "line 3, column 10: invalid value"),
        ("delay = 1\ndelay = 2\n", "line 2, column 10: cannot overwrite a value; a key can be given once"),
        ("delay = 1\ndelay = 2", "line 2, column 10: cannot overwrite a value; a key can be given once"),
    ],
)
def test_broken_toml_is_told_with_line_and_column(text: str, sentence: str) -> None:
    assert mistake(text).startswith(f"kadcrawl.toml, {sentence}")


@pytest.mark.parametrize("text", [f"x = {'[' * 100_000}", f"x = {'1' * 5000}"])
def test_what_no_toml_reader_can_take_is_told(text: str) -> None:
    assert mistake(text).startswith("kadcrawl.toml")


def test_a_file_of_the_largest_size_is_read_and_one_byte_more_is_not(tmp_path: Path) -> None:
    path = tmp_path / "job.toml"
    path.write_bytes(b"delay = 3\n#".ljust(JOB_FILE_BYTES_MAX, b" "))
    assert read(path).job.delay_s == 3
    path.write_bytes(b"delay = 3\n#".ljust(JOB_FILE_BYTES_MAX + 1, b" "))
    with pytest.raises(ConfigError, match=f"^{re.escape(str(path))} is too large for a job file: at most 4 MiB$"):
        read(path)


def test_a_byte_order_mark_is_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "job.toml"
    path.write_bytes(b"\xef\xbb\xbfdelay = 3\r\n")
    assert read(path).job.delay_s == 3


def test_a_file_that_is_not_utf_8_is_told_with_the_line(tmp_path: Path) -> None:
    path = tmp_path / "job.toml"
    path.write_bytes("delay = 1\nname = 'Löwe'\n".encode("latin-1"))
    with pytest.raises(ConfigError, match=r"job\.toml, line 2: not UTF-8"):
        read(path)


def test_a_file_that_cannot_be_read_is_told(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"^cannot read the job file .*: Is a directory$"):
        read(tmp_path)
    with pytest.raises(ConfigError, match=r"^cannot read the job file .*missing\.toml: No such file or directory$"):
        read(tmp_path / "missing.toml")
    if os.geteuid() != 0:
        (tmp_path / "mine.toml").touch(mode=0)
        with pytest.raises(ConfigError, match="Permission denied"):
            read(tmp_path / "mine.toml")
