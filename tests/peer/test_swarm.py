"""Several peers, no master: each page once, the end known by all, ranges that move when peers come and go."""

import asyncio
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path

import pytest
from aiohttp import web

from kadcrawl import Config, Job, Peer, RemoteError, StartError
from kadcrawl.keys import Cell, anchor
from kadcrawl.link.client import LinkClient
from kadcrawl.link.wire.messages import (
    Accepted,
    Add,
    Added,
    AssignReplica,
    Command,
    Contact,
    GetStatus,
    Hello,
    Link,
    Offer,
    Ok,
    Order,
    ReplicaAssigned,
    Replicate,
    Status,
    Survey,
    SwarmStatus,
    TakeOver,
    TakeOverAnswer,
    Welcome,
)
from kadcrawl.replication.cells import Cells
from kadcrawl.replication.holder_side import HolderSide
from kadcrawl.replication.placement.placement import placement_keys
from kadcrawl.settings.job import CELL_BITS_BY_URL
from kadcrawl.store.cell_digest import CellDigest
from kadcrawl.store.store import DONE
from scripts.kadcrawl_run import LoggedPage
from tests.support.sites.web import Web, html, tree
from tests.support.swarm.peers import MakePeer, finish, swarm
from tests.support.waiting import until

Lines = Callable[[], dict[str, LoggedPage]]
SITES = 8


async def ask(peer: Peer, message: object, expected: type) -> object:
    client = LinkClient(10_000_000)
    await client.open()
    try:
        return await client.ask(peer.contact.address, message, expected, 10)  # type: ignore[arg-type]
    finally:
        await client.close()


async def test_four_peers_fetch_every_page_once_and_all_know_the_end(make_peer: MakePeer, lines: Lines) -> None:
    async with Web(SITES) as site:
        site.fallback = tree(300, SITES)(site)
        peers = await swarm(make_peer, "abcd")
        await peers[0].crawl([site.url("/0")])
        await finish(peers)
        assert {site.url(f"/{n}", site=n % SITES): 1 for n in range(300)} == dict(site.fetched)
        assert set(site.fetched) == set(lines())
        assert all(peer.ended for peer in peers)
        assert sum(peer.counters.urls for peer in peers) == 300


async def test_a_site_is_fetched_by_its_owner_alone_and_its_robots_txt_once(make_peer: MakePeer, lines: Lines) -> None:
    async with Web(SITES) as site:
        site.fallback = tree(120, SITES)(site)
        peers = await swarm(make_peer, "abc")
        await peers[1].crawl([site.url("/0")])
        await finish(peers)
        robots = [url for _, url in site.requests if url.endswith("/robots.txt")]
        assert len(robots) == len(set(robots)) == SITES
        owners = {(line.url.split("/")[2], line.directory) for line in lines().values()}
        assert len(owners) == SITES


async def test_every_peer_names_the_same_owner_for_every_cell(make_peer: MakePeer) -> None:
    peers = await swarm(make_peer, "abcde")
    for cell in range(0, 1 << 16, 997):
        nearest = min(peers, key=lambda peer: peer.contact.number ^ anchor(cell, 16))  # type: ignore[arg-type]
        assert {nearest.contact} == {await peer.overlay.owner(cell) for peer in peers}  # type: ignore[arg-type]
        assert [peer is nearest for peer in peers] == [peer.overlay.owns(cell) for peer in peers]  # type: ignore[arg-type]


async def test_the_job_comes_from_the_swarm(make_peer: MakePeer) -> None:
    first, second = await swarm(make_peer, "ab", delay_s=3.0, max_depth=7, name="theirs")
    assert first.job == second.job
    assert (3.0, 7, "theirs") == (second.job.delay_s, second.job.max_depth, second.job.name)


async def test_the_budget_is_the_swarms(make_peer: MakePeer, lines: Lines) -> None:
    async with Web(SITES) as site:
        site.fallback = tree(300, SITES)(site)
        peers = await swarm(make_peer, "abc", max_pages=57)
        await peers[0].crawl([site.url("/0")])
        await finish(peers)
        assert sum(site.fetched.values()) == 57 == len(lines())


