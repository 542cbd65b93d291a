"""Load balance by seconds to drain: a slow peer lends to fast peers, and learns from its measurements."""

import asyncio
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import cast

import pytest

from kadcrawl import Config, ConfigError, Peer
from kadcrawl.balance.drain import Backlog
from kadcrawl.balance.machine_profile import MachineProfile
from kadcrawl.balance.predict import NeuralNetwork
from kadcrawl.balance.shedding import BlockOffer
from kadcrawl.balance.sizing import WorkCounts
from kadcrawl.balance.training_data import BATCHES_FILE, load_batches, save_network
from kadcrawl.lending import throughput_learning
from kadcrawl.lending.blocks import LOAD_DEADLINE_S, Blocks
from kadcrawl.lending.drain_policy import DrainPolicy
from kadcrawl.lending.lender import CONNECTION_WAIT_S
from kadcrawl.link.client import LinkClient
from kadcrawl.link.wire.codec import pack, unpack
from kadcrawl.link.wire.messages import BacklogRecord, Contact, GetLoad, Load
from scripts.kadcrawl_run import LoggedPage
from tests.support.sites.owned_sites import SITES, answered, sites_of
from tests.support.sites.web import Web
from tests.support.swarm.peers import JOB, QUICK, MakePeer, finish
from tests.support.waiting import until

SLOW = replace(QUICK, fetches_max=1)
"""One request at a time."""
FEW, MANY = 25, 30
"""Pages of one site."""
POWERS = {"cores": 1.0, "clock_ghz": 2.4, "memory_gb": 1.0, "net_mbps": 10.0, "disk_mbps": 5.0}
NETWORK = NeuralNetwork((0.0,) * 6, (1.0,) * 6, ((0.0,) * 5 + (0.1, 0.0),), (1.0, 0.0), 0.0, 100.0)
"""Ten seconds for a URL, or nearly."""


def mode_of(peer: Peer) -> DrainPolicy:
    mode = peer.balancing.policy
    assert isinstance(mode, DrainPolicy)
    return mode


