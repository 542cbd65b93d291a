"""No room on the disk, no files to open: the peer says so, loses nothing, and goes on when there is room again."""

import asyncio
import errno
from collections.abc import Iterable
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path

import pytest

from kadcrawl import Config, Peer, StorageError
from kadcrawl.cli.commands.run_peer import live
from kadcrawl.crawl.pause_reasons import PauseReason
from kadcrawl.errors import DiskFullError
from kadcrawl.peer.environment import Environment
from kadcrawl.peer.rejoin import come_back
from kadcrawl.store.journal import sync_files
from scripts.kadcrawl_run import page_lines
from tests.support.sites.web import Web, tree
from tests.support.swarm.peers import JOB, QUICK, MakePeer, finish, swarm
from tests.support.waiting import until

RESERVE = 1000
FULL = OSError(errno.ENOSPC, "No space left on device")


class Disk:
    """Simulate a disk with as much room as the test says."""

    def __init__(self) -> None:
        self.free = RESERVE
        self.full = False
        """Nothing can be written at all."""

    @property
    def environment(self) -> Environment:
        return Environment(free_bytes=lambda directory: self.free, sync=self._sync)

    def _sync(self, fds: Iterable[int]) -> None:
        if self.full:
            raise FULL
        sync_files(fds)


def reserve_config(directory: Path) -> Config:
    limits = replace(QUICK, disk_reserve_bytes=RESERVE)
    return Config(data=directory, port=0, allow_networks=("127.0.0.0/8",), limits=limits)


@pytest.fixture(autouse=True)
def _quick_checks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kadcrawl.crawl.disk_guard.CHECK_S", 0.05)
    monkeypatch.setattr("kadcrawl.peer.rejoin.REJOIN_RETRY_S", 0.05)
    monkeypatch.setattr("kadcrawl.cli.commands.run_peer.log_to", lambda *args: None)  # The process is pytest's.


async def test_a_peer_whose_directory_is_moved_ends_and_goes_on_at_the_new_place(tmp_path: Path) -> None:
    """It writes nothing meanwhile, so only its look at the free disk notices."""
    before, after = tmp_path / "before", tmp_path / "after"

    async def moved_under_it() -> None:
        async with Peer(reserve_config(before), JOB) as peer, asyncio.timeout(60):
            await peer.begin()
            await peer.store.journal.commit()
            before.rename(after)
            await asyncio.Event().wait()

    with pytest.raises(StorageError, match="before was moved or removed while its peer ran: start again with --data"):
        await moved_under_it()
    assert not before.exists()
    async with Peer(reserve_config(after)) as peer:
        await peer.begin()
        assert (JOB.scope, JOB.delay_s) == (peer.job.scope, peer.job.delay_s)


async def test_with_little_disk_left_a_peer_pauses_and_says_so(tmp_path: Path) -> None:
    disk = Disk()
    disk.free = RESERVE - 1
    async with Web() as site, Peer(reserve_config(tmp_path), JOB, disk.environment) as peer:
        site.fallback = tree(10)(site)
        await peer.begin()
        await until(lambda: peer.state == "paused: disk full")
        await peer.crawl([site.url("/0")])
        assert ["paused: disk full"] == [row.state_text for row in (await peer.census()).rows]
        assert not site.requests
        assert not peer.ended
        disk.free = RESERVE
        await finish([peer])
        assert len(site.fetched) == 10


async def test_a_disk_that_fills_up_in_mid_crawl_costs_nothing_but_time(tmp_path: Path) -> None:
    disk = Disk()
    async with Web(4) as site, Peer(reserve_config(tmp_path), replace(JOB, delay_s=0.02), disk.environment) as peer:
        site.fallback = tree(100, 4)(site)
        await peer.crawl([site.url("/0")])
        await until(lambda: len(site.fetched) >= 20)
        disk.free = RESERVE - 1
        await until(lambda: peer.state == "paused: disk full" and not peer.components.crawler.in_flight)
        assert len(site.fetched) < 100
        disk.free = RESERVE
        await finish([peer])
        assert dict.fromkeys(site.fetched, 1) == dict(site.fetched)
        assert len(site.fetched) == 100


