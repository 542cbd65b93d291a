"""Peers that come, return and go at awkward moments: nothing lost, no end said too early, no site hurried."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest
from aiohttp import web

from kadcrawl import Config, Peer, RemoteError
from kadcrawl.crawl.fetch.result import FetchResult
from kadcrawl.keys import ID_BITS, Cell, Key, cell_of
from kadcrawl.link.client import LinkClient
from kadcrawl.link.wire.messages import (
    Accepted,
    Add,
    Added,
    Answer,
    Link,
    NewSeeds,
    Offer,
    Replicate,
    Survey,
    Wave,
    Welcome,
)
from kadcrawl.overlay.waves.wave import NO_BUCKET
from kadcrawl.peer.membership import bootstrap as bootstrap_module
from kadcrawl.peer.membership.endpoints import hello
from kadcrawl.replication import absence, cells as cells_module
from kadcrawl.store.store import DONE
from scripts.kadcrawl_run import LoggedPage
from tests.support.sites.web import Web, html, tree
from tests.support.swarm.brisk_loop import stall
from tests.support.swarm.crash import crash
from tests.support.swarm.peers import JOB, QUICK, MakePeer, finish, swarm
from tests.support.waiting import until

Lines = Callable[[], dict[str, LoggedPage]]
SITES = 8


def loopback_config(directory: Path) -> Config:
    return Config(data=directory, port=0, allow_networks=("127.0.0.0/8",), limits=QUICK)


def has_opened(peer: Peer, cell: Cell) -> bool:
    """Return whether the peer may crawl the cell."""
    return peer.components.frontier.is_open(cell)


async def test_a_peer_that_comes_back_is_where_it_was(tmp_path: Path) -> None:
    ports = set()
    for _ in range(2):
        async with Peer(loopback_config(tmp_path)) as peer:
            ports.add(peer.contact.port)
    assert len(ports) == 1


async def test_a_peer_back_elsewhere_is_found_while_its_old_address_is_suspect(
    make_peer: MakePeer, tmp_path: Path
) -> None:
    first = await make_peer("a")
    async with Peer(loopback_config(tmp_path / "b")) as second:
        await second.join([first.contact.address])
        await until(lambda: first.overlay.contacts() == [second.contact])
        old = second.contact
    async with Peer(replace(loopback_config(tmp_path / "b"), host="127.0.0.9")) as second:
        assert second.contact != old
        await second.join([first.contact.address])
        await until(lambda: first.overlay.contacts() == [second.contact])


async def test_a_silent_peer_counts_as_missing_until_it_is_given_up(make_peer: MakePeer) -> None:
    first = await make_peer("a")
    second = await make_peer("b", join=first)
    await until(lambda: first.overlay.contacts() == [second.contact])
    await crash(second)
    await until(lambda: not first.overlay.contacts())
    assert (await first.waves.ask_all(Survey(), deadline_s=1.0)).tally.missing == 1


async def test_a_seed_added_while_a_peer_joins_loses_nothing(
    make_peer: MakePeer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ask = hello
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

        monkeypatch.setattr(bootstrap_module, "hello", slow)
        async with Peer(loopback_config(tmp_path / "b")) as second:
            await second.join([first.contact.address])
            await until(lambda: first.ended and second.ended)
            assert first.job.seeds == second.job.seeds
        expected = {site.url(path, site=n) for n in range(SITES) for path in ("/", *(f"/{k}" for k in range(5)))}
        assert expected == set(site.fetched)


async def test_a_pause_while_a_peer_joins_reaches_it(
    make_peer: MakePeer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ask = hello
    first = await make_peer("a")

    async def slow(client: LinkClient, bootstrap: list[tuple[str, int]]) -> Welcome:
        welcome = await ask(client, bootstrap)
        first.obey(first.state_gossip.say("pause"))
        return welcome

    monkeypatch.setattr(bootstrap_module, "hello", slow)
    async with Peer(loopback_config(tmp_path / "b")) as second:
        await second.join([first.contact.address])
        assert second.state == "paused"


async def test_a_joining_peer_takes_no_seeds_for_the_swarm_yet(make_peer: MakePeer) -> None:
    peer = await make_peer()
    peer.runtime.begin_joining()
    with pytest.raises(RemoteError, match="still joining"):
        await peer.client.ask(peer.contact.address, Add(["http://127.0.0.2/"]), Added, 5)


async def test_a_joining_peer_answers_for_itself_alone(make_peer: MakePeer) -> None:
    """A joining peer does not know yet which peers to ask. It would treat unknown peers as if they did not exist."""
    peer = await make_peer()
    peer.runtime.begin_joining()
    with pytest.raises(RemoteError, match="still joining"):
        await peer.client.ask(peer.contact.address, Wave(ID_BITS, 5.0, Survey()), Answer, 5)
    answer = await peer.client.ask(peer.contact.address, Wave(NO_BUCKET, 5.0, Survey()), Answer, 5)
    assert answer.tally.members == 1


async def test_a_returning_peer_gives_up_what_others_own_by_now(make_peer: MakePeer, tmp_path: Path) -> None:
    async with Web(SITES) as site:
        site.fallback = lambda request: html()
        urls = [site.url(f"/{n}", site=n % SITES) for n in range(64)]
        async with Peer(loopback_config(tmp_path / "old"), JOB) as alone:
            await alone.begin(paused=True)
            await alone.crawl(urls)
        first = await make_peer("a")
        first.obey(first.state_gossip.say("pause"))
        second = await make_peer("b", join=first)
        async with Peer(loopback_config(tmp_path / "old"), JOB) as back:
            await back.join([first.contact.address])
            peers = [first, second, back]
            cells = list(back.store.cells)
            await until(lambda: all([has_opened(peer, cell) for peer in peers].count(True) == 1 for cell in cells))
            assert [peer.overlay.owns(cell) for cell in cells for peer in peers] == [
                has_opened(peer, cell) for cell in cells for peer in peers
            ]
            assert sum(row.pending for row in (await first.census()).rows) == 64
            await first.state_gossip.order("resume")
            await finish(peers)
        assert dict.fromkeys(urls, 1) == dict(site.fetched)


async def test_what_lies_with_the_wrong_peer_reaches_its_owner(make_peer: MakePeer) -> None:
    first = await make_peer("a")
    first.obey(first.state_gossip.say("pause"))
    second = await make_peer("b", join=first)
    owned = next(
        url
        for url in (f"http://127.0.0.{n}/" for n in range(2, 200))
        if second.overlay.owns(second.components.partitioner.locate(url).cell)
    )
    place = first.components.partitioner.locate(owned)
    first.components.intake.accept_offered(Link(owned, 0, 0), place, first.clock.now())
    assert (1, 0) == (first.store.pending, second.store.pending)
    await until(lambda: has_opened(second, place.cell))
    assert (1, 1) == (first.store.pending, second.store.pending)
    assert (0, 1) == (first.row().pending, second.row().pending)
    await until(lambda: place.cell in first.cells.holdings.backed)


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
    first.obey(first.state_gossip.say("pause"))
    others = [await make_peer(name, join=first) for name in "bcd"]
    await first.crawl([f"http://127.0.0.{n}/" for n in range(2, 202)])
    leavers, stayers = others[:2], [first, others[2]]
    for peer in leavers:
        peer.leave_soon()
    await asyncio.gather(*(peer.finish() for peer in leavers))
    assert [{}, {}] == [peer.store.cells for peer in leavers]
    assert [200, 200] == [peer.store.pending for peer in stayers]
    assert sum(peer.row().pending for peer in stayers) == 200


async def test_the_last_but_one_hands_over_what_only_it_knows(
    make_peer: MakePeer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The goodbye of a leaving peer leaves the other peer alone, and the other still asks it."""
    first = await make_peer("a")
    first.obey(first.state_gossip.say("pause"))
    second = await make_peer("b", join=first)
    ask = second.client.ask

    async def without_copies(address: tuple[str, int], message: Any, *rest: Any) -> Any:
        if isinstance(message, Replicate):
            raise RemoteError(address, "lost on the way")
        return await ask(address, message, *rest)

    monkeypatch.setattr(second.client, "ask", without_copies)
    random = Random(7)
    keys = [Key(random.randbytes(20)) for _ in range(20)]
    for key in keys:
        second.store.learn_done(key)
    second.leave_soon()
    await second.finish()
    assert not second.store.cells
    assert {DONE} == {first.store.state(key) for key in keys}


