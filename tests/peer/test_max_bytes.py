"""--max-bytes over the whole swarm: little more than that is received, nothing is lost, and a larger number goes on."""

from collections.abc import Callable, Sequence
from typing import Literal

import pytest
from aiohttp import web

from kadcrawl import Peer
from kadcrawl.crawl.crawl_limits import SharedBudget
from kadcrawl.settings.leaf_jobs import why_no_leaf
from scripts.kadcrawl_run import LoggedPage
from tests.support.sites.web import Page, Web, html
from tests.support.swarm.crash import crash
from tests.support.swarm.peers import MakePeer, finish, swarm
from tests.support.waiting import until

Lines = Callable[[], dict[str, LoggedPage]]
SITES = 6
MANY_SITES = 40
"""So many that each of two peers owns some, whatever their IDs are."""
PAGES = 240
BODY_BYTES = 10_000
MAX_BYTES = 60 * BODY_BYTES


def large_pages(site: Web, sites: int = SITES) -> Page:
    """Return pages of `BODY_BYTES` that form a tree over so many sites."""

    def page(request: web.BaseRequest) -> web.StreamResponse:
        number = int(request.path.strip("/"))
        onward = [child for child in (2 * number + 1, 2 * number + 2) if child < PAGES]
        answer = html(*(site.url(f"/{child}", child % sites) for child in onward))
        answer.text = (answer.text or "").ljust(BODY_BYTES)
        return answer

    return page


def received(peers: Sequence[Peer]) -> int:
    return sum(peer.counters.body_bytes for peer in peers)


async def test_the_swarm_receives_little_more_and_a_larger_number_goes_on(make_peer: MakePeer, lines: Lines) -> None:
    async with Web(SITES) as site:
        site.fallback = large_pages(site)
        peers = await swarm(make_peer, "abc", max_bytes=MAX_BYTES)
        await peers[0].crawl([site.url("/0")])
        await finish(peers)
        assert MAX_BYTES <= received(peers) <= MAX_BYTES + 3 * SITES * BODY_BYTES
        assert {"bytes"} == {peer.limit_reached for peer in peers}
        left = sum(peer.row().pending for peer in peers)
        assert sum(peer.counters.urls for peer in peers) == len(lines()) + left
        for peer in peers:
            await peer.__aexit__(None, None, None)
        peers = await swarm(make_peer, "abc", max_bytes=10 * PAGES * BODY_BYTES)
        await finish(peers)
        assert {""} == {peer.limit_reached for peer in peers}
        assert PAGES == len(lines()) == sum(site.fetched.values())


async def test_bytes_count_over_a_crash(make_peer: MakePeer, lines: Lines) -> None:
    async with Web(SITES) as site:
        site.fallback = large_pages(site)
        peer = await make_peer("a", max_bytes=MAX_BYTES, delay_s=0.5)
        await peer.crawl([site.url("/0")])
        await until(lambda: peer.counters.body_bytes >= MAX_BYTES // 2)
        await crash(peer)
        again = await make_peer("a", max_bytes=MAX_BYTES, delay_s=0.5)
        await finish([again])
        assert MAX_BYTES <= received([again]) <= MAX_BYTES + SITES * BODY_BYTES
        assert len(lines()) <= MAX_BYTES // BODY_BYTES + SITES


@pytest.mark.parametrize("limit", [{"max_bytes": 100 * MAX_BYTES}, {"max_pages": 10 * PAGES}])
async def test_a_peer_that_leaves_takes_no_unused_grant_along(make_peer: MakePeer, limit: dict[str, int]) -> None:
    async with Web(MANY_SITES) as site:
        site.fallback = large_pages(site, MANY_SITES)
        peers = await swarm(make_peer, "ab", delay_s=1.0, **limit)
        await peers[0].crawl([site.url("/0")])
        limits = peers[1].components.crawl_limits
        budget = limits.bytes if "max_bytes" in limit else limits.pages
        await until(lambda: budget.granted > 0 and peers[1].counters.pages > 2)
        peers[1].leave_soon()
        await peers[1].finish()
        used = peers[1].counters.body_bytes if "max_bytes" in limit else peers[1].counters.tried
        assert 0 < budget.granted <= used


async def test_a_larger_number_than_the_web_changes_nothing(make_peer: MakePeer) -> None:
    async with Web(SITES) as site:
        site.fallback = large_pages(site)
        peers = await swarm(make_peer, "ab", max_bytes=100 * PAGES * BODY_BYTES, max_time_s=1000.0)
        assert "drain" == peers[0].job.lends_by
        await peers[0].crawl([site.url("/0")])
        await finish(peers)
        assert PAGES == sum(site.fetched.values())


@pytest.mark.parametrize("history", ["exact", "bloom"])
async def test_a_recrawl_ends_by_its_pages_and_each_visit_counts(make_peer: MakePeer, history: str) -> None:
    async with Web(1) as site:
        site.fallback = lambda request: html(site.url("/other"))
        peers = await swarm(make_peer, "ab", max_pages=7, recrawl_after_s=7.0, history=history)
        await peers[0].crawl([site.url("/")])
        await finish(peers)
        pages = {url: count for url, count in site.fetched.items() if not url.endswith("robots.txt")}
    assert 7 == sum(pages.values())
    assert 2 == len(pages)
    assert ["pages"] * 2 == [peer.limit_reached for peer in peers]


async def test_a_recrawl_ends_by_its_bytes(make_peer: MakePeer) -> None:
    async with Web() as site:
        site.fallback = lambda request: web.Response(text="x" * BODY_BYTES)
        peer = await make_peer(max_bytes=3 * BODY_BYTES, delay_s=0.5, recrawl_after_s=3.0)
        await peer.crawl([site.url("/0")])
        await until(lambda: peer.ended)
        assert ("bytes", None) == (peer.limit_reached, peer.row().due_s)
        assert 3 == sum(site.fetched.values())


async def test_a_crawl_with_a_number_of_bytes_has_no_leaves_and_says_why(make_peer: MakePeer) -> None:
    peer = await make_peer(max_bytes=1000)
    assert "cannot prove how many bytes" in (why_no_leaf(peer.job) or "")


@pytest.mark.parametrize("limit", ["bytes", "pages"])
async def test_both_budgets_are_shared_at_once(make_peer: MakePeer, limit: str) -> None:
    pages, size = (1000, MAX_BYTES) if limit == "bytes" else (20, 100 * MAX_BYTES)
    async with Web(SITES) as site:
        site.fallback = large_pages(site)
        peers = await swarm(make_peer, "ab", max_pages=pages, max_bytes=size)
        await peers[0].crawl([site.url("/0")])
        await finish(peers)
        assert {limit} == {peer.limit_reached for peer in peers}


@pytest.mark.parametrize("unit", ["pages", "bytes"])
async def test_a_grant_given_back_is_not_there_again_after_a_crash(
    make_peer: MakePeer, unit: Literal["pages", "bytes"]
) -> None:
    async def made() -> tuple[Peer, SharedBudget]:
        peer = await make_peer("a", max_pages=100, max_bytes=100)
        await peer.begin()
        return peer, peer.components.crawl_limits.budget(unit)

    peer, budget = await made()
    me = peer.contact.id
    budget.learn({me: 50}, me, spent=False)
    assert (50, 50) == (budget.granted, budget.told)
    await peer.store.journal.commit()
    await until(lambda: budget.told == 0)  # The peer has nothing to fetch, so others may have the grant.
    await crash(peer)
    _, budget = await made()
    assert 0 == budget.granted
