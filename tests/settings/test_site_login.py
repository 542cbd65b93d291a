"""Test the login form of a site rule: its bounds, its table, and a clear sentence for each mistake."""

from pathlib import Path
from typing import Any

import pytest

from kadcrawl.errors import ConfigError
from kadcrawl.settings.job import Job
from kadcrawl.settings.job_file import parse
from kadcrawl.settings.site_file import keys_of
from kadcrawl.settings.site_login import FIELD_CHARS_MAX, FIELDS_MAX, SiteLogin
from kadcrawl.settings.site_rules import SiteRule, login_hooks, secrets_of

URL = "https://a.test/login"
LOGIN = SiteLogin(url=URL, fields=(("user", "me & you"),), secrets=(("password", "wiki"),))
TABLE = f"{{ url = '{URL}#top', fields = {{ user = 'me & you' }}, secrets = {{ password = 'wiki' }} }}"


def test_a_form_has_its_fields_and_the_secrets_of_the_machine() -> None:
    assert b"user=me+%26+you&password=p%C3%A4ss" == LOGIN.body({"wiki": "p\u00e4ss"})
    rule = SiteRule(match=("a.test",), cookies="keep", login=LOGIN)
    assert ("wiki",) == secrets_of([rule])


def test_a_table_makes_the_form_and_shows_it_without_secrets() -> None:
    text = f"[[sites]]\nmatch = 'a.test'\ncookies = 'keep'\nlogin = {TABLE}"
    [rule] = parse(text, Path("kadcrawl.toml")).job.sites
    assert LOGIN == rule.login
    assert {"url": URL, "fields": {"user": "me & you"}, "secrets": {"password": "wiki"}} == keys_of(rule)["login"]


@pytest.mark.parametrize(
    ("login", "why"),
    [
        ("'x'", "login must be a table, as in"),
        ("{ fields = {} }", "login must be a table, as in"),
        (f"{{ url = '{URL}' }}", "login needs a secret"),
        (f"{{ url = '{URL}', secret = 'x' }}", "login has no key 'secret'; it has url, fields, secrets and hook"),
        (f"{{ url = '{URL}', secrets = {{ p = 5 }} }}", "secrets of login must be a table of texts"),
        (f"{{ url = '{URL}', secrets = {{ p = 'Not A Name' }} }}", "the name of a secret has"),
        (f"{{ url = '{URL}', hook = 5 }}", "hook of login must be a text, as in hook = 'logins:wiki'"),
        (f"{{ url = '{URL}', hook = 'no hook' }}", "hook must be module:function"),
        ("{ url = 'a.test', secrets = { p = 'x' } }", "has no scheme"),
    ],
)
def test_a_mistake_in_a_table_is_told(login: str, why: str) -> None:
    with pytest.raises(ConfigError) as error:
        parse(f"[[sites]]\nmatch = 'a.test'\ncookies = 'keep'\nlogin = {login}", Path("kadcrawl.toml"))
    assert why in str(error.value)


def test_a_hook_needs_no_secret_and_is_known_to_the_job() -> None:
    text = f"[[sites]]\nmatch = 'a.test'\ncookies = 'keep'\nlogin = {{ url = '{URL}', hook = 'logins:wiki' }}"
    job = parse(text, Path("kadcrawl.toml")).job
    assert {"logins:wiki"} == job.hooks == login_hooks(job.sites)
    assert {"url": URL, "fields": {}, "secrets": {}, "hook": "logins:wiki"} == keys_of(job.sites[0])["login"]


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"url": "https://A.test/"}, "must be canonical"),
        ({"fields": (("password", "x"),)}, "a field of login is given twice"),
        ({"fields": tuple((f"f{number}", "x") for number in range(FIELDS_MAX))}, f"at most {FIELDS_MAX} fields"),
        ({"fields": (("x" * (FIELD_CHARS_MAX + 1), "x"),)}, "a field of login has 1 to"),
        ({"fields": (("x", "x" * (FIELD_CHARS_MAX + 1)),)}, "a value of login has at most"),
    ],
)
def test_a_form_of_another_peers_job_is_checked(fields: dict[str, Any], why: str) -> None:
    with pytest.raises(ConfigError, match=why):
        SiteLogin(**({"url": URL, "secrets": (("password", "wiki"),)} | fields))


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"cookies": None}, "login needs cookies = 'keep'"),
        ({"match": ("*.a.test",)}, "name each of the hosts in match, without a star"),
        ({"match": ("b.test",)}, "login must go to a host of its rule, not to a.test"),
        (
            {"login": SiteLogin(url="http://a.test/", secrets=(("p", "x"),))},
            "must go to an https URL, or add http-secrets",
        ),
    ],
)
def test_a_form_goes_to_its_own_host_by_https(fields: dict[str, Any], why: str) -> None:
    made: dict[str, Any] = {"match": ("a.test",), "cookies": "keep", "login": LOGIN} | fields
    with pytest.raises(ConfigError, match=why):
        SiteRule(**made)


def test_hosts_that_share_no_cookies_share_no_form() -> None:
    rule = SiteRule(match=("a.test", "www.a.test"), cookies="keep", login=LOGIN)
    with pytest.raises(ConfigError, match=r"shares no cookies with www.a.test; make another rule"):
        Job(sites=(rule,))
    assert (rule,) == Job(sites=(rule,), partition="domain").sites