async def test_a_budget_counts_what_those_who_left_have_fetched(make_peer: MakePeer, lines: Lines) -> None:
    async with Web(SITES) as site:
        site.fallback = tree(900, SITES)(site)
        peers = await swarm(make_peer, "abc", max_pages=300)
        await peers[0].crawl([site.url("/0")])
        async with asyncio.timeout(60):
            while peers[2].counters.pages < 10 and sum(site.fetched.values()) < 250:
                await asyncio.sleep(0.005)
        peers[2].leave_soon()
        await peers[2].finish()
        await peers[2].__aexit__(None, None, None)
        await finish(peers[:2])
        assert 200 <= sum(site.fetched.values()) <= 300


async def test_a_budget_counts_what_those_who_left_before_there_was_one_have_fetched(make_peer: MakePeer) -> None:
    sites = 3 * SITES  # Of eight sites, whose ports differ in each run, a peer may own none.
    async with Web(sites) as site:
        site.fallback = tree(60, sites)(site)
        peers = await swarm(make_peer, "abc")
        await peers[0].crawl([site.url("/0")])
        await finish(peers)
        assert min(peer.counters.pages for peer in peers) > 0
        await peers[2].leave()
        for peer in reversed(peers):
            await peer.__aexit__(None, None, None)
        site.fallback = tree(300, sites)(site)
        peers = await swarm(make_peer, "ab", max_pages=80)
        await peers[0].crawl([site.url(f"/{page}", site=page % sites) for page in range(60, 120)])
        await finish(peers)
        assert 80 == sum(site.fetched.values())


async def test_who_joins_when_the_budget_is_spent_learns_that(make_peer: MakePeer) -> None:
    async with Web(SITES) as site:
        site.fallback = tree(200, SITES)(site)
        peers = await swarm(make_peer, "ab", max_pages=20)
        await peers[0].crawl([site.url("/0")])
        await finish(peers)
        # Either may be the one that shares it out.
        for first, second in ("ab", "ba"):
            for peer in peers:
                await peer.__aexit__(None, None, None)
            peers = [await make_peer(first, max_pages=20)]
            await finish(peers)
            peers.append(await make_peer(second, join=peers[0]))
            await finish(peers)
        assert 20 == sum(site.fetched.values())


async def test_a_budget_larger_than_the_web_changes_nothing(make_peer: MakePeer) -> None:
    async with Web(SITES) as site:
        site.fallback = tree(40, SITES)(site)
        peers = await swarm(make_peer, "ab", max_pages=1000)
        await peers[0].crawl([site.url("/0")])
        await finish(peers)
        assert len(site.fetched) == 40


async def test_a_crawl_larger_than_the_budget_goes_on_with_a_larger_one(make_peer: MakePeer, tmp_path: Path) -> None:
    async with Web() as site:
        site.fallback = tree(30)(site)
        for budget in (10, 25):
            peer = await make_peer("one", max_pages=budget)
            await peer.crawl([site.url("/0")])
            await finish([peer])
            await peer.__aexit__(None, None, None)
            assert sum(site.fetched.values()) == budget


async def test_nobody_says_the_end_while_a_page_is_slow(make_peer: MakePeer) -> None:
    release = asyncio.Event()
    async with Web(SITES) as site:
        site.fallback = tree(20, SITES)(site)

        async def slow(request: web.BaseRequest) -> web.StreamResponse:
            await release.wait()
            return html("/21")

        site.pages["/19"] = slow
        peers = await swarm(make_peer, "abcd")
        await peers[0].crawl([site.url("/0")])
        async with asyncio.timeout(60):
            while len(site.fetched) < 20:
                await asyncio.sleep(0.01)
        # Who is idle asks within a second (overlay/waves/termination.py).
        await asyncio.sleep(3.0)
        assert not any(peer.ended for peer in peers)
        release.set()
        await finish(peers)
        assert site.fetched[site.url("/21", site=19 % SITES)] == 1


