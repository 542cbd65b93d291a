"""The unmodified peer in the simulated world: it crawls to the end, and everything can befall its machine."""

import asyncio
import os
import subprocess
import sys
import tempfile
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from kadcrawl import Peer
from kadcrawl.settings.job import Job
from kadcrawl.settings.limits import Limits
from sim.loop import world
from sim.machines import EPOCH, Machine, Machines, WebResolver
from sim.plan import Event, Kind, Plan
from sim.synthetic_web import SyntheticWeb
from sim.trial import Size, run
from sim.web_server import WebServer

WEB_IP = "198.18.0.1"
LIMITS = Limits(retry_base_s=1.0, robots_retry_s=1.0)
MEMORY = "/dev/shm" if Path("/dev/shm").is_dir() else None
ENOUGH_S = 600


def peer_of(machine: Machine) -> Peer:
    assert machine.peer is not None, f"{machine} runs no peer"
    return machine.peer


class World:
    """Machines, a small web for them, and the web's log."""

    def __init__(self, machines: Machines, web: SyntheticWeb, server: WebServer, disks: Path) -> None:
        self.machines = machines
        self.disks = disks
        """The directory with the disks of all machines, by number."""
        self.loop = machines.loop
        self.web = web
        self.log = server.log

    async def grow(self, count: int) -> None:
        """Start the first machine, number 1, and let others join."""
        self.machines.start(1)
        for number in range(2, count + 1):
            await asyncio.sleep(0.5)
            self.machines.join(number)
        await self.until(lambda: all(machine.begun for machine in self.machines.live))

    async def until(self, condition: Callable[[], object]) -> None:
        async with asyncio.timeout(ENOUGH_S):
            while not condition():
                await asyncio.sleep(0.5)

    async def until_over(self) -> None:
        await self.until(lambda: all(machine.begun and peer_of(machine).ended for machine in self.machines.live))

    @property
    def urls(self) -> set[str]:
        return {line["url"] for machine in self.machines.machines.values() for line in machine.lines()}


@contextmanager
def opened(seed: int, exit_when_done: bool = False) -> Iterator[World]:
    with tempfile.TemporaryDirectory(dir=MEMORY) as directory, world(seed) as loop:
        web = SyntheticWeb(seed, sites=5, pages=40, seeds=2, addresses=(WEB_IP,))
        server = WebServer(web)
        with Machines(
            loop,
            web,
            job=Job(seeds=web.seeds, scope="any", delay_s=0.5),
            limits=LIMITS,
            seed=seed,
            directory=Path(directory) / "disks",
            exit_when_done=exit_when_done,
        ) as machines:
            host = loop.network.host(WEB_IP)
            loop.run_until_complete(host.spawn(loop.create_server(server.connect, WEB_IP, 80)))
            yield World(machines, web, server, Path(directory) / "disks")


def trace_of(story: Callable[[World], Awaitable[Any]], seed: int = 1, exit_when_done: bool = False) -> str:
    """Let a story happen and return its trace. An error in any peer fails it."""
    with opened(seed, exit_when_done) as here:
        here.loop.run_until_complete(story(here))
        trace = here.loop.network.trace()
        machines = here.machines
    assert machines.errors == []
    return trace


async def grow_and_crawl(here: World) -> None:
    await here.grow(4)
    await here.until_over()


async def troubled_crawl(here: World) -> None:
    """A bit of everything that could come out in another order."""
    machines, conditions = here.machines, here.loop.network.conditions
    await here.grow(5)
    conditions.loss, conditions.duplication = 0.02, 0.02
    machines.kill(2)
    machines.freeze(3)
    machines.machines[4].host.read_bytes_s = 10_000
    await asyncio.sleep(3)
    machines.join(2, "same")
    machines.thaw(3)
    machines.leave(5)
    await asyncio.sleep(10)


def test_a_swarm_crawls_a_web_to_its_end_in_virtual_time() -> None:
    with opened(1) as here:
        here.loop.run_until_complete(grow_and_crawl(here))
        truth, machines = set(here.web.truth()), here.machines
        took_s = here.loop.time()
    assert {url for url in here.urls if url in truth} == truth
    assert machines.errors == []
    assert 5 < took_s < ENOUGH_S
    assert {machine.end for machine in machines.machines.values()} == {"killed"}


