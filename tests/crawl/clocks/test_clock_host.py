"""The owner's side of shared clocks: which questions are answered, and what moves with the cell."""

import asyncio
from collections.abc import Coroutine, Iterable, Iterator
from pathlib import Path
from random import Random
from typing import Any, cast

import pytest

from kadcrawl.crawl.clocks.clock_host import (
    CLOSED_WAIT_S,
    LEAF_AGAIN_S,
    LEAF_QUESTIONS_MAX,
    LEAF_WAIT_S,
    RULES_WAIT_S,
    ClockHost,
)
from kadcrawl.crawl.clocks.clock_names import REST_S
from kadcrawl.crawl.frontier.frontier import Frontier
from kadcrawl.crawl.scope.partitioner import Partitioner
from kadcrawl.keys import Cell
from kadcrawl.link.peer_score import MisbehaviorError
from kadcrawl.link.wire.cell_messages import RobotsRecord
from kadcrawl.link.wire.clock_messages import (
    CLOCKS_MAX,
    ClockFree,
    ClockFreeNoted,
    ClockQuestion,
    ClockTurn,
    LeaseClocks,
)
from kadcrawl.link.wire.leaf_messages import leaf_contact
from kadcrawl.link.wire.messages import Contact
from kadcrawl.replication.peer_tasks import NotRunningError
from kadcrawl.settings.job import Job
from kadcrawl.settings.limits import Limits
from kadcrawl.settings.site_settings import SiteSettings
from kadcrawl.store.store import Store
from sim.loop import world

BITS = 4
CLOCK = "ip 192.0.2.1"
ME, A, B, FAR = (Contact(bytes([number]) * 20, f"192.0.2.{number}", 4160) for number in range(1, 5))
NOW = 1_000_000.0


class Bench:
    """A clock host whose cells open when they are wanted."""

    def __init__(self, store: Store) -> None:
        self.partitioner = Partitioner("host", BITS)
        self.frontier = Frontier(store, Limits(), SiteSettings(Job(delay_s=1.0)))
        self.cell = self.partitioner.cell(CLOCK)
        self.is_awake, self.is_owner, self.unsure_since = True, True, cast(float | None, None)
        self.told: list[tuple[Contact, list[str]]] = []
        self.told_here: list[str] = []
        self.tasks: list[asyncio.Task[None]] = []
        self.has_ended = False
        self.host = ClockHost(
            self.frontier,
            self.partitioner,
            cast(Any, self),
            me=lambda: ME,
            owner=lambda cell: FAR,
            opened=self.opened,
            may_lease=lambda: self.is_awake,
            spawn=self.spawn,
            wait_max_s=lambda: 60.0,
            now=lambda: NOW,
            random=Random(1),
        )
        self.host.tell_also(self)

    async def opened(self, cells: Iterable[Cell], seconds: float) -> set[Cell]:
        """Open cells as `Cells` does."""
        if not self.is_owner:
            return set()
        for cell in cells:
            self.frontier.open(cell, NOW, hold=False, unsure_since=self.unsure_since)
        return set(cells)

    def spawn(self, work: Coroutine[Any, Any, None], name: str) -> None:
        if self.has_ended:
            work.close()
            raise NotRunningError(name)
        self.tasks.append(asyncio.get_running_loop().create_task(work))

    async def finish_tasks(self) -> None:
        """Wait for all tasks, also for those that others begin."""
        while not all(task.done() for task in self.tasks):
            await asyncio.gather(*self.tasks)

    async def ask(self, to: Contact, message: ClockFree, *_: object) -> ClockFreeNoted:
        """Ask another peer as a `LinkClient` does."""
        self.told.append((to, message.clocks))
        return ClockFreeNoted()

    def is_free(self, clock: str) -> None:
        """Hear of a clock as a `ClockHolder` does."""
        self.told_here.append(clock)

    async def turn(
        self,
        holder: Contact,
        lease: int = 0,
        *,
        wants: bool = True,
        ends: bool = False,
        clock: str = CLOCK,
        page: str = "",
    ) -> ClockTurn:
        question = ClockQuestion(clock, lease, wants, ends, 0, 1, 0, 0.0, 1.0, page)
        return (await self.host.lease(LeaseClocks(holder, [question]))).turns[0]


class RulesOfOthers:
    """Reads the robots.txt for other peers as `SharedRules` does."""

    def __init__(self) -> None:
        self.record: RobotsRecord | None = None
        self.is_willing = True
        self.may_end = asyncio.Event()
        self.read_for: list[str] = []
        self.begun: list[str] = []

    def begin(self, url: str) -> None:
        self.begun.append(url)

    def known(self, url: str) -> RobotsRecord | None:
        return self.record

    def connections(self, url: str, record: RobotsRecord) -> int:
        return 6

    def may_read(self, url: str) -> bool:
        return self.is_willing

    async def read(self, url: str) -> None:
        self.read_for.append(url)
        await self.may_end.wait()


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    store = Store(tmp_path, 0.0)
    store.begin(BITS)
    yield Bench(store)
    store.close()