async def test_status_tells_the_whole_swarm_from_any_peer(make_peer: MakePeer) -> None:
    async with Web(SITES) as site:
        site.fallback = tree(50, SITES)(site)
        peers = await swarm(make_peer, "abc")
        await peers[0].crawl([site.url("/0")])
        await finish(peers)
        for peer in peers:
            status = await ask(peer, GetStatus(), Status)
            assert isinstance(status, Status)
            assert {one.contact for one in peers} == {row.contact for row in status.answer.rows}
            assert sum(row.counters.pages for row in status.answer.rows) == 50
            assert status.ended


async def test_a_paused_swarm_fetches_nothing_and_goes_on_when_told(make_peer: MakePeer) -> None:
    async with Web(SITES) as site:
        site.fallback = tree(60, SITES)(site)
        peers = await swarm(make_peer, "ab")
        await ask(peers[1], Command("pause"), Ok)
        assert ["paused", "paused"] == [peer.state for peer in peers]
        await ask(peers[0], Add([site.url("/0")]), Added)
        assert sum(peer.row().pending for peer in peers) == 1
        newcomer = await make_peer("c", join=peers[0])
        assert newcomer.state == "paused"
        assert not site.fetched
        await ask(peers[0], Command("resume"), Ok)
        await finish([*peers, newcomer])
        assert len(site.fetched) == 60


async def test_stop_reaches_everybody(make_peer: MakePeer) -> None:
    peers = await swarm(make_peer, "abc")
    await ask(peers[2], Command("stop"), Ok)
    async with asyncio.timeout(60):
        for peer in peers:
            await peer.wait_stopped()


async def test_an_end_is_revoked_by_a_new_seed_and_comes_again(make_peer: MakePeer) -> None:
    async with Web(SITES) as site:
        site.fallback = lambda request: html()
        peers = await swarm(make_peer, "abc")
        await peers[0].crawl([site.url("/0")])
        async with asyncio.timeout(60):
            while not all(peer.ended for peer in peers):
                await asyncio.sleep(0.01)
        for number in range(1, SITES):
            await peers[1].crawl([site.url("/1", site=number)])
        assert len(site.fetched) == SITES or not all(peer.ended for peer in peers)
        async with asyncio.timeout(60):
            while not all(peer.ended for peer in peers):
                await asyncio.sleep(0.01)
        assert len(site.fetched) == SITES


async def test_a_newcomer_takes_its_range_over_and_nothing_is_fetched_twice(make_peer: MakePeer, lines: Lines) -> None:
    async with Web(SITES) as site:
        site.fallback = tree(400, SITES)(site)
        first = await make_peer("a")
        await first.crawl([site.url("/0")])
        async with asyncio.timeout(60):
            while len(site.fetched) < 50:
                await asyncio.sleep(0.005)
        others = [await make_peer(name, join=first) for name in "bcd"]
        await finish([first, *others])
        assert {site.url(f"/{n}", site=n % SITES): 1 for n in range(400)} == dict(site.fetched)
        assert len(lines()) == 400


async def test_what_a_newcomer_owns_moves_to_it_and_the_rest_stays(make_peer: MakePeer) -> None:
    first = await make_peer("a")
    first.obey(first.state_gossip.say("pause"))
    await first.crawl([f"http://127.0.0.{n}/" for n in range(2, 102)])
    cells = list(first.store.cells)
    second = await make_peer("b", join=first)
    await until(
        lambda: all(
            peer.components.frontier.is_open(cell)
            for cell in cells
            for peer in (first, second)
            if peer.overlay.owns(cell)
        )
    )
    for peer in (first, second):
        assert [peer.overlay.owns(cell) for cell in cells] == [peer.components.frontier.is_open(cell) for cell in cells]
        assert peer.row().pending > 0
    assert first.row().pending + second.row().pending == 100
    assert first.counters.urls + second.counters.urls == 100


