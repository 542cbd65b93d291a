"""An answer that kills its reader costs a peer two lives, and its URL is done: the crawl comes to its end."""

import asyncio
import sys
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest
from aiohttp import web

from kadcrawl.store.store import DONE
from scripts.kadcrawl_run import LoggedPage, page_lines
from tests.support.sites.web import Page, Web, html
from tests.support.swarm.crash import crash
from tests.support.swarm.mortal import KILLS
from tests.support.swarm.peers import MakePeer, finish
from tests.support.swarm.poison_pages import dies_reading
from tests.support.waiting import until

# What a killed process leaves open the system closes; here nobody does.
pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

OTHERS = [f"/{number}" for number in range(5)]
DEADLY: dict[str, Page] = {
    "page": lambda request: web.Response(body=KILLS, content_type="text/html"),
    "coding": lambda request: web.Response(
        body=zlib.compress(b"hardly anything"), content_type="text/html", headers={"Content-Encoding": "deflate"}
    ),
}


async def lives(directory: Path, seed: str) -> list[int | None]:
    """Start a peer on a directory until its crawl ends. Return the exit code of each start."""
    ends: list[int | None] = []
    while 0 not in ends and len(ends) < 5:
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "tests.support.swarm.mortal", directory, seed
        )
        async with asyncio.timeout(60):
            ends.append(await process.wait())
    return ends


@pytest.mark.parametrize("kind", DEADLY)
async def test_a_page_that_kills_twice_is_recorded_and_all_others_are_fetched(kind: str, tmp_path: Path) -> None:
    async with Web() as site:
        site.pages |= {"/": lambda request: html(*OTHERS[:3], "/deadly", *OTHERS[3:]), "/deadly": DEADLY[kind]}
        site.fallback = lambda request: html()
        assert [-9, -9, 0] == await lives(tmp_path, site.url())
        assert 2 == site.fetched[site.url("/deadly")]
        found = {line.url: line.failed for line in page_lines(tmp_path)}
        expected = dict.fromkeys(map(site.url, ["/", *OTHERS])) | {site.url("/deadly"): "killed_peer"}
        assert expected == found


async def test_a_site_whose_robots_txt_kills_is_left_alone(tmp_path: Path) -> None:
    async with Web(2) as site:
        there = site.url("/there", site=1)

        def robots(request: web.BaseRequest) -> web.StreamResponse:
            return web.Response(body=KILLS) if request.host in there else web.Response(status=404)

        site.pages |= {"/robots.txt": robots, "/": lambda request: html(there, *OTHERS)}
        site.fallback = lambda request: html()
        assert [-9, -9, 0] == await lives(tmp_path, site.url())
        found = {line.url: line.failed for line in page_lines(tmp_path)}
        assert dict.fromkeys(map(site.url, ["/", *OTHERS])) | {there: "robots_unreachable"} == found
        assert 0 == site.fetched[there]


async def test_what_has_killed_its_owner_twice_no_later_owner_asks_for(
    make_peer: MakePeer, tmp_path: Path, lines: Callable[[], dict[str, LoggedPage]]
) -> None:
    async with Web() as site:
        site.pages["/"] = lambda request: html("/deadly", "/1")
        site.fallback = lambda request: html()
        (tmp_path / "one").mkdir()
        for _ in range(2):
            await dies_reading(tmp_path / "one", site.url("/deadly"))
        first = await make_peer("one")
        await first.crawl([site.url()])
        await finish([first])
        second = await make_peer("two", join=first)
        key = first.components.partitioner.locate(site.url("/deadly")).key
        await until(lambda: second.store.state(key) == DONE)
        await crash(first)
        await second.crawl([site.url("/deadly"), site.url("/2")])
        await finish([second])
        assert {site.url(): 1, site.url("/1"): 1, site.url("/2"): 1} == site.fetched
        assert "killed_peer" == lines()[site.url("/deadly")].failed


async def test_the_sitemaps_of_a_site_with_a_poison_page_are_still_read(make_peer: MakePeer, tmp_path: Path) -> None:
    async with Web() as site:
        listed = [site.url(f"/{number}") for number in range(3)]
        sitemap = "<urlset>" + "".join(f"<url><loc>{url}</loc></url>" for url in listed) + "</urlset>"
        site.pages["/robots.txt"] = lambda request: web.Response(text=f"Sitemap: {site.url('/map.xml')}\n")
        site.pages["/map.xml"] = lambda request: web.Response(text=sitemap, content_type="application/xml")
        site.fallback = lambda request: html()
        (tmp_path / "one").mkdir()
        for _ in range(2):
            await dies_reading(tmp_path / "one", site.url("/"))
        peer = await make_peer("one", sitemaps=True)
        await peer.crawl([site.url()])
        await finish([peer])
        assert {*listed, site.url("/map.xml")} == {*site.fetched}
