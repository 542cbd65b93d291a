"""The command as a person uses it: sentences, exit codes, and crawls that survive being killed."""

import asyncio
import json
import os
import re
import signal
import socket
import sys
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from aiohttp import web

from scripts.kadcrawl_run import page_lines
from tests.web import Web, html, tree

KADCRAWL = str(Path(sys.executable).with_name("kadcrawl"))
SITES = 6
LOOPBACK = ("--allow-network", "127.0.0.0/8")
PIPE = asyncio.subprocess.PIPE


class Run:
    """A finished run of the command."""

    def __init__(self, code: int | None, out: bytes, err: bytes) -> None:
        self.code, self.out, self.err = code, out.decode(), err.decode()

    def __repr__(self) -> str:
        return f"exit {self.code}\n{self.out}\n{self.err}"


async def kadcrawl(*arguments: str, env: dict[str, str] | None = None) -> Run:
    process = await start(*arguments, env=env)
    return await ended(process)


async def start(*arguments: str, env: dict[str, str] | None = None) -> asyncio.subprocess.Process:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("KADCRAWL_")}
    return await asyncio.create_subprocess_exec(
        KADCRAWL,
        *arguments,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=PIPE,
        stderr=PIPE,
        env=environment | (env or {}),
        start_new_session=True,
    )


async def ended(process: asyncio.subprocess.Process) -> Run:
    async with asyncio.timeout(60):
        out, err = await process.communicate()
    return Run(process.returncode, out, err)


def crawl(data: Path, *urls: str, peers: int = 1) -> list[str]:
    return ["crawl", *urls, "--peers", str(peers), "--delay", "0", "--scope", "any", *LOOPBACK, "--data", str(data)]


def finished(data: Path) -> Counter[str]:
    return Counter(line.url for line in page_lines(data)) if data.exists() else Counter()


async def until(condition: object, process: asyncio.subprocess.Process) -> None:
    async with asyncio.timeout(60):
        while not condition():  # type: ignore[operator]
            assert process.returncode is None
            await asyncio.sleep(0.02)


def children(process: asyncio.subprocess.Process) -> list[int]:
    return [int(pid) for pid in Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()]


@asynccontextmanager
async def slow_web(size: int, seconds: float = 0.02) -> AsyncIterator[Web]:
    async with Web(SITES) as site:
        quick = tree(size, SITES)(site)

        async def page(request: web.BaseRequest) -> web.StreamResponse:
            await asyncio.sleep(seconds)
            answer = quick(request)
            assert isinstance(answer, web.StreamResponse)
            return answer

        site.fallback = page
        yield site


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


async def test_plain_lines_tell_the_progress_where_there_is_no_terminal(tmp_path: Path) -> None:
    async with slow_web(300) as site:
        run = await kadcrawl(*crawl(tmp_path, site.url("/0")))
        assert re.search(r"^crawl: \d+ pages \(\d+\.\d/s\), \d+ pending, 0 failed, 1 peer, 0:0\d$", run.err, re.M), run
        assert "\x1b" not in run.err


@pytest.mark.parametrize("round_", range(2))
async def test_a_crawl_killed_altogether_goes_on_and_fetches_no_finished_page_again(
    round_: int, tmp_path: Path
) -> None:
    async with slow_web(500) as site:
        command = crawl(tmp_path, site.url("/0"), peers=4)
        process = await start(*command)
        await until(lambda: sum(finished(tmp_path).values()) >= 100 + 100 * round_, process)
        for pid in (*children(process), process.pid):
            os.kill(pid, signal.SIGKILL)
        await ended(process)
        before = finished(tmp_path)
        asked_before = len(site.requests)
        run = await kadcrawl(*command)
        assert run.code == 0, run
        again = {url for _, url in site.requests[asked_before:]}
        assert not again & set(before)
        assert {site.url(f"/{n}", site=n % SITES): 1 for n in range(500)} == dict(finished(tmp_path))


async def test_a_peer_that_dies_is_started_again_and_nothing_is_lost(tmp_path: Path) -> None:
    async with slow_web(500) as site:
        process = await start(*crawl(tmp_path, site.url("/0"), peers=4))
        await until(lambda: sum(finished(tmp_path).values()) >= 60, process)
        os.kill(children(process)[2], signal.SIGKILL)
        run = await ended(process)
        assert run.code == 0, run
        assert re.search(r"peer-\d died \(exit status -9, .*starting it again", run.err), run
        assert {site.url(f"/{n}", site=n % SITES) for n in range(500)} == set(finished(tmp_path))


async def test_ctrl_c_finishes_what_is_under_way_and_the_crawl_goes_on_later(tmp_path: Path) -> None:
    async with slow_web(500) as site:
        command = crawl(tmp_path, site.url("/0"), peers=2)
        process = await start(*command)
        await until(lambda: sum(finished(tmp_path).values()) >= 50, process)
        process.send_signal(signal.SIGINT)
        run = await ended(process)
        assert run.code == 11, run
        assert "finishing what is under way" in run.err
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
        assert process.stderr is not None
        async with asyncio.timeout(20):
            await process.stderr.readuntil(b"Ctrl-C again")
        process.send_signal(signal.SIGINT)
        run = await ended(process)
        assert run.code == 11, run
        assert "interrupted" in run.err
        assert "Traceback" not in run.err
        never.set()


