"""How soon an idle peer asks again whether the crawl is over."""

import asyncio
import itertools
from random import Random

import pytest

from kadcrawl.link.wire.messages import Answer, Order, Question, Survey, Tally
from kadcrawl.overlay.waves.activity import Activity
from kadcrawl.overlay.waves.quiescence import own_view
from kadcrawl.overlay.waves.termination import (
    PEERS_PER_SAMPLED,
    QUIESCENCE_POLL_MAX_S,
    SAMPLE_PEERS,
    Termination,
    sample_sizes,
)
from kadcrawl.overlay.waves.wave import WAVE_DEADLINE_S, Waves
from sim.loop import SimLoop

ARRIVED_S = 1.0
"""Second at which the last message has arrived, or the last URL is done."""


class OtherPeer(Waves):
    """The waves of a swarm of this idle peer and another, which has something left until `ARRIVED_S`."""

    def __init__(self, activity: Activity, *, pending: int = 0, unacknowledged: int = 0, here: int = 0) -> None:
        """`here` is the number of this peer's own messages on their way."""
        self.surveys = 0
        self.ended_at: float | None = None
        self._activity = activity
        self._left = (pending, unacknowledged, here)

    def _tally(self, *, of_all: bool) -> Tally:
        has_arrived = asyncio.get_running_loop().time() >= ARRIVED_S
        pending, unacknowledged, here = (0, 0, 0) if has_arrived else self._left
        view = own_view(b"other", b"run", has_arrived)
        return Tally(1 + of_all, view, pending, unacknowledged + of_all * here, missing=0)

    @property
    def members(self) -> int:
        return 2

    async def ask_some(self, question: Question, count: int, random: Random, deadline_s: float) -> list[Tally]:
        return [self._tally(of_all=False)]

    async def ask_all(self, question: Question, deadline_s: float = WAVE_DEADLINE_S) -> Answer:
        self.surveys += isinstance(question, Survey)
        if isinstance(question, Order):
            self.ended_at = asyncio.get_running_loop().time()
            self._activity.end()
        return Answer(self._tally(of_all=True), [])


def ended_at(loop: SimLoop, *, pending: int = 0, unacknowledged: int = 0, here: int = 0) -> float:
    """Return the second at which this peer, the only one that asks, tells the end."""

    async def story() -> float:
        activity = Activity()
        activity.armed = True
        activity.settle(idle=True)
        waves = OtherPeer(activity, pending=pending, unacknowledged=unacknowledged, here=here)
        asking = asyncio.create_task(Termination(waves, Random(1), activity).run())
        await activity.over.wait()
        asking.cancel()
        assert waves.ended_at is not None
        return waves.ended_at

    return loop.run_until_complete(story())


@pytest.mark.parametrize("messages", [{"unacknowledged": 28}, {"here": 28}])
def test_messages_on_their_way_delay_the_end_by_little_as_nobody_else_asks_after_them(
    loop: SimLoop, messages: dict[str, int]
) -> None:
    assert ARRIVED_S <= ended_at(loop, **messages) < 4 * ARRIVED_S


def test_a_peer_leaves_the_question_to_another_that_has_urls_to_fetch(loop: SimLoop) -> None:
    assert ended_at(loop, pending=1) >= QUIESCENCE_POLL_MAX_S


class IdlePeer(Waves):
    """The waves of a peer among many that all become idle at once. Others hear of a wave once it has reached them."""

    REACHES_S = 0.1

    def __init__(self, swarm: list["IdlePeer"]) -> None:
        self.surveys = 0
        self.asked = 0
        self._swarm = swarm

    @property
    def members(self) -> int:
        return len(self._swarm)

    async def ask_some(self, question: Question, count: int, random: Random, deadline_s: float) -> list[Tally]:
        return [Tally(1, bytes(16), 0, 0, missing=0)] * count

    async def ask_all(self, question: Question, deadline_s: float = WAVE_DEADLINE_S) -> Answer:
        self.asked += 1
        await asyncio.sleep(self.REACHES_S)
        for peer in self._swarm:
            peer.surveys += 1
        # The peer with the seeds has work, so that nobody asks again soon.
        return Answer(Tally(len(self._swarm), bytes(16), 1, 0, missing=0), [])


def test_of_many_peers_that_begin_idle_few_ask_at_once(loop: SimLoop) -> None:
    peers = 200

    async def waves_asked() -> int:
        activity = Activity()
        activity.armed = True
        activity.settle(idle=True)
        swarm: list[IdlePeer] = []
        swarm.extend(IdlePeer(swarm) for _ in range(peers))
        endings = [Termination(waves, Random(number), activity) for number, waves in enumerate(swarm)]
        tasks = [asyncio.create_task(ending.run()) for ending in endings]
        await asyncio.sleep(QUIESCENCE_POLL_MAX_S / 2)
        for task in tasks:
            task.cancel()
        return sum(waves.asked for waves in swarm)

    assert loop.run_until_complete(waves_asked()) <= peers / 10


