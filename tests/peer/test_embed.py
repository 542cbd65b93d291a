"""The examples of the README run, the application answers while it crawls, and mistakes of a program are told."""

import asyncio
import re
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer

from kadcrawl import Config, Job, Leaf, Peer, StorageError
from scripts.embed import application
from tests.support.sites.web import Web


async def test_an_application_crawls_and_answers_at_the_same_time(tmp_path: Path) -> None:
    slow = asyncio.Event()
    async with Web() as site:

        async def last(request: web.BaseRequest) -> web.StreamResponse:
            await slow.wait()
            return web.Response(text="a needle", content_type="text/html")

        site.pages["/"] = lambda request: web.Response(text='hay <a href="/last">', content_type="text/html")
        site.pages["/last"] = last
        config = Config(data=tmp_path, port=0, allow_networks=("127.0.0.0/8",))
        async with TestClient(TestServer(application(site.url(), config, Job(delay_s=0.0)))) as client:

            async def get(path: str) -> object:
                async with client.get(path) as response:
                    return await response.json()

            async with asyncio.timeout(60):
                while await get("/") != {"pages": 1, "state": "crawling"}:
                    await asyncio.sleep(0.01)
                assert [site.url()] == await get("/find?q=hay")
                assert [] == await get("/find?q=needle")
                slow.set()
                while await get("/") != {"pages": 2, "state": "done"}:
                    await asyncio.sleep(0.01)
                assert [site.url("/last")] == await get("/find?q=needle")


async def test_the_example_of_the_readme_runs_as_it_is_written(tmp_path: Path) -> None:
    """Only the address and the data directory of the crawl differ."""
    readme = Path(__file__, "../../../README.md").resolve().read_text()
    (program,) = [block for block in re.findall(r"```python\n(.*?)```", readme, re.DOTALL) if "Peer(" in block]
    async with Web() as site:
        site.pages["/"] = lambda request: web.Response(text="hay", content_type="text/html")
        for written, here in (
            ("https://example.org/", site.url()),
            ('data=Path("crawl-data")', 'data=Path("crawl-data"), allow_networks=("127.0.0.0/8",)'),
        ):
            assert written in program
            program = program.replace(written, here)
        run = await asyncio.create_subprocess_exec(
            sys.executable, "-c", program, cwd=tmp_path, stdout=asyncio.subprocess.PIPE
        )
        async with asyncio.timeout(60):
            said, _ = await run.communicate()
        assert (0, f"{site.url()} 200 3 ()\n") == (run.returncode, said.decode())


@pytest.mark.parametrize(
    "method", [Peer.pause, Peer.resume, Peer.status, Peer.drain, Peer.leave], ids=lambda one: one.__name__
)
async def test_a_peer_that_was_not_entered_says_so(method: Callable[[Peer], Awaitable[object]], tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match="enter the peer first"):
        await method(Peer(Config(data=tmp_path, port=0)))


def test_a_leaf_that_has_not_joined_says_so(tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match="the leaf has not begun: call join"):
        Leaf(Config(data=tmp_path, port=0)).figures()


async def test_orders_of_a_peer_that_has_ended_are_refused_with_the_reason(tmp_path: Path) -> None:
    async with Peer(Config(data=tmp_path, port=0)) as peer:
        await peer.begin()
    with pytest.raises(StorageError, match="has ended: enter another Peer for that directory"):
        await peer.pause()


async def test_nothing_waits_for_a_peer_that_has_ended(tmp_path: Path) -> None:
    ended = "has ended: enter another Peer for that directory"
    async with Peer(Config(data=tmp_path, port=0), Job(seeds=())) as peer:
        await peer.begin()
        waiting = [asyncio.create_task(wait()) for wait in (peer.wait_done, peer.wait_stopped)]
        reading = asyncio.create_task(anext(peer.pages(), None))
        await asyncio.sleep(0)
    async with asyncio.timeout(5):
        for task in waiting:
            with pytest.raises(StorageError, match=ended):
                await task
        assert await reading is None
        assert [page async for page in peer.pages()] == []
        calls = (
            peer.wait_done, peer.wait_stopped, peer.queue, peer.begin, peer.open_dashboard,
            lambda: peer.crawl(["http://example.org/"]), lambda: peer.add_seeds([]),
        )  # fmt: skip
        for call in calls:
            with pytest.raises(StorageError, match=ended):
                await call()
        with pytest.raises(StorageError, match=ended):
            peer.dial_while_alone([("127.0.0.1", 9)])
    assert peer.web_address is None


async def test_a_pause_of_a_peer_that_has_not_begun_is_refused_and_changes_nothing(tmp_path: Path) -> None:
    async with Peer(Config(data=tmp_path, port=0)) as peer:
        with pytest.raises(AssertionError, match="the peer has not begun"):
            await peer.pause()
        await peer.begin()
        assert not peer.paused
