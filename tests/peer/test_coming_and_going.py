"""Peers that come, return and go at awkward moments: nothing lost, no end said too early, no site hurried."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest
from aiohttp import web

from kadcrawl import Config, Peer, RemoteError
from kadcrawl.history.store import DONE
from kadcrawl.keys import Key, cell_of
from kadcrawl.link.client import LinkClient
from kadcrawl.link.messages import Add, Link, NewSeeds, Ok, Recorded, Records, Survey, Welcome
from kadcrawl.peer import peer as peer_module
from scripts.kadcrawl_run import PageLine
from tests.peer.conftest import JOB, QUICK, MakePeer
from tests.web import Web, html, tree

Lines = Callable[[], dict[str, PageLine]]
SITES = 8


def config(directory: Path) -> Config:
    return Config(data=directory, port=0, allow_networks=("127.0.0.0/8",), limits=QUICK)


async def until(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(30):
        while not condition():
            await asyncio.sleep(0.01)


def crash(peer: Peer) -> None:
    """Stop answering, as a killed process does; the peer is left for its owner to close."""
    peer._service._peer = None  # type: ignore[assignment]
    peer.overlay._protocol.silent = True  # type: ignore[union-attr]


async def test_a_peer_that_comes_back_is_where_it_was(tmp_path: Path) -> None:
    ports = set()
    for _ in range(2):
        async with Peer(config(tmp_path)) as peer:
            ports.add(peer.contact.port)
    assert len(ports) == 1


async def test_a_peer_that_comes_back_elsewhere_is_found_while_its_old_place_is_in_doubt(
    make_peer: MakePeer, tmp_path: Path
) -> None:
    first = await make_peer("a")
    async with Peer(config(tmp_path / "b")) as second:
        await second.join([first.contact.address])
        await until(lambda: first.overlay.contacts() == [second.contact])
        old = second.contact
    async with Peer(replace(config(tmp_path / "b"), host="127.0.0.9")) as second:
        assert second.contact != old
        await second.join([first.contact.address])
        await until(lambda: first.overlay.contacts() == [second.contact])


async def test_a_silent_peer_counts_as_missing_until_it_is_given_up(make_peer: MakePeer) -> None:
    first = await make_peer("a")
    second = await make_peer("b", join=first)
    await until(lambda: first.overlay.contacts() == [second.contact])
    crash(second)
    await until(lambda: not first.overlay.contacts())
    assert (await first.waves.ask_all(Survey(), deadline_s=1.0)).tally.missing == 1


async def test_a_seed_added_while_a_peer_joins_loses_nothing(
    make_peer: MakePeer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ask = peer_module.hello
    asked = 0
    async with Web(SITES) as site:
        site.fallback = lambda request: html(*(f"/{n}" for n in range(5))) if request.path == "/" else html()
        first = await make_peer("a", scope="host", delay_s=0.05)
        await first.crawl([site.url()])

        async def slow(client: LinkClient, bootstrap: list[tuple[str, int]]) -> Welcome:
            nonlocal asked
            asked += 1
            welcome = await ask(client, bootstrap)
            if asked == 1:
                await first.crawl([site.url(site=n) for n in range(1, SITES)])
            return welcome

        monkeypatch.setattr(peer_module, "hello", slow)
        async with Peer(config(tmp_path / "b")) as second:
            await second.join([first.contact.address])
            await until(lambda: first.ended and second.ended)
            assert first.job.seeds == second.job.seeds
        expected = {site.url(path, site=n) for n in range(SITES) for path in ("/", *(f"/{k}" for k in range(5)))}
        assert expected == set(site.fetched)


async def test_a_pause_while_a_peer_joins_reaches_it(
    make_peer: MakePeer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ask = peer_module.hello
    first = await make_peer("a")

    async def slow(client: LinkClient, bootstrap: list[tuple[str, int]]) -> Welcome:
        welcome = await ask(client, bootstrap)
        first.set_paused(True)
        return welcome

    monkeypatch.setattr(peer_module, "hello", slow)
    async with Peer(config(tmp_path / "b")) as second:
        await second.join([first.contact.address])
        assert second.state == "paused"


async def test_a_joining_peer_takes_no_seeds_for_the_swarm_yet(make_peer: MakePeer) -> None:
    peer = await make_peer()
    peer.joining = True
    with pytest.raises(RemoteError, match="still joining"):
        await peer.client.ask(peer.contact.address, Add(["http://127.0.0.2/"]), Ok, 5)


async def test_a_returning_peer_gives_away_what_others_own_by_now(make_peer: MakePeer, tmp_path: Path) -> None:
    async with Web(SITES) as site:
        site.fallback = tree(0)(site)
        urls = [site.url(f"/{n}", site=n % SITES) for n in range(64)]
        async with Peer(config(tmp_path / "old"), JOB) as alone:
            await alone.begin(paused=True)
            await alone.crawl(urls)
        first = await make_peer("a")
        first.set_paused(True)
        await make_peer("b", join=first)
        async with Peer(config(tmp_path / "old"), JOB) as back:
            await back.join([first.contact.address])
            entries = [back.store.window(f"127.0.0.{n + 2}:{site.port}", 100) for n in range(SITES)]
            assert all(back.overlay.owns(back.parts.placer.place(one.url).cell) for some in entries for one in some)
            assert (await first.census()).tally.pending == 64


async def test_what_lies_with_the_wrong_peer_is_given_back_when_its_owner_is_there_again(
    make_peer: MakePeer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kadcrawl.peer.handover.REPAIR_S", 0.05)
    first = await make_peer("a")
    first.set_paused(True)
    second = await make_peer("b", join=first)
    owned = next(
        url
        for url in (f"http://127.0.0.{n}/" for n in range(2, 200))
        if second.overlay.owns(second.parts.placer.place(url).cell)
    )
    first.parts.intake.take_offered(Link(owned, 0, 0), first.parts.placer.place(owned), first.clock.now())
    assert first.store.pending == 1
    for listener in first.overlay.on_joined:
        listener(second.contact)
    await until(lambda: (first.store.pending, second.store.pending) == (0, 1))


async def test_the_wait_of_a_site_without_work_moves_to_a_newcomer(make_peer: MakePeer) -> None:
    async with Web(SITES) as site:
        site.fallback = lambda request: html()
        site.pages["/robots.txt"] = lambda request: web.Response(text="User-agent: *\nCrawl-delay: 1.5")
        first = await make_peer("a")
        await first.crawl([site.url("/1", site=n) for n in range(SITES)])
        await until(lambda: len(site.fetched) == SITES and first.store.pending == 0)
        await make_peer("b", join=first)
        await first.crawl([site.url("/2", site=n) for n in range(SITES)])
        await until(lambda: len(site.fetched) == 2 * SITES)
        for number in range(SITES):
            paths = (site.url("/1", site=number), site.url("/2", site=number))
            before, after = (at for at, url in site.requests if url in paths)
            assert after - before >= 1.5


async def test_two_that_leave_at_once_lose_nothing(make_peer: MakePeer) -> None:
    first = await make_peer("a")
    first.set_paused(True)
    others = [await make_peer(name, join=first) for name in "bcd"]
    await first.crawl([f"http://127.0.0.{n}/" for n in range(2, 202)])
    leavers = others[:2]
    for peer in leavers:
        peer.leave_soon()
    await asyncio.gather(*(peer.finish() for peer in leavers))
    assert [peer.store.pending for peer in leavers] == [0, 0]
    assert first.store.pending + others[2].store.pending == 200


async def test_a_leaving_peer_takes_nothing_more(make_peer: MakePeer) -> None:
    peer = await make_peer()
    peer.leave_soon()
    with pytest.raises(RemoteError, match="leaving"):
        await peer.client.ask(peer.contact.address, Records([bytes(20)], [], []), Recorded, 5)


async def test_seeds_that_are_no_urls_are_passed_over(tmp_path: Path) -> None:
    for _ in range(2):
        async with Peer(config(tmp_path), JOB) as peer:
            await peer.begin()
            peer._service.respond(NewSeeds(["garbage", "HTTP://Upper.example/", "http://127.0.0.2/"]))
            assert peer.job.seeds == ("http://127.0.0.2/",)


async def test_history_goes_to_the_owner_too_and_only_once(
    make_peer: MakePeer, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = await make_peer("a")
    first.set_paused(True)
    second = await make_peer("b", join=first)
    random = Random(7)
    keys = [random.randbytes(20) for _ in range(64)]
    foreign = [Key(key) for key in keys if second.overlay.owns(cell_of(Key(key), 16))]
    for key in foreign:
        first.store.learn_done(key)
    assert await first.handover.give_foreign() == len(foreign)
    assert {second.store.state(key) for key in foreign} == {DONE}
    assert await first.handover.give_foreign() == 0
    more = Key(foreign[0][:2] + b"\1" + bytes(17))
    first.store.learn_done(more)
    assert await first.handover.give_foreign() == 2
    assert second.store.state(more) == DONE


async def test_a_peer_fetches_nothing_that_another_owns(make_peer: MakePeer) -> None:
    async with Web(SITES) as site:
        site.fallback = lambda request: html()
        first = await make_peer("a")
        second = await make_peer("b", join=first)
        for number in range(SITES):
            url = site.url("/", site=number)
            first.parts.intake.take_offered(Link(url, 0, 0), first.parts.placer.place(url), first.clock.now())
        await until(lambda: len(site.fetched) == SITES and not first.pending and not second.pending)
        for number in range(SITES):
            url = site.url("/", site=number)
            place = first.parts.placer.place(url)
            owner = first if first.overlay.owns(place.cell) else second
            assert owner.store.state(place.key) == DONE
        assert set(site.fetched.values()) == {1}
        assert first.totals.pages + second.totals.pages == SITES
        assert second.totals.pages == sum(
            second.overlay.owns(second.parts.placer.place(site.url("/", site=n)).cell) for n in range(SITES)
        )
