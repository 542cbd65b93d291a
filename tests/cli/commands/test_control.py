"""Orders to a running swarm, as far as a single peer that answers oddly shows them."""

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from aiohttp import WSCloseCode, web
from click.testing import CliRunner, Result

from kadcrawl import Config, Job, Peer
from kadcrawl.cli.app import main
from kadcrawl.cli.commands import control
from kadcrawl.cli.commands.control import _is_input
from kadcrawl.peer.directory import Directory
from kadcrawl.system.directory_lock import is_running


@asynccontextmanager
async def peer_that_closes(code: int) -> AsyncIterator[str]:
    """Yield the address of a peer that closes each connection after its first request, with this code."""

    async def respond(request: web.BaseRequest) -> web.StreamResponse:
        link = web.WebSocketResponse()
        await link.prepare(request)
        await link.receive()
        await link.close(code=code)
        return link

    runner = web.ServerRunner(web.Server(respond))
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        yield f"127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


async def run(verb: str, code: int) -> Result:
    """Return the outcome of a command that asks a peer of `peer_that_closes`."""
    async with peer_that_closes(code) as address:
        return await asyncio.to_thread(CliRunner().invoke, main, [verb, "--peer", address])


async def test_stop_succeeds_if_the_asked_peer_ends_before_all_have_answered() -> None:
    done = await run("stop", WSCloseCode.GOING_AWAY)
    assert 0 == done.exit_code, done.output
    assert "the swarm is stopping; the asked peer ended before all peers had answered" in done.output


@pytest.mark.parametrize(("verb", "code"), [("pause", WSCloseCode.GOING_AWAY), ("stop", WSCloseCode.POLICY_VIOLATION)])
async def test_other_orders_and_other_ends_of_a_connection_fail(verb: str, code: int) -> None:
    done = await run(verb, code)
    assert 2 == done.exit_code, done.output
    assert f"has closed the connection (code {code:d})" in done.output


@pytest.mark.parametrize(
    ("typed", "why"),
    [
        ("nofile.txt", "no such file, and no URL: 'nofile.txt' has no scheme: did you mean https://nofile.txt/?"),
        ("./nofile", "no such file: './nofile'"),
        ("/no/file.txt", "no such file: '/no/file.txt'"),
        (".", "'.' is a directory, and no file of seeds"),
        ("x" * 300, "no such file, and no URL"),
        ("ftp://a.example/", "only http and https URLs can"),
    ],
)
def test_what_is_neither_a_file_nor_a_url_is_no_seed(typed: str, why: str) -> None:
    done = CliRunner().invoke(main, ["add", typed, "--peer", "127.0.0.1:9"])
    assert (2, True) == (done.exit_code, why in done.output), done.output


def test_a_pipe_is_an_input_of_seeds(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    assert [True, False, False] == [_is_input(str(path)) for path in (pipe, tmp_path, tmp_path / "none")]


async def test_leave_returns_once_the_directory_is_free(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A peer closes its journal after its port. Until then nothing can be started in its directory."""
    closing: list[Directory] = []
    close, looked = Directory.close, asyncio.Event()
    answers: list[bool] = []
    loop = asyncio.get_running_loop()

    def look(directory: Path) -> bool:
        answers.append(is_running(directory))
        loop.call_soon_threadsafe(looked.set)
        return answers[-1]

    monkeypatch.setattr(Directory, "close", lambda directory: closing.append(directory))
    monkeypatch.setattr(control, "is_running", look)
    monkeypatch.setattr(control, "LEAVING_POLL_S", 0.0)
    async with Peer(Config(data=tmp_path, port=0), Job()) as peer:
        await peer.begin()
        host, port = peer.listens_at
        (tmp_path / "address").write_text(f"{host}:{port}\n")
        leaving = asyncio.create_task(asyncio.to_thread(CliRunner().invoke, main, ["leave", "--data", str(tmp_path)]))
        await peer.wait_stopped()
        await peer.finish()
    try:
        for _ in range(2):
            looked.clear()
            async with asyncio.timeout(60):
                await looked.wait()
        assert not leaving.done()
        assert all(answers)
    finally:
        close(closing.pop())
    done = await leaving
    assert (0, True) == (done.exit_code, done.output.endswith("the peer has left\n")), done.output
    assert not answers[-1]