async def test_a_clock_is_leased_once_its_cell_is_open(bench: Bench) -> None:
    assert (await bench.turn(A)).lease
    assert 0 == (await bench.turn(B)).lease


async def test_a_peer_that_does_not_own_the_cell_names_the_owner(bench: Bench) -> None:
    bench.is_owner = False
    assert ClockTurn(0, CLOSED_WAIT_S, owner=FAR) == await bench.turn(A)


async def test_a_peer_that_may_have_slept_leases_nothing(bench: Bench) -> None:
    bench.is_awake = False
    assert 0 == (await bench.turn(A)).lease


async def test_the_name_of_a_site_is_no_clock(bench: Bench) -> None:
    with pytest.raises(MisbehaviorError, match="no shared clock"):
        await bench.turn(A, clock="example.org")


async def test_a_lease_moves_with_the_cell_as_the_wait_of_a_site(bench: Bench) -> None:
    await bench.turn(A)
    clocks = bench.frontier.clocks(bench.cell, NOW, 10)
    assert clocks is not None
    assert [(CLOCK, REST_S + 1.0)] == [(clock.site, pytest.approx(clock.wait_s)) for clock in clocks]
    bench.frontier.close(bench.cell)
    bench.frontier.open(bench.cell, NOW, hold=False)
    assert 0 == (await bench.turn(B)).lease


async def test_nothing_is_leased_before_leases_of_a_lost_owner_are_over(bench: Bench) -> None:
    bench.unsure_since = NOW - 2.0
    assert 0 == (await bench.turn(A)).lease
    assert REST_S - 2.0 + 1.0 == pytest.approx(bench.frontier.shared_rest_s(CLOCK, NOW))
    assert bench.frontier.is_held(bench.cell, NOW)


async def test_the_next_peer_in_turn_is_told_that_the_clock_is_free(bench: Bench) -> None:
    lease = (await bench.turn(A)).lease
    await bench.turn(B)
    await bench.turn(A, lease, wants=False, ends=True)
    await asyncio.gather(*bench.tasks)
    assert [(B, [CLOCK])] == bench.told
    lease = (await bench.turn(B)).lease
    await bench.turn(ME)
    await bench.turn(B, lease, wants=False, ends=True)
    assert [CLOCK] == bench.told_here


async def test_a_peer_that_ends_takes_a_lease_back_and_tells_nobody(bench: Bench) -> None:
    lease = (await bench.turn(A)).lease
    await bench.turn(B)
    bench.has_ended = True
    assert (await bench.turn(A, lease, wants=False, ends=True)).lease == 0
    assert not bench.tasks
    assert not bench.told


LEAF = leaf_contact(bytes(20))
OTHER_CLOCK = "ip 192.0.2.9"


def test_the_question_of_a_leaf_waits_for_its_turn_as_nobody_can_tell_it(bench: Bench) -> None:
    async def story() -> tuple[ClockTurn, float]:
        loop = asyncio.get_running_loop()
        lease = (await bench.turn(A)).lease
        asked = asyncio.create_task(bench.turn(LEAF))
        await asyncio.sleep(LEAF_WAIT_S / 2)
        assert not asked.done()
        assert not (await bench.turn(B)).lease, "it is behind the leaf"
        await bench.turn(A, lease, wants=False, ends=True)
        return await asked, loop.time()

    with world(0) as loop:
        turn, at = loop.run_until_complete(story())
    assert turn.lease
    assert at == pytest.approx(LEAF_WAIT_S / 2)
    assert [] == bench.tasks, "nobody is told"


def test_a_leaf_asks_again_at_once_after_a_wait_in_vain(bench: Bench) -> None:
    async def story() -> tuple[ClockTurn, float]:
        await bench.turn(A)
        return await bench.turn(LEAF), asyncio.get_running_loop().time()

    with world(0) as loop:
        turn, at = loop.run_until_complete(story())
    assert 0 == turn.lease
    assert turn.wait_s <= LEAF_AGAIN_S
    assert at == pytest.approx(LEAF_WAIT_S)
    assert not bench.host._leaves


def test_a_leaf_that_has_a_clock_hears_of_it_at_once_and_asks_again_soon_for_the_others(bench: Bench) -> None:
    async def story() -> tuple[list[ClockTurn], float]:
        await bench.turn(A)
        questions = [ClockQuestion(clock, 0, True, False, 0, 1, 0, 0.0, 1.0) for clock in (CLOCK, OTHER_CLOCK)]
        leased = await bench.host.lease(LeaseClocks(LEAF, questions))
        return leased.turns, asyncio.get_running_loop().time()

    with world(0) as loop:
        (waits, has), at = loop.run_until_complete(story())
    assert 0.0 == at
    assert has.lease
    assert 0 == waits.lease
    assert waits.wait_s <= LEAF_AGAIN_S


