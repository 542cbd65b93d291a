"""Test that peers of one local network find each other by multicast DNS, and let nobody in by that."""

import asyncio
from pathlib import Path

import pytest

from kadcrawl import Config, Job, Leaf, Peer, StartError
from kadcrawl.keys import ID_BYTES
from kadcrawl.link.wire.messages import Contact
from kadcrawl.members.swarm_key import SwarmKey
from kadcrawl.peer.membership import lan
from kadcrawl.peer.membership.lan import SERVICE, LanBeacon, peers_on_lan
from tests.support.waiting import until

KEY, OTHER_KEY = SwarmKey(b"k" * 32), SwarmKey(b"o" * 32)
NAME = SERVICE.rstrip(".")
SEED = "http://127.0.0.2:9/"


def config(data: Path, key: SwarmKey = KEY, *, announce: bool = False) -> Config:
    return Config(data=data, port=0, swarm_key=key, announce=announce)


async def until_announced(peer: Peer) -> None:
    """Wait until others hear of the peer. A network of a busy machine may take some seconds."""
    for _ in range(10):
        if await announced(peer.contact.address):
            return


async def announced(address: tuple[str, int]) -> bool:
    return address in await peers_on_lan(NAME)


async def test_a_peer_joins_a_peer_that_it_hears_of_on_the_network(tmp_path: Path) -> None:
    async with Peer(config(tmp_path / "a", announce=True), Job(seeds=(SEED,), max_depth=0)) as first:
        await first.begin(paused=True)
        await until_announced(first)
        async with Peer(config(tmp_path / "b")) as second:
            await second.join([(NAME, 0)])
            assert (SEED,) == second.job.seeds
            await until(lambda: first.overlay.contacts() and second.overlay.contacts())
    assert not await announced(first.contact.address), "a peer that ends says so"


async def test_hearing_of_a_peer_is_no_key(tmp_path: Path) -> None:
    async with Peer(config(tmp_path / "a", announce=True), Job(seeds=(SEED,), max_depth=0)) as first:
        await first.begin(paused=True)
        await until_announced(first)
        async with Peer(config(tmp_path / "b", OTHER_KEY)) as stranger:
            with pytest.raises(StartError, match="does not let us in"):
                await stranger.join([(NAME, 0)])


async def test_a_peer_that_does_not_announce_is_not_heard_of(tmp_path: Path) -> None:
    async with Peer(config(tmp_path / "a"), Job(seeds=(SEED,), max_depth=0)) as first:
        await first.begin(paused=True)
        assert not await announced(first.contact.address)


async def test_a_network_without_multicast_stops_no_peer(caplog: pytest.LogCaptureFixture) -> None:
    """192.0.2.1 is no address of this machine, so nothing can be sent from there."""
    async with asyncio.timeout(60):
        await LanBeacon(Contact(bytes(ID_BYTES), "192.0.2.1", 4160)).run()
    assert "lan.not_announced" in caplog.text


@pytest.mark.parametrize("name", ["_a.local", "_" + "x" * 300 + "._tcp.local"])
async def test_a_name_that_is_no_service_is_an_error_of_the_name(name: str) -> None:
    with pytest.raises(OSError, match="is no name of a service"):
        await peers_on_lan(name)


async def test_without_the_library_it_is_said_how_to_get_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lan, "find_spec", lambda _: None)
    with pytest.raises(StartError, match=r"pip install 'kadcrawl\[lan\]'"):
        async with Peer(config(tmp_path / "a", announce=True)):
            pass
    with pytest.raises(StartError, match=r"pip install 'kadcrawl\[lan\]'"):
        await peers_on_lan(NAME)


async def test_a_leaf_has_nothing_to_announce(tmp_path: Path) -> None:
    async with Leaf(config(tmp_path / "a", announce=True)) as leaf:
        with pytest.raises(StartError, match="leave out announce"):
            await leaf.join([("127.0.0.1", 9)])
