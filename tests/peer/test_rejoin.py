"""Test that a restarted peer finds its swarm and no other.

Other peers may have been away, and the peer may listen at another address.
"""

import asyncio
import socket
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path

import pytest

from kadcrawl import Config, Job, Peer
from kadcrawl.keys import Key
from kadcrawl.members.swarm_key import SwarmKey
from kadcrawl.peer.rejoin import come_back
from kadcrawl.store.store import DONE
from tests.support.sites.web import Web, tree
from tests.support.swarm.kept_port import kept_port
from tests.support.swarm.peers import JOB, MakePeer, finish
from tests.support.waiting import until

KEY = SwarmKey(b"k" * 32)
SEED = "http://127.0.0.2:9/"
SITES = 12
PAGES = 60
TRIES_S = 60.0
"""Longer than a peer waits before it tries somebody again that it knew."""


def owns_key(peer: Peer, key: Key) -> bool:
    return peer.store.cell_of(key) in peer.cells.holdings.owned


async def ended(make_peer: MakePeer, key: SwarmKey | None) -> list[tuple[str, int]]:
    """Let two peers know each other and end. Return the addresses where they listened."""
    first = await make_peer("a", key=key, seeds=(SEED,), max_depth=0)
    second = await make_peer("b", key=key, join=first)
    await until(lambda: first.overlay.contacts() and second.overlay.contacts())
    for peer in (first, second):
        peer.known.keep()
        await peer.store.journal.commit()
        await peer.__aexit__(None, None, None)
    return [first.contact.address, second.contact.address]


async def test_returning_peers_find_each_other_although_one_listens_elsewhere(
    make_peer: MakePeer, tmp_path: Path
) -> None:
    """The first peer finds nobody, because the other is not there yet. The other asks an address that nobody uses
    any more."""
    first_at, second_at = await ended(make_peer, KEY)
    with kept_port(first_at[1]), socket.socket() as taken:
        taken.bind(second_at)
        async with Peer(Config(data=tmp_path / "b", port=0, swarm_key=KEY)) as second:
            await come_back(second)
            assert second_at != second.contact.address
            async with Peer(Config(data=tmp_path / "a", port=first_at[1], swarm_key=KEY)) as first:
                await come_back(first)
                await until(lambda: first.overlay.contacts() and second.overlay.contacts())
                await until(lambda: first.cells.unsettled + second.cells.unsettled == 0)
                assert 2 == len((await first.census()).rows)


@pytest.mark.parametrize("key", [None, KEY])
async def test_a_peer_that_comes_back_joins_no_other_crawl_at_an_address_it_knew(
    key: SwarmKey | None, make_peer: MakePeer, tmp_path: Path
) -> None:
    """Ports are used again, and the other crawl must not even hear of this peer."""
    address, _ = await ended(make_peer, key)
    other = Config(data=tmp_path / "other", port=address[1], swarm_key=key)
    async with Peer(other, Job(seeds=("http://127.0.0.3:9/",), max_depth=0)) as stranger:
        await stranger.begin()
        async with Peer(Config(data=tmp_path / "b", port=0, swarm_key=key)) as back:
            await come_back(back)
            assert back.begun
            assert back.job.seeds == (SEED,)
            await asyncio.sleep(0 if key is None else TRIES_S)  # Without one it tries nobody.
            assert not [*back.overlay.contacts(), *stranger.overlay.contacts()]


async def test_pages_fetched_for_other_owners_are_known_to_them_once_converged(
    make_peer: MakePeer, tmp_path: Path
) -> None:
    """The state is as after a killed crawl: the owner of a page has not heard that a borrower fetched the page."""
    async with Web(SITES) as site:
        site.fallback = tree(PAGES, SITES)(site)
        before = await make_peer("b")
        await before.crawl([site.url("/0")])
        await finish([before])
        await before.__aexit__(None, None, None)
        one, two = (Config(data=tmp_path / name, port=0, allow_networks=("127.0.0.0/8",)) for name in "ab")
        async with Peer(one, replace(JOB, name=before.job.name)) as first, Peer(two) as second:
            await first.begin(paused=True)
            await first.crawl([site.url("/0")])
            await second.join([first.contact.address])
            assert not second.cells.at_home
            assert await second.cells.settle(30)
            urls = [site.url(f"/{number}", site=number % SITES) for number in range(PAGES)]
            keys = [first.components.partitioner.locate(url).key for url in urls]
            owned = [(peer, key) for peer in (first, second) for key in keys if owns_key(peer, key)]
            assert PAGES == len(owned)
            assert all(peer.store.state(key) == DONE for peer, key in owned)
            await first.state_gossip.order("resume")
            await finish([first, second])
        assert {1} == set(site.fetched.values())


async def test_a_peer_that_starts_joins_the_bootstrap_peer_and_begins_no_other_crawl(
    make_peer: MakePeer, tmp_path: Path
) -> None:
    first = await make_peer("a", key=KEY, seeds=(SEED,), max_depth=0)
    async with Peer(Config(data=tmp_path / "b", port=0, swarm_key=KEY), Job(max_depth=3)) as second:
        await come_back(second, bootstrap=[first.contact.address])
        assert (SEED,) == second.job.seeds
        assert 0 == second.job.max_depth
        await until(lambda: first.overlay.contacts() and second.overlay.contacts())


async def test_a_peer_that_is_its_own_bootstrap_peer_begins(tmp_path: Path) -> None:
    """The first pod of a StatefulSet finds only itself behind the name of the service."""
    async with Peer(Config(data=tmp_path / "a", port=0, swarm_key=KEY), Job(seeds=(SEED,), max_depth=0)) as peer:
        await come_back(peer, bootstrap=[peer.contact.address, ("localhost", peer.contact.address[1])])
        assert peer.begun


@pytest.mark.parametrize("same", [True, False])
async def test_a_lone_peer_finds_its_swarm_later_by_the_bootstrap_name(
    same: bool, make_peer: MakePeer, tmp_path: Path
) -> None:
    """All others are at addresses that it never knew. A crawl of other seeds is left alone."""
    async with (
        AsyncExitStack() as kept,
        Peer(Config(data=tmp_path / "a", port=0, swarm_key=KEY), Job(seeds=(SEED,), max_depth=0)) as lone,
    ):
        port = kept.enter_context(kept_port())
        await come_back(lone, bootstrap=[("localhost", port)])
        assert lone.begun
        seeds = (SEED,) if same else ("http://127.0.0.3:9/",)
        config = Config(data=tmp_path / "b", port=port, swarm_key=KEY)
        async with Peer(config, Job(seeds=seeds, max_depth=0)) as other:
            await other.begin()
            if same:
                await until(lambda: lone.overlay.contacts() and other.overlay.contacts())
                assert 2 == len((await lone.census()).rows)
            else:
                await asyncio.sleep(TRIES_S)
                assert not [*lone.overlay.contacts(), *other.overlay.contacts()]