async def test_a_leaving_peer_takes_links_until_its_goodbye_and_then_redirects(make_peer: MakePeer) -> None:
    """Otherwise peers that leave together would wait for the links of one another."""
    links = [Link(f"http://127.0.0.{n}/", 0, 0) for n in range(2, 20)]
    alone = await make_peer("a")
    alone.obey(alone.state_gossip.say("pause"))
    alone.leave_soon()
    accepted = await alone.client.ask(alone.contact.address, Offer(links[:3]), Accepted, 5)
    assert [] == accepted.redirects
    alone.cells.holder_side.begin_leaving()
    with pytest.raises(RemoteError, match="leaving"):
        await alone.client.ask(alone.contact.address, Offer(links), Accepted, 5)
    first = await make_peer("b")
    second = await make_peer("c", join=first)
    second.cells.holder_side.begin_leaving()
    accepted = await first.client.ask(second.contact.address, Offer(links), Accepted, 5)
    assert [(index, first.contact) for index in range(len(links))] == [
        (one.index, one.owner) for one in accepted.redirects
    ]
    assert not second.store.cells


async def test_seeds_that_are_no_urls_are_passed_over(tmp_path: Path) -> None:
    for _ in range(2):
        async with Peer(loopback_config(tmp_path), JOB) as peer:
            await peer.begin()
            peer._wave_answers.respond(NewSeeds(["garbage", "HTTP://Upper.example/", "http://127.0.0.2/"]))
            assert peer.job.seeds == ("http://127.0.0.2/",)


