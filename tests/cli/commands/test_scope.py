"""`kadcrawl scope` changes the scope of a running crawl."""

from pathlib import Path

from tests.support.sites.web import Web, html
from tests.support.swarm.command import interrupted, joinable, kadcrawl


async def test_hosts_and_patterns_come_into_scope_and_leave_it(tmp_path: Path) -> None:
    async with Web() as web:
        web.fallback = lambda request: html()
        data = str(tmp_path / "one")
        peer = await joinable(web.url("/"), data=tmp_path / "one")
        added = await kadcrawl("scope", "add", "a.example", "*.b.example", "--data", data)
        assert (0, "a.example is in scope\n*.b.example is in scope\n") == (added.code, added.out)
        removed = await kadcrawl("scope", "remove", "/calendar/", "--data", data)
        assert (0, "/calendar/ is out of scope\n") == (removed.code, removed.out)
        assert "/calendar/ is out of scope, by " in (await kadcrawl("site", "ls", "--data", data)).out
        wrong = await kadcrawl("scope", "add", "/(/", "--data", data)
        assert (2, True) == (wrong.code, "is not a regular expression" in wrong.err), wrong
        for subject, why in (
            ("(", "match '(' is no host: it looks like example.org"),
            (web.url("/page"), "is one page, and the order would be about its whole host: name 127.0.0.2:"),
        ):
            wrong = await kadcrawl("scope", "add", subject, "--data", data)
            assert (2, "", True) == (wrong.code, wrong.out, why in wrong.err), wrong
        assert (await interrupted(peer)).code == 11
