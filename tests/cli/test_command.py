"""The command as a person uses it: sentences, exit codes, and crawls that survive being killed."""

import asyncio
import json
import re
import shlex
import signal
import socket
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from aiohttp import web

from scripts.kadcrawl_run import page_lines
from tests.support.sites.endless_web import endless_web
from tests.support.sites.web import Web, html, tree
from tests.support.swarm.command import (
    KADCRAWL,
    LOOPBACK,
    PIPE,
    SITES,
    children,
    crawl,
    ended,
    finished,
    force,
    interrupted,
    kadcrawl,
    slow_web,
    start,
    until,
)


async def test_a_crawl_ends_by_itself_and_adds_up(tmp_path: Path) -> None:
    async with Web(SITES) as site:
        site.fallback = tree(200, SITES)(site)
        summary = tmp_path / "summary.json"
        run = await kadcrawl(*crawl(tmp_path / "data", site.url("/0"), peers=3), "--summary", str(summary))
        assert run.code == 0, run
        assert {site.url(f"/{n}", site=n % SITES): 1 for n in range(200)} == dict(site.fetched)
        assert site.fetched == finished(tmp_path / "data")
        figures = json.loads(summary.read_text())
        assert {"pages": 200, "urls_found": 200, "urls_done": 200, "urls_failed": {}, "duplicates": 0} == {
            name: figures[name] for name in ("pages", "urls_found", "urls_done", "urls_failed", "duplicates")
        }
        assert figures["links_seen"] == 199
        assert figures["bytes"] > 0
        assert figures["peer_messages"] > 0
        assert figures["seconds"] > 0
        assert [3, 200] == [len(figures["peers"]), sum(peer["pages"] for peer in figures["peers"])]
        assert "200 pages" in run.out


async def test_the_last_lines_and_the_summary_say_which_limit_ended_the_crawl(tmp_path: Path) -> None:
    async with Web() as site:
        site.fallback = lambda request: html(
            f"/{int(request.path[1:] or 0) + 1}", "/a/a/a", f"/list?page={request.path[1:]}"
        )
        site.pages["/list"] = lambda request: html()
        summary = tmp_path / "summary.json"
        limits = ("--max-site-pages", "7", "--max-path-repeats", "2", "--max-path-queries", "2")
        options = (*limits, "--summary", str(summary))
        run = await kadcrawl(*crawl(tmp_path / "data", site.url()), *options)
        assert run.code == 0, run
        assert (
            "path_queries 1 (--max-path-queries), path_repeats 5 (--max-path-repeats), site_pages 3 (--max-site-pages)"
        ) in run.out
        figures = json.loads(summary.read_text())
        left_out = {"path_queries": 1, "path_repeats": 5, "site_pages": 3}
        assert (7, left_out) == (figures["pages"], figures["links_left_out"])


async def test_plain_lines_tell_the_progress_where_there_is_no_terminal(tmp_path: Path) -> None:
    async with slow_web(300) as site:
        run = await kadcrawl(*crawl(tmp_path, site.url("/0")))
        line = r"^crawl: \d+ pages? \(\d+\.\d/s\), \d+ pending, 0 failed, 1 peer, \d+:\d\d$"
        assert re.search(line, run.err, re.M), run
        assert "\x1b" not in run.err


async def test_ctrl_c_finishes_what_is_under_way_and_the_crawl_goes_on_later(tmp_path: Path) -> None:
    heard = asyncio.Event()
    async with slow_web(500) as site:
        quick = site.fallback

        async def page(request: web.BaseRequest) -> web.StreamResponse:
            if int(request.path[1:]) >= 60:
                await heard.wait()  # Else a machine in a hurry has fetched all before it hears.
            answer = quick(request)
            return answer if isinstance(answer, web.StreamResponse) else await answer

        site.fallback = page
        command = crawl(tmp_path, site.url("/0"), peers=2)
        process = await start(*command)
        await until(lambda: sum(finished(tmp_path).values()) >= 50, process)
        process.send_signal(signal.SIGINT)
        assert process.stderr is not None
        async with asyncio.timeout(60):
            await process.stderr.readuntil(b"finishing what is under way")
        heard.set()
        run = await ended(process)
        assert run.code == 11, run
        asked = dict(site.fetched)
        assert asked == dict(finished(tmp_path)), "what was begun was finished"
        assert 0 < len(asked) < 500
        assert (await kadcrawl(*command)).code == 0
        assert {site.url(f"/{n}", site=n % SITES): 1 for n in range(500)} == dict(site.fetched)