def test_a_leaf_that_is_called_for_one_clock_does_not_call_itself_for_another(bench: Bench) -> None:
    def question(clock: str, lease: int = 0, *, ends: bool = False, wait_s: float = 0.0) -> ClockQuestion:
        return ClockQuestion(clock, lease, not ends, ends, 0, 1, 4, wait_s, 0.0)

    async def ask(holder: Contact, *questions: ClockQuestion) -> list[ClockTurn]:
        return (await bench.host.lease(LeaseClocks(holder, [*questions]))).turns

    async def story() -> tuple[list[ClockTurn], float]:
        clocks = "host a.test", "host b.test"
        leases = [turn.lease for turn in await ask(B, *map(question, clocks))]
        await ask(B, *(question(*pair, ends=True, wait_s=30.0) for pair in zip(clocks, leases, strict=True)))
        await ask(A, question(clocks[1]))
        asked = asyncio.create_task(ask(LEAF, *map(question, clocks)))
        await asyncio.sleep(LEAF_WAIT_S / 2)
        await ask(A, question(clocks[0]))
        return await asked, asyncio.get_running_loop().time()

    with world(0) as loop:
        turns, at = loop.run_until_complete(story())
    assert [0, 0] == [turn.lease for turn in turns], "both clocks rest"
    assert at == pytest.approx(LEAF_WAIT_S)


