"""Lending between real peers when the borrower has much work of its own, or cannot reach the web."""

from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from kadcrawl import Config, Peer
from scripts.kadcrawl_run import LoggedPage, page_lines
from tests.support.sites.owned_sites import SITES, answered, sites_of
from tests.support.sites.web import Web, html, slow
from tests.support.swarm.peers import JOB, QUICK, MakePeer, finish
from tests.support.waiting import until

WEAK = replace(QUICK, fetches_max=1)
BALANCE: dict[str, Any] = {"block_urls": 5, "update_s": 0.3}


async def test_a_borrower_takes_turns_between_its_own_and_its_borrowed_work(
    make_peer: MakePeer, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with Web(SITES) as site:
        site.fallback = answered
        weak = await make_peer("a", limits=WEAK, update_s=3600.0)
        strong = await make_peer("b", join=weak, limits=replace(QUICK, fetches_max=4))
        own, others = sites_of(weak, strong, site, 3), sites_of(strong, weak, site, 4)
        await weak.crawl([site.url(f"/{page}", one) for one in own + others for page in range(500)])
        lender = weak.balancing.loans.lender
        await until(lambda: lender.sites_with_spare_connections() and strong.counters.pages)
        monkeypatch.setattr(strong.balancing.policy, "accept", lambda *_: True)  # It has enough work of its own.
        assert 20 == await lender.lend(strong.contact, lender.sites_with_spare_connections()[0][0], 20)
        assert 0 < weak.row().lent == lender.urls
        assert 0 < strong.row().borrowed == strong.balancing.loans.borrower.urls
        lent = [entry.url for entry in lender.loans()[0].entries.values()]
        assert strong.components.forwarder.not_recently_sent(lent, 0) == [], "its owner knows them"
        await until(lambda: lender.done >= 20)
        assert strong.counters.pages < 1_000, "it was through with its own work and could do nothing else"


@pytest.mark.parametrize("reach", ["not allowed", "no route"])
async def test_what_a_borrower_cannot_reach_its_owner_fetches(tmp_path: Path, reach: str) -> None:
    """The owner fetches the borrower's own pages as well, and so no page of either fails."""
    async with Web(SITES) as site:
        site.fallback = answered
        sound = Config(
            data=tmp_path / "a", port=0, allow_networks=("127.0.0.0/8",), limits=replace(QUICK, fetches_max=2)
        )
        lame = replace(
            sound, data=tmp_path / "b", allow_networks=() if reach == "not allowed" else sound.allow_networks
        )
        async with Peer(sound, replace(JOB, **BALANCE)) as owner, Peer(lame) as borrower:
            await owner.begin()
            await borrower.join([owner.contact.address])
            fetch = borrower.components.fetcher.fetch

            async def lost(url: str, *rest: Any, **options: Any) -> Any:
                return replace(await fetch(url.replace(f":{site.port}/", ":9/"), *rest, **options), url=url)

            if reach == "no route":
                borrower.components.fetcher.fetch = lost  # type: ignore[method-assign]
            own, others = sites_of(owner, borrower, site, 4), sites_of(borrower, owner, site, 1)
            pages = [site.url(f"/{page}", one) for one in own for page in range(40)]
            await owner.crawl([*pages, *(site.url(f"/{page}", one) for one in others for page in range(10))])
            await finish([owner, borrower])
            assert not owner.counters.failed
            assert not borrower.counters.failed
        fetched = [line.url for line in page_lines(tmp_path / "a")]
        assert sorted(pages) == sorted(fetched)


async def test_at_max_time_lent_pages_come_back_and_until_then_they_are_lent(
    make_peer: MakePeer, lines: Callable[[], dict[str, LoggedPage]]
) -> None:
    async with Web(SITES) as site:
        site.fallback = slow(answered, 0.05)
        weak = await make_peer("a", limits=WEAK, max_time_s=1000.0, **BALANCE)
        strong = await make_peer("b", join=weak, limits=replace(QUICK, fetches_max=4))
        assert "drain" == weak.job.lends_by
        await weak.crawl([site.url(f"/{page}", one) for one in sites_of(weak, strong, site, 4) for page in range(250)])
        await until(lambda: strong.balancing.loans.borrower.done > 0 and weak.balancing.loans.lender.urls)
        weak.runtime.hear_time(1_000_000)
        await finish([weak, strong])
        await until(lambda: not weak.balancing.loans.lender.urls and not strong.balancing.loans.borrower.urls)
        assert {"time"} == {weak.limit_reached, strong.limit_reached}
        fetched = weak.counters.done + strong.counters.done
        assert 1000 == fetched + weak.row().pending
        assert len(lines()) == fetched == sum(site.fetched.values()) < 1000


async def test_exactly_max_pages_are_fetched_by_lenders_and_borrowers_together(
    make_peer: MakePeer, lines: Callable[[], dict[str, LoggedPage]]
) -> None:
    async with Web(SITES) as site:
        site.fallback = answered
        weak = await make_peer("a", limits=WEAK, max_pages=150, **BALANCE)
        strong = await make_peer("b", join=weak, limits=replace(QUICK, fetches_max=4))
        await weak.crawl([site.url(f"/{page}", one) for one in sites_of(weak, strong, site, 4) for page in range(100)])
        await finish([weak, strong])
        assert {"pages"} == {weak.limit_reached, strong.limit_reached}
        assert strong.counters.pages > 20
        assert 150 == len(lines()) == sum(site.fetched.values())
        assert 0 == weak.balancing.loans.lender.urls


async def test_a_borrower_follows_links_by_the_shortest_path_that_the_owner_knows(make_peer: MakePeer) -> None:
    """At the largest depth a page leads nowhere. A shorter path to it is met while it is lent."""
    async with Web(SITES) as site:

        async def page(request: web.BaseRequest) -> web.StreamResponse:
            if request.path == "/":
                return html(*(f"/{number}" for number in range(200)))
            return html() if request.path.endswith("/child") else html(f"{request.path}/child")

        site.fallback = slow(page, 0.05)
        weak = await make_peer("a", limits=WEAK, max_depth=1, block_urls=20, update_s=0.3)
        strong = await make_peer("b", join=weak, limits=replace(QUICK, fetches_max=2))
        await weak.crawl([site.url(site=number) for number in sites_of(weak, strong, site, 2)])
        borrower = strong.balancing.loans.borrower
        await until(lambda: any(len(loan.entries) >= 10 for loan in borrower.crawlable_loans()))
        lent = max(borrower.crawlable_loans(), key=lambda loan: len(loan.entries))
        url = max(lent.entries.values()).url
        await weak.crawl([url])
        await finish([weak, strong])
        assert url in {request for request, count in site.fetched.items() if count == 1}
        assert url in [line.url for line in page_lines(strong.config.data)]
        assert [f"{url}/child"] == [one for one in site.fetched if one.endswith("/child")]


async def test_a_borrower_asks_by_conditions_and_the_owner_says_when_again(make_peer: MakePeer) -> None:
    async with Web(SITES) as site:
        conditions: list[str] = []

        async def page(request: web.BaseRequest) -> web.StreamResponse:
            if "If-None-Match" in request.headers:
                conditions.append(request.path)
                return web.Response(status=304, headers={"ETag": '"one"'})
            return html(ETag='"one"')

        site.fallback = slow(page, 0.05)
        weak = await make_peer("a", limits=WEAK, recrawl_after_s=2.0, recrawl_adaptive=True, **BALANCE)
        strong = await make_peer("b", join=weak, limits=replace(QUICK, fetches_max=4))
        urls = [site.url(f"/{page}", one) for one in sites_of(weak, strong, site, 4) for page in range(40)]
        await weak.crawl(urls)
        await until(lambda: strong.counters.to_wire().unchanged > 5)
        assert len(conditions) >= 5
        assert weak.balancing.loans.lender.done > 10
        borrowed = [line.url for line in page_lines(strong.config.data) if line.fields.get("unchanged")]
        assert borrowed

        def periods_s() -> list[float]:
            keys = [weak.components.partitioner.locate(url).key for url in borrowed]
            return [visit.period_s for key in keys if (visit := weak.store.last_visit(key)) and visit.etag == '"one"']

        await until(lambda: len(borrowed) == len([seconds for seconds in periods_s() if seconds > 2.0]))


async def test_a_borrower_leases_the_clocks_of_its_pages(make_peer: MakePeer) -> None:
    async with Web(SITES) as site:
        site.fallback = slow(answered, 0.02)
        weak = await make_peer("a", limits=WEAK, per_ip=True, delay_s=0.05, **BALANCE)
        strong = await make_peer("b", join=weak)
        own = sites_of(weak, strong, site, 6)
        await weak.crawl([site.url(f"/{page}", one) for one in own for page in range(40)])
        await finish([weak, strong])
        assert weak.balancing.loans.lender.done > 0
        for number in own:
            asked = [at for at, url in site.requests if url.startswith(site.url("/", number))]
            assert min(later - earlier for earlier, later in pairwise(asked)) >= 0.049