async def test_history_goes_to_the_owner_too_and_only_once(make_peer: MakePeer) -> None:
    first = await make_peer("a")
    first.obey(first.state_gossip.say("pause"))
    second = await make_peer("b", join=first)
    random = Random(7)
    keys = [Key(random.randbytes(20)) for _ in range(64)]
    foreign = [key for key in keys if second.overlay.owns(cell_of(key, 16))]
    for key in foreign:
        first.store.learn_done(key)
    await until(lambda: {DONE} == {second.store.state(key) for key in foreign})
    assert second.cells.anti_entropy.moved == len(foreign)
    more = Key(foreign[0][:2] + b"\1" + bytes(17))
    first.store.learn_done(more)
    await until(lambda: second.store.state(more) == DONE)
    assert second.cells.anti_entropy.moved == len(foreign) + 1


async def test_a_peer_fetches_nothing_that_another_owns(make_peer: MakePeer) -> None:
    async with Web(SITES) as site:
        site.fallback = lambda request: html()
        first = await make_peer("a")
        second = await make_peer("b", join=first)
        for number in range(SITES):
            url = site.url("/", site=number)
            first.components.intake.accept_offered(
                Link(url, 0, 0), first.components.partitioner.locate(url), first.clock.now()
            )
        await until(lambda: len(site.fetched) == SITES and not first.pending and not second.pending)
        for number in range(SITES):
            url = site.url("/", site=number)
            place = first.components.partitioner.locate(url)
            owner = first if first.overlay.owns(place.cell) else second
            assert owner.store.state(place.key) == DONE
        assert set(site.fetched.values()) == {1}
        assert first.counters.pages + second.counters.pages == SITES
        assert second.counters.pages == sum(
            second.overlay.owns(second.components.partitioner.locate(site.url("/", site=n)).cell) for n in range(SITES)
        )


async def test_a_stalled_peer_syncs_a_cell_before_it_fetches_on(
    make_peer: MakePeer, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[tuple[Peer, int]] = []

    def watch(peer: Peer) -> None:
        fetch, frontier = peer.components.fetcher.fetch, peer.components.frontier

        async def watched(
            url: str, headers: Any = (), may_send: Callable[[], bool] = lambda: True, **others: Any
        ) -> FetchResult:
            def asked() -> bool:
                may = may_send()
                if may:
                    opening = frontier.opening(peer.components.partitioner.locate(url).cell)
                    assert opening is not None
                    sent.append((peer, opening))
                return may

            return await fetch(url, headers, asked, **others)

        monkeypatch.setattr(peer.components.fetcher, "fetch", watched)

    async with Web(SITES) as site:
        site.fallback = tree(400, SITES)(site)
        peers = await swarm(make_peer, "abc")
        for peer in peers:
            watch(peer)
        await peers[0].crawl([site.url("/0")])
        await until(lambda: len(site.fetched) >= 60)
        before = {peer: peer.components.frontier._openings for peer in peers}
        sent.clear()
        stall(2.0)
        await finish(peers)
        assert len(sent) > 200
        assert all(opening > before[peer] for peer, opening in sent)
        assert {site.url(f"/{n}", site=n % SITES): 1 for n in range(400)} == dict(site.fetched)


async def test_peers_that_stall_together_keep_their_cells(make_peer: MakePeer, monkeypatch: pytest.MonkeyPatch) -> None:
    """None of them has missed another, so each goes on where it was."""
    monkeypatch.setattr(absence, "MARGIN_S", 0.0)  # The peers have come a moment ago.
    async with Web(SITES) as site:
        site.fallback = tree(400, SITES)(site)
        peers = await swarm(make_peer, "abc")
        logs = [peer.runtime.cells._absences for peer in peers]
        await until(lambda: not any(log.noticed(bytes(20), 0.6, asyncio.get_running_loop().time()) for log in logs))
        await peers[0].crawl([site.url("/0")])
        await until(lambda: len(site.fetched) >= 60)
        closed: list[Cell] = []
        for peer in peers:
            peer.runtime.cells.events.cell_closed.append(closed.append)
        stall(2.0)
        assert all(peer.runtime.cells.is_stalled() for peer in peers)
        await finish(peers)
        assert [] == closed
        assert {site.url(f"/{n}", site=n % SITES): 1 for n in range(400)} == dict(site.fetched)


async def test_closing_the_cells_after_a_stall_is_no_further_stall(
    make_peer: MakePeer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cells_module, "STALL_S", 60.0)  # No machine is so busy.
    peer = await make_peer("a")
    cells = peer.runtime.cells
    await until(lambda: cells._beat_at is not None)
    monkeypatch.setattr(cells.sync, "close_all", lambda: stall(100.0))
    stall(100.0)
    assert cells.is_stalled()
    await cells.sure()
    assert not cells.is_stalled()