async def test_a_reserve_of_nothing_asks_for_nothing(tmp_path: Path) -> None:
    disk = Disk()
    disk.free = 0
    none = replace(reserve_config(tmp_path), limits=replace(QUICK, disk_reserve_bytes=0))
    async with Web() as site, Peer(none, JOB, disk.environment) as peer:
        site.fallback = tree(10)(site)
        await peer.crawl([site.url("/0")])
        await finish([peer])


async def test_a_peer_without_files_to_open_says_so(make_peer: MakePeer) -> None:
    peer = await make_peer()
    peer.components.crawler.pause_reasons.add(PauseReason.FILES)
    assert peer.state == "paused: too many open files"
    assert peer.row().state_text == "paused: too many open files"


async def test_a_warc_without_room_is_a_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise FULL

    async with Web() as site:
        site.fallback = tree(10)(site)
        with pytest.raises(DiskFullError, match="WARC"):  # noqa: PT012
            async with Peer(reserve_config(tmp_path), JOB) as peer:
                monkeypatch.setattr("kadcrawl.crawl.output.warc.WarcWriter.write", full)
                await peer.crawl([site.url("/0")])
                await peer.wait_done()


async def test_the_command_waits_for_room_and_finds_its_swarm_by_those_it_knew(
    make_peer: MakePeer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Although the peer it had joined by is gone by then."""
    disk = Disk()
    async with Web(12) as site:
        site.fallback = tree(400, 12)(site)
        peers = await swarm(make_peer, "ab", delay_s=0.02)
        lives: list[Peer] = []

        def make() -> Peer:
            lives.append(Peer(replace(reserve_config(tmp_path / "c"), exit_when_done=True), None, disk.environment))
            return lives[-1]

        bootstrap = [peers[0].contact.address]
        command = asyncio.create_task(live(make, lambda peer: peer.join(bootstrap), "join"))
        await until(lambda: lives and lives[0].begun and len(lives[0].known.contacts) == 2)
        await peers[0].crawl([site.url("/0")])
        await until(lambda: len(site.fetched) >= 50)
        disk.full, disk.free = True, 0
        await until(lambda: "paused: disk full" in capsys.readouterr().err)
        await peers[0].leave()
        await peers[0].__aexit__(None, None, None)
        assert len(lives) == 1
        disk.full, disk.free = False, 2**30
        await until(lambda: len(lives) == 2 and lives[1].begun and not lives[1].joining)
        assert [peers[1].contact] == lives[1].overlay.contacts()
        await finish(peers[1:])
        async with asyncio.timeout(60):
            assert not await command
        assert {site.url(f"/{n}", site=n % 12) for n in range(400)} == set(site.fetched)
        assert set(site.fetched) == {line.url for line in page_lines(tmp_path)}


async def test_what_no_room_can_cure_ends_the_command(tmp_path: Path) -> None:
    def broken(fds: object) -> None:
        raise OSError(errno.EIO, "Input/output error")

    with pytest.raises(StorageError, match="Input/output"):
        await live(lambda: Peer(reserve_config(tmp_path), JOB, Environment(sync=broken)), Peer.begin, "start")


async def test_returning_peers_become_one_swarm_again_and_only_one_begins(
    make_peer: MakePeer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun = []
    begin = Peer.begin

    async def counted(peer: Peer) -> None:
        begun.append(peer.contact.id)
        await begin(peer)

    monkeypatch.setattr(Peer, "begin", counted)
    async with Web(6) as site, AsyncExitStack() as stack:
        site.fallback = tree(40, 6)(site)
        peers = await swarm(make_peer, "abc")
        await peers[0].crawl([site.url("/0")])
        await finish(peers)
        for peer in peers:
            await peer.__aexit__(None, None, None)
        begun.clear()
        back = [await stack.enter_async_context(Peer(reserve_config(tmp_path / name))) for name in "abc"]
        await asyncio.gather(*(come_back(peer, briefly_away=True) for peer in back))
        await until(lambda: all(len(peer.overlay.contacts()) == 2 for peer in back))
        assert len((await back[0].census()).rows) == 3
        assert [min(peer.contact.id for peer in back)] == begun