async def test_each_url_lies_with_its_owner_and_two_backups_and_with_nobody_else(make_peer: MakePeer) -> None:
    first = await make_peer("a")
    first.obey(first.state_gossip.say("pause"))
    await first.crawl([f"http://127.0.0.{n}/" for n in range(2, 62)])
    cells = dict(first.store.cells)
    peers = [first, *[await make_peer(name, join=first) for name in "bcdef"]]

    def nearest(place: int, count: int) -> list[Peer]:
        return sorted(peers, key=lambda peer: peer.contact.number ^ place)[:count]

    expected = {}
    for cell in cells:
        chosen: list[Peer] = []
        for place in placement_keys(cell, 16):
            chosen += [peer for peer in nearest(place, 3) if peer not in chosen][:1]
        expected[cell] = chosen
    await until(
        lambda: all(
            {peer.contact: cells[cell] for peer in expected[cell]} == digests_held(peers, cell) for cell in cells
        )
    )
    for cell, (owner, *_) in expected.items():
        assert [peer is owner for peer in peers] == [peer.components.frontier.is_open(cell) for peer in peers]


def digests_held(peers: Sequence[Peer], cell: Cell) -> dict[Contact, CellDigest]:
    """Return the digest of a cell at each peer that holds the cell."""
    return {peer.contact: peer.store.cells[cell] for peer in peers if cell in peer.store.cells}


async def test_a_peer_that_leaves_hands_everything_over(make_peer: MakePeer, lines: Lines) -> None:
    async with Web(SITES) as site:
        site.fallback = tree(400, SITES)(site)
        peers = await swarm(make_peer, "abc")
        await peers[0].crawl([site.url("/0")])
        async with asyncio.timeout(60):
            while len(site.fetched) < 60:
                await asyncio.sleep(0.005)
        await ask(peers[1], Command("leave"), Ok)
        await peers[1].wait_stopped()
        await peers[1].finish()
        assert not peers[1].store.cells
        await peers[1].__aexit__(None, None, None)
        await finish([peers[0], peers[2]])
        assert {site.url(f"/{n}", site=n % SITES): 1 for n in range(400)} == dict(site.fetched)
        assert len(lines()) == 400


async def test_the_wait_of_a_site_moves_with_it(make_peer: MakePeer) -> None:
    async with Web(SITES) as site:
        site.fallback = tree(300, SITES)(site)
        site.pages["/robots.txt"] = lambda request: web.Response(text="User-agent: *\nCrawl-delay: 1.5")
        first = await make_peer("a")
        await first.crawl([site.url(f"/{n}", site=n % SITES) for n in range(16)])
        async with asyncio.timeout(60):
            while len(site.fetched) < SITES:
                await asyncio.sleep(0.005)
        await make_peer("b", join=first)
        async with asyncio.timeout(60):
            while len(site.fetched) < 16:
                await asyncio.sleep(0.01)
        for number in range(SITES):
            times = [at for at, url in site.requests if url.startswith(site.url("/", site=number))]
            assert min(later - earlier for earlier, later in pairwise(times)) >= 1.5


async def test_a_link_sent_to_the_wrong_peer_is_answered_with_its_owner(make_peer: MakePeer) -> None:
    first, second = await swarm(make_peer, "ab")
    links = [Link(f"http://127.0.0.{n}/", 0, 0) for n in range(2, 40)]
    accepted = await ask(first, Offer(links), Accepted)
    assert isinstance(accepted, Accepted)
    assert accepted.redirects
    assert {one.owner for one in accepted.redirects} == {second.contact}
    for one in accepted.redirects:
        assert second.overlay.owns(second.components.partitioner.locate(links[one.index].url).cell)


@pytest.mark.parametrize(
    "url",
    ["http://a.example/#fragment", "HTTP://A.example/", "file:///etc/passwd", "http://a.example/" + "x" * 3000, ""],
)
async def test_a_link_that_is_not_canonical_or_in_bounds_is_rejected(url: str, make_peer: MakePeer) -> None:
    peer = await make_peer()
    if url:
        await ask(peer, Offer([Link(url, 3, 0)]), Accepted)
        assert peer.components.intake.rejected == 1
    else:
        with pytest.raises(RemoteError):
            await ask(peer, Offer([Link(url, 3, 0)]), Accepted)
    assert peer.store.pending == 0


