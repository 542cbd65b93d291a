"""Test that settings refuse values of other types, and name the field and both types."""

from pathlib import Path
from typing import Any

import pytest

from kadcrawl import Config, ConfigError, Job
from kadcrawl.settings.page_rules import Field, RecordRule, RoleRule
from kadcrawl.settings.proxy_list import ProxyPool
from kadcrawl.settings.site_login import SiteLogin
from kadcrawl.settings.site_rules import SiteRule


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"include": "/docs/"}, "include must be a tuple of str, not a str"),
        ({"exclude": {"/docs/"}}, "exclude must be a tuple of str, not a set"),
        ({"headers": {"Accept": "text/html"}}, "headers must be a tuple of str, not a dict"),
        ({"seeds": ("https://example.org/", 1)}, "seeds must be a tuple of str, not one with other values"),
        ({"max_pages": 1.5}, "max_pages must be int or None, not a float"),
        ({"max_pages": True}, "max_pages must be int or None, not a bool"),
        ({"delay_s": "1"}, "delay_s must be number, not a str"),
        ({"sitemaps": 1}, "sitemaps must be bool, not a int"),
        ({"name": None}, "name must be str, not a NoneType"),
        ({"shared_limits": (("body_bytes_max", "1"),)}, "shared_limits must be a tuple of a tuple"),
    ],
)
def test_a_job_refuses_a_value_of_another_type(fields: dict[str, Any], expected: str) -> None:
    with pytest.raises(ConfigError) as raised:
        Job(**fields)
    assert expected in str(raised.value)


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"data": "crawl-data"}, "data must be Path, not a str"),
        ({"port": "4160"}, "port must be int, not a str"),
        ({"sinks": "sqlite:secret.db"}, "sinks must be a tuple of str, not a str"),
        ({"metrics": "127.0.0.1:9000"}, "metrics must be a tuple (str, int) or None, not a str"),
        ({"metrics": ("127.0.0.1", "9000")}, "metrics must be a tuple (str, int) or None, not one with other"),
        ({"limits": {"body_bytes_max": 1}}, "limits must be Limits, not a dict"),
    ],
)
def test_a_config_refuses_a_value_of_another_type_and_shows_no_value(fields: dict[str, Any], expected: str) -> None:
    with pytest.raises(ConfigError) as raised:
        Config(**({"data": Path("crawl-data")} | fields))
    assert expected in str(raised.value)
    assert "secret" not in str(raised.value)


def test_a_list_counts_as_a_tuple_and_a_whole_number_as_a_number() -> None:
    lists: Any = ["/old/", "[?]"]
    job = Job(exclude=lists, delay_s=2)
    assert job == Job(exclude=("/old/", "[?]"), delay_s=2.0)
    assert hash(job) == hash(Job(exclude=("/old/", "[?]"), delay_s=2.0))


@pytest.mark.parametrize(
    ("made", "fields", "expected"),
    [
        (SiteRule, {"match": "localhost"}, "match must be a tuple of str, not a str"),
        (SiteRule, {"match": ("example.org",), "delay_s": "1"}, "delay_s must be number or None, not a str"),
        (SiteRule, {"match": ("example.org",), "headers": "Accept: a"}, "headers must be a tuple of str, not a str"),
        (ProxyPool, {"name": "fast", "proxies": "http://10.0.0.1:80"}, "proxies must be a tuple of str, not a str"),
        (SiteLogin, {"url": "http://example.org/", "fields": "ab"}, "fields must be a tuple of a tuple (str, str)"),
        (RoleRule, {"pattern": 1, "role": "next_link"}, "pattern must be str, not a int"),
        (RecordRule, {"pattern": "a", "fields": {"name": "css:a"}}, "fields must be a tuple of Field, not a dict"),
        (Field, {"name": "title", "selector": None}, "selector must be str, not a NoneType"),
    ],
)
def test_a_rule_refuses_a_value_of_another_type(made: Any, fields: dict[str, Any], expected: str) -> None:
    with pytest.raises(ConfigError) as raised:
        made(**fields)
    assert expected in str(raised.value)


def test_a_list_in_a_rule_counts_as_a_tuple_so_that_the_job_has_a_hash() -> None:
    lists: Any = ["example.org"]
    rules: Any = [SiteRule(match=lists, off=True)]
    assert hash(Job(sites=rules)) == hash(Job(sites=(SiteRule(match=("example.org",), off=True),)))