@pytest.mark.parametrize("balance", ["drain", "predictive"])
async def test_a_slow_peer_with_few_pages_sheds_them_to_a_quick_one_with_many(
    make_peer: MakePeer, lines: Callable[[], dict[str, LoggedPage]], balance: str
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
        lending = slow.balancing.loans.lender
        assert lending.done >= len(few) // 6
        assert quick.counters.pages == len(many) + lending.done
        assert 0 == quick.balancing.loans.lender.done


async def test_a_cold_peer_is_lent_a_block_to_try_and_no_more(make_peer: MakePeer) -> None:
    peer = await make_peer("a", balance="drain", block_urls=5)
    mode = mode_of(peer)
    busy = BacklogRecord(1000, 1.0, 0.0)
    assert mode.backlog() is None
    assert not mode.accept(b"somebody", 1)
    assert Load(-1.0, None) == peer.balancing.answer(GetLoad(b"somebody", busy))
    assert mode.accept(b"somebody", 5)
    assert not mode.accept(b"somebody", 6)
    assert not mode.accept(b"somebody else", 1)
    peer.obey(peer.state_gossip.say("pause"))
    assert not peer.balancing.wants(b"somebody", 5)


async def test_a_cold_peer_gets_more_as_soon_as_none_of_its_loan_waits(
    make_peer: MakePeer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The peer has work on sites with a delay for a long time, and could fetch far more."""
    peer = await make_peer("a", balance="drain", block_urls=5)
    mode = mode_of(peer)
    peer.balancing.answer(GetLoad(b"somebody", BacklogRecord(1000, 1.0, 0.0)))
    assert mode.accept(b"somebody", 5)
    monkeypatch.setattr(Blocks, "borrowed", 5)
    for waiting, wanted in ((5, False), (0, True)):
        monkeypatch.setattr(Blocks, "waiting", (0, waiting))
        mode.update(WorkCounts(1.0, 0, 0, 0.0))
        assert mode.accept(b"somebody", 10) is wanted


async def test_how_busy_a_peer_is_is_asked_by_the_link(make_peer: MakePeer) -> None:
    peer = await make_peer("a", balance="drain", block_urls=5)
    client = LinkClient(10_000_000)
    await client.open()
    try:
        for backlog in (None, BacklogRecord(3, 1.0, 2.0)):
            told = await client.ask(peer.contact.address, GetLoad(bytes(20), backlog), Load, 10)
            assert Load(-1.0, None) == told
    finally:
        await client.close()
    assert mode_of(peer).accept(bytes(20), 1)


async def test_a_peer_that_knows_its_powers_and_a_network_is_never_cold(tmp_path: Path) -> None:
    network = tmp_path / "network.json"
    save_network(NETWORK, network)
    job = replace(JOB, balance="predictive", block_urls=5)
    config = Config(data=tmp_path / "one", port=0, network=network, powers=tuple(POWERS.items()))
    async with Peer(config, job) as peer:
        await peer.begin()
        await until(lambda: mode_of(peer).backlog())
        backlog = mode_of(peer).backlog()
        assert backlog is not None
        assert 10.0 == pytest.approx(backlog.url_s, rel=0.01)
        lender = BacklogRecord(100, 20.0, 0.0)
        peer.balancing.answer(GetLoad(b"slower", lender))
        assert mode_of(peer).accept(b"slower", 50)
        peer.balancing.answer(GetLoad(b"quicker", BacklogRecord(100, 0.1, 0.0)))
        assert not mode_of(peer).accept(b"quicker", 5)


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
        assert not peer.begun


async def test_what_a_predictive_peer_measures_can_be_learned_from(tmp_path: Path) -> None:
    async with Web() as site:
        site.fallback = answered
        config = Config(
            data=tmp_path, port=0, allow_networks=("127.0.0.0/8",), limits=SLOW, powers=tuple(POWERS.items())
        )
        async with Peer(config, replace(JOB, balance="predictive", update_s=0.1)) as peer:
            await peer.crawl([site.url(f"/{page}") for page in range(40)])
            await finish([peer])
    assert (tmp_path / BATCHES_FILE).is_file()
    for batch in load_batches([tmp_path])[0]:
        assert MachineProfile(1, 2.4, 1.0, 10.0, 5.0) == batch.profile
        assert 8 <= batch.urls <= 40
        assert batch.seconds > 0


async def test_a_peer_looks_on_while_it_sheds(make_peer: MakePeer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pages are crawled meanwhile, and the seconds they take must be counted as well."""
    peer = await make_peer("a", balance="drain", update_s=0.1)
    sheds, looked = [0], asyncio.Event()

    async def shed() -> None:
        sheds[0] += 1
        await looked.wait()

    def look(tally: WorkCounts) -> None:
        if sheds[0]:
            looked.set()

    monkeypatch.setattr(mode_of(peer), "shed", shed)
    monkeypatch.setattr(mode_of(peer), "sample", look)
    await until(looked.is_set)
    await until(lambda: sheds[0] > 1)


async def test_an_offer_may_come_later_than_the_next_update(make_peer: MakePeer) -> None:
    """The connections of an offer may have to become free first."""
    peer = await make_peer("a", balance="drain", block_urls=5, update_s=0.1)
    mode = mode_of(peer)
    now = asyncio.get_running_loop().time()
    for lender, at in ((b"slow", now - LOAD_DEADLINE_S - CONNECTION_WAIT_S), (b"silent", now - 60.0)):
        mode._askers[lender] = at, Backlog(1000, 1.0)
    assert mode.accept(b"slow", 5)
    assert not mode.accept(b"silent", 5)


class Slow:
    """Simulate blocks that each take longer to give than the time between two updates."""

    job = replace(JOB, balance="drain", block_urls=1, update_s=0.1)
    has_spare_connections = True
    waiting, borrowed = (100, 0), 0

    def __init__(self) -> None:
        self.given = 0

    def is_paused(self) -> bool:
        return False

    async def lend_blocks(self, offer: BlockOffer[Contact], until: float) -> int:
        self.given += 1
        await asyncio.sleep(2 * self.job.update_s)
        return offer.blocks


async def test_what_was_told_is_acted_on_until_the_next_update(monkeypatch: pytest.MonkeyPatch) -> None:
    blocks = Slow()
    mode = DrainPolicy(cast(Blocks, blocks), Random(1))

    async def chosen(own: Backlog) -> list[BlockOffer[Contact]]:
        return [BlockOffer(Contact(bytes(20), "127.0.0.1", number), 1) for number in (1, 2, 3)]

    monkeypatch.setattr(mode, "_chosen", chosen)
    monkeypatch.setattr(mode, "backlog", lambda: Backlog(100, 1.0))
    await mode.shed()
    assert 1 == blocks.given


async def test_what_is_told_fits_the_wire(monkeypatch: pytest.MonkeyPatch) -> None:
    blocks = Slow()
    monkeypatch.setattr(blocks, "waiting", (3_000_000, 0))
    told = DrainPolicy(cast(Blocks, blocks), Random(1)).answer()
    assert told == unpack(pack(told), Load, 1000)


@pytest.mark.parametrize("error", [ValueError("no number"), OSError("no disk")])
async def test_what_cannot_be_measured_does_not_end_the_peer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    def fails(*_: object) -> MachineProfile:
        raise error

    monkeypatch.setattr(throughput_learning, "measure_profile", fails)
    one = throughput_learning.ThroughputLearning(tmp_path, {}, NETWORK)
    await one.run()
    assert one.predicted is None


def test_nobody_waits_at_the_exit_for_a_disk_that_hangs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hangs = threading.Event()
    threads: list[threading.Thread] = []

    def measure(*_: object) -> MachineProfile:
        threads.append(threading.current_thread())
        hangs.wait()
        raise OSError("it hung until the test was over")

    async def begin() -> None:
        run = asyncio.create_task(throughput_learning.ThroughputLearning(tmp_path, {}, None).run())
        await until(lambda: threads)
        run.cancel()
        if not threads[0].daemon:
            hangs.set()  # Or this test would hang as well.

    monkeypatch.setattr(throughput_learning, "measure_profile", measure)
    asyncio.run(begin())
    try:
        assert threads[0].daemon
        assert threads[0].is_alive()
    finally:
        hangs.set()
