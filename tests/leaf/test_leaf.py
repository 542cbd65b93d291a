"""A leaf beside full peers: it fetches its part, each page is fetched once, and a crash loses no page."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any, NoReturn

import pytest
from msgspec import structs

from kadcrawl import Config, Leaf, Limits, Peer, RemoteError, StartError
from kadcrawl.crawl.pause_reasons import PauseReason
from kadcrawl.keys import Cell
from kadcrawl.lending import leaf_host
from kadcrawl.lending.leaf_host import LEAVES_MAX
from kadcrawl.link.client import LinkClient
from kadcrawl.link.wire.messages import GRANT_URLS_MAX, LOANS_MAX, Command, Ok, PeerCounters, WorkGrant, WorkRequest
from kadcrawl.link.wire.peer_state import PeerState
from kadcrawl.peer.swarm.seeds import each, stream_seeds
from kadcrawl.store.store import DONE
from scripts.kadcrawl_run import LoggedPage, page_lines
from tests.support.sites.web import Web, html, slow, slow_while, tree
from tests.support.swarm.crash import crash
from tests.support.swarm.peers import QUICK, MakePeer, finish, swarm
from tests.support.waiting import until

SITES = 16
PAGES = 600
ANSWER_S = 0.03
LATE_ANSWER_S = 0.3

WEAK = replace(QUICK, fetches_max=3)
"""Full peers that have more to fetch than they can."""

MakeLeaf = Callable[..., Awaitable[Leaf]]


@pytest.fixture
async def make_leaf(tmp_path: Path) -> AsyncIterator[MakeLeaf]:
    """Return a coroutine function: make_leaf(directory, *full peers)."""
    async with AsyncExitStack() as stack:

        async def make(directory: str, *peers: Peer, limits: Limits = QUICK, **options: Any) -> Leaf:
            data = tmp_path / directory
            config = Config(data=data, allow_networks=("127.0.0.0/8",), limits=limits, **options)
            leaf = await stack.enter_async_context(Leaf(config))
            await leaf.join([peer.contact.address for peer in peers])
            return leaf

        yield make


@pytest.fixture
async def slow_web() -> AsyncIterator[Web]:
    """A web whose pages take a while."""
    async with Web(SITES) as site:
        site.fallback = slow(tree(PAGES, SITES)(site), ANSWER_S)
        yield site


def lent(site: Web, leaf: Leaf, peers: Sequence[Peer]) -> set[str]:
    """Return the URLs that these peers lent the leaf. They may be fetched again if either side dies."""
    loans = [loan for peer in peers for loan in peer.balancing.loans.lender.loans()]
    return {entry.url for loan in loans if loan.borrower.id == leaf.contact.id for entry in loan.entries.values()}


def in_hand(site: Web, dying: Peer, leaf: Leaf, others: Sequence[Peer]) -> set[str]:
    """Return the URLs that may be fetched again without blame.

    The leaf has them, or they were requested and are DONE at no peer that lives on.
    """
    unsafe = lent(site, leaf, [dying])
    for url in site.numbered(PAGES):
        key = dying.components.partitioner.locate(url).key
        entry = dying.store.entry(key)
        asked_for = url in site.fetched or (entry is not None and dying.components.crawler.is_taken(entry))
        if asked_for and not any(peer.store.state(key) == DONE for peer in others):
            unsafe.add(url)
    return unsafe


async def crash_leaf(leaf: Leaf) -> None:
    """Crash the leaf as `crash` does a peer."""

    async def forget() -> None:
        pass

    async def unreachable(*_: object) -> NoReturn:
        raise RemoteError("nobody", "this leaf is dead")

    leaf.store.journal.commit = forget  # type: ignore[method-assign]
    leaf.client.ask = unreachable  # type: ignore[method-assign, assignment]
    leaf.work.crawler.hooks.may_start = lambda: False
    for task in (*leaf._tasks, leaf._committer):
        task.cancel()
    await leaf.__aexit__(None, None, None)


@asynccontextmanager
async def stranger() -> AsyncIterator[LinkClient]:
    """Somebody who asks as a leaf does."""
    client = LinkClient(10_000_000)
    await client.open()
    try:
        yield client
    finally:
        await client.close()


def idle_request(number: int) -> WorkRequest:
    return WorkRequest(bytes([number]) * 20, GRANT_URLS_MAX, 0.0, "crawling", PeerState.IDLE, 0, 0, PeerCounters())


async def done(leaf: Leaf) -> None:
    async with asyncio.timeout(60):
        await leaf.wait_done()
    await leaf.finish()


@pytest.mark.parametrize(("balance", "history"), [("off", "exact"), ("level", "exact"), ("level", "bloom")])
async def test_a_leaf_fetches_a_good_part_and_every_page_is_fetched_once(
    make_peer: MakePeer,
    make_leaf: MakeLeaf,
    slow_web: Web,
    lines: Callable[[], dict[str, LoggedPage]],
    balance: str,
    history: str,
) -> None:
    # The crawl takes long beside the half a second for which links and copies wait for company.
    slow_web.fallback = slow(tree(PAGES, SITES)(slow_web), 4 * ANSWER_S)
    weak = partial(make_peer, limits=WEAK)
    peers = await swarm(weak, "ab", balance=balance, update_s=0.5, history=history)
    leaf = await make_leaf("leaf", peers[0])
    await peers[0].crawl([slow_web.url("/0")])
    await finish(peers)
    await done(leaf)
    assert slow_web.numbered(PAGES) == set(slow_web.fetched) == set(lines())
    assert {1} == set(slow_web.fetched.values())
    assert leaf.counters.pages > PAGES // 6
    assert PAGES == leaf.counters.pages + sum(peer.counters.pages for peer in peers)
    assert 0 == sum(peer.balancing.loans.lender.urls for peer in peers)
    assert not leaf.store.cells, "it keeps no record, and no fingerprint"
    for peer in peers:
        assert leaf.contact.id not in {contact.id for contact in peer.overlay.contacts()}


@pytest.mark.filterwarnings("ignore::ResourceWarning")
async def test_when_its_full_peer_is_killed_a_leaf_goes_on_with_another(
    make_peer: MakePeer, make_leaf: MakeLeaf, slow_web: Web, tmp_path: Path
) -> None:
    weak = partial(make_peer, limits=WEAK)
    peers = await swarm(weak, "abc")
    leaf = await make_leaf("leaf", *peers)
    await peers[0].crawl([slow_web.url("/0")])
    await until(lambda: leaf.counters.pages > PAGES // 20 and leaf.borrower.loans)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(leaf.borrower, "is_silent", lambda cell: True)
        assert leaf.work.crawler.hooks.no_backup_reachable(Cell(0)), "it would go on for a lender that is gone"
    home = next(peer for peer in peers if peer.contact.address == leaf.contact.address)
    before = leaf.counters.pages
    peers.remove(home)
    unsafe = in_hand(slow_web, home, leaf, peers)
    # Else the others may be through before the leaf has found one of them.
    slow_web.fallback = slow_while(
        slow_web.fallback, LATE_ANSWER_S, lambda: leaf.counters.pages <= before + PAGES // 20
    )
    await crash(home)
    await finish(peers)
    await done(leaf)
    assert slow_web.numbered(PAGES) == set(slow_web.fetched) == {line.url for line in page_lines(tmp_path)}
    assert slow_web.repeated <= unsafe
    assert leaf.counters.pages > before + PAGES // 20


@pytest.mark.parametrize("history", ["exact", "bloom"])
@pytest.mark.filterwarnings("ignore::ResourceWarning")
async def test_a_killed_leaf_loses_no_work_and_comes_back_on_its_directory(
    make_peer: MakePeer, make_leaf: MakeLeaf, slow_web: Web, tmp_path: Path, history: str
) -> None:
    peers = await swarm(partial(make_peer, limits=WEAK), "ab", history=history)
    leaf = await make_leaf("leaf", *peers)
    await peers[0].crawl([slow_web.url("/0")])
    await until(lambda: leaf.counters.pages > PAGES // 20 and leaf.borrower.loans)
    unsafe = lent(slow_web, leaf, peers)
    await crash_leaf(leaf)
    again = await make_leaf("leaf", *peers)
    assert leaf.contact.id == again.contact.id
    await finish(peers)
    await done(again)
    assert slow_web.numbered(PAGES) == set(slow_web.fetched) == {line.url for line in page_lines(tmp_path)}
    assert slow_web.repeated <= unsafe


async def test_a_leaf_whose_bootstrap_peer_is_gone_finds_those_it_knew(
    make_peer: MakePeer, make_leaf: MakeLeaf, tmp_path: Path
) -> None:
    peers = await swarm(make_peer, "ab", seeds=("http://127.0.0.2:9/",))
    leaf = await make_leaf("leaf", peers[0])
    await until(lambda: len(leaf.full_peers.contacts()) == len(peers))
    await leaf.finish()
    await leaf.__aexit__(None, None, None)
    await peers[0].leave()
    await peers[0].__aexit__(None, None, None)
    again = await make_leaf("leaf", peers[0])
    await until(lambda: again.contact.address == peers[1].contact.address)
    with pytest.raises(StartError, match="cannot join"):
        await make_leaf("other", peers[0])


async def test_what_the_swarm_does_a_leaf_does_too(make_peer: MakePeer, make_leaf: MakeLeaf, slow_web: Web) -> None:
    peer = await make_peer("a", limits=WEAK, scope="host")
    leaf = await make_leaf("leaf", peer)
    await until(lambda: leaf.state == "idle")
    await peer.state_gossip.order("pause")
    await until(lambda: leaf.state == "paused")
    await peer.crawl([slow_web.url("/0", site=n) for n in range(SITES)])
    async with asyncio.timeout(60):
        while {"paused", "leaf: paused"} != {row.state_text for row in (await peer.census()).rows}:
            await asyncio.sleep(0.01)  # It says so when it next asks.
    await peer.state_gossip.order("resume")
    await until(lambda: leaf.ended)
    assert SITES == len(leaf.job.seeds)
    assert leaf.counters.pages > 0
    assert not leaf.counters.failed, "a page was out of scope for a leaf that had not heard of its seed"
    # There is more to do.
    await peer.crawl([slow_web.url(f"/{PAGES}", site=n) for n in range(SITES)])
    await until(lambda: not leaf.ended)
    await until(lambda: leaf.ended)
    await peer.state_gossip.order("stop")
    async with asyncio.timeout(60):
        await leaf.wait_stopped()


async def test_what_a_leaf_has_not_fetched_it_gives_back(make_peer: MakePeer, make_leaf: MakeLeaf) -> None:
    peer = await make_peer("a", delay_s=30.0)
    leaf = await make_leaf("leaf", peer)
    async with Web(SITES) as site:
        site.fallback = tree(PAGES, SITES)(site)
        await peer.crawl([site.url(f"/{n}", site=n % SITES) for n in range(4 * SITES)])
        await until(lambda: leaf.borrower.urls > SITES // 2 and not leaf.work.crawler.in_flight)
        assert leaf.borrower.urls == peer.balancing.loans.lender.urls
        pending = peer.pending
        await leaf.finish()
        assert 0 == leaf.borrower.loans == peer.balancing.loans.lender.urls
        assert pending == peer.pending
        assert 0 == sum(peer.balancing.loans.lender.lost.values())


@pytest.mark.parametrize("history", ["exact", "bloom"])
async def test_what_a_leaf_fetched_for_a_peer_now_dead_it_reports_to_the_heir(
    make_peer: MakePeer, make_leaf: MakeLeaf, history: str
) -> None:
    async with Web(SITES) as site:
        site.fallback = tree(PAGES, SITES)(site)
        peer = await make_peer("a", delay_s=30.0, history=history)
        leaf = await make_leaf("leaf", peer)
        urls = [site.url(f"/{n}", site=n % SITES) for n in range(4 * SITES)]
        for url in urls:
            key = peer.components.partitioner.locate(url).key
            if history == "exact":
                leaf.store.learn_done(key)
            else:
                leaf.work.fetched.note(key, "")
        await peer.crawl(urls)
        lending = peer.balancing.loans.lender
        await until(lambda: lending.done > SITES // 2)
        # What it has told it forgets.
        await until(
            lambda: (
                sum(tally.keys for tally in leaf.store.cells.values()) + len(leaf.work.fetched) < len(urls) - SITES // 2
            )
        )
        assert all(peer.store.state(peer.components.partitioner.locate(url).key) is not None for url in urls)
        assert 0 == leaf.counters.pages


async def test_a_leaf_stops_with_the_swarm_at_max_time(
    make_peer: MakePeer, make_leaf: MakeLeaf, slow_web: Web, lines: Callable[[], dict[str, LoggedPage]]
) -> None:
    slow_web.fallback = slow(tree(20 * PAGES, SITES)(slow_web), ANSWER_S)
    peer = await make_peer("a", limits=WEAK, max_time_s=1000.0)
    leaf = await make_leaf("leaf", peer)
    peer.runtime.hear_time(1_000)
    await until(lambda: leaf.work.components.crawl_limits.time.counted_s(0.0) >= 1.0)
    await peer.crawl([slow_web.url("/0")])
    await until(lambda: leaf.counters.pages > 0)
    peer.runtime.hear_time(1_000_000)
    await done(leaf)
    await finish([peer])
    assert {"time"} == {peer.limit_reached, leaf.limit_reached}
    fetched = len(lines())
    assert fetched == sum(slow_web.fetched.values()) < 20 * PAGES
    assert peer.counters.urls == fetched + peer.row().pending


async def test_a_leaf_follows_links_as_deep_as_the_job_says(
    make_peer: MakePeer, make_leaf: MakeLeaf, slow_web: Web
) -> None:
    peer = await make_peer("a", limits=WEAK, max_depth=6)
    leaf = await make_leaf("leaf", peer)
    slow_web.fallback = slow_while(slow_web.fallback, LATE_ANSWER_S, lambda: not leaf.counters.pages)
    await peer.crawl([slow_web.url("/0")])
    await finish([peer])
    assert set(slow_web.numbered(127)) == set(slow_web.fetched)
    assert leaf.counters.pages > 0


async def test_a_peer_that_exits_at_the_end_stays_until_its_leaf_has_heard_of_the_end(
    make_peer: MakePeer, make_leaf: MakeLeaf, slow_web: Web, monkeypatch: pytest.MonkeyPatch
) -> None:
    peer = await make_peer("a")
    leaf = await make_leaf("leaf", peer)
    ask, asked_late = leaf.client.ask, asyncio.Event()

    async def late(to: Any, message: Any, *more: Any) -> Any:
        if isinstance(message, WorkRequest) and len(slow_web.fetched) == PAGES:
            asked_late.set()
            await peer.wait_done()
            await asyncio.sleep(10 * ANSWER_S)
        # The peer answers at once, so that the leaf has no question there when the crawl ends.
        return await ask(
            to, structs.replace(message, wait_s=0.0) if isinstance(message, WorkRequest) else message, *more
        )

    monkeypatch.setattr(leaf.client, "ask", late)
    await peer.crawl([slow_web.url("/0")])
    await finish([peer])
    await peer.__aexit__(None, None, None)
    assert asked_late.is_set()
    await done(leaf)


async def test_exactly_max_pages_are_fetched_by_a_peer_and_its_leaf_also_after_a_restart(
    make_peer: MakePeer, make_leaf: MakeLeaf, slow_web: Web, lines: Callable[[], dict[str, LoggedPage]]
) -> None:
    pages = slow_web.fallback
    for limit in (100, 160):
        peer = await make_peer("a", limits=WEAK, max_pages=limit)
        leaf = await make_leaf("leaf", peer)
        before = leaf.counters.pages
        slow_web.fallback = slow_while(pages, LATE_ANSWER_S, lambda: leaf.counters.pages <= before + 10)  # noqa: B023
        await peer.crawl([slow_web.url("/0")])
        await finish([peer])
        await done(leaf)
        assert limit == len(lines()) == sum(slow_web.fetched.values())
        assert leaf.counters.pages > 10
        for one in (leaf, peer):
            await one.finish()
            await one.__aexit__(None, None, None)


async def test_a_leaf_is_refused_where_it_cannot_prove_what_it_has_received(
    make_peer: MakePeer, make_leaf: MakeLeaf
) -> None:
    peer = await make_peer("a", max_bytes=50)
    with pytest.raises(StartError, match="has no leaves"):
        await make_leaf("leaf", peer)
    async with stranger() as client:
        with pytest.raises(RemoteError, match="has no leaves"):
            await client.ask(peer.contact.address, idle_request(1), WorkGrant, 10)


async def test_a_directory_with_pages_of_a_full_peer_is_no_leafs(make_peer: MakePeer, make_leaf: MakeLeaf) -> None:
    first, second = await swarm(make_peer, "ab")
    await first.state_gossip.order("pause")
    await first.crawl([f"http://127.0.0.{n}:9/" for n in range(2, 20)])
    assert second.store.pending
    await second.drain()
    await second.__aexit__(None, None, None)
    with pytest.raises(StartError, match="join without --leaf"):
        await make_leaf("b", first)


async def test_leaves_and_their_loans_are_bounded_and_silent_leaves_lose_theirs(make_peer: MakePeer) -> None:
    async with Web(SITES) as site, stranger() as client:
        peer = await make_peer("a", delay_s=30.0)
        await peer.crawl([site.url(f"/{n}", site=n % SITES) for n in range(40 * SITES)])
        lending = peer.balancing.loans.lender
        sites: list[str] = []
        for _ in range(SITES):
            drawn = await client.ask(peer.contact.address, idle_request(1), WorkGrant, 10)
            sites += [lend.clock.site for lend in drawn.loans]
        assert len(sites) == len(set(sites)) == len(lending.loans()) <= LOANS_MAX
        # Half of what is ready is not the leaf's to have.
        assert 0 < lending.urls <= 20 * SITES
        assert all(len(loan.entries) <= peer.job.block_urls for loan in lending.loans())
        for number in range(2, LEAVES_MAX + 1):
            await client.ask(peer.contact.address, idle_request(number), WorkGrant, 10)
        with pytest.raises(RemoteError, match="leaves already"):
            await client.ask(peer.contact.address, idle_request(LEAVES_MAX + 1), WorkGrant, 10)
        assert LEAVES_MAX + 1 == len((await peer.census()).rows)
        await until(lambda: not lending.loans())
        assert sum(lending.lost.values()) >= len(sites)


async def test_a_leaf_has_one_loan_per_site_and_none_from_a_paused_peer(make_peer: MakePeer) -> None:
    """This holds also for a site without a delay, whose connections several peers may share."""
    async with stranger() as client:
        peer = await make_peer("a")
        peer.components.crawler.hooks.may_start = lambda: False
        await peer.crawl([f"http://127.0.0.{n % SITES + 2}:9/{n}" for n in range(40 * SITES)])
        peer.components.crawler.pause_reasons.add(PauseReason.DISK)
        assert [] == (await client.ask(peer.contact.address, idle_request(1), WorkGrant, 10)).loans
        peer.components.crawler.pause_reasons.discard(PauseReason.DISK)
        sites: list[str] = []
        for _ in range(SITES):
            drawn = await client.ask(peer.contact.address, idle_request(1), WorkGrant, 10)
            sites += [lend.clock.site for lend in drawn.loans]
        assert len(sites) == len(set(sites)) > 0


async def test_what_a_leaf_did_is_counted_when_it_has_left(
    make_peer: MakePeer, make_leaf: MakeLeaf, slow_web: Web, monkeypatch: pytest.MonkeyPatch
) -> None:
    peer = await make_peer("a", limits=WEAK)
    leaf = await make_leaf("leaf", peer)
    await peer.crawl([slow_web.url("/0")])
    await until(lambda: leaf.ended)
    await leaf.finish()
    await leaf.__aexit__(None, None, None)
    monkeypatch.setattr(leaf_host, "LEAF_FORGOTTEN_S", 0.5)
    async with asyncio.timeout(60):
        rows = (await peer.census()).rows
        while "leaf: left" not in {row.state_text for row in rows}:
            await asyncio.sleep(0.05)
            rows = (await peer.census()).rows
    assert PAGES == sum(row.counters.pages for row in rows)
    assert 0 < leaf.counters.pages < PAGES


async def test_a_leaf_knows_how_far_streamed_seeds_reach(make_peer: MakePeer, make_leaf: MakeLeaf) -> None:
    async with Web(3) as site:
        first, linked = site.url("/", site=1), site.url("/linked", site=2)
        site.fallback = lambda request: html(linked)
        peer = await make_peer("a", limits=WEAK, scope="host")
        await peer.client.ask(peer.contact, Command("pause"), Ok, 5)
        await stream_seeds(peer.runtime, each([first, site.url("/", site=2)]), 0)
        leaf = await make_leaf("leaf", peer)
        await until(lambda: leaf.work.components.scope.is_near(linked))
        await stream_seeds(peer.runtime, each(["http://later.example/"]), 0)
        await until(lambda: leaf.work.components.scope.is_near("http://later.example/page"))
        assert () == leaf.job.seeds == peer.job.seeds


@pytest.mark.parametrize("job", [{"per_ip": True}, {"partition": "url"}])
async def test_a_leaf_leases_the_clocks_of_its_pages(
    job: dict[str, Any], make_peer: MakePeer, make_leaf: MakeLeaf
) -> None:
    async with Web(6) as site:
        site.fallback = slow(tree(60, 6)(site), 0.2)  # Its peers alone leave URLs waiting.
        first = await make_peer("a", limits=replace(QUICK, fetches_max=1), delay_s=0.1, **job)
        peers = [first, await make_peer("b", join=first, limits=replace(QUICK, fetches_max=1))]
        leaf = await make_leaf("leaf", *peers)
        await peers[0].crawl([site.url("/0")])
        await finish(peers)
        assert site.numbered(60) <= site.fetched.keys()
        assert leaf.counters.pages > 0
        for number in range(6):
            asked = [at for at, url in site.requests if url.startswith(site.url("/", number))]
            assert min(later - earlier for earlier, later in pairwise(asked)) >= 0.098


async def test_a_leaf_gives_a_lease_back_to_the_peer_that_leased_it(
    make_peer: MakePeer, make_leaf: MakeLeaf, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with Web(6) as site:
        site.fallback = slow(tree(60, 6)(site), 0.2)
        weak = replace(QUICK, fetches_max=1)
        first = await make_peer("a", limits=weak, delay_s=0.1, partition="url")
        peers = [first, await make_peer("b", join=first, limits=weak), await make_peer("c", join=first, limits=weak)]
        leaf = await make_leaf("leaf", *peers)
        ask, leased_by, right = leaf.client.ask, dict[str, bytes](), list[bool]()

        async def ask_noted(to: Any, message: Any, *more: Any) -> Any:
            answer = await ask(to, message, *more)
            for question, turn in zip(getattr(message, "questions", ()), getattr(answer, "turns", ()), strict=False):
                if turn.lease:
                    leased_by[question.clock] = to.id
                elif question.ends:
                    right.append(leased_by.pop(question.clock) == to.id)
            return answer

        monkeypatch.setattr(leaf.client, "ask", ask_noted)
        await peers[0].crawl([site.url("/0")])
        await finish(peers)
        assert right, "it has given leases back"
        assert all(right)
