"""Test when a crawl logs in at a site, when a session is lost, and when a site is given up."""

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from kadcrawl.crawl.cookies.sessions import GIVEN_UP_S, NEW_S, RETRY_S, TRIES_MAX, Sessions, leads_to
from kadcrawl.crawl.cookies.site_cookies import SiteCookies
from kadcrawl.crawl.fetch.result import FetchError, FetchResult
from kadcrawl.settings.job import Job
from kadcrawl.settings.site_login import SiteLogin
from kadcrawl.settings.site_rules import SiteRule
from kadcrawl.settings.site_settings import SiteSettings
from tests.support.sites.fetched_page import PAGE
from tests.support.stores import opened

NOW = 1_700_000_000.0
SITE, PATH = "a.test", "https://a.test/x"
LOGIN = SiteLogin(url="https://a.test/login?next=/", secrets=(("password", "wiki"),))
SETTINGS = SiteSettings(Job(sites=(SiteRule(match=(SITE,), cookies="keep", login=LOGIN),)))


def answer(status: int | None = 200, location: str = "", url: str = PATH, cookie: bytes = b"") -> FetchResult:
    headers = [(b"Location", location.encode())] if location else []
    headers += [(b"Set-Cookie", cookie)] if cookie else []
    error = FetchError.TIMEOUT if status is None else None
    return replace(PAGE, url=url, status=status, headers=tuple(headers), error=error)


SHOWN, CLOSED, AWAY = answer(), answer(401), answer(302, "/login?from=x")


class World:
    def __init__(self, cookies: SiteCookies) -> None:
        self.cookies = cookies
        self.sessions = Sessions(cookies, SETTINGS, {"wiki": "hunter2"})

    def log_in(self, now: float = NOW, status: int | None = 302, cookie: bytes = b"s=1") -> float:
        result, _ = self.cookies.learn(SITE, answer(status, "/home", LOGIN.url, cookie), now)
        return self.sessions.note_login(SITE, LOGIN, result, now)

    @property
    def wants_login(self) -> bool:
        return self.sessions.login_before(SITE, PATH) is not None


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with closing(opened(tmp_path)) as store:
        yield World(SiteCookies(store.sites, store.cell_of, SETTINGS))


def test_a_site_is_logged_in_once_and_its_next_owner_goes_on(world: World) -> None:
    assert world.wants_login
    assert b"password=hunter2" == world.sessions.form(LOGIN).form
    assert 0.0 == world.log_in()
    assert not world.wants_login
    heir = Sessions(world.cookies, SETTINGS, {"wiki": "hunter2"})
    assert heir.login_before(SITE, PATH) is None
    assert heir.login_before("b.test", "https://b.test/") is None


@pytest.mark.parametrize("closed", [CLOSED, AWAY])
def test_a_lost_session_is_begun_again_before_the_next_page(closed: FetchResult, world: World) -> None:
    world.log_in()
    assert not world.sessions.is_lost(SITE, PATH, SHOWN, NOW)
    assert world.sessions.is_lost(SITE, PATH, closed, NOW + NEW_S)
    assert world.wants_login
    world.log_in(NOW + NEW_S, cookie=b"")
    assert not world.wants_login


def test_a_page_that_a_new_session_does_not_open_is_final_if_the_session_opens_others(world: World) -> None:
    world.log_in()
    assert not world.sessions.is_lost(SITE, PATH, SHOWN, NOW + 1)
    assert not world.sessions.is_lost(SITE, PATH, CLOSED, NOW + NEW_S - 1)
    assert not world.wants_login


@pytest.mark.parametrize("result", [answer(404), answer(500), answer(None), answer(302, "/elsewhere"), SHOWN])
def test_other_answers_lose_no_session(result: FetchResult, world: World) -> None:
    world.log_in()
    assert not world.sessions.is_lost(SITE, PATH, result, NOW + NEW_S)
    assert not world.wants_login


@pytest.mark.parametrize(("status", "cookie"), [(403, b"s=1"), (None, b""), (200, b"")])
def test_a_form_that_is_refused_is_sent_a_few_times_and_then_the_site_is_given_up(
    status: int | None, cookie: bytes, world: World
) -> None:
    waits = [world.log_in(NOW, status, cookie) for _ in range(TRIES_MAX)]
    assert [RETRY_S, 2 * RETRY_S, 0.0] == waits
    assert world.wants_login
    assert [True, False] == [world.sessions.is_given_up(SITE, NOW + after) for after in (GIVEN_UP_S - 1, GIVEN_UP_S)]


def test_logins_that_open_nothing_end_as_well(world: World) -> None:
    for _ in range(TRIES_MAX):
        assert not world.sessions.is_given_up(SITE, NOW)
        world.log_in()
        assert world.sessions.is_lost(SITE, PATH, AWAY, NOW)
    assert world.sessions.is_given_up(SITE, NOW)


@pytest.mark.parametrize(
    ("location", "leads"),
    [
        ("/login", True),
        ("https://a.test/login?x=/y", True),
        ("/login/", False),
        ("https://b.test/login", False),
        ("/", False),
        ("javascript:x", False),
    ],
)
def test_a_redirect_leads_to_the_form_whatever_its_query(location: str, leads: bool) -> None:
    assert leads == leads_to(answer(302, location), LOGIN)
