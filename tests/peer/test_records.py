"""Test roles and records of a whole crawl: which links are followed, and which records each page gives once.

Also tested is the permission that the hooks of a job need.
"""

import asyncio
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from kadcrawl import Config, Leaf, Peer, StartError
from kadcrawl.cli.local.resting import resting_peers
from kadcrawl.crawl.content.page import Page
from kadcrawl.crawl.content.record_extractor import ExtractedRecords, WorkerExtraction
from kadcrawl.peer.environment import Environment
from kadcrawl.settings.page_rules import Field, RecordRule, Role, RoleRule
from scripts.kadcrawl_run import LoggedPage
from tests.support.records import records
from tests.support.sites.owned_sites import SITES, sites_of
from tests.support.sites.web import Web, html, slow
from tests.support.swarm.peers import JOB, QUICK, MakePeer, finish, swarm

Lines = Callable[[], dict[str, LoggedPage]]
ROLES = (RoleRule(pattern="/list/", role="next_link"), RoleRule(pattern="/item/", role="detail_request"))
FIELDS = (Field("title", "css:h1::text"), Field("links", "css:a::attr(href)", every=True))
RECORDS = (RecordRule(pattern="/item/", name="item", fields=FIELDS),)
HOOK = "tests.support.hooks:title"
LISTS, ITEMS = 5, 4
WEAK = replace(QUICK, fetches_max=1)


def serve_shop(site: Web) -> None:
    """Serve lists that lead to the next list and to items. Items lead on to pages that only items link to."""

    def page(request: web.BaseRequest) -> web.StreamResponse:
        _, kind, number = request.path.split("/")
        if kind == "list":
            onward = [f"/list/{int(number) + 1}"] if int(number) + 1 < LISTS else []
            return html(*onward, *(f"/item/{number}{item}" for item in range(ITEMS)), "/about/us")
        text = f'<h1>Item {number}</h1><a href="/hidden/{number}">' if kind == "item" else "nothing"
        return web.Response(text=text, content_type="text/html")

    site.fallback = page


async def test_links_of_lists_are_followed_and_items_become_records(
    make_peer: MakePeer, lines: Lines, tmp_path: Path
) -> None:
    async with Web() as site:
        serve_shop(site)
        peer = await make_peer(roles=ROLES, records=RECORDS)
        await peer.crawl([site.url("/list/0")])
        await finish([peer])
        items = {site.url(f"/item/{number}{item}") for number in range(LISTS) for item in range(ITEMS)}
        found = {url: (one.fields.get("role"), one.fields.get("records")) for url, one in lines().items()}
        assert found == {
            **{site.url(f"/list/{number}"): ("next_link", None) for number in range(LISTS)},
            **dict.fromkeys(items, ("detail_request", 1)),
            site.url("/about/us"): (None, None),
        }
    assert items == {one["url"] for one in records(tmp_path)}
    for one in records(tmp_path):
        number = one["url"].rpartition("/")[2]
        key = peer.components.partitioner.locate(one["url"]).key.hex()
        fetched_at = lines()[one["url"]].fields["fetched_at"]
        assert one == {
            "key": f"{key}:0",
            "url": one["url"],
            "fetched_at": fetched_at,
            "peer": peer.contact.id.hex()[:16],
            "rule": "item",
            "record": {"title": f"Item {number}", "links": [f"/hidden/{number}"]},
        }


