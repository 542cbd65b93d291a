"""Test what peers of one process share: one resolver, few workers, one measurement, and links without sockets."""

import asyncio
import os
import resource
import threading
from collections.abc import Mapping
from contextlib import AsyncExitStack
from itertools import count, islice
from pathlib import Path

import pytest
from aiohttp.abc import AbstractResolver, ResolveResult

from kadcrawl import Config, Job, Peer, SharedProcess, StartError
from kadcrawl.balance.machine_profile import MachineProfile
from kadcrawl.crawl.content.page import Page
from kadcrawl.members.swarm_key import SwarmKey
from kadcrawl.overlay import OverlaySettings
from kadcrawl.peer import shared_process
from kadcrawl.settings.limits import Limits
from kadcrawl.settings.page_rules import RecordRule
from kadcrawl.store.journal import SMALL_PAGE_BYTES
from tests.support.sites.owned_sites import SITES
from tests.support.sites.web import Web, tree
from tests.support.waiting import until

PAGE = Page("http://a.test/", 200, None, {}, b"<title>T</title>", "text/html", 1, (), "", "next_link")
PEERS = 8
LOOPBACK = ("127.0.0.0/8",)


class CountedResolver(AbstractResolver):
    opened = closed = 0

    def __init__(self) -> None:
        type(self).opened += 1

    async def resolve(self, host: str, port: int = 0, family: int = 0) -> list[ResolveResult]:
        return []

    async def close(self) -> None:
        type(self).closed += 1


KEY, OTHER_KEY = SwarmKey(b"k" * 32), SwarmKey(b"o" * 32)
FAST = OverlaySettings(heartbeat_s=0.2, resend_s=0.1, timeout_s=0.3, miss_spacing_s=(0.05, 0.05))


@pytest.mark.parametrize("key", [None, KEY], ids=["no key", "a key"])
async def test_peers_of_a_process_crawl_without_a_connection_between_them(key: SwarmKey | None, tmp_path: Path) -> None:
    shared = SharedProcess()
    async with Web(SITES) as site, AsyncExitStack() as stack:
        site.fallback = tree(100, SITES)(site)
        job = Job(scope="any", delay_s=0.0, contact="you@example.org")
        peers: list[Peer] = []
        for number in range(PEERS):
            config = Config(data=tmp_path / str(number), port=0, allow_networks=LOOPBACK, swarm_key=key)
            peer = await stack.enter_async_context(Peer(config, None if peers else job, shared.environment()))
            await (peer.join([peers[0].contact.address]) if peers else peer.begin())
            peers.append(peer)
        await peers[0].crawl([site.url("/0")])
        for peer in peers:
            await peer.wait_done()
        assert 100 == sum(peer.counters.pages for peer in peers)
        assert 0 == sum(peer.client.dialed for peer in peers)
        assert 1 == len({id(peer.resources.random) for peer in peers})
        assert {SMALL_PAGE_BYTES} == {peer.store.journal.row((int,), "PRAGMA page_size")[0] for peer in peers}
        assert not any("server" in vars(peer.credentials) for peer in peers if peer.credentials is not None)
        assert not any(peer.credentials.sealing._correspondents for peer in peers if peer.credentials is not None)
        await peers.pop().leave()
        assert 0 == sum(peer.client.dialed for peer in peers)


async def test_a_peer_that_dies_is_missed_by_the_peers_of_its_process(tmp_path: Path) -> None:
    shared = SharedProcess(overlay=FAST)
    async with AsyncExitStack() as stack:
        peers: list[Peer] = []
        for number in range(3):
            config = Config(data=tmp_path / str(number), port=0, swarm_key=KEY)
            peer = Peer(config, None if peers else Job(), shared.environment())
            if number < 2:
                await stack.enter_async_context(peer)
            else:
                await peer.__aenter__()
            await (peer.join([peers[0].contact.address]) if peers else peer.begin())
            peers.append(peer)
        dead = peers.pop()
        assert all(dead.contact in peer.overlay.contacts() for peer in peers)
        await dead.__aexit__(None, None, None)
        await until(lambda: not any(dead.contact in peer.overlay.contacts() for peer in peers))


