"""Load balance by seconds to drain: a slow peer lends to fast peers, and learns from its measurements."""

import asyncio
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any, cast

import pytest

from kadcrawl import Config, ConfigError, Peer
from kadcrawl.balance.batch_partition import TimeModel
from kadcrawl.balance.block_division import divided_blocks
from kadcrawl.balance.bucket_walk import ASKED_MAX, ASKED_PER_BUCKET_MAX
from kadcrawl.balance.drain import Backlog
from kadcrawl.balance.machine_profile import MachineProfile
from kadcrawl.balance.predict import NeuralNetwork
from kadcrawl.balance.shedding import BlockOffer
from kadcrawl.balance.sizing import WorkCounts
from kadcrawl.balance.training_data import BATCHES_FILE, load_batches, save_network
from kadcrawl.lending import block_divider, throughput_learning
from kadcrawl.lending.blocks import Blocks
from kadcrawl.lending.drain_policy import DrainPolicy
from kadcrawl.link.client import LinkClient
from kadcrawl.link.wire.codec import pack, unpack
from kadcrawl.link.wire.messages import BacklogRecord, Contact, GetLoad, Load, PowersRecord
from kadcrawl.overlay.routing import HeardLoad
from kadcrawl.settings.job import PartitionSolver
from scripts.kadcrawl_run import LoggedPage
from tests.support.links.contacts import contact
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
    assert Load(-1.0, None) == peer.balancing.answer(GetLoad(b"somebody", busy))
    assert mode.accept(b"somebody", 5, busy)
    assert not mode.accept(b"somebody", 6, busy)
    assert not mode.accept(b"somebody", 1, None), "it does not say how busy it is"
    peer.obey(peer.state_gossip.say("pause"))
    assert not peer.balancing.wants(b"somebody", 5, busy)


