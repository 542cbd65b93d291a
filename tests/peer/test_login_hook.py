"""Real crawls of a site whose login form has a hidden field, by a hook: only the owner logs in, and nothing is told."""

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest
from aiohttp import web

from kadcrawl import StartError
from kadcrawl.crawl.cookies import sessions
from kadcrawl.members.swarm_key import SwarmKey
from kadcrawl.settings.site_login import SiteLogin
from kadcrawl.settings.site_rules import SiteRule
from scripts.kadcrawl_run import LoggedPage
from tests.peer.test_site_auth import everything_below
from tests.support.sites.web import Web, html
from tests.support.swarm.peers import MakePeer, finish

Lines = Callable[[], dict[str, LoggedPage]]
KEY = SwarmKey.generate()
SECRETS = {"wiki": "hunter2"}
PAGES = 12
MODULE = "login_hooks_of_a_test"
HOOKS = '''
def form(page):
    """Send the form of the page with its hidden field."""
    token = page.text.partition('name=csrf value=')[2].partition('>')[0]
    print(page.secrets)
    return {"fields": {"csrf": token, **page.fields, **page.secrets}, "headers": {"X-Requested-With": "kadcrawl"}}

def cookie(page):
    return {"cookies": {"session": "made-by-hook"}}

def broken(page):
    raise RuntimeError(page.secrets["password"])
'''


class GuardedWiki:
    """A site with a form that has a hidden field, good for one login by the visitor who got it."""

    def __init__(self, site: Web) -> None:
        self.seen: list[str] = []
        self.tokens: dict[str, str] = {}
        self.good_sessions = {"made-by-hook"}
        site.pages.clear()
        site.fallback = self.answer

    async def answer(self, request: web.BaseRequest) -> web.StreamResponse:
        if request.path == "/robots.txt":
            return web.Response(status=404)
        if request.path == "/login":
            self.seen.append(request.method)
            return await (self.log_in(request) if request.method == "POST" else self.form(request))
        if request.cookies.get("session") not in self.good_sessions:
            return html(status=302, Location="/login")
        return html(*(f"/{number}" for number in range(PAGES)))

    async def form(self, request: web.BaseRequest) -> web.StreamResponse:
        visitor, token = f"v{len(self.seen)}", f"t{len(self.seen)}"
        self.tokens[visitor] = token
        answer = web.Response(text=f"<form><input type=hidden name=csrf value={token}>", content_type="text/html")
        answer.set_cookie("visitor", visitor)
        return answer

    async def log_in(self, request: web.BaseRequest) -> web.StreamResponse:
        fields = await request.post()
        token = self.tokens.pop(request.cookies.get("visitor", ""), None)
        expected = {"csrf": token, "user": "me", "password": "hunter2"}
        if dict(fields) != expected or request.headers.get("X-Requested-With") != "kadcrawl":
            return html(status=302, Location="/login")
        answer = html(status=302, Location="/0")
        answer.set_cookie("session", "s3ss10n")
        self.good_sessions.add("s3ss10n")
        return answer


@pytest.fixture
def hooks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    directory = tmp_path / "hooks"
    directory.mkdir()
    (directory / f"{MODULE}.py").write_text(HOOKS)
    monkeypatch.chdir(directory)


def rule_of(site: Web, hook: str) -> SiteRule:
    host = f"127.0.0.2:{site.port}"
    login = SiteLogin(
        url=site.url("/login"), fields=(("user", "me"),), secrets=(("password", "wiki"),), hook=f"{MODULE}:{hook}"
    )
    return SiteRule(match=(host,), cookies="keep", login=login, http_secrets=True, delay_s=0.0)


@pytest.mark.usefixtures("hooks")
async def test_the_owner_alone_logs_in_by_the_hook_and_nothing_tells_the_secret(
    make_peer: MakePeer,
    lines: Lines,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
) -> None:
    async with Web() as site:
        wiki = GuardedWiki(site)
        first = await make_peer("a", sites=(rule_of(site, "form"),), key=KEY, secrets=SECRETS)
        allowed = {"key": KEY, "secrets": SECRETS, "hooks": [f"{MODULE}:form"]}
        peers = [first, await make_peer("b", join=first, **allowed)]
        await first.crawl([site.url("/0")])
        await finish(peers)
        assert ["GET", "POST"] == wiki.seen
        assert {200} == {line.fields["status"] for line in lines().values()}
        assert PAGES == len(lines())
    assert b"hunter2" not in everything_below(tmp_path)
    assert "hunter2" not in caplog.text + "".join(capfd.readouterr())


@pytest.mark.usefixtures("hooks")
async def test_a_hook_may_set_cookies_and_no_form_is_sent(make_peer: MakePeer, lines: Lines) -> None:
    async with Web() as site:
        wiki = GuardedWiki(site)
        peer = await make_peer("a", sites=(rule_of(site, "cookie"),), key=KEY, secrets=SECRETS)
        await peer.crawl([site.url("/0")])
        await finish([peer])
        assert ["GET"] == wiki.seen
        assert PAGES == len(lines())


@pytest.mark.usefixtures("hooks")
async def test_a_hook_that_fails_ends_as_login_failed_without_its_words(
    make_peer: MakePeer, lines: Lines, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(sessions, "RETRY_S", 0.01)
    async with Web() as site:
        wiki = GuardedWiki(site)
        peer = await make_peer("a", sites=(rule_of(site, "broken"),), key=KEY, secrets=SECRETS)
        await peer.crawl([site.url("/0"), site.url("/1")])
        await finish([peer])
        assert ["GET"] * sessions.TRIES_MAX == wiki.seen
        assert {"login_failed"} == {line.fields["failed"] for line in lines().values()}
    assert "RuntimeError (login_hooks_of_a_test.py:12)" in caplog.text
    assert "hunter2" not in caplog.text


@pytest.mark.usefixtures("hooks")
async def test_a_peer_joins_only_if_its_person_allows_the_hook_and_has_it(
    make_peer: MakePeer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    async with Web() as site:
        first = await make_peer("a", sites=(rule_of(site, "form"),), key=KEY, secrets=SECRETS)
        with pytest.raises(StartError, match=f"join with --hook {MODULE}:form"):
            await make_peer("b", join=first, key=KEY, secrets=SECRETS)
        await asyncio.to_thread((tmp_path / "empty").mkdir)
        monkeypatch.chdir(tmp_path / "empty")
        with pytest.raises(StartError, match=f"lacks the login hook {MODULE}:form"):
            await make_peer("c", join=first, key=KEY, secrets=SECRETS, hooks=[f"{MODULE}:form"])
