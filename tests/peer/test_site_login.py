"""Real crawls of a site with a login form: a session begins before the first page, and again when it is over."""

from collections.abc import Callable
from pathlib import Path

import pytest
from aiohttp import web

from kadcrawl.crawl.cookies import sessions
from kadcrawl.members.swarm_key import SwarmKey
from kadcrawl.settings.site_login import SiteLogin
from kadcrawl.settings.site_rules import SiteRule
from scripts.kadcrawl_run import LoggedPage
from tests.peer.test_site_auth import everything_below
from tests.peer.test_site_cookies import owner_of
from tests.support.sites.web import Web, html
from tests.support.swarm.peers import MakePeer, finish
from tests.support.waiting import until

Lines = Callable[[], dict[str, LoggedPage]]
KEY = SwarmKey.generate()
SECRETS = {"wiki": "hunter2 & co"}
PAGES = 20


class Wiki:
    """A site with a form. A session ends after a number of pages."""

    def __init__(self, site: Web, pages: int = 1_000) -> None:
        self.logins: list[dict[str, str]] = []
        self.sessions: dict[str, int] = {}
        """The pages left of each session."""
        self.pages = pages
        self.password = "hunter2 & co"
        site.pages.clear()
        site.fallback = self.answer
        self.url = site.url

    async def answer(self, request: web.BaseRequest) -> web.StreamResponse:
        if request.path == "/robots.txt":
            return web.Response(status=404)
        if request.path == "/login":
            return await self.log_in(request)
        session = request.cookies.get("session", "")
        if self.sessions.get(session, 0) <= 0:
            return html(status=302, Location=f"/login?next={request.path}")
        self.sessions[session] -= 1
        if request.path == "/admin":
            return html(status=401)
        return html("/admin", *(f"/{number}" for number in range(PAGES)))

    async def log_in(self, request: web.BaseRequest) -> web.StreamResponse:
        fields = dict(await request.post())
        self.logins.append({name: str(value) for name, value in fields.items()})
        if request.method != "POST" or fields.get("password") != self.password:
            return html("/login", status=200)
        answer = html(status=302, Location="/0")
        answer.set_cookie("session", f"s3ss10n-{len(self.logins)}", httponly=True)
        self.sessions[f"s3ss10n-{len(self.logins)}"] = self.pages
        return answer


def rule_of(site: Web, delay_s: float = 0.0) -> SiteRule:
    host = f"127.0.0.2:{site.port}"
    login = SiteLogin(url=site.url("/login"), fields=(("user", "me"),), secrets=(("password", "wiki"),))
    return SiteRule(match=(host,), cookies="keep", login=login, http_secrets=True, delay_s=delay_s)


async def test_a_form_is_sent_before_the_first_page_and_nothing_shows_the_password(
    make_peer: MakePeer, lines: Lines, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with Web() as site:
        wiki = Wiki(site)
        first = await make_peer("a", sites=(rule_of(site),), key=KEY, secrets=SECRETS)
        peers = [first, await make_peer("b", join=first, key=KEY, secrets=SECRETS)]
        await first.crawl([site.url("/0")])
        await finish(peers)
        assert [{"user": "me", "password": "hunter2 & co"}] == wiki.logins
        failed = {url: line.fields["failed"] for url, line in lines().items() if "failed" in line.fields}
        assert {site.url("/admin"): "http_401"} == failed
        assert PAGES + 1 == len(lines())
    journaled = b"".join(path.read_bytes() for path in tmp_path.rglob("peer.sqlite*"))
    kept = everything_below(tmp_path)
    assert 0 == kept.count(b"hunter2")
    assert 0 == kept.count(b"s3ss10n") - journaled.count(b"s3ss10n")
    assert "hunter2" not in caplog.text


async def test_a_session_that_is_over_is_begun_again_and_no_page_is_lost(make_peer: MakePeer, lines: Lines) -> None:
    async with Web() as site:
        wiki = Wiki(site, pages=8)
        sessions_are_old_at_once = pytest.MonkeyPatch()
        sessions_are_old_at_once.setattr(sessions, "NEW_S", 0.0)
        peer = await make_peer("a", sites=(rule_of(site),), key=KEY, secrets=SECRETS)
        await peer.crawl([site.url("/0")])
        await finish([peer])
        sessions_are_old_at_once.undo()
        assert 3 <= len(wiki.logins) <= 6
        assert {site.url(f"/{number}") for number in range(PAGES)} == {
            url for url, line in lines().items() if line.fields["status"] == 200
        }


async def test_a_site_that_lets_nobody_in_is_given_up(
    make_peer: MakePeer, lines: Lines, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sessions, "RETRY_S", 0.01)
    async with Web() as site:
        wiki = Wiki(site)
        wiki.password = "another"
        peer = await make_peer("a", sites=(rule_of(site),), key=KEY, secrets=SECRETS)
        await peer.crawl([site.url("/0"), site.url("/1")])
        await finish([peer])
        assert sessions.TRIES_MAX == len(wiki.logins)
        assert {"login_failed"} == {line.fields["failed"] for line in lines().values()}


async def test_a_session_goes_on_at_the_next_owner(make_peer: MakePeer, lines: Lines) -> None:
    async with Web() as site:
        wiki = Wiki(site)
        first = await make_peer("a", sites=(rule_of(site, 0.02),), key=KEY, secrets=SECRETS)
        peers = [first, *[await make_peer(name, join=first, key=KEY, secrets=SECRETS) for name in "bc"]]
        await first.crawl([site.url("/0")])
        await until(lambda: len(site.fetched) >= PAGES // 2)
        owner = owner_of(site.url("/0"), peers)
        await owner.leave()
        peers.remove(owner)
        await finish(peers)
        assert 1 == len(wiki.logins)
        assert PAGES + 1 == len(lines())