def test_a_peer_that_cannot_begin_is_an_error_of_the_world_and_not_a_machine_that_tries_for_ever() -> None:
    async def story(here: World) -> None:
        await here.grow(2)
        here.machines.kill(2)
        for journal in here.disks.glob("2/*/peer.sqlite"):
            journal.write_bytes(b"no journal" * 1000)
            journal.with_name(f"{journal.name}-wal").unlink(missing_ok=True)
        here.machines.join(2, "same")
        await here.until(lambda: here.machines.errors)

    with opened(1) as here:
        here.loop.run_until_complete(story(here))
        assert "machine 2 cannot begin" in here.machines.errors[0]
        assert "peer.sqlite" in here.machines.errors[0]


def test_pages_are_dated_by_the_world_and_not_by_our_clocks() -> None:
    with opened(1) as here:
        here.loop.run_until_complete(grow_and_crawl(here))
    dates = [line["fetched_at"] for machine in here.machines.machines.values() for line in machine.lines()]
    assert all(date.startswith("2026-01-01T00:") for date in dates)


def test_a_clock_that_jumped_is_what_the_next_peer_is_given() -> None:
    async def story(here: World) -> None:
        await here.grow(2)
        here.machines.jump(2, 3600)
        here.machines.kill(2)
        here.machines.join(2, "same")
        await here.until(lambda: here.machines.machines[2].begun)
        first, second = map(peer_of, here.machines.live)
        assert first.clock.now() == pytest.approx(EPOCH + here.loop.time())
        assert second.clock.now() == pytest.approx(EPOCH + here.loop.time() + 3600)

    trace_of(story)


@pytest.mark.parametrize("disk", ["same", "old", "none"])
def test_a_killed_machine_comes_back_on_the_disk_it_is_given(disk: Any) -> None:
    async def story(here: World) -> None:
        await here.grow(3)
        before = peer_of(here.machines.machines[2]).contact
        here.machines.snapshot(2)
        await asyncio.sleep(2)
        here.machines.kill(2)
        assert not here.machines.machines[2].alive
        await asyncio.sleep(8)
        here.machines.join(2, disk)
        await here.until(lambda: here.machines.machines[2].begun)
        after = peer_of(here.machines.machines[2]).contact
        assert (after.id == before.id) == (disk != "none")
        assert here.machines.machines[2].incarnations == 2
        await here.until_over()

    trace_of(story)


def test_a_kill_loses_what_was_not_synced() -> None:
    async def story(here: World) -> None:
        await here.grow(6)
        sizes = []
        for machine in here.machines.live[1:]:
            (machine.disk.directory / "not-synced").write_bytes(bytes(1000))
            here.machines.kill(machine.number)
            here.machines.join(machine.number, "same")
            sizes.append((machine.disk.directory / "not-synced").stat().st_size)
        assert min(sizes) < 1000

    trace_of(story)


def test_a_kill_is_noticed_by_all_and_stops_everything_there() -> None:
    async def story(here: World) -> None:
        await here.grow(3)
        victim = here.machines.machines[3]
        peer = peer_of(victim)
        here.machines.kill(3)
        seen = len(here.log)
        await here.until(lambda: all(len(peer_of(machine).overlay.contacts()) == 1 for machine in here.machines.live))
        assert not [request for request in here.log[seen + 1 :] if request.peer == victim.host.ip]
        assert victim.end == "killed"
        assert peer.store is not None, "nobody cleaned up after it"

    trace_of(story)


def test_a_frozen_machine_does_nothing_until_it_thaws() -> None:
    async def story(here: World) -> None:
        await here.grow(3)
        here.machines.freeze(2)
        await asyncio.sleep(1)
        seen = len(here.log)
        await asyncio.sleep(20)
        ip = here.machines.machines[2].host.ip
        assert not [request for request in here.log[seen:] if request.peer == ip]
        here.machines.thaw(2)
        await here.until_over()

    trace_of(story)


def test_a_machine_that_leaves_ends_by_itself() -> None:
    async def story(here: World) -> None:
        await here.grow(3)
        here.machines.leave(2)
        await here.until(lambda: not here.machines.machines[2].alive)
        assert here.machines.machines[2].end == "left"
        await here.until_over()

    trace_of(story)