async def test_ctrl_c_twice_forces(tmp_path: Path) -> None:
    never = asyncio.Event()
    async with Web() as site:

        async def stuck(request: web.BaseRequest) -> web.StreamResponse:
            await never.wait()
            return html()

        site.pages["/"] = stuck
        process = await start(*crawl(tmp_path, site.url()))
        await until(lambda: site.fetched, process)
        process.send_signal(signal.SIGINT)
        await force(process)
        run = await ended(process)
        assert run.code == 11, run
        assert "interrupted" in run.err
        assert f"kadcrawl: kadcrawl summary --data {tmp_path} has the figures and the results\n" in run.err
        assert "Traceback" not in run.err
        never.set()


async def test_peers_do_not_outlive_a_killed_parent(tmp_path: Path) -> None:
    async with slow_web(2000) as site:
        process = await start(*crawl(tmp_path, site.url("/0"), peers=2))
        await until(lambda: len(finished(tmp_path)) > 10, process)
        pids = children(process)
        process.kill()
        await process.wait()
        async with asyncio.timeout(60):
            while any(Path(f"/proc/{pid}").exists() for pid in pids):
                await asyncio.sleep(0.05)


async def test_nothing_fetched_is_exit_1(tmp_path: Path) -> None:
    async with Web() as site:
        site.pages["/robots.txt"] = lambda request: web.Response(text="User-agent: *\nDisallow: /")
        run = await kadcrawl(*crawl(tmp_path, site.url()))
        assert run.code == 1, run
        assert "robots 1" in run.out


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["crawl", "example.org"], "did you mean https://example.org/"),
        (["crawl", "ftp://example.org/"], "only http and https"),
        (["crawl", "https://example.org/"], "--contact"),
        (["crawl", "http://127.0.0.2/", "--include", "("], "not a regular expression"),
        (["crawl", "http://127.0.0.2/", "--allow-network", "here"], "CIDR"),
        (["crawl", "http://127.0.0.2/", "--delay", "-1"], "--delay"),
        (["crawl", "http://127.0.0.2/", "--peers", "0"], "--peers"),
        (["crawl", "http://127.0.0.2/", "--data", "/dev/null/x"], "cannot write to"),
        (["crawl", "http://127.0.0.2/", "--summary", "/dev/null/x"], "cannot write the summary"),
        (["crawl"], "Missing argument"),
        (["crawl", "http://127.0.0.2/", "--dely", "1"], "--delay"),
        (["join", "--bootstrap", "127.0.0.1:9", "--listen", "127.0.0.1:0"], "cannot join"),
        (["join", "--bootstrap", "127.0.0.1:port"], "HOST:PORT"),
        (["start", "http://127.0.0.2/", "--listen", "192.0.2.1:0"], "cannot listen on 192.0.2.1"),
        (["join", "--bootstrap", "a..b:4160", "--listen", "127.0.0.1:0"], "HOST:PORT"),
        (["join", "--bootstrap", "::1:4160"], "brackets, e.g. [::1]:4160"),
        (["start", "--listen", f"{'a' * 64}:0"], "HOST:PORT"),
        (["status", "--peer", "[::x]:1"], "HOST:PORT"),
        (["join", "--bootstrap", "http://10.0.0.1:4160"], "has no scheme"),
        (["status", "--peer", "127.0.0.1:9"], "127.0.0.1:9"),
        (["pause", "--peer", "127.0.0.1:9"], "127.0.0.1:9"),
    ],
)
async def test_a_mistake_is_one_clear_sentence_and_exit_2(
    arguments: Sequence[str], sentence: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    run = await kadcrawl(*arguments)
    assert run.code == 2, run
    assert sentence in run.err
    assert "Traceback" not in run.err


async def test_closed_standard_input_is_no_person_to_ask(tmp_path: Path) -> None:
    command = f"exec {KADCRAWL} crawl https://example.org/ --data {tmp_path} <&-"
    run = await ended(await asyncio.create_subprocess_shell(command, stdout=PIPE, stderr=PIPE))
    assert run.code == 2, run
    assert run.err.startswith("kadcrawl: say who you are: --contact")


async def test_closed_standard_streams_disturb_no_crawl(tmp_path: Path) -> None:
    async with Web() as site:
        site.fallback = tree(5)(site)
        command = shlex.join([KADCRAWL, *crawl(tmp_path, site.url("/0"))])
        process = await asyncio.create_subprocess_shell(f"exec {command} <&- 2>&-", stdout=PIPE, stderr=PIPE)
        run = await ended(process)
        assert run.code == 0, run
        assert run.out.startswith("5 pages")


@pytest.mark.parametrize("arguments", [("status", "--data"), ("summary", "--data"), ("export", "--to", "csv:-")])
async def test_a_closed_standard_output_is_no_fault(arguments: tuple[str, ...], tmp_path: Path) -> None:
    async with Web() as site:
        site.fallback = tree(3)(site)
        assert (await kadcrawl(*crawl(tmp_path, site.url("/0")))).code == 0
    command = shlex.join([KADCRAWL, *arguments, str(tmp_path)])
    run = await ended(await asyncio.create_subprocess_shell(f"exec {command} >&-", stdout=PIPE, stderr=PIPE))
    assert (0, "", False) == (run.code, run.out, "Traceback" in run.err), run


async def test_a_port_in_use_is_one_clear_sentence(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        run = await kadcrawl("start", "--listen", f"127.0.0.1:{port}", "--data", str(tmp_path))
        assert run.code == 2, run
        assert f"cannot listen on 127.0.0.1:{port}" in run.err


async def test_a_directory_in_use_is_one_clear_sentence(tmp_path: Path) -> None:
    async with endless_web() as endless:
        process = await start(*crawl(tmp_path, endless.seed))
        await until(lambda: finished(tmp_path), process)
        run = await kadcrawl(*crawl(tmp_path, endless.seed))
        assert run.code == 2, run
        assert "another peer is running in" in run.err
        process.send_signal(signal.SIGINT)
        assert (await ended(process)).code == 11


@pytest.mark.parametrize(
    "command",
    [
        *("crawl", "check", "check-data", "index", "vacuum", "doctor", "start", "join", "export"),
        *("train", "status", "add", "pause", "resume", "leave", "stop", "completion"),
    ],
)
async def test_every_command_explains_itself(command: str) -> None:
    run = await kadcrawl(command, "--help")
    assert run.code == 0
    assert len(run.out.splitlines()) > 5


async def test_no_sentence_of_the_help_is_cut_short() -> None:
    run = await kadcrawl("--help", env={"COLUMNS": "80"})
    assert [] == [line for line in run.out.splitlines() if line.startswith("  ") and line.endswith("...")]


async def test_what_is_refused_by_default_is_explained(tmp_path: Path) -> None:
    async with Web() as site:
        command = ("--data", str(tmp_path), "--delay", "0", "--contact", "a@b.example")
        run = await kadcrawl("crawl", site.url(), *command)
        assert run.code == 1, run
        assert "address_refused 1" in run.out
        order = "kadcrawl retry --reason address_refused"
        assert f"if it is yours, {order}, and go on with --allow-network" in run.out
        assert not site.requests
        assert "1 failed URL to be fetched again" in (await kadcrawl(*order.split()[1:], "--data", str(tmp_path))).out
        run = await kadcrawl("crawl", *command, *LOOPBACK)
        assert (0, 1) == (run.code, site.fetched[site.url()]), run


async def test_what_is_refused_is_said_while_the_crawl_goes_on(tmp_path: Path) -> None:
    """The refusal is printed once for all peers.

    A user who waits for the summary would otherwise wait in vain.
    """
    options = ("--delay", "0.2", "--scope", "any", "--peers", "3", "--allow-network", "127.0.0.2/32")
    async with Web(2) as site:
        site.fallback = lambda request: html(f"{request.path}x", site.url(request.path, site=1))
        process = await start("crawl", site.url("/0"), *options, "--data", str(tmp_path))
        assert process.stderr is not None
        async with asyncio.timeout(60):
            await process.stderr.readuntil(b" is neither public nor allowed here")
        said = (await process.stderr.readline()).decode()
        assert "kadcrawl retry --reason address_refused, and start again with --allow-network 127.0.0.0/8" in said
        await until(lambda: sum(line.failed == "address_refused" for line in page_lines(tmp_path)) > 3, process)
        run = await interrupted(process)
    assert " is neither public nor allowed here" not in run.err
    assert {"127.0.0.2"} == {urlsplit(url).hostname for _, url in site.requests}


async def test_who_goes_on_fetches_what_was_allowed_before(tmp_path: Path) -> None:
    """Else all that is left of a private site would fail for good."""
    async with Web() as site:
        site.pages["/"] = lambda request: html("/1")
        site.fallback = lambda request: html()
        command = ["--data", str(tmp_path), "--delay", "0", "--contact", "a@b.example", "--peers", "1"]
        run = await kadcrawl("crawl", site.url(), *command, *LOOPBACK)
        assert run.code == 0, run
        run = await kadcrawl("crawl", site.url("/2"), *command)
        assert run.code == 0, run
        assert site.fetched[site.url("/2")] == 1


async def test_if_nobody_is_there_it_is_said_what_to_do() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # And does not listen.
        run = await kadcrawl("status", "--peer", f"127.0.0.1:{taken.getsockname()[1]}")
    assert run.code == 2, run
    assert "cannot be reached: connection refused" in run.err
    assert "--peer HOST:PORT" in run.err
