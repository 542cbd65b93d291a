"""`kadcrawl set` changes a setting of a running swarm, and the status says by whom."""

import json
from pathlib import Path

import pytest

from kadcrawl.cli.user import user_name
from tests.support.sites.web import Web, html
from tests.support.swarm.command import interrupted, joinable, kadcrawl


@pytest.mark.chaos
async def test_a_setting_changes_and_the_status_says_so(tmp_path: Path) -> None:
    async with Web() as web:
        web.fallback = lambda request: html()
        data = str(tmp_path / "one")
        peer = await joinable(web.url("/"), "--delay", "30", "--max-pages", "7", data=tmp_path / "one")
        for arguments, said in (
            (("delay", "5s"), "delay is 5s\n"),
            (("max-pages", "9"), "max-pages is 9\n"),
            (("max-pages", "default"), "max-pages is as the crawl began again\n"),
        ):
            done = await kadcrawl("set", *arguments, "--data", data)
            assert (0, said) == (done.code, done.out), done
        status = await kadcrawl("status", "--data", data)
        assert f"delay is 5s by order of {user_name() or '?'} at " in status.out, status
        assert {"delay": 5.0} == json.loads((await kadcrawl("status", "--json", "--data", data)).out)[
            "changed_settings"
        ]
        assert "delay is 5s by order of" in (await kadcrawl("summary", "--data", data)).out
        for name, why in (
            ("max-time 5", "the crawl began without --max-time"),
            ("scope 5", "kadcrawl scope add"),
            ("delay -5", "'-5' is no length of time"),
            ("--retries -5", "'-5' is no whole number"),
        ):
            wrong = await kadcrawl("set", *name.split(), "--data", data)
            assert (2, True) == (wrong.code, why in wrong.err), wrong
        end = await interrupted(peer)
        assert (11, True) == (end.code, "\ndelay is 5s by order of " in end.out), end
        for command in ("status", "summary"):
            figures = json.loads((await kadcrawl(command, "--json", "--data", data)).out)
            assert {"delay": 5.0} == figures["changed_settings"], "also at rest"
            assert [("set", "delay")] == [(one["kind"], one["about"]) for one in figures["orders"]]


@pytest.mark.parametrize("command", ["crawl", "start"])
async def test_the_pace_at_the_start_is_that_of_the_order(command: str, tmp_path: Path) -> None:
    async with Web() as web:
        web.fallback = lambda request: html()
        data = str(tmp_path / "data")
        ends = ("--exit-when-done", "--listen", "127.0.0.1:0") if command == "start" else ()
        options = ("--delay", "0", "--allow-network", "127.0.0.0/8", "--insecure", "--data", data, *ends)
        assert (await kadcrawl(command, web.url("/"), *options)).code == 0
        assert (await kadcrawl("set", "delay", "2s", "--data", data)).code == 0
        again = await kadcrawl(command, web.url("/next"), *options)
        assert (0, True) == (again.code, "1 site at 1 request per 2 s: more peers" in again.err), again
