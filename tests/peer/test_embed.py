"""The example of the README runs, and the application answers while it crawls."""

import asyncio
from pathlib import Path

from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer

from kadcrawl import Config, Job
from scripts.embed import application
from tests.web import Web


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

            async with asyncio.timeout(20):
                while await get("/") != {"pages": 1, "state": "crawling"}:
                    await asyncio.sleep(0.01)
                assert [site.url()] == await get("/find?q=hay")
                assert [] == await get("/find?q=needle")
                slow.set()
                while await get("/") != {"pages": 2, "state": "done"}:
                    await asyncio.sleep(0.01)
                assert [site.url("/last")] == await get("/find?q=needle")