async def test_no_more_is_kept_of_a_page_than_shows_that_it_is_too_large(
    make_peer: MakePeer, lines: Lines, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    limits = replace(QUICK, record_page_bytes_max=100)
    kept: list[int] = []
    extract = WorkerExtraction.extract

    async def noted(extraction: WorkerExtraction, rule: int, page: Page) -> ExtractedRecords:
        kept.append(len(page.content))
        return await extract(extraction, rule, page)

    monkeypatch.setattr(WorkerExtraction, "extract", noted)
    async with Web() as site:

        def item(request: web.BaseRequest) -> web.StreamResponse:
            size = int(request.path.rpartition("/")[2])
            return web.Response(text="<h1>A</h1>".ljust(size), content_type="text/html")

        site.fallback = item
        peer = await make_peer(records=RECORDS, limits=limits)
        await peer.crawl([site.url(f"/item/{size}") for size in (100, 101, 5_000)])
        await finish([peer])
        found = {url.rpartition("/")[2]: one.fields for url, one in lines().items()}
    assert [100, 101, 101] == sorted(kept)
    assert 1 == found["100"]["records"]
    assert "the page has more than 100 bytes" == found["101"]["record_error"] == found["5000"]["record_error"]


@pytest.mark.parametrize("follow", [True, False])
async def test_follow_says_otherwise_than_the_role(make_peer: MakePeer, lines: Lines, follow: bool) -> None:
    async with Web() as site:
        serve_shop(site)
        other: Role = "detail_request" if follow else "next_link"
        peer = await make_peer(roles=(RoleRule(pattern="/item/", role=other, follow=follow),))
        await peer.crawl([site.url("/item/1")])
        await finish([peer])
        assert follow == (site.url("/hidden/1") in lines())


async def test_what_goes_wrong_with_a_page_costs_its_records_only(
    make_peer: MakePeer, lines: Lines, tmp_path: Path
) -> None:
    hooks = ("title", "raises", "dies", "a_number", "nothing")
    async with Web() as site:
        site.fallback = lambda request: html(*(f"/{hook}" for hook in hooks)) if request.path == "/" else html("/title")
        site.pages["/title?no"] = lambda request: web.Response(status=404)
        rules = tuple(RecordRule(pattern=f"/{hook}$", hook=f"tests.support.hooks:{hook}") for hook in hooks)
        peer = await make_peer(records=rules)
        await peer.crawl([site.url("/")])
        await finish([peer])
        errors = {url: one.fields.get("record_error") for url, one in lines().items()}
        assert errors.keys() == {site.url(f"/{hook}") for hook in ("", *hooks)}
        assert not [one for one in lines().values() if one.failed]
        assert {url.rpartition("/")[2] for url, error in errors.items() if error} == {"raises", "dies", "a_number"}
    assert [site.url("/title")] == [one["url"] for one in records(tmp_path)]


async def test_a_swarm_writes_each_record_once(make_peer: MakePeer, tmp_path: Path) -> None:
    async with Web(6) as site:
        serve_shop(site)
        peers = await swarm(make_peer, "abc", roles=ROLES, records=RECORDS)
        await peers[0].crawl([site.url("/list/0", site=number) for number in range(6)])
        await finish(peers)
    assert {1} == set(Counter(one["key"] for one in records(tmp_path)).values())
    assert 6 * LISTS * ITEMS == len(records(tmp_path))


async def test_pages_whose_records_fail_are_counted_over_the_swarm_and_a_restart(
    make_peer: MakePeer, lines: Lines
) -> None:
    texts = RecordRule(pattern="/item/.*[02]$", each="css:h1::text", fields=FIELDS)
    async with Web(6) as site:
        serve_shop(site)
        peers = await swarm(make_peer, "abc", roles=ROLES, records=(texts, *RECORDS))
        await peers[0].crawl([site.url("/list/0", site=number) for number in range(6)])
        await finish(peers)
    failed = [one for one in lines().values() if one.fields.get("record_error")]
    assert 6 * LISTS * ITEMS // 2 == len(failed) == sum(peer.row().counters.record_errors for peer in peers)
    for peer in peers:
        (journaled,) = resting_peers(peer.config.data)
        assert peer.row().counters == journaled.counters, "as a restart finds them"


@pytest.mark.parametrize("kind", ["leaf", "full peer"])
async def test_whoever_is_lent_a_page_writes_its_records(make_peer: MakePeer, tmp_path: Path, kind: str) -> None:
    async with Web(SITES) as site:
        serve_shop(site)
        site.fallback = slow(site.fallback, 0.02)
        owner = await make_peer("owner", limits=WEAK, roles=ROLES, records=RECORDS, block_urls=5, update_s=0.3)
        config = Config(data=tmp_path / "taker", port=0, allow_networks=("127.0.0.0/8",), limits=QUICK)
        async with Leaf(config) if kind == "leaf" else Peer(config) as taker:
            await taker.join([owner.contact.address])
            own = range(SITES) if isinstance(taker, Leaf) else sites_of(owner, taker, site, 2)
            items = {site.url(f"/item/{number}", one) for one in own for number in range(200 // len(own))}
            await owner.crawl([*items])
            async with asyncio.timeout(60):
                await asyncio.gather(owner.wait_done(), taker.wait_done())
            await taker.finish()
            await owner.finish()
            borrowed = taker.counters.pages
    found = {name: Counter(one["url"] for one in records(tmp_path / name)) for name in ("owner", "taker")}
    assert 0 < borrowed == found["taker"].total()
    assert dict.fromkeys(items, 1) == found["owner"] + found["taker"]


async def test_a_strangers_job_calls_nothing_that_was_not_allowed_here(make_peer: MakePeer, tmp_path: Path) -> None:
    peer = await make_peer(records=(RecordRule(pattern="/item/", hook=HOOK),))
    config = Config(data=tmp_path / "two", port=0, limits=QUICK)
    for member in (Peer(config), Leaf(replace(config, data=tmp_path / "leaf"))):
        async with member:
            with pytest.raises(StartError, match=f"join with --hook {HOOK}"):
                await member.join([peer.contact.address])
            assert not member.begun
    other = replace(config, hooks=("tests.support.hooks:raises",))
    async with Peer(other) as wary:
        with pytest.raises(StartError, match="here nobody allowed that"):
            await wary.join([peer.contact.address])
    async with Peer(replace(config, hooks=(HOOK,))) as willing:
        await willing.join([peer.contact.address])
        assert willing.job.records == peer.job.records
    # Its journal has the job now, which allows nothing by itself.
    async with Peer(config) as again:
        with pytest.raises(StartError, match="here nobody allowed that"):
            await again.begin()


async def test_a_peer_that_lacks_a_hook_does_not_begin(tmp_path: Path) -> None:
    job = replace(JOB, records=(RecordRule(pattern=".", hook="tests.no_such_module:hook"),))
    async with Peer(Config(data=tmp_path, port=0, limits=QUICK), job) as peer:
        with pytest.raises(StartError, match="lacks a hook of the job: ModuleNotFoundError"):
            await peer.begin()


async def test_a_job_without_records_starts_no_worker(tmp_path: Path) -> None:
    def never(*_: object) -> Any:
        raise AssertionError("a job without records needs none")

    config = Config(data=tmp_path, port=0, limits=QUICK)
    async with Peer(config, replace(JOB, roles=ROLES), Environment(extraction=never)) as peer:
        await peer.begin()
    assert not (tmp_path / "records.jsonl").exists()
