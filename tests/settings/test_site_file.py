"""Test the [[sites]] tables of a job file: their values, and a clear sentence for each mistake."""

from pathlib import Path

import pytest

from kadcrawl.errors import ConfigError
from kadcrawl.settings.job_file import parse
from kadcrawl.settings.site_file import keys_of
from kadcrawl.settings.site_rules import SiteRule

FILE = Path("kadcrawl.toml")
SITES = """
delay = 2
[[sites]]
match = "Intranet.example"
delay = 0
connections = 4
max-site-pages = 100
sitemaps = ["https://intranet.example/news.xml", "https://INTRANET.example/#top"]
[[sites]]
match = ["*.example.org", "example.net:8080", "example.net:8080"]
sitemaps = true
[[sites]]
match = "ads.example.org"
off = true
"""
RULES = (
    SiteRule(
        match=("intranet.example",),
        delay_s=0.0,
        connections=4,
        site_pages_max=100,
        sitemap_urls=("https://intranet.example/news.xml", "https://intranet.example/"),
    ),
    SiteRule(match=("*.example.org", "example.net:8080"), sitemaps=True),
    SiteRule(match=("ads.example.org",), off=True),
)


def test_a_file_says_rules_for_single_sites() -> None:
    found = parse(SITES, FILE)
    assert RULES == found.job.sites
    assert {"delay_s": 2.0, "sites": RULES} == found.values


def test_a_rule_is_shown_as_the_table_that_makes_it() -> None:
    assert {
        "match": ["intranet.example"],
        "delay": 0.0,
        "connections": 4,
        "max-site-pages": 100,
        "sitemaps": ["https://intranet.example/news.xml", "https://intranet.example/"],
    } == keys_of(RULES[0])
    assert {"match": ["ads.example.org"], "off": True} == keys_of(RULES[2])


@pytest.mark.parametrize(
    ("line", "field", "value", "shown"),
    [
        ("recrawl-after = 'never'", "recrawl_after_s", 0.0, "never"),
        ("recrawl-after = '12h'", "recrawl_after_s", 43_200.0, "12h"),
        ("recrawl-after = 90", "recrawl_after_s", 90.0, "90s"),
        ("max-body = '2MB'", "body_bytes_max", 2_000_000, 2_000_000),
        ("max-body = 3000", "body_bytes_max", 3000, 3000),
        ("timeout = '2m'", "fetch_timeout_s", 120.0, 120.0),
        ("timeout = 1.5", "fetch_timeout_s", 1.5, 1.5),
        ("retries = 0", "retries", 0, 0),
        ("robots = 'ignore'", "robots", "ignore", "ignore"),
    ],
)
def test_values_are_read_with_their_units(line: str, field: str, value: object, shown: object) -> None:
    job = parse(f"recrawl-after = '7d'\n[[sites]]\nmatch = 'a.test'\n{line}", FILE).job
    assert value == getattr(job.sites[0], field)
    assert {"match": ["a.test"], line.partition(" =")[0]: shown} == keys_of(job.sites[0])


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("sites = 3", "line 1: sites must be tables, each begun by [[sites]] in double brackets"),
        ("[sites]\nmatch = 'a.test'", "line 1: sites must be tables"),
        ("[[sites]]\noff = true", "line 1: [[sites]] number 1: match is missing"),
        ("[[sites]]\nmatch = 3\noff = true", "line 1: [[sites]] number 1: match must be a host in quotes"),
        ("[[sites]]\nmatch = 'a.test'\ndelai = 3", "(match 'a.test'): there is no key 'delai'; did you mean delay?"),
        ("[[sites]]\nmatch = 'a.test'\nzzz = 3", "there is no key 'zzz'; it has match, off, delay"),
        ("[[sites]]\nmatch = 'a.test'\ndelay = 'x'", "delay must be a number of seconds"),
        ("[[sites]]\nmatch = 'a.test'\ndelay = -1", "delay must be from 0 to 86400 seconds"),
        ("[[sites]]\nmatch = 'a.test'\nmax-site-pages = 0", "max-site-pages must be from 1"),
        ("[[sites]]\nmatch = 'a.test'\nsitemaps = 'ftp://a.test/'", "only http and https URLs can"),
        ("[[sites]]\nmatch = 'a.test'\nsitemaps = 4", "sitemaps must be true, false, a URL in quotes"),
        ("[[sites]]\nmatch = 'a.test'\nmax-body = 'big'", "max-body must be a number of bytes, or a size such as"),
        ("[[sites]]\nmatch = 'a.test'\ntimeout = 'soon'", 'timeout must be a length of time, such as "30s"'),
        ("[[sites]]\nmatch = 'a.test'\nrobots = 'no'", "robots must be obey or ignore"),
        ("[[sites]]\nmatch = '*.a.test'\nrobots = 'ignore'", "name each of them in match, without a star"),
        (
            "[[sites]]\nmatch = 'a.test'\nrecrawl-after = 'never'",
            "recrawl-after of site a.test needs recrawl-after of the job",
        ),
        ("[[sites]]\nmatch = 'a.test'\nconnections = 2", "connections of site a.test need delay = 0 in the same rule"),
        (
            "partition = 'url'\n[[sites]]\nmatch = 'a.test'\nmax-site-pages = 2",
            "max-site-pages of site a.test cannot go with partition url",
        ),
    ],
)
def test_a_mistake_is_told_in_one_sentence(text: str, why: str) -> None:
    with pytest.raises(ConfigError) as error:
        parse(text, FILE)
    assert why in str(error.value)


def test_rules_of_an_earlier_run_are_unset_by_none() -> None:
    assert {"sites": ()} == parse("sites = 'none'", FILE).values


def test_connections_go_with_the_delay_of_the_job() -> None:
    assert 2 == parse("delay = 0\n[[sites]]\nmatch = 'a.test'\nconnections = 2", FILE).job.sites[0].connections
