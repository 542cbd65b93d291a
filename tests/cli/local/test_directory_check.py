"""A directory is that of one peer, or of a local crawl: a command of the other kind is refused before it fetches."""

import asyncio
import json
from pathlib import Path

import pytest
from aiohttp import web

from kadcrawl import ConfigError
from kadcrawl.cli.local.directory_check import check_for_crawl, check_for_peer
from tests.support.sites.web import Web, html, slow, tree
from tests.support.swarm.command import (
    LOOPBACK,
    SITES,
    address_of,
    crawl,
    ended,
    finished,
    interrupted,
    joinable,
    joined,
    kadcrawl,
    start,
    until,
)

JOB = ("--delay", "0", "--scope", "any")


def peer_in(directory: Path) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "peer.sqlite").touch()


def test_nobody_has_a_directory_without_a_journal(tmp_path: Path) -> None:
    for data in (tmp_path, tmp_path / "none"):
        check_for_crawl(data)
        check_for_peer(data)
    (tmp_path / "peer-1").mkdir()
    peer_in(tmp_path / "peer-one")
    check_for_peer(tmp_path)


def test_who_has_a_directory_may_go_on_with_it(tmp_path: Path) -> None:
    peer_in(tmp_path / "one")
    check_for_peer(tmp_path / "one")
    with pytest.raises(ConfigError, match="holds a peer of its own: kadcrawl start"):
        check_for_crawl(tmp_path / "one")
    peer_in(tmp_path / "many" / "peer-2")
    check_for_crawl(tmp_path / "many")
    with pytest.raises(ConfigError, match="holds a local crawl of 1 peer: kadcrawl crawl"):
        check_for_peer(tmp_path / "many")
    peer_in(tmp_path / "one" / "peer-1")
    check_for_peer(tmp_path / "one")
    check_for_crawl(tmp_path / "one")


async def test_no_page_is_fetched_again_by_the_other_kind_of_command(tmp_path: Path) -> None:
    async with Web() as site:
        site.fallback = tree(10)(site)
        assert (await kadcrawl(*crawl(tmp_path, site.url("/0")))).code == 0
        for command in (("start", site.url("/0"), *JOB), ("join", "--bootstrap", "127.0.0.1:9")):
            run = await kadcrawl(*command, "--listen", "127.0.0.1:0", "--data", str(tmp_path), *LOOPBACK)
            assert (run.code, "holds a local crawl of 1 peer" in run.err) == (2, True), run
    assert 10 == len(site.fetched) == sum(site.fetched.values())


async def test_a_peer_started_again_listens_where_it_did(tmp_path: Path) -> None:
    """Others look for it there."""
    peer = await joinable("http://127.0.0.2:9/", *JOB, data=tmp_path)
    address = await address_of(peer)
    await interrupted(peer)
    again = await start("start", "--data", str(tmp_path), *LOOPBACK)
    assert again.stderr is not None
    await again.stderr.readuntil(f"listens on {address} ".encode())
    run = await kadcrawl("status", "--data", str(tmp_path))
    assert run.code == 0, run
    await interrupted(again)


async def test_a_crawl_reports_the_urls_it_found_and_did_not_finish(tmp_path: Path) -> None:
    summary = tmp_path / "summary.json"
    async with Web(SITES) as site:
        links = [site.url(f"/{number}", site=number % SITES) for number in range(400)]
        site.pages["/"] = lambda request: html(*links)
        has_joined = asyncio.Event()

        async def answer(request: web.BaseRequest) -> web.StreamResponse:
            if sum(site.fetched.values()) > 20:
                await has_joined.wait()
            return await slow(lambda request: html(), 0.5)(request)

        site.fallback = answer
        local = await start(*crawl(tmp_path / "local", site.url("/")), "--summary", str(summary))
        await until(lambda: len(finished(tmp_path / "local")) > 5, local)
        address = (tmp_path / "local" / "peer-1" / "address").read_text().strip()
        other = await joined(address, tmp_path / "other")
        has_joined.set()
        run = await ended(local)
        assert run.code == 0, run
        await interrupted(other)
    figures = json.loads(summary.read_text())
    count = figures["urls_found"] - figures["urls_done"]
    assert 0 < count <= len(finished(tmp_path / "other"))
    assert f"at least {count} URLs found here went to peers that are not counted here" in run.out


async def test_other_seeds_on_the_directory_of_a_crawl_are_added_and_it_is_said(tmp_path: Path) -> None:
    said = "has a crawl of "
    async with Web() as site:
        site.fallback = lambda request: html()
        first = await kadcrawl(*crawl(tmp_path, site.url("/a")))
        again = await kadcrawl(*crawl(tmp_path, site.url("/a"), site.url("/b")))
        other = await kadcrawl(*crawl(tmp_path, site.url("/c")))
    assert [False, False, True] == [said in run.err for run in (first, again, other)]
    assert "choose another directory with --data" in other.err


async def test_a_crawl_that_is_told_to_stop_says_so_and_is_not_taken_for_whole(tmp_path: Path) -> None:
    data = tmp_path / "crawl"
    async with Web() as site:
        site.fallback = slow(lambda request: html(*(f"{request.path}{n}" for n in range(9))), 0.05)
        process = await start(*crawl(data, site.url("/0"), peers=2))
        await until(lambda: len(finished(data)) > 5, process)
        assert (await kadcrawl("stop", "--data", str(data))).code == 0
        run = await ended(process)
        assert (run.code, "the crawl was stopped before its end; the same command goes on" in run.err) == (11, True), (
            run
        )
        assert "elsewhere" not in run.out


async def test_a_crawl_that_is_ended_by_its_limit_or_a_person_says_so(tmp_path: Path) -> None:
    async with Web() as site:
        site.fallback = lambda request: html(*(f"{request.path}{n}" for n in range(9)))
        run = await kadcrawl(*crawl(tmp_path / "few", site.url("/0")), "--max-pages", "3")
        assert (run.code, "--max-pages 3 ended it" in run.out) == (0, True), run
        process = await start(*crawl(tmp_path / "many", site.url("/0")))
        await until(lambda: len(finished(tmp_path / "many")) > 5, process)
        run = await interrupted(process)
    assert (run.code, "interrupted; the same command goes on" in run.err) == (11, True), run
    assert "elsewhere" not in run.out