async def test_swarms_of_two_keys_in_one_process_do_not_mix(tmp_path: Path) -> None:
    shared = SharedProcess(overlay=FAST)
    configs = [Config(data=tmp_path / str(n), port=0, swarm_key=key) for n, key in enumerate((KEY, OTHER_KEY, None))]
    async with AsyncExitStack() as stack:
        first, *others = [
            await stack.enter_async_context(Peer(config, Job(), shared.environment())) for config in configs
        ]
        for peer in (first, *others):
            await peer.begin()
        for other in others:
            with pytest.raises(StartError):
                await other.overlay.join([first.contact.address])
        assert [] == first.overlay.contacts()


async def test_one_resolver_serves_all_and_closes_after_the_last(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared_process, "LateResolver", CountedResolver)
    shared = SharedProcess()
    one, two = shared.environment().resolver(), shared.environment().resolver()
    assert [] == await two.resolve("a.test", 80)
    await one.close()
    await one.close()
    assert (1, 0) == (CountedResolver.opened, CountedResolver.closed)
    with pytest.raises(OSError, match="closed"):
        await one.resolve("a.test", 80)
    await two.close()
    assert (1, 1) == (CountedResolver.opened, CountedResolver.closed)
    again = shared.environment().resolver()
    await again.close()
    assert (2, 2) == (CountedResolver.opened, CountedResolver.closed)


async def test_peers_share_the_workers_that_take_records_out_of_pages() -> None:
    shared = SharedProcess(workers=2)
    rules = (RecordRule(pattern=".", hook="tests.support.hooks:title"),)
    extractions = [shared.environment().extraction(rules, Limits()) for _ in range(5)]
    for one in extractions:
        await one.start()
    workers = next(iter(shared._extracting.values()))._workers
    found = await asyncio.gather(*(one.extract(0, PAGE) for one in extractions))
    assert [None] * 5 == [records.error for records in found]
    assert 2 == len(workers)
    for one in extractions[1:]:
        await one.close()
    assert (await extractions[0].extract(0, PAGE)).error is None
    await extractions[0].close()
    await extractions[0].close()
    assert [None, None] == [worker._process for worker in workers]


async def test_a_missing_hook_is_a_start_error_for_each_peer() -> None:
    shared = SharedProcess(workers=1)
    rules = (RecordRule(pattern=".", hook="tests.support.hooks:nowhere"),)
    for _ in range(2):
        extraction = shared.environment().extraction(rules, Limits())
        with pytest.raises(StartError, match="lacks a hook"):
            await extraction.start()
        await extraction.close()


def test_the_machine_is_measured_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    measured: list[Mapping[str, float]] = []

    def measure(directory: Path, declared: Mapping[str, float]) -> MachineProfile:
        measured.append(declared)
        return object()  # type: ignore[return-value]

    monkeypatch.setattr(shared_process, "measured_here", measure)
    shared = SharedProcess()
    found: list[object] = []
    ask = [
        threading.Thread(target=lambda: found.append(shared.environment().machine_profile(tmp_path, {"cpu": 1.0})))
        for _ in range(4)
    ]
    for thread in ask:
        thread.start()
    for thread in ask:
        thread.join()
    assert (1, 4, 1) == (len(measured), len(found), len(set(map(id, found))))


async def test_a_peer_without_room_for_its_files_is_a_start_error_that_says_what_to_do(tmp_path: Path) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        taken = set(map(int, os.listdir("/dev/fd")))
        free = (number for number in count() if number not in taken)  # Also between files that are open.
        resource.setrlimit(resource.RLIMIT_NOFILE, (next(islice(free, 9, None)) + 1, hard))
        with pytest.raises(StartError, match=r"a peer opens 16 files and more.*ulimit -n"):
            async with Peer(Config(data=tmp_path, port=0), Job()):
                pass
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
