"""Peers that die without a word: nothing lost, little twice, and those who live on know the end."""

import asyncio
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import pytest

from kadcrawl import Peer
from kadcrawl.link.wire.messages import Survey
from kadcrawl.store.store import DONE
from scripts.kadcrawl_run import page_lines
from tests.support.sites.web import Web, tree
from tests.support.swarm.crash import crash
from tests.support.swarm.peers import MakePeer, finish, swarm
from tests.support.waiting import until

SITES = 12
PAGES = 600
BEFORE = 120
"""Pages fetched before somebody dies."""

Disk = Literal["same", "old", "none"]


# What a killed process leaves open the system closes; here nobody does.
pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


def at_risk(site: Web, dying: Sequence[Peer], others: Sequence[Peer]) -> set[str]:
    """Return the URLs that may be fetched again without blame: requested by now, and DONE at no peer that lives on."""
    found = set()
    for url in site.numbered(PAGES):
        key = dying[0].components.partitioner.locate(url).key
        entries = [(peer, entry) for peer in dying if (entry := peer.store.entry(key)) is not None]
        asked_for = url in site.fetched or any(peer.components.crawler.is_taken(entry) for peer, entry in entries)
        if asked_for and not any(peer.store.state(key) == DONE for peer in others):
            found.add(url)
    return found


def owner_and_backup(peers: Sequence[Peer]) -> list[Peer]:
    """Return the two peers whose deaths endanger most: owner and one backup of as many PENDING records as possible."""
    at_stake: dict[tuple[int, int], int] = {}
    for number, peer in enumerate(peers):
        for cell, owned in peer.cells.holdings.owned.items():
            for other, backup in enumerate(peers):
                if owned.open and backup.contact in owned.backups and cell in peer.store.cells:
                    pair = number, other
                    at_stake[pair] = at_stake.get(pair, 0) + peer.store.cells[cell].pending
    return [peers[number] for number in max(at_stake, key=lambda pair: at_stake[pair])]


async def test_a_peer_killed_in_mid_crawl_loses_nothing_and_the_others_finish(
    make_peer: MakePeer, tmp_path: Path
) -> None:
    async with Web(SITES) as site:
        site.fallback = tree(PAGES, SITES)(site)
        peers = await swarm(make_peer, "abcd")
        await peers[0].crawl([site.url("/0")])
        await until(lambda: len(site.fetched) >= BEFORE)
        dead = peers.pop(1)
        unsafe = at_risk(site, [dead], peers)
        await crash(dead)
        await finish(peers)
        assert site.numbered(PAGES) == set(site.fetched)
        assert set(site.fetched) == {line.url for line in page_lines(tmp_path)}
        assert site.repeated <= unsafe
        assert (await peers[0].waves.ask_all(Survey(), deadline_s=1.0)).tally.pending == 0


async def test_an_owner_and_a_backup_killed_at_once_lose_nothing(make_peer: MakePeer, tmp_path: Path) -> None:
    async with Web(SITES) as site:
        site.fallback = tree(PAGES, SITES)(site)
        peers = await swarm(make_peer, "abcde")
        await peers[0].crawl([site.url("/0")])
        await until(lambda: len(site.fetched) >= BEFORE)
        dead = owner_and_backup(peers)
        alive = [peer for peer in peers if peer not in dead]
        unsafe = at_risk(site, dead, alive)
        await asyncio.gather(*map(crash, dead))
        await finish(alive)
        assert site.numbered(PAGES) == set(site.fetched)
        assert set(site.fetched) == {line.url for line in page_lines(tmp_path)}
        assert site.repeated <= unsafe


@pytest.mark.parametrize("disk", ["same", "old", "none"])
async def test_a_killed_peer_comes_back_whatever_is_left_of_its_disk(
    disk: Disk, make_peer: MakePeer, tmp_path: Path
) -> None:
    """The peer starts on its directory, on a copy made earlier in the crawl, or on an empty directory."""
    async with Web(SITES) as site:
        site.fallback = tree(PAGES, SITES)(site)
        peers = await swarm(make_peer, "abcd")
        await peers[0].crawl([site.url("/0")])
        await until(lambda: len(site.fetched) >= BEFORE // 2)
        await peers[1].store.journal.commit()
        shutil.copytree(tmp_path / "b", tmp_path / "b-old")
        await until(lambda: len(site.fetched) >= BEFORE)
        dead = peers.pop(1)
        unsafe = at_risk(site, [dead], peers)
        await crash(dead)
        directory = {"same": "b", "old": "b-old", "none": "b-new"}[disk]
        peers.append(await make_peer(directory, join=peers[0]))
        assert (peers[-1].contact.id == dead.contact.id) == (disk != "none")
        await finish(peers)
        assert site.numbered(PAGES) == set(site.fetched)
        assert set(site.fetched) == {line.url for line in page_lines(tmp_path)}
        assert site.repeated <= unsafe


async def test_the_last_of_three_has_everything_and_finishes_alone(make_peer: MakePeer, tmp_path: Path) -> None:
    async with Web(SITES) as site:
        site.fallback = tree(PAGES, SITES)(site)
        peers = await swarm(make_peer, "abc")
        await peers[0].crawl([site.url("/0")])
        await until(lambda: len(site.fetched) >= BEFORE)
        unsafe = at_risk(site, peers[1:], peers[:1])
        await asyncio.gather(*map(crash, peers[1:]))
        await finish(peers[:1])
        assert site.numbered(PAGES) == set(site.fetched)
        assert set(site.fetched) == {line.url for line in page_lines(tmp_path)}
        assert site.repeated <= unsafe
