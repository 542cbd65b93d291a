"""Balance by seconds to drain: a slow peer sheds what it has to quick ones, however little; what it learns."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from aiohttp import web

from kadcrawl import Config, ConfigError, Peer
from kadcrawl.balance.lessons import BATCHES, batches, save
from kadcrawl.balance.powers import Powers
from kadcrawl.balance.predict import Network
from kadcrawl.keys import anchor
from kadcrawl.link.client import LinkClient
from kadcrawl.link.messages import BacklogRecord, GetLevel, Loaded
from kadcrawl.peer.draining import Draining
from scripts.kadcrawl_run import PageLine
from tests.peer.conftest import JOB, QUICK, MakePeer, finish, until
from tests.web import Web, html

SLOW = replace(QUICK, fetches_max=1)
"""One request at a time."""
SITES = 64
FEW, MANY = 25, 30
"""Pages of one site."""
ANSWER_S = 0.05
POWERS = {"cores": 1.0, "clock_ghz": 2.4, "memory_gb": 1.0, "net_mbps": 10.0, "disk_mbps": 5.0}
NETWORK = Network((0.0,) * 6, (1.0,) * 6, ((0.0,) * 5 + (0.1, 0.0),), (1.0, 0.0), 0.0, 100.0)
"""Ten seconds for a URL, or nearly."""


async def answered(request: web.BaseRequest) -> web.StreamResponse:
    await asyncio.sleep(ANSWER_S)
    return html()


def mode_of(peer: Peer) -> Draining:
    mode = peer.balancing.mode
    assert isinstance(mode, Draining)
    return mode


def sites_of(owner: Peer, other: Peer, site: Web, count: int) -> list[int]:
    """Return the numbers of sites that this one of two peers owns."""

    def owns(number: int) -> bool:
        place = anchor(owner.parts.placer.place(site.url(site=number)).cell, owner.job.cell_bits)
        return owner.contact.number ^ place < other.contact.number ^ place

    found = [number for number in range(SITES) if owns(number)][:count]
    assert count == len(found), "one of two owns hardly anything"
    return found


@pytest.mark.parametrize("balance", ["drain", "predictive"])
async def test_a_slow_peer_with_few_pages_sheds_them_to_a_quick_one_with_many(
    make_peer: MakePeer, lines: Callable[[], dict[str, PageLine]], balance: str
) -> None:
    async with Web(SITES) as site:
        site.fallback = answered
        slow = await make_peer("a", limits=SLOW, balance=balance, block_urls=2, update_s=0.3)
        quick = await make_peer("b", join=slow)
        few = [site.url(f"/{page}", one) for one in sites_of(slow, quick, site, 4) for page in range(FEW)]
        many = [site.url(f"/{page}", one) for one in sites_of(quick, slow, site, 4) for page in range(MANY)]
        await slow.crawl([*few, *many])
        await finish([slow, quick])
        assert {*few, *many} == lines().keys()
        assert {1} == set(site.fetched.values())
        lending = slow.balancing.loans.lending
        assert lending.done >= len(few) // 6
        assert quick.totals.pages == len(many) + lending.done
        assert 0 == quick.balancing.loans.lending.done


async def test_a_cold_peer_is_lent_a_block_to_try_and_no_more(make_peer: MakePeer) -> None:
    peer = await make_peer("a", balance="drain", block_urls=5)
    mode = mode_of(peer)
    busy = BacklogRecord(1000, 1.0, 0.0)
    assert mode.backlog() is None
    assert not mode.wants(b"somebody", 1)
    assert Loaded(-1.0, None) == peer.balancing.told(GetLevel(b"somebody", busy))
    assert mode.wants(b"somebody", 5)
    assert not mode.wants(b"somebody", 6)
    assert not mode.wants(b"somebody else", 1)
    peer.set_paused(True)
    assert not peer.balancing.wants(5)


async def test_how_busy_a_peer_is_is_asked_by_the_link(make_peer: MakePeer) -> None:
    peer = await make_peer("a", balance="drain", block_urls=5)
    client = LinkClient(10_000_000)
    await client.open()
    try:
        for backlog in (None, BacklogRecord(3, 1.0, 2.0)):
            told = await client.ask(peer.contact.address, GetLevel(bytes(20), backlog), Loaded, 10)
            assert Loaded(-1.0, None) == told
    finally:
        await client.close()
    assert mode_of(peer).wants(bytes(20), 1)


async def test_a_peer_that_knows_its_powers_and_a_network_is_never_cold(tmp_path: Path) -> None:
    network = tmp_path / "network.json"
    save(NETWORK, network)
    job = replace(JOB, balance="predictive", block_urls=5)
    config = Config(data=tmp_path / "one", port=0, network=network, powers=tuple(POWERS.items()))
    async with Peer(config, job) as peer:
        await peer.begin()
        await until(lambda: mode_of(peer).backlog())
        backlog = mode_of(peer).backlog()
        assert backlog is not None
        assert 10.0 == pytest.approx(backlog.url_s, rel=0.01)
        giver = BacklogRecord(100, 20.0, 0.0)
        peer.balancing.told(GetLevel(b"slower", giver))
        assert mode_of(peer).wants(b"slower", 50)
        peer.balancing.told(GetLevel(b"quicker", BacklogRecord(100, 0.1, 0.0)))
        assert not mode_of(peer).wants(b"quicker", 5)


@pytest.mark.parametrize(
    ("change", "why"),
    [({"powers": (("net", 1.0),)}, "no power 'net'"), ({"network": Path("/nowhere/network.json")}, "cannot read")],
)
async def test_a_network_or_powers_that_are_none_are_said_at_the_start(
    tmp_path: Path, change: dict[str, object], why: str
) -> None:
    config = replace(Config(data=tmp_path, port=0), **change)  # type: ignore[arg-type]
    async with Peer(config, replace(JOB, balance="predictive")) as peer:
        with pytest.raises(ConfigError, match=why):
            await peer.begin()


async def test_what_a_predictive_peer_measures_can_be_learned_from(tmp_path: Path) -> None:
    async with Web() as site:
        site.fallback = answered
        config = Config(
            data=tmp_path, port=0, allow_networks=("127.0.0.0/8",), limits=SLOW, powers=tuple(POWERS.items())
        )
        async with Peer(config, replace(JOB, balance="predictive", update_s=0.1)) as peer:
            await peer.crawl([site.url(f"/{page}") for page in range(40)])
            await finish([peer])
    assert (tmp_path / BATCHES).is_file()
    for batch in batches([tmp_path]):
        assert Powers(1, 2.4, 1.0, 10.0, 5.0) == batch.powers
        assert 8 <= batch.urls <= 40
        assert batch.seconds > 0
