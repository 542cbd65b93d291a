"""`kadcrawl add --again`, and seeds that are named again to `kadcrawl crawl`."""

from pathlib import Path

import pytest
from aiohttp import web

from tests.cli.commands.test_retry import failures
from tests.support.sites.web import Web, html
from tests.support.swarm.command import address_of, interrupted, joinable, kadcrawl, until


def local(*seeds: str, data: Path) -> tuple[str, ...]:
    options = ("--delay", "0", "--retries", "0", "--scope", "any", "--allow-network", "127.0.0.0/8", "--insecure")
    return ("crawl", *seeds, *options, "--data", str(data))


async def test_a_running_swarm_fetches_again_what_is_done_and_takes_what_is_new(tmp_path: Path) -> None:
    async with Web() as site:
        site.fallback = lambda request: html()
        known, new = site.url("/known"), site.url("/new")
        peer = await joinable(known, "--delay", "0", data=tmp_path / "one")
        address = await address_of(peer)
        await until(lambda: failures(tmp_path), peer)
        added = await kadcrawl("add", "--again", known, new, "--peer", address)
        said = "1 URL to be fetched again; 1 URL is new or pending already\n"
        assert (0, said) == (added.code, added.out), added
        await until(lambda: site.fetched[known] == 2 and site.fetched[new] == 1, peer)
        (tmp_path / "seeds").write_text(known)
        refused = await kadcrawl("add", "--again", str(tmp_path / "seeds"), "--peer", address)
        assert (2, True) == (refused.code, "--again takes URLs" in refused.err), refused
        assert (await interrupted(peer)).code == 11


@pytest.mark.chaos
async def test_a_crawl_at_rest_fetches_named_urls_again_when_it_goes_on(tmp_path: Path) -> None:
    data = tmp_path / "data"
    async with Web(2) as site:
        site.pages["/"] = lambda request: html(site.url("/a"), site.url("/b", 1))
        site.fallback = lambda request: html()
        assert (await kadcrawl(*local(site.url("/"), data=data), "--peers", "2")).code == 0
        named = (site.url("/a"), site.url("/b", 1), site.url("/never"))
        added = await kadcrawl("add", "--again", *named, "--data", str(data))
        goes_on = f"kadcrawl crawl --data {data}"
        said = f"2 URLs to be fetched again by {goes_on}\n"
        unknown = f"1 URL not met so far: name it to {goes_on} as a seed\n"
        assert (0, said + unknown) == (added.code, added.out), added
        again = await kadcrawl("add", "--again", *named[:1], "--data", str(data))
        assert f"0 URLs to be fetched again by {goes_on}; 1 URL is pending already\n" == again.out
        whole = await kadcrawl("crawl", "--insecure", "--data", str(data))
        assert whole.code == 0, whole
        assert "3 of 3 URLs done (0 failed), 0 fetched twice" in whole.out
        assert {site.url("/"): 1, named[0]: 2, named[1]: 2} == dict(site.fetched)


async def test_seeds_named_again_that_failed_are_fetched_again_and_it_is_said(tmp_path: Path) -> None:
    data = tmp_path / "data"
    async with Web() as site:
        broken, fine = site.url("/broken"), site.url("/fine")
        site.pages["/fine"] = lambda request: html()
        site.pages["/broken"] = lambda request: web.Response(status=500)
        first = await kadcrawl(*local(broken, fine, data=data))
        assert (0, False) == (first.code, "that failed before" in first.err), first
        site.pages["/broken"] = lambda request: html()
        unnamed = await kadcrawl("crawl", "--insecure", "--data", str(data))
        assert "1 of" not in unnamed.err
        assert 1 == site.fetched[broken]
        again = await kadcrawl(*local(broken, fine, data=data))
        assert "kadcrawl: 1 seed that failed before is fetched again" in again.out + again.err, again
        assert "2 of 2 URLs done (0 failed)" in again.out
        assert {broken: 2, fine: 1} == dict(site.fetched)


async def test_a_crawl_of_fingerprints_says_why_nothing_is_fetched_again(tmp_path: Path) -> None:
    data = tmp_path / "data"
    async with Web() as site:
        site.fallback = lambda request: html()
        await kadcrawl(*local(site.url("/"), data=data), "--history", "bloom")
        refused = await kadcrawl("add", "--again", site.url("/"), "--data", str(data))
    assert (2, "") == (refused.code, refused.out), refused
    assert "fingerprints (--history bloom), and no URL that is done can be taken out of them" in refused.err
