"""Test the page that a login hook reads, and that its result is bounded and goes where secrets may go."""

from dataclasses import replace

import msgspec
import pytest

from kadcrawl.crawl.cookies.login_request import (
    COOKIES_MAX,
    FIELDS_MAX,
    PAGE_BYTES_MAX,
    LoginAnswer,
    LoginHookError,
    LoginRequest,
    page_of,
    read_answer,
    request_of,
    set_cookie_values,
)
from kadcrawl.settings.job import Job
from kadcrawl.settings.site_login import SiteLogin
from kadcrawl.settings.site_rules import SiteRule
from kadcrawl.settings.site_settings import SiteSettings
from tests.support.sites.fetched_page import PAGE

URL = "https://a.test/login"
LOGIN = SiteLogin(url=URL, fields=(("user", "me"),), secrets=(("password", "wiki"),), hook="logins:wiki")
SETTINGS = SiteSettings(Job(sites=(SiteRule(match=("a.test",), cookies="keep", login=LOGIN),)))


def asked(**answer: object) -> LoginRequest | None:
    return request_of(read_answer(msgspec.json.encode(answer)), LOGIN, SETTINGS)


def test_a_hook_reads_the_page_the_cookies_the_fields_and_the_secrets() -> None:
    result = replace(PAGE, url=URL, status=200, content="<p>é".encode() + bytes(PAGE_BYTES_MAX))
    page = page_of(LOGIN, result, "s=1; t=a=b", {"wiki": "hunter2"})
    assert (URL, 200, {"s": "1", "t": "a=b"}) == (page.url, page.status, page.cookies)
    assert ({"user": "me"}, {"password": "hunter2"}) == (page.fields, page.secrets)
    assert page.text.startswith("<p>é")
    assert len(page.text) <= PAGE_BYTES_MAX


def test_a_post_has_a_form_and_a_get_has_a_query() -> None:
    assert LoginRequest(URL, (), b"a=1+%26") == asked(fields={"a": "1 &"})
    assert LoginRequest("https://a.test/in?x=1&a=1") == asked(url="/in?x=1#y", method="GET", fields={"a": "1"})
    assert LoginRequest(URL, (("X-Token", "t"),)) == asked(method="GET", headers={"X-Token": "t"})


def test_cookies_alone_are_no_request() -> None:
    answer = read_answer(b'{"cookies": {"s": "1"}}')
    assert request_of(answer, LOGIN, SETTINGS) is None
    assert ["s=1; Path=/; Secure"] == set_cookie_values(answer, LOGIN)
    assert ["s=1; Path=/"] == set_cookie_values(answer, SiteLogin(url="http://a.test/", hook="a:b"))


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        ({}, "neither a request nor cookies"),
        ({"url": "https://b.test/", "fields": {"a": "1"}}, "must go to a.test, by https"),
        ({"url": "http://a.test/", "fields": {"a": "1"}}, "must go to a.test, by https"),
        ({"url": "https://a.test:8443/", "fields": {"a": "1"}}, "must go to a.test, by https"),
        ({"url": "mailto:x", "fields": {"a": "1"}}, "is no URL"),
        ({"url": "/in"}, "has no fields"),
        ({"method": "GET", "headers": {"Host": "b.test"}}, "a header that HTTP or kadcrawl does not allow"),
        ({"method": "GET", "headers": {"X": "s3cret\r\nY: 1"}}, "a header that HTTP or kadcrawl does not allow"),
        ({"method": "PUT"}, "must return a dict"),
        ({"fields": {"a": 5}}, "must return a dict"),
        ({"password": "s3cret"}, "must return a dict"),
        ({"fields": {f"f{number}": "" for number in range(FIELDS_MAX + 1)}}, "must return a dict"),
        ({"cookies": {f"c{number}": "" for number in range(COOKIES_MAX + 1)}}, "must return a dict"),
        (None, "must return a dict"),
    ],
)
def test_another_result_is_refused_and_its_values_are_not_told(answer: object, why: str) -> None:
    with pytest.raises(LoginHookError, match=why) as error:
        request_of(read_answer(msgspec.json.encode(answer)), LOGIN, SETTINGS)
    assert "s3cret" not in str(error.value)


def test_as_many_fields_and_cookies_as_allowed_are_taken() -> None:
    fields = {f"f{number}": "" for number in range(FIELDS_MAX)}
    cookies = {f"c{number}": "" for number in range(COOKIES_MAX)}
    answer = read_answer(msgspec.json.encode({"fields": fields, "cookies": cookies}))
    assert LoginAnswer(fields=fields, cookies=cookies) == answer
