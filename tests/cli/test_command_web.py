"""Test --web of the command: one dashboard for all peers of a local crawl, which `kadcrawl web` opens."""

import asyncio
from pathlib import Path

from kadcrawl.system.file_names import DASHBOARD
from tests.support.sites.endless_web import endless_web
from tests.support.swarm.command import crawl, ended, finished, kadcrawl, start, until
from tests.support.viewers import document_when, viewer


async def test_one_dashboard_shows_all_peers_of_a_local_crawl(tmp_path: Path) -> None:
    async with endless_web() as endless:
        process = await start(*crawl(tmp_path, endless.seed, peers=2), "--web", "127.0.0.1:0")
        await until(lambda: len(finished(tmp_path)) > 5, process)
        assert [tmp_path / "peer-1" / DASHBOARD] == list(tmp_path.glob(f"peer-*/{DASHBOARD}"))
        printed = await kadcrawl("web", str(tmp_path), "--no-open")
        async with viewer(tmp_path / "peer-1", is_in=False) as browser:
            assert 200 == (await browser.begin(printed.out.strip().partition("#token=")[2])).status
            async with browser.events() as events, asyncio.timeout(60):
                await document_when(events, lambda document: len(document["peers"]) == 2)
        endless.end()
        run = await ended(process)
        assert 0 == run.code, run
        assert f"kadcrawl web {tmp_path} opens the dashboard" in run.err
        assert not list(tmp_path.glob(f"peer-*/{DASHBOARD}"))