async def test_an_offer_repeated_changes_nothing(make_peer: MakePeer) -> None:
    peer = await make_peer()
    peer.obey(peer.state_gossip.say("pause"))
    for _ in range(3):
        await ask(peer, Offer([Link("http://a.example/", 1, 0)]), Accepted)
    assert (1, 1) == (peer.store.pending, peer.counters.urls)


async def test_a_sync_by_who_is_not_the_owner_stops_nobody(make_peer: MakePeer) -> None:
    first, second = await swarm(make_peer, "ab")
    await ask(first, Command("pause"), Ok)
    await first.crawl([f"http://127.0.0.{n}/" for n in range(2, 40)])
    own = [cell for cell in first.store.cells if first.overlay.owns(cell)]
    opened = [first.components.frontier.opening(cell) for cell in own]
    for _ in range(2):
        synced = await ask(first, TakeOver(second.contact, [*own]), TakeOverAnswer)
        assert isinstance(synced, TakeOverAnswer)
        assert [(cell, first.contact, False) for cell in own] == [
            (answer.held.cell, answer.rival, answer.released) for answer in synced.cells
        ]
    assert None not in opened
    assert opened == [first.components.frontier.opening(cell) for cell in own]


async def test_done_drops_the_text_at_every_holder_and_keeps_the_key(make_peer: MakePeer) -> None:
    async with Web(SITES) as site:
        site.fallback = tree(60, SITES)(site)
        peers = await swarm(make_peer, "abc")
        await ask(peers[0], Command("pause"), Ok)
        await peers[0].crawl([site.url("/0")])
        place = peers[0].components.partitioner.locate(site.url("/0"))
        entries = [peer.store.entry(place.key) for peer in peers]
        assert [site.url("/0")] * 3 == [entry and entry.url for entry in entries]
        await ask(peers[0], Command("resume"), Ok)
        await finish(peers)
        for url in site.fetched:
            key = peers[0].components.partitioner.locate(url).key
            assert [(DONE, None)] * 3 == [(peer.store.state(key), peer.store.entry(key)) for peer in peers]


async def test_a_url_that_three_peers_hold_is_counted_once(make_peer: MakePeer) -> None:
    async with Web(SITES) as site:
        site.fallback = lambda request: html()
        peers = await swarm(make_peer, "abcd")
        await ask(peers[0], Command("pause"), Ok)
        await peers[0].crawl([site.url(f"/{n}", site=n % SITES) for n in range(40)])
        assert sum(peer.store.pending for peer in peers) == 3 * 40
        answer = await peers[1].census()
        assert (40, 40, 0) == totals(answer)
        assert answer.tally.pending == 3 * 40
        await ask(peers[0], Command("resume"), Ok)
        await finish(peers)
        answer = await peers[1].census()
        assert (0, 40, 40) == totals(answer)
        assert answer.tally.pending == 0


def totals(answer: SwarmStatus) -> tuple[int, int, int]:
    """Return the sums of the rows of a census: URLs pending, found and done."""
    rows = answer.rows
    return (
        sum(row.pending for row in rows),
        sum(row.counters.urls for row in rows),
        sum(row.counters.done for row in rows),
    )


