"""Test that the limits of a job hold at every peer of the swarm, and those of a machine at that machine alone."""

import json
from pathlib import Path

import pytest
from aiohttp import web

from kadcrawl import Config, Leaf, Limits, Peer
from tests.support.sites.web import Web, html
from tests.support.swarm.command import LOOPBACK, crawl, ended, kadcrawl, start
from tests.support.swarm.peers import MakePeer, finish, swarm

SITES, LINKS, MOST = 20, 30, 4


def serve(site: Web) -> None:
    site.fallback = lambda request: html(*(f"/{n}" for n in range(LINKS))) if request.path == "/" else html()


async def test_every_peer_of_a_swarm_keeps_the_limits_of_its_job(make_peer: MakePeer, tmp_path: Path) -> None:
    async with Web(SITES) as site:
        serve(site)
        limits = (("links_per_page_max", MOST), ("redirects_max", 3))
        peers = await swarm(make_peer, "abc", shared_limits=limits)
        assert limits == peers[2].job.shared_limits, "as it came with the job"
        seeds = [site.url("/", one) for one in range(SITES)]
        await peers[0].crawl(seeds)
        await finish(peers)
        lines = [json.loads(line) for path in tmp_path.rglob("pages.jsonl") for line in path.read_text().splitlines()]
    assert len([peer for peer in peers if peer.row().counters.pages]) > 1, "several peers have fetched"
    assert SITES * (MOST + 1) == len(lines)
    assert {MOST} == {line["links"] for line in lines if line["url"] in seeds}


@pytest.mark.parametrize("kind", [Peer, Leaf])
async def test_whoever_joins_has_its_own_limits_but_for_those_of_the_job(
    make_peer: MakePeer, tmp_path: Path, kind: type[Peer] | type[Leaf]
) -> None:
    first = await make_peer(shared_limits=(("redirects_max", 7),))
    config = Config(data=tmp_path / "two", port=0, limits=Limits(redirects_max=3, active_sites_max=5))
    async with kind(config) as member:
        await member.join([first.contact.address])
        assert 7 == dict(member.job.shared_limits)["redirects_max"]
        assert 3 == member.config.limits.redirects_max, "the peer's own setting stays, for other swarms"


async def test_the_command_sets_limits_for_all_its_peers(tmp_path: Path) -> None:
    async with Web() as site:
        site.pages["/"] = lambda _: web.Response(text="<a href=/2>" + " " * 50_000, content_type="text/html")
        run = await kadcrawl(
            *crawl(tmp_path, site.url("/")), "--limit", "body_bytes_max=1 kB", "--limit", "warc-bytes-max=1 kB"
        )
    assert run.code == 0, run
    lines = (tmp_path / "peer-1" / "pages.jsonl").read_text()
    assert '"bytes":1000,' in lines, run
    assert '"failed":"body_too_large"' in lines
    assert len(list((tmp_path / "peer-1" / "warc").iterdir())) > 1, "the WARC files are as small as was said"


async def test_a_limit_of_the_job_cannot_be_set_by_a_peer_that_joins(tmp_path: Path) -> None:
    process = await start(
        *("join", "--bootstrap", "127.0.0.1:9", "--data", str(tmp_path), *LOOPBACK, "--limit", "redirects_max=5")
    )
    run = await ended(process)
    assert (2, True) == (run.code, "redirects_max belongs to the job, and the swarm has that" in run.err), run


async def test_a_limit_that_is_none_is_told(tmp_path: Path) -> None:
    for wrong in ("redirects_max", "redirects_max=", "body_bytes_max=10 s", "no_limit=5", "redirects_max=101"):
        run = await kadcrawl("crawl", "http://127.0.0.1:9/", "--data", str(tmp_path), "--limit", wrong)
        assert (2, True) == (run.code, "Invalid value for '--limit'" in run.err), run
