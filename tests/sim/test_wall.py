"""Sites that want their cookie back: whom the wall lets pass, and what the judges make of each request."""

from dataclasses import replace

import pytest

from sim.campaign import Hunt, hunt
from sim.judges import Facts, Fetch, Parting, cookies_kept, cookies_of_the_site
from sim.plan import Event, Kind, Plan
from sim.site_treatment import SiteTreatment
from sim.synthetic_web import SyntheticWeb
from sim.trial import Size, run
from sim.wall import COOKIE, FORM, Wall
from sim.web_server import Head, WebServer

HOST, SITE, OTHER = "a.test", "http://a.test", "http://b.test"
MINE = f"{COOKIE}={HOST}/1"


@pytest.mark.parametrize("has_form", [False, True])
def test_a_wall_lets_nobody_pass_without_a_cookie_that_it_has_given(has_form: bool) -> None:
    wall = Wall(HOST, has_form=has_form)
    assert wall.answer("/robots.txt", "") is None
    stopped = wall.answer("/x", f"{COOKIE}={HOST}/1")
    assert stopped is not None
    assert ("Location", "/login" if has_form else "/x") == stopped.headers[0]
    given = wall.log_in(FORM) if has_form else stopped
    assert ("Set-Cookie", f"{MINE}; Path=/") in given.headers
    assert wall.answer("/x", MINE) is None
    for cookie in (f"{COOKIE}={HOST}/2", f"{COOKIE}=b.test/1", f"{COOKIE}={HOST}/0", f"other={HOST}/1", ""):
        assert wall.answer("/x", cookie) is not None, cookie


def test_a_form_needs_its_password_and_a_site_that_has_one() -> None:
    assert 403 == Wall(HOST, has_form=True).log_in(FORM[:-1]).status
    assert 403 == Wall(HOST, has_form=False).log_in(FORM).status


def test_a_server_asks_the_wall_and_logs_what_it_saw() -> None:
    web = SyntheticWeb(1, sites=1, pages=3)
    [site] = web.sites
    server = WebServer(web, {site.host: Wall(site.host, has_form=True)})
    mine = f"{COOKIE}={site.host}/1"
    assert 302 == server.take(0.0, Head(site.host, "/", True), "").status
    assert 303 == server.take(1.0, Head(site.host, "/login", True, form_bytes=len(FORM)), "", FORM).status
    assert 200 == server.take(2.0, Head(site.host, "/", True, cookie=mine), "").status
    assert [("", "", False), ("", mine, True), (mine, "", False)] == [
        (one.cookie, one.given, one.is_form) for one in server.log
    ]
    assert 405 == WebServer(web).take(0.0, Head(site.host, "/login", True, form_bytes=0), "").status
    server.down.add(site.host)
    assert 403 == server.take(3.0, Head(site.host, "/", True), "").status


def fetch(at_s: float, cookie: str = MINE, machine: int = 1, given: str = "", lender: int | None = None) -> Fetch:
    return Fetch(at_s, f"{SITE}/{at_s}", SITE, 200, machine, lender, cookie=cookie, given=given)


KEEPS = Facts(treatments={SITE: SiteTreatment(0, cookies=True)}, delay_s=1.0)
FIRST = fetch(0.0, "", given=MINE)


@pytest.mark.parametrize(
    ("one", "is_found"),
    [
        (fetch(1.0), False),
        (fetch(1.0, ""), False),
        (fetch(1.0, f"{COOKIE}=b.test/1"), True),
        (fetch(1.0)._replace(site=OTHER), True),
        (fetch(1.0, "of a user's own web")._replace(site=OTHER), False),
        (fetch(1.0, lender=2), True),
        (fetch(1.0, "", lender=2)._replace(site=OTHER), False),
    ],
)
def test_a_cookie_is_for_its_own_site_which_is_not_lent(one: Fetch, is_found: bool) -> None:
    assert is_found is bool(cookies_of_the_site(replace(KEEPS, fetches=[one])))


@pytest.mark.parametrize(
    ("change", "is_found"),
    [
        ({"fetches": [FIRST, fetch(1.0)]}, False),
        ({"fetches": [FIRST, fetch(1.0, "")]}, True),
        ({"fetches": [FIRST, fetch(1.0, "")], "cut": {0}}, False),
        ({"fetches": [FIRST, fetch(1.9, "", machine=2)]}, False),
        ({"fetches": [FIRST, fetch(2.1, "", machine=2)]}, True),
        ({"fetches": [FIRST, fetch(2.1, "", machine=2)], "stops": [(1.9, 1)]}, False),
        ({"fetches": [FIRST, fetch(2.1, "", machine=2)], "stops": [(2.1, 1)]}, True),
        ({"fetches": [FIRST, fetch(2.1, "", 2)], "partings": [Parting(1.0, 3.0, frozenset({2}))]}, False),
        ({"fetches": [FIRST, fetch(1.0, "")], "delay_s": 0.0}, False),
        ({"fetches": [FIRST, fetch(2.1, "")], "delay_s": 0.0}, True),
    ],
)
def test_a_cookie_is_lost_only_with_a_machine_that_stops_at_once(change: dict[str, object], is_found: bool) -> None:
    assert is_found is bool(cookies_kept(replace(KEEPS, **change)))  # type: ignore[arg-type]


@pytest.mark.parametrize("login", [False, True])
def test_a_site_is_crawled_behind_its_wall_although_its_owner_dies(login: bool) -> None:
    walled = tuple(SiteTreatment(number, cookies=True, login=login) for number in range(3))
    kills = (Event(4.0, Kind.KILL, (1, 2)),)
    outcome = run(Plan(3, 6, kills, delay_s=0.5, treatments=walled), Size(pages=40, sites=6))
    assert {} == outcome.violations
    assert outcome.fetches > outcome.urls + 3


@pytest.mark.parametrize(
    ("mutant", "events", "judge"),
    [
        ("cookies_of_other_sites_sent", (), "cookies_of_the_site"),
        ("cookies_forgotten_on_move", (Event(5.0, Kind.LEAVE, (0, 1, 2)),), "cookies_kept"),
    ],
)
def test_a_bug_in_cookies_is_found_in_a_small_world(
    mutant: str, events: tuple[Event, ...], judge: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    walled = tuple(SiteTreatment(number, cookies=True) for number in range(5))
    plan = Plan(1, 6, events, delay_s=0.5, treatments=walled)
    monkeypatch.setattr("sim.target_worlds.draw", lambda seed, peers: plan)
    catch = hunt(Hunt(mutant, range(1, 2), 6, Size(pages=60, sites=8)))
    assert judge in catch.judges