def test_two_leaves_that_are_called_do_not_call_each_other_without_end(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each is the first to have one of two clocks that rest, and waits for both."""
    clocks, other, turns = ("ip 192.0.2.8", OTHER_CLOCK), leaf_contact(bytes([9]) * 20), 0
    answer = bench.host._turn

    def counted(*asked: Any, **options: Any) -> ClockTurn:
        nonlocal turns
        turns += 1
        assert turns < 1_000
        return answer(*asked, **options)

    async def ask(holder: Contact, *asked: str, lease: int = 0) -> list[ClockTurn]:
        questions = [ClockQuestion(clock, lease, not lease, bool(lease), 0, 1, 0, 30.0, 1.0) for clock in asked]
        return (await bench.host.lease(LeaseClocks(holder, questions))).turns

    async def story() -> tuple[list[ClockTurn], float]:
        for clock in clocks:
            (turn,) = await ask(A, clock)
            await ask(A, clock, lease=turn.lease)
        await asyncio.gather(ask(LEAF, clocks[0]), ask(other, clocks[1]))
        first, second = await asyncio.gather(ask(LEAF, *clocks), ask(other, *clocks))
        return [*first, *second], asyncio.get_running_loop().time()

    monkeypatch.setattr(bench.host, "_turn", counted)
    with world(0) as loop:
        both, at = loop.run_until_complete(story())
    assert not any(turn.lease for turn in both), "both clocks rest"
    assert at == pytest.approx(2 * LEAF_WAIT_S)
    assert turns < 50


def test_a_call_for_a_turn_answers_a_bounded_number_of_questions_of_a_leaf(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    clocks = [CLOCK, *(f"host {number}.test" for number in range(CLOCKS_MAX - 1))]
    answer, turns, calls = bench.host._turn, 0, 6

    def counted(*asked: Any, **options: Any) -> ClockTurn:
        nonlocal turns
        turns += 1
        return answer(*asked, **options)

    async def ask(holder: Contact, asked: list[str], lease: int = 0) -> list[ClockTurn]:
        questions = [ClockQuestion(clock, lease, not lease, bool(lease), 0, 1, 0, 30.0, 1.0) for clock in asked]
        return (await bench.host.lease(LeaseClocks(holder, questions))).turns

    async def story() -> tuple[list[bool], int, float]:
        leases = [turn.lease for turn in await ask(A, clocks)]
        asking = [asyncio.create_task(ask(LEAF, clocks)) for _ in range(calls)]
        await asyncio.sleep(LEAF_WAIT_S / 2)
        waiting = [not task.done() for task in asking]
        before = turns
        await ask(A, clocks[:1], leases[0])
        await asyncio.sleep(0.0)
        await asyncio.sleep(0.0)
        after = turns
        done = await asyncio.gather(*asking)
        at_once = [turn for turns, waited in zip(done, waiting, strict=True) if not waited for turn in turns]
        return waiting, after - before, min((turn.wait_s for turn in at_once), default=0.0)

    monkeypatch.setattr(bench.host, "_turn", counted)
    with world(0) as loop:
        waiting, answered, wait_s = loop.run_until_complete(story())
    assert LEAF_QUESTIONS_MAX == CLOCKS_MAX * sum(waiting)
    assert [True] * 4 + [False] * 2 == waiting
    assert LEAF_QUESTIONS_MAX >= answered - 1 > 0
    assert wait_s > LEAF_AGAIN_S, "the leaf is not to ask at once for all"


def test_a_leaf_that_gives_a_lease_back_to_a_peer_that_waits_asks_again_at_once(bench: Bench) -> None:
    async def story() -> tuple[ClockTurn, float]:
        lease = (await bench.turn(LEAF)).lease
        await bench.turn(A)
        return await bench.turn(LEAF, lease, ends=True), asyncio.get_running_loop().time()

    with world(0) as loop:
        turn, at = loop.run_until_complete(story())
    assert 0 == turn.lease
    assert turn.wait_s <= LEAF_AGAIN_S, "nobody can tell it when the clock is free"
    assert 0.0 == at


def test_a_leaf_that_gives_a_lease_back_waits_for_nothing(bench: Bench) -> None:
    async def story() -> float:
        lease = (await bench.turn(LEAF)).lease
        await bench.turn(LEAF, lease, wants=False, ends=True)
        bench.is_owner = False
        await bench.turn(LEAF, clock=OTHER_CLOCK)
        return asyncio.get_running_loop().time()

    with world(0) as loop:
        assert 0.0 == loop.run_until_complete(story())


async def test_a_clock_told_to_be_free_is_asked_for(bench: Bench) -> None:
    await bench.host.handlers()[ClockFree](ClockFree([CLOCK]))
    assert [CLOCK] == bench.told_here


PAGE = "http://a.test/page"
HOST_CLOCK = "host a.test"
RULES = RobotsRecord("http://a.test", b"user-agent: *", 0.0)


async def test_peers_wait_while_the_owner_reads_robots_txt_and_get_its_rules_with_their_leases(bench: Bench) -> None:
    rules = RulesOfOthers()
    bench.host.give_rules(rules)
    for peer in (A, B, A):
        assert ClockTurn(0, RULES_WAIT_S) == await bench.turn(peer, clock=HOST_CLOCK, page=PAGE)
    assert [PAGE] == rules.begun, "it counts before its task has begun"
    await asyncio.sleep(0)
    assert [PAGE] == rules.read_for, "one request serves all of them"
    assert not bench.told
    rules.record = RULES
    rules.may_end.set()
    await bench.finish_tasks()
    assert [(A, [HOST_CLOCK]), (B, [HOST_CLOCK])] == bench.told
    turns = [await bench.turn(peer, clock=HOST_CLOCK, page=PAGE) for peer in (A, B)]
    assert [RULES, RULES] == [turn.robots for turn in turns]
    assert all(turn.lease for turn in turns), "the host has several connections, by its rules"


async def test_a_peer_reads_robots_txt_itself_if_the_owner_cannot(bench: Bench) -> None:
    rules = RulesOfOthers()
    bench.host.give_rules(rules)
    await bench.turn(A, clock=HOST_CLOCK, page=PAGE)
    rules.may_end.set()
    await bench.finish_tasks()
    assert [(A, [HOST_CLOCK])] == bench.told
    rules.is_willing = False
    turn = await bench.turn(A, clock=HOST_CLOCK, page=PAGE)
    assert turn.lease
    assert turn.robots is None


async def test_no_robots_txt_is_read_for_the_clock_of_another_host(bench: Bench) -> None:
    rules = RulesOfOthers()
    bench.host.give_rules(rules)
    assert (await bench.turn(A, clock="host b.test", page=PAGE)).lease
    assert not bench.tasks
    rules.record = RULES
    assert (await bench.turn(A, clock="host c.test", page=PAGE)).robots is None


@pytest.mark.parametrize("page", ["x", "http://x", "http://A.test/", "http://a.test/#b"])
async def test_no_robots_txt_is_read_for_a_page_that_is_no_canonical_url(bench: Bench, page: str) -> None:
    """The lease is granted, as an error would take back the answers to all questions of the message."""
    bench.host.give_rules(RulesOfOthers())
    assert (await bench.turn(A, clock=HOST_CLOCK, page=page)).lease
    assert not bench.tasks


async def test_a_peer_that_ends_while_it_reads_tells_nobody(bench: Bench) -> None:
    bench.host.give_rules(RulesOfOthers())
    await bench.turn(A, clock=HOST_CLOCK, page=PAGE)
    (reading,) = bench.tasks
    await asyncio.sleep(0)
    reading.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reading
    assert [reading] == bench.tasks, "a task that is begun at the end of a peer would be an error"


async def test_the_own_pages_of_the_owner_wait_for_no_reading(bench: Bench) -> None:
    """They have a search of their own, which needs the clock."""
    bench.host.give_rules(RulesOfOthers())
    assert (await bench.turn(ME, clock=HOST_CLOCK, page=PAGE)).lease
    assert not bench.tasks