async def test_a_cold_peer_gets_more_as_soon_as_none_of_its_loan_waits(
    make_peer: MakePeer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The peer has work on sites with a delay for a long time, and could fetch far more."""
    peer = await make_peer("a", balance="drain", block_urls=5)
    mode, busy = mode_of(peer), BacklogRecord(1000, 1.0, 0.0)
    assert mode.accept(b"somebody", 5, busy)
    monkeypatch.setattr(Blocks, "borrowed", 5)
    for waiting, wanted in ((5, False), (0, True)):
        monkeypatch.setattr(Blocks, "waiting", (0, waiting))
        mode.update(WorkCounts(1.0, 0, 0, 0.0))
        assert mode.accept(b"somebody", 10, busy) is wanted


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
    known = mode_of(peer).known.load(bytes(20), asyncio.get_running_loop().time())
    assert isinstance(known, Backlog)
    assert 1.0 == known.url_s


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
        assert mode_of(peer).accept(b"slower", 5, BacklogRecord(100, 20.0, 0.0))
        assert not mode_of(peer).accept(b"slower", 50, BacklogRecord(100, 20.0, 0.0)), "more than a block at once"
        assert not mode_of(peer).accept(b"quicker", 5, BacklogRecord(100, 0.1, 0.0))


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


HEAVY, LIGHT, COLD = Load(5.0, BacklogRecord(90, 1.0, 0.0)), Load(-1.0, BacklogRecord(0, 1.0, 0.0)), Load(-1.0, None)


class Swarm:
    """Simulate a heavy peer with 100 URLs and buckets of contacts, and record its questions and offers."""

    job = replace(JOB, balance="drain", block_urls=1, update_s=5.0)
    has_spare_connections = True
    waiting = (100, 0)

    def __init__(self, *buckets: list[Load | None], heard: dict[int, Load] | None = None) -> None:
        self.loads = [load for bucket in buckets for load in bucket]
        self.heard = heard or {}
        self.asked: list[int] = []
        self.lent: dict[int, int] = {}
        self.told: list[Load] = []
        self.lend_s = 0.0
        self._sizes = [len(bucket) for bucket in buckets]

    def is_paused(self) -> bool:
        return False

    def me(self) -> Contact:
        return contact(999)

    def tell_load(self, load: Load) -> None:
        self.told.append(load)

    def buckets(self) -> Iterator[list[Contact]]:
        numbers = iter(range(len(self.loads)))
        for size in self._sizes:
            yield [contact(next(numbers)) for _ in range(size)]

    def heard_loads(self) -> dict[bytes, HeardLoad]:
        now = asyncio.get_running_loop().time()
        return {contact(n).id: HeardLoad(now, round(100 * one.level), one.backlog) for n, one in self.heard.items()}

    async def ask(self, of: Contact, question: GetLoad) -> Load | None:
        self.asked.append(of.number)
        return self.loads[of.number]

    async def lend_blocks(
        self, offer: BlockOffer[Contact], until: float, backlog: Callable[[], BacklogRecord | None]
    ) -> int:
        assert backlog() is not None
        await asyncio.sleep(self.lend_s)
        self.lent[offer.peer.number] = self.lent.get(offer.peer.number, 0) + offer.blocks
        return offer.blocks


def policy_of(swarm: object) -> DrainPolicy:
    """Return the policy of a peer that has crawled a URL a second so far."""
    mode = DrainPolicy(cast(Blocks, swarm))
    mode.sample(WorkCounts(0.0, 0, 0, 0.0))
    mode.sample(WorkCounts(1.0, 0, 10, 10.0))
    mode.sample(WorkCounts(2.0, 0, 20, 20.0))
    mode.update(WorkCounts(2.0, 0, 20, 20.0))
    return mode


async def test_a_far_bucket_is_not_asked_while_a_near_one_suffices() -> None:
    quick = Load(-1.0, BacklogRecord(0, 0.01, 0.0))
    swarm = Swarm([quick], [LIGHT] * 20)
    await policy_of(swarm).shed()
    assert [0] == swarm.asked
    assert {0} == swarm.lent.keys()


async def test_a_far_bucket_is_asked_for_the_rest_only() -> None:
    swarm = Swarm([LIGHT, HEAVY], [LIGHT] * 9, [LIGHT] * 20)
    await policy_of(swarm).shed()
    assert {*range(11)} == {*swarm.asked}, "the third bucket is not needed"
    assert {0, *range(2, 11)} == swarm.lent.keys()
    assert max(swarm.lent.values()) <= 10, "enough until the update after the next"


async def test_what_heartbeats_have_told_is_not_asked() -> None:
    swarm = Swarm([LIGHT, HEAVY, COLD], [LIGHT], heard={0: LIGHT, 1: HEAVY, 2: COLD, 3: LIGHT})
    await policy_of(swarm).shed()
    assert not swarm.asked
    assert {0, 2, 3} == swarm.lent.keys()


async def test_busy_peers_are_not_asked_again_at_the_next_update() -> None:
    swarm = Swarm([HEAVY] * 8)
    mode = policy_of(swarm)
    for _ in range(2):
        await mode.shed()
    assert [*range(8)] == sorted(swarm.asked)
    assert not swarm.lent


async def test_no_update_asks_more_than_a_bounded_number_of_contacts() -> None:
    nobody: list[Load | None] = [None] * 40
    swarm = Swarm(*[nobody] * 8)
    await policy_of(swarm).shed()
    assert ASKED_MAX == len(swarm.asked)
    assert ASKED_PER_BUCKET_MAX == sum(number < 40 for number in swarm.asked)


async def test_a_peer_that_is_not_heavy_asks_nobody() -> None:
    swarm = Swarm([LIGHT] * 3, [LIGHT] * 3, heard=dict.fromkeys(range(3), HEAVY))
    swarm.waiting = (9, 0)
    await policy_of(swarm).shed()
    assert not swarm.asked
    assert not swarm.lent


async def test_heartbeats_carry_the_backlog_once_a_second() -> None:
    swarm = Swarm()
    mode = policy_of(swarm)
    before = len(swarm.told)
    for half in range(4):
        mode.sample(WorkCounts(3.0 + half / 2, 0, 20, 20.0))
    assert before + 2 == len(swarm.told)
    assert mode.answer() == swarm.told[-1]
    assert swarm.told[-1].backlog is not None


async def test_what_was_told_is_acted_on_until_the_next_update() -> None:
    swarm = Swarm([LIGHT] * 3)
    swarm.job = replace(swarm.job, update_s=0.1)
    swarm.lend_s = 0.2
    await policy_of(swarm).shed()
    assert 1 == len(swarm.lent)


async def test_what_is_told_fits_the_wire() -> None:
    swarm = Swarm()
    swarm.waiting = (3_000_000, 0)
    told = policy_of(swarm).answer()
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


class Learning:
    """Simulate a trained network for which only the link counts: ten URLs a second for each Mb/s."""

    profile = MachineProfile(1, 2.4, 1.0, 0.1, 5.0)
    can_predict = True

    def model(self, profile: MachineProfile | None) -> TimeModel | None:
        return None if profile is None else lambda urls: urls / (10 * profile.net_mbps)

    @property
    def predicted(self) -> TimeModel | None:
        return self.model(self.profile)

    def predict(self, urls: float) -> float | None:
        return None if self.predicted is None else self.predicted(urls)

    def measured(self, urls: int, seconds: float) -> None:
        pass


def told(net_mbps: float) -> Load:
    """The answer of a peer that would try much, and has a link of this speed."""
    return Load(-50.0, None, PowersRecord(1, 2.4, 1.0, net_mbps, 5.0))


async def shed_by_prediction(swarm: Swarm, solver: PartitionSolver = "exact") -> DrainPolicy:
    swarm.job = replace(swarm.job, balance="predictive", solver=solver, update_s=20.0)
    policy = DrainPolicy(cast(Blocks, swarm), cast(throughput_learning.ThroughputLearning, Learning()), Random(3))
    await policy.shed()
    return policy


@pytest.mark.parametrize("solver", ["exact", "pso"])
async def test_blocks_are_divided_by_the_powers_that_peers_tell(solver: PartitionSolver) -> None:
    swarm = Swarm([told(0.1), told(0.4), told(0.4)])
    await shed_by_prediction(swarm, solver)
    assert {0: 10, 1: 40, 2: 40} == pytest.approx(swarm.lent, abs=1)


async def test_a_peer_is_asked_for_its_powers_once_though_its_load_is_known() -> None:
    swarm = Swarm([told(0.1), told(0.4)], heard=dict.fromkeys(range(2), LIGHT))
    policy = await shed_by_prediction(swarm)
    assert [0, 1] == sorted(swarm.asked)
    await policy.shed()
    assert [0, 1] == sorted(swarm.asked)


async def test_a_peer_tells_its_powers_when_it_is_asked_for_its_load() -> None:
    swarm = Swarm()
    policy = await shed_by_prediction(swarm)
    assert PowersRecord(1, 2.4, 1.0, 0.1, 5.0) == policy.answer().powers


@pytest.mark.parametrize("net_mbps", [1e7, float("nan"), float("inf")])
async def test_a_lie_about_powers_breaks_nothing(net_mbps: float) -> None:
    swarm = Swarm([told(net_mbps), told(0.1)])
    await shed_by_prediction(swarm)
    assert swarm.lent[1] >= 1
    assert sum(swarm.lent.values()) <= 100


@pytest.mark.parametrize("solver", ["exact", "pso"])
async def test_a_swarm_with_powers_and_a_network_crawls_each_page_once(
    tmp_path: Path, make_peer: MakePeer, lines: Callable[[], dict[str, LoggedPage]], solver: PartitionSolver
) -> None:
    network = tmp_path / "network.json"
    save_network(NETWORK, network)
    async with Web(SITES) as site:
        site.fallback = answered
        job: dict[str, Any] = {"balance": "predictive", "solver": solver, "block_urls": 2, "update_s": 0.3}
        slow = await make_peer("a", limits=SLOW, network=network, powers=POWERS, **job)
        quick = await make_peer("b", join=slow, network=network, powers=POWERS)
        urls = [site.url(f"/{page}", one) for one in sites_of(slow, quick, site, 4) for page in range(FEW)]
        await slow.crawl(urls)
        await finish([slow, quick])
        assert {*urls} == lines().keys()
        assert {1} == set(site.fetched.values())
        assert slow.balancing.loans.lender.done > 0


async def test_the_division_holds_up_no_other_work_of_the_peer(monkeypatch: pytest.MonkeyPatch) -> None:
    divided_in: list[int] = []

    def divided(*args: Any) -> list[int]:
        divided_in.append(threading.get_ident())
        return divided_blocks(*args)

    monkeypatch.setattr(block_divider, "divided_blocks", divided)
    swarm = Swarm([told(0.1), told(0.4)])
    await shed_by_prediction(swarm, "pso")
    assert swarm.lent
    assert threading.get_ident() not in divided_in