def test_peers_may_exit_when_all_is_done() -> None:
    async def story(here: World) -> None:
        await here.grow(3)
        await here.until(lambda: not here.machines.live)
        assert {machine.end for machine in here.machines.machines.values()} == {"done"}

    trace_of(story, exit_when_done=True)


def test_a_machine_that_finds_nobody_yet_tries_until_somebody_is_there() -> None:
    async def story(here: World) -> None:
        await here.grow(2)
        here.loop.network.cut([here.machines.machines[1].host.ip, here.machines.machines[2].host.ip], ["10.0.0.4"])
        here.machines.join(3)
        await asyncio.sleep(20)
        assert not here.machines.machines[3].begun
        here.loop.network.heal()
        await here.until(lambda: here.machines.machines[3].begun)

    trace_of(story)


def test_if_all_die_the_first_to_return_begins_and_the_others_join_it() -> None:
    async def story(here: World) -> None:
        await here.grow(3)
        for number in (1, 2, 3):
            here.machines.kill(number)
        here.machines.join(2, "same")
        here.machines.join(1, "same")
        here.machines.join(3, "same")
        await here.until_over()
        assert [len(peer_of(machine).overlay.contacts()) for machine in here.machines.live] == [2, 2, 2]

    trace_of(story)


def test_what_goes_wrong_in_a_peer_is_noted() -> None:
    async def story(here: World) -> None:
        async def bug() -> None:
            raise ZeroDivisionError

        await here.grow(1)
        machine = here.machines.machines[1]
        task = machine.host.spawn(bug(), name="bug")
        await asyncio.wait([task])
        del task
        peer_of(machine)._group.create_task(bug(), context=machine.host.context.copy())
        await here.until(lambda: not machine.alive)

    with opened(1) as here:
        here.loop.run_until_complete(story(here))
        errors = here.machines.errors
    # Whether the first, which nobody waits for, is told before the end is the garbage collector's affair.
    assert 1 <= len(errors) <= 2
    assert "ZeroDivisionError" in errors[-1]
    assert "10.0.0.2" in errors[-1]


def test_a_full_disk_ends_no_other_peer() -> None:
    async def story(here: World) -> None:
        await here.grow(3)
        here.machines.full(2, True)
        await asyncio.sleep(10)
        assert [machine.number for machine in here.machines.live if machine.number != 2] == [1, 3]
        here.machines.full(2, False)
        if not here.machines.machines[2].alive:
            here.machines.join(2, "same")
        await here.until_over()

    trace_of(story)


@pytest.mark.worlds
@pytest.mark.parametrize("at_s", [1.2, 2.1])
@pytest.mark.parametrize("kind", [Kind.KILL, Kind.FULL])
def test_another_machine_streams_the_seeds_if_the_first_dies_meanwhile(kind: Kind, at_s: float) -> None:
    """World 512035 never ended: the disk of the first machine was full."""
    ends = (Event(at_s, kind, (0,), for_s=6.0 if kind is Kind.FULL else 0.0),)
    assert {} == run(Plan(113, 16, ends, streamed=True), Size(pages=30)).violations


def test_names_are_asked_of_the_web() -> None:
    web = SyntheticWeb(1, sites=1, pages=1, addresses=(WEB_IP,))
    resolver = WebResolver(web)
    with world(1) as loop:
        found = loop.run_until_complete(resolver.resolve(web.sites[0].host, 80))
        assert [WEB_IP] == [address["host"] for address in found]
        with pytest.raises(OSError, match="no such host"):
            loop.run_until_complete(resolver.resolve("nowhere.example"))


@pytest.mark.worlds
def test_same_seed_same_trace_in_another_process_under_another_hash_seed() -> None:
    here = trace_of(troubled_crawl, 7)
    assert here == trace_of(troubled_crawl, 7)
    assert here != trace_of(troubled_crawl, 8)
    program = "from tests.sim.test_machines import trace_of, troubled_crawl; print(trace_of(troubled_crawl, 7))"
    for hash_seed in ("0", "4242"):
        environment = {"PYTHONHASHSEED": hash_seed, "PYTHONPATH": os.pathsep.join(sys.path)}
        command = [sys.executable, "-c", program]
        there = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True)
        assert here == there.stdout.strip()