class LargeSwarm(Waves):
    """The waves of an idle peer of a large swarm, in which one in `BUSY_ONE_IN` is busy."""

    PEERS = 2_000
    BUSY_ONE_IN = 20

    def __init__(self) -> None:
        self.surveys = 0
        self.sampled = 0

    @property
    def members(self) -> int:
        return self.PEERS

    async def ask_some(self, question: Question, count: int, random: Random, deadline_s: float) -> list[Tally]:
        self.sampled += count
        return [Tally(1, bytes(16), random.randrange(self.BUSY_ONE_IN) == 0, 0, missing=0) for _ in range(count)]

    async def ask_all(self, question: Question, deadline_s: float = WAVE_DEADLINE_S) -> Answer:
        self.surveys += 1
        return Answer(Tally(self.PEERS, bytes(16), self.PEERS // self.BUSY_ONE_IN, 0, missing=0), [])


def test_in_a_large_swarm_the_last_busy_peers_are_found_without_a_wave(loop: SimLoop) -> None:
    rounds = 40

    async def asked() -> LargeSwarm:
        activity = Activity()
        activity.armed = True
        activity.settle(idle=True)
        swarm = LargeSwarm()
        for number in range(rounds):
            assert await Termination(swarm, Random(number), activity)._proof() is None
        return swarm

    swarm = loop.run_until_complete(asked())
    assert swarm.surveys <= 1
    # Questions are asked until a busy peer answers, so they are few as well.
    assert swarm.sampled <= rounds * 3 * LargeSwarm.BUSY_ONE_IN


@pytest.mark.parametrize("members", [1, 2, 48, 63, 64, 500, 4_000, 1_000_000])
def test_samples_are_a_small_part_of_the_questions_of_a_wave(members: int) -> None:
    sizes = sample_sizes(members)
    assert SAMPLE_PEERS == sizes[0]
    assert max(SAMPLE_PEERS, members // PEERS_PER_SAMPLED) == sum(sizes)
    assert all(later <= 2 * size for size, later in itertools.pairwise(sizes))


class OutrunPeer(Waves):
    """The waves of an idle peer that hears of the end from another peer during its second wave."""

    def __init__(self, activity: Activity, *, is_outrun: bool) -> None:
        self.surveys = 0
        self.told = 0
        self._activity = activity
        self._is_outrun = is_outrun

    @property
    def members(self) -> int:
        return 2

    async def ask_some(self, question: Question, count: int, random: Random, deadline_s: float) -> list[Tally]:
        return [Tally(1, bytes(16), 0, 0, missing=0)]

    async def ask_all(self, question: Question, deadline_s: float = WAVE_DEADLINE_S) -> Answer:
        self.surveys += isinstance(question, Survey)
        self.told += isinstance(question, Order)
        if isinstance(question, Order) or (self._is_outrun and self.surveys == 2):
            self._activity.end()
        return Answer(Tally(2, b"the same view   ", 0, 0, missing=0), [])


@pytest.mark.parametrize(("is_outrun", "told"), [(True, 0), (False, 1)])
def test_a_peer_that_has_heard_of_the_end_meanwhile_tells_no_other(loop: SimLoop, is_outrun: bool, told: int) -> None:
    async def asked() -> OutrunPeer:
        activity = Activity()
        activity.armed = True
        activity.settle(idle=True)
        waves = OutrunPeer(activity, is_outrun=is_outrun)
        asking = asyncio.create_task(Termination(waves, Random(1), activity).run())
        await asyncio.sleep(QUIESCENCE_POLL_MAX_S)
        asking.cancel()
        return waves

    waves = loop.run_until_complete(asked())
    assert (2, told) == (waves.surveys, waves.told)


class BusySwarm(OutrunPeer):
    """The waves of an idle peer of a swarm with URLs to fetch, which says when it is asked."""

    def __init__(self, activity: Activity) -> None:
        super().__init__(activity, is_outrun=False)
        self.asked_at: list[float] = []

    async def ask_some(self, question: Question, count: int, random: Random, deadline_s: float) -> list[Tally]:
        self.asked_at.append(asyncio.get_running_loop().time())
        return [Tally(1, bytes(16), 1, 0, missing=0)]


def test_a_peer_that_doubts_the_end_asks_soon_however_long_it_waited_before(loop: SimLoop) -> None:
    async def asked_after() -> float:
        activity = Activity()
        activity.armed = True
        activity.settle(idle=True)
        waves = BusySwarm(activity)
        asking = asyncio.create_task(Termination(waves, Random(1), activity).run())
        await asyncio.sleep(3 * QUIESCENCE_POLL_MAX_S)
        activity.end()
        await asyncio.sleep(3 * QUIESCENCE_POLL_MAX_S)
        doubted_at = asyncio.get_running_loop().time()
        asked = len(waves.asked_at)
        activity.doubt()
        await asyncio.sleep(2 * QUIESCENCE_POLL_MAX_S)
        asking.cancel()
        assert asked < 6
        return waves.asked_at[asked] - doubted_at

    assert loop.run_until_complete(asked_after()) < 1.0