async def test_nobody_says_the_end_while_a_copy_of_a_url_is_pending(
    make_peer: MakePeer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Backups that never hear that a page is done: nothing is on its way, and yet it is not the end."""
    deaf = True
    journal, answer = Cells.receive, HolderSide.assign_replica

    async def records(self: Cells, message: Replicate) -> list[int]:
        if deaf and (message.batch.done or message.runs):
            return []
        return await journal(self, message)

    def settle(self: HolderSide, message: AssignReplica) -> ReplicaAssigned:
        settled = answer(self, message)
        return ReplicaAssigned([]) if deaf else settled

    monkeypatch.setattr(Cells, "receive", records)
    monkeypatch.setattr(HolderSide, "assign_replica", settle)
    async with Web(SITES) as site:
        peers = await swarm(make_peer, "abc")

        async def once_copied(request: web.BaseRequest) -> web.StreamResponse:
            await until(lambda: all(peer.store.pending for peer in peers))
            return html()

        site.pages["/"] = once_copied
        await peers[0].crawl([site.url("/")])
        owner = next(
            peer for peer in peers if peer.overlay.owns(peer.components.partitioner.locate(site.url("/")).cell)
        )
        await until(lambda: owner.store.pending == 0 and not any(peer.unacknowledged for peer in peers))
        asked = [peer.waves.surveys for peer in peers]
        while any(peer.waves.surveys < before + 2 for peer, before in zip(peers, asked, strict=True)):
            await owner.waves.ask_all(Survey())
        assert [1, 1] == [peer.store.pending for peer in peers if peer is not owner]
        assert not any(peer.ended for peer in peers)
        deaf = False
        owner.cells.sync.want(owner.components.partitioner.locate(site.url("/")).cell)
        await finish(peers)
        assert [0, 0, 0] == [peer.store.pending for peer in peers]
        assert dict(site.fetched) == {site.url("/"): 1}


async def test_many_seeds_reach_all_peers_and_more_than_a_job_names_are_taken(make_peer: MakePeer) -> None:
    first, second = await swarm(make_peer, "ab")
    await ask(first, Command("pause"), Ok)
    await first.crawl([f"http://127.0.0.2/{n}" for n in range(1200)])
    assert len(second.job.seeds) == 1200
    await first.crawl([f"http://127.0.0.2/more{n}" for n in range(10_000)])
    assert (len(first.job.seeds), len(second.job.seeds)) == (10_000, 10_000)
    assert [11_200, 11_200] == [first.store.pending, second.store.pending], "the owner and its backup have all"


async def test_another_version_is_told_so(make_peer: MakePeer) -> None:
    peer = await make_peer()
    with pytest.raises(RemoteError, match="version"):
        await ask(peer, Hello(999), Welcome)


async def test_a_peer_that_joins_counts_the_cells_as_the_swarm_does(make_peer: MakePeer, tmp_path: Path) -> None:
    first = await make_peer("a", partition="url", cell_bits=0)
    async with Peer(Config(data=tmp_path / "b", port=0)) as second:
        await second.join([first.contact.address])
        assert CELL_BITS_BY_URL == first.job.cell_bits == second.job.cell_bits
        last = Cell((1 << CELL_BITS_BY_URL) - 1)
        assert await first.overlay.owner(last) == await second.overlay.owner(last)


async def test_a_directory_keeps_its_number_of_cells(tmp_path: Path) -> None:
    async with Peer(Config(data=tmp_path, port=0), Job(partition="url", cell_bits=16)) as peer:
        await peer.begin()
    async with Peer(Config(data=tmp_path, port=0), Job(partition="url")) as peer:
        await peer.begin()
        assert peer.job.cell_bits == 16, "earlier releases had 16 bits also by URL"
    async with Peer(Config(data=tmp_path, port=0), Job(partition="url", cell_bits=12)) as peer:
        with pytest.raises(StartError, match="cell_bits"):
            await peer.begin()


async def test_joining_nobody_is_a_clear_mistake(tmp_path: Path) -> None:
    async with Peer(Config(data=tmp_path, port=0)) as peer:
        with pytest.raises(StartError, match="cannot join"):
            await peer.join([("127.0.0.1", 9)])


async def test_an_order_of_the_end_is_not_believed_by_a_busy_peer(make_peer: MakePeer) -> None:
    peer = await make_peer()
    peer.obey(peer.state_gossip.say("pause"))
    await peer.crawl(["http://127.0.0.2:9/"])
    peer.obey(Order("ended"))
    assert not peer.ended