async def test_peers_do_not_outlive_a_killed_parent(tmp_path: Path) -> None:
    async with slow_web(2000) as site:
        process = await start(*crawl(tmp_path, site.url("/0"), peers=2))
        await until(lambda: len(finished(tmp_path)) > 10, process)
        pids = children(process)
        process.kill()
        await process.wait()
        async with asyncio.timeout(30):
            while any(Path(f"/proc/{pid}").exists() for pid in pids):
                await asyncio.sleep(0.05)


async def test_nothing_fetched_is_exit_1(tmp_path: Path) -> None:
    async with Web() as site:
        site.pages["/robots.txt"] = lambda request: web.Response(text="User-agent: *\nDisallow: /")
        run = await kadcrawl(*crawl(tmp_path, site.url()))
        assert run.code == 1, run
        assert "robots 1" in run.out


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


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


async def test_a_swarm_of_commands(tmp_path: Path) -> None:
    """start, join, status, pause, resume, add, leave, stop: a swarm as people build it over machines."""
    ports = [free_port() for _ in range(2)]
    one, two = (f"127.0.0.1:{port}" for port in ports)
    async with slow_web(3000, seconds=0.3) as site:
        first = await start(
            "start",
            site.url("/0"),
            "--listen",
            one,
            "--data",
            str(tmp_path / "one"),
            "--delay",
            "0",
            "--scope",
            "any",
            *LOOPBACK,
        )
        await until(lambda: len(finished(tmp_path)) > 5, first)
        second = await start("join", "--bootstrap", one, "--listen", two, "--data", str(tmp_path / "two"), *LOOPBACK)
        await until(lambda: len(finished(tmp_path / "two")) > 5, second)
        status = json.loads((await kadcrawl("status", "--peer", two, "--json")).out)
        assert ("crawling", 2, 0) == (status["state"], len(status["peers"]), status["unanswered"])
        assert {one, two} == {peer["address"] for peer in status["peers"]}
        assert (await kadcrawl("pause", "--peer", two)).code == 0
        assert json.loads((await kadcrawl("status", "--peer", one, "--json")).out)["state"] == "paused"
        table = (await kadcrawl("status", "--peer", one)).out
        assert table.startswith("paused: ")
        assert two in table
        assert (await kadcrawl("add", site.url("/extra"), "--peer", one)).code == 0
        assert (await kadcrawl("add", "nonsense", "--peer", one)).code == 2
        assert (await kadcrawl("resume", "--peer", one)).code == 0
        assert (await kadcrawl("leave", "--peer", two)).code == 0
        left = await ended(second)
        assert left.code == 0, left
        assert "0 URLs left on it" in left.out
        await until(lambda: site.url("/extra") in site.fetched, first)
        assert (await kadcrawl("stop", "--peer", one)).code == 0
        stopped = await ended(first)
        assert stopped.code == 0, stopped
        assert set(finished(tmp_path).values()) == {1}


async def test_join_exits_when_done_if_told_so(tmp_path: Path) -> None:
    address = f"127.0.0.1:{free_port()}"
    async with Web(SITES) as site:
        site.fallback = tree(100, SITES)(site)
        options = ("--delay", "0", "--scope", "any", *LOOPBACK, "--exit-when-done")
        first = await start(
            "start",
            "--listen",
            address,
            "--data",
            str(tmp_path / "one"),
            "--delay",
            "0",
            "--scope",
            "any",
            *LOOPBACK,
            "--exit-when-done",
        )
        assert first.stderr is not None
        await first.stderr.readuntil(b"others join with: kadcrawl join --bootstrap " + address.encode())
        second = await start(
            "join",
            "--bootstrap",
            address,
            "--listen",
            "127.0.0.1:0",
            "--data",
            str(tmp_path / "two"),
            *LOOPBACK,
            "--exit-when-done",
        )
        assert second.stderr is not None
        await second.stderr.readuntil(b"others join with")
        assert (await kadcrawl("add", site.url("/0"), "--peer", address)).code == 0
        runs = [await ended(first), await ended(second)]
        assert [0, 0] == [run.code for run in runs], (runs, options)
        assert {site.url(f"/{n}", site=n % SITES): 1 for n in range(100)} == dict(finished(tmp_path))


async def test_a_port_in_use_is_one_clear_sentence(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        run = await kadcrawl("start", "--listen", f"127.0.0.1:{port}", "--data", str(tmp_path))
        assert run.code == 2, run
        assert f"cannot listen on 127.0.0.1:{port}" in run.err


async def test_a_directory_in_use_is_one_clear_sentence(tmp_path: Path) -> None:
    async with slow_web(3000) as site:
        process = await start(*crawl(tmp_path, site.url("/0")))
        await until(lambda: finished(tmp_path), process)
        run = await kadcrawl(*crawl(tmp_path, site.url("/0")))
        assert run.code == 2, run
        assert "another peer is running in" in run.err
        process.send_signal(signal.SIGINT)
        assert (await ended(process)).code == 11


@pytest.mark.parametrize("command", ["crawl", "start", "join", "status", "add", "pause", "resume", "leave", "stop"])
async def test_every_command_explains_itself(command: str) -> None:
    run = await kadcrawl(command, "--help")
    assert run.code == 0
    assert len(run.out.splitlines()) > 5
