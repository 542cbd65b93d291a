"""`kadcrawl site`: a person pauses, resumes and slows down single sites of a running swarm."""

import json
import os
from pathlib import Path

import click
import pytest

from kadcrawl.cli import user
from kadcrawl.cli.commands.site import _dropped, site as command
from kadcrawl.cli.site_names import complete_sites
from kadcrawl.system.file_names import JOURNAL
from tests.support.sites.web import Web, html
from tests.support.swarm.command import interrupted, joinable, kadcrawl, until


@pytest.mark.chaos
async def test_a_site_is_paused_listed_and_goes_on(tmp_path: Path) -> None:
    async with Web(2) as web:
        web.pages["/"] = lambda request: html(*(web.url(f"/{page}", 1) for page in range(3)))
        web.fallback = lambda request: html()
        data, name = str(tmp_path / "one"), web.url("/", 1)[7:-1]
        peer = await joinable(web.url("/"), "--delay", "30", "--scope", "any", data=tmp_path / "one")
        paused = await kadcrawl("site", "pause", name, "--data", data)
        assert (0, f"{name} is paused; `kadcrawl site resume {name}` lets it go on\n") == (paused.code, paused.out)
        listed = await kadcrawl("site", "ls", "--data", data)
        assert listed.out.startswith(f"{name} is paused, by {user.user_name() or '?'} at "), listed
        status = await kadcrawl("status", "--data", data)
        assert f"1 site paused by order, its URLs stay pending: {name} (" in status.out
        as_json = json.loads((await kadcrawl("status", "--json", "--data", data)).out)
        assert [name] == as_json["paused_sites"]
        slow = await kadcrawl("site", "slow", name, "90s", "--data", data)
        assert (0, f"{name} is left alone for 90 s after each request\n") == (slow.code, slow.out)
        assert 0 == (await kadcrawl("site", "slow", name, "off", "--data", data)).code
        excluded = await kadcrawl("site", "exclude", "http://other.example/", "--data", data)
        assert (0, "other.example is excluded\n") == (excluded.code, excluded.out)
        included = await kadcrawl("site", "include", "other.example", "--data", data)
        assert (0, "other.example is included\n") == (included.code, included.out)
        none = await kadcrawl("site", "drop", "other.example", "--data", data)
        assert (0, True) == (none.code, none.out.startswith("no URL is dropped: none was pending")), none
        again = await kadcrawl("site", "resume", name, "--data", data)
        assert (0, f"{name} goes on\n") == (again.code, again.out)
        assert (await kadcrawl("site", "ls", "--data", data)).out.startswith("no order stands\n")
        await until(lambda: any(f"//{name}/" in url for _, url in web.requests), peer)
        assert (await interrupted(peer)).code == 11


async def test_a_mistake_says_what_to_type(tmp_path: Path) -> None:
    data = str(tmp_path / "nothing")
    for arguments, why in (
        (("pause", "a.example"), "there is no"),
        (("stop", "a.example"), "'stop' is not one of"),
    ):
        wrong = await kadcrawl("site", *arguments, "--data", data)
        assert (2, True) == (wrong.code, why in wrong.err), wrong


async def test_a_running_peer_refuses_what_has_no_meaning(tmp_path: Path) -> None:
    async with Web() as web:
        web.fallback = lambda request: html()
        peer = await joinable(web.url("/"), data=tmp_path / "one")
        for arguments, why in (
            (("pause",), "pause needs the name of a site: kadcrawl site pause example.org"),
            (("slow", "a.example"), "slow needs the name of a site: kadcrawl site slow example.org 30s"),
            (("slow", "a.example", "soon"), "`kadcrawl site slow SITE 30s` says how long"),
            (("slow", "a.example", "-5"), "'-5' is no length of time"),
            (("pause", "--jsn"), "No such option '--jsn'"),
            (("slow", "a.example", "2d"), "a delay is at most 86400 seconds"),
            (("pause", "http://a.example/x"), "would be about its whole host: name a.example"),
            (("pause", "*"), "`kadcrawl pause` pauses the whole swarm"),
            (("ls", "*.a.example"), "one site is counted at a time"),
        ):
            wrong = await kadcrawl("site", *arguments, "--data", str(tmp_path / "one"))
            assert (2, True) == (wrong.code, why in wrong.err), wrong
        assert (await interrupted(peer)).code == 11


async def test_a_shell_completes_the_sites_of_the_directory(tmp_path: Path) -> None:
    async with Web(3) as web:
        web.fallback = lambda request: html()
        urls = [web.url(f"/{page}", number) for number in range(3) for page in range(2)]
        peer = await joinable(*urls, "--delay", "60", data=tmp_path / "one")
        context = click.Context(command)
        context.params["data"] = tmp_path / "one"
        [argument] = [one for one in command.params if one.name == "sites"]
        name = web.url("/", 2)[7:-1]
        await until(lambda: complete_sites(context, argument, "127.0.0.4") == [name], peer)
        assert [] == complete_sites(context, argument, "x")
        assert (await interrupted(peer)).code == 11


def test_nothing_is_completed_without_a_directory(tmp_path: Path) -> None:
    context = click.Context(command)
    context.params["data"] = tmp_path / "nothing"
    assert [] == complete_sites(context, command.params[1], "")
    (tmp_path / JOURNAL).write_text("no journal")
    context.params["data"] = tmp_path
    assert [] == complete_sites(context, command.params[1], "")


def test_a_user_without_a_name_has_none(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("LOGNAME", "USER", "LNAME", "USERNAME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(os, "getuid", lambda: 987_654)
    assert "" == user.user_name()
    monkeypatch.setenv("LOGNAME", "ann\n\x1b[31m" + "x" * 99)
    assert "ann[31m" + "x" * 33 == user.user_name()


def test_dropped_urls_are_counted_in_words() -> None:
    assert _dropped(1).startswith("1 pending URL dropped; `kadcrawl retry --reason site_dropped`")
    assert _dropped(1_234).startswith("1,234 pending URLs dropped")
