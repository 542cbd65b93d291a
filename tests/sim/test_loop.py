"""The simulated world: virtual time, one order of events, and faults."""

import asyncio
import os
import subprocess
import sys
from typing import Any

import pytest

from sim.loop import SimLoop, world
from sim.network import DATAGRAMS_HELD_MAX, Host, Network
from sim.overlays import OverlaySwarm, simulate


class Inbox(asyncio.DatagramProtocol):
    """A protocol that records datagrams with their instants."""

    def __init__(self) -> None:
        self.received: list[tuple[float, bytes]] = []

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport: Any = transport

    def datagram_received(self, data: bytes, addr: Any) -> None:
        self.received.append((asyncio.get_running_loop().time(), data))


async def open_inbox(network: Network, ip: str) -> tuple[Host, Inbox]:
    host = network.host(ip)
    loop = asyncio.get_running_loop()
    _, inbox = await host.spawn(loop.create_datagram_endpoint(Inbox, local_addr=(ip, 1)))
    return host, inbox


def run(story: Any, seed: int = 1) -> Any:
    loop = SimLoop(seed)
    try:
        return loop.run_until_complete(story(loop))
    finally:
        loop.close()


def test_an_hour_takes_no_time_and_timers_fire_in_order() -> None:
    async def story(loop: SimLoop) -> list[tuple[str, float]]:
        fired: list[tuple[str, float]] = []

        async def wait(name: str, seconds: float) -> None:
            await asyncio.sleep(seconds)
            fired.append((name, loop.time()))

        async with asyncio.TaskGroup() as group:
            group.create_task(wait("late", 3600))
            group.create_task(wait("soon", 1))
        return fired

    assert run(story) == [("soon", 1.0), ("late", 3600.0)]


def test_canceled_timers_are_not_kept_until_their_instant_and_the_others_keep_their_order() -> None:
    timers, sounding = 10_000, 100

    async def story(loop: SimLoop) -> tuple[list[int], int]:
        fired: list[int] = []
        for number in range(timers):
            timer = loop.call_later(3600 - number % 7, fired.append, number)
            if number % sounding:
                timer.cancel()
                timer.cancel()  # A second time changes nothing.
        await asyncio.sleep(1)
        waiting = loop.waiting
        await asyncio.sleep(3600)
        return fired, waiting

    fired, waiting = run(story)
    assert fired == sorted(range(0, timers, sounding), key=lambda number: (-(number % 7), number))
    assert waiting < timers / 5


def test_waiting_for_less_than_the_clock_can_tell_ends() -> None:
    async def story(loop: SimLoop) -> None:
        await asyncio.sleep(16.387562390486657)
        end = loop.time() + 15.1
        while loop.time() < end + 1e-14:
            await asyncio.sleep(end + 1e-14 - loop.time() if loop.time() < end else 1e-16)

    run(story)


def test_waiting_for_what_cannot_happen_is_an_error() -> None:
    async def story(loop: SimLoop) -> None:
        await loop.create_future()

    loop = SimLoop()
    with pytest.raises(RuntimeError, match="nothing will ever happen"):
        loop.run_until_complete(story(loop))
    for task in asyncio.all_tasks(loop):
        task.cancel()
    loop.run_until_complete(asyncio.sleep(0))
    loop.close()


@pytest.mark.parametrize(
    ("condition", "value", "arrivals"),
    [("loss", 0.0, 100), ("loss", 1.0, 0), ("duplication", 1.0, 200)],
)
def test_datagrams_meet_the_conditions_of_the_network(condition: str, value: float, arrivals: int) -> None:
    async def story(loop: SimLoop) -> list[tuple[float, bytes]]:
        _, sender = await open_inbox(loop.network, "10.0.0.1")
        _, receiver = await open_inbox(loop.network, "10.0.0.2")
        setattr(loop.network.conditions, condition, value)
        for _ in range(100):
            sender.transport.sendto(b"x", ("10.0.0.2", 1))
        await asyncio.sleep(1)
        return receiver.received

    received = run(story)
    assert arrivals == len(received)
    assert all(0.02 <= at <= 0.04 for at, _ in received)


def test_a_cut_stops_both_ways_until_healed() -> None:
    async def story(loop: SimLoop) -> tuple[int, int]:
        _, a = await open_inbox(loop.network, "10.0.0.1")
        _, b = await open_inbox(loop.network, "10.0.0.2")
        loop.network.cut(["10.0.0.1"], ["10.0.0.2"])
        a.transport.sendto(b"lost", ("10.0.0.2", 1))
        b.transport.sendto(b"lost", ("10.0.0.1", 1))
        await asyncio.sleep(1)
        assert (a.received, b.received) == ([], [])
        loop.network.heal()
        a.transport.sendto(b"arrives", ("10.0.0.2", 1))
        b.transport.sendto(b"arrives", ("10.0.0.1", 1))
        await asyncio.sleep(1)
        return len(a.received), len(b.received)

    assert run(story) == (1, 1)


def test_a_killed_host_does_nothing_more_not_even_its_finally_blocks() -> None:
    done: list[str] = []

    async def work() -> None:
        try:
            while True:
                done.append("step")
                await asyncio.sleep(1)
        finally:
            done.append("cleaned up")

    async def story(loop: SimLoop) -> None:
        host = loop.network.host("10.0.0.1")
        host.spawn(work())
        await asyncio.sleep(2.5)
        loop.kill(host)
        await asyncio.sleep(10)
        assert done == ["step"] * 3

    run(story)


def test_a_port_is_used_once() -> None:
    async def story(loop: SimLoop) -> None:
        host, inbox = await open_inbox(loop.network, "10.0.0.1")
        endpoint = loop.create_datagram_endpoint(Inbox, local_addr=("10.0.0.1", 1))
        with pytest.raises(OSError, match="in use"):
            await host.spawn(endpoint)
        inbox.transport.close()
        await host.spawn(loop.create_datagram_endpoint(Inbox, local_addr=("10.0.0.1", 1)))

    run(story)


def test_sets_of_tasks_iterate_in_one_order() -> None:
    async def story(loop: SimLoop) -> list[int]:
        tasks = {loop.create_task(asyncio.sleep(n, n)) for n in range(50)}
        await asyncio.wait(tasks)
        return [task.result() for task in tasks]

    assert run(story) == run(story) == list(range(50))


async def troubled_life(swarm: OverlaySwarm) -> None:
    """A bit of everything that could come out in another order."""
    conditions = swarm.loop.network.conditions
    await swarm.grow(20)
    conditions.loss, conditions.duplication = 0.02, 0.02
    await swarm.wrong_owners(5)
    swarm.kill(5)
    await asyncio.sleep(20)
    await swarm.grow(3)
    await swarm.wrong_owners(5)


def test_same_seed_same_trace_in_another_process_under_another_hash_seed() -> None:
    here = simulate(troubled_life, seed=7)
    assert here == simulate(troubled_life, seed=7)
    assert here != simulate(troubled_life, seed=8)
    program = "from tests.sim.test_loop import simulate, troubled_life; print(simulate(troubled_life, 7))"
    for hash_seed in ("0", "4242"):
        environment = {"PYTHONHASHSEED": hash_seed, "PYTHONPATH": os.pathsep.join(sys.path)}
        command = [sys.executable, "-c", program]
        there = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True)
        assert here == there.stdout.strip()


def test_a_frozen_host_does_what_was_due_when_it_thaws_and_in_order() -> None:
    done: list[tuple[float, str]] = []

    async def work(loop: SimLoop, name: str, every_s: float) -> None:
        while True:
            await asyncio.sleep(every_s)
            done.append((loop.time(), name))

    async def story(loop: SimLoop) -> None:
        host = loop.network.host("10.0.0.1")
        host.spawn(work(loop, "slow", 3))
        host.spawn(work(loop, "quick", 2))
        await asyncio.sleep(0.5)
        loop.freeze(host)
        await asyncio.sleep(10)
        assert done == []
        loop.thaw(host)
        await asyncio.sleep(2.5)
        assert [name for _, name in done] == ["quick", "slow", "quick"]
        assert [at for at, _ in done] == pytest.approx([10.5, 10.5, 12.5], abs=0.01)

    run(story)


def test_a_frozen_host_keeps_so_many_datagrams_and_no_more() -> None:
    async def story(loop: SimLoop) -> tuple[int, int]:
        _, sender = await open_inbox(loop.network, "10.0.0.1")
        host, receiver = await open_inbox(loop.network, "10.0.0.2")
        loop.freeze(host)
        for _ in range(DATAGRAMS_HELD_MAX + 1):
            sender.transport.sendto(b"x", ("10.0.0.2", 1))
        await asyncio.sleep(1)
        before = len(receiver.received)
        loop.thaw(host)
        await asyncio.sleep(1)
        return before, len(receiver.received)

    assert run(story) == (0, DATAGRAMS_HELD_MAX)


def test_who_is_killed_while_frozen_stays_dead() -> None:
    done: list[str] = []

    async def work() -> None:
        await asyncio.sleep(1)
        done.append("step")

    async def story(loop: SimLoop) -> None:
        host = loop.network.host("10.0.0.1")
        host.spawn(work())
        await asyncio.sleep(0.5)
        loop.freeze(host)
        await asyncio.sleep(10)
        loop.kill(host)
        loop.thaw(host)
        await asyncio.sleep(10)
        assert done == []

    run(story)


def test_a_one_way_cut_lets_the_other_way_through() -> None:
    async def story(loop: SimLoop) -> tuple[int, int]:
        _, a = await open_inbox(loop.network, "10.0.0.1")
        _, b = await open_inbox(loop.network, "10.0.0.2")
        loop.network.cut(["10.0.0.1"], ["10.0.0.2"], one_way=True)
        a.transport.sendto(b"lost", ("10.0.0.2", 1))
        b.transport.sendto(b"arrives", ("10.0.0.1", 1))
        await asyncio.sleep(1)
        return len(a.received), len(b.received)

    assert run(story) == (1, 0)


def test_the_executor_takes_time_keeps_order_and_dies_with_its_host() -> None:
    called: list[tuple[str, float]] = []

    async def work(loop: SimLoop) -> None:
        async with asyncio.TaskGroup() as group:
            for name in ("first", "second", "last"):
                group.create_task(call(loop, name))

    async def call(loop: SimLoop, name: str) -> None:
        await loop.run_in_executor(None, lambda: called.append((name, loop.time())))

    async def story(loop: SimLoop) -> None:
        loop.network.conditions.disk_s = 1.0
        host = loop.network.host("10.0.0.1")
        host.spawn(work(loop))
        while len(called) < 2:
            await asyncio.sleep(0.01)
        loop.kill(host)
        await asyncio.sleep(10)

    run(story)
    (first, at), (second, later) = called
    assert (first, second) == ("first", "second")
    assert 1 <= at <= 2 < later <= 4


def test_what_the_executor_raises_reaches_the_caller() -> None:
    async def story(loop: SimLoop) -> None:
        with pytest.raises(ZeroDivisionError):
            await loop.run_in_executor(None, lambda: 1 / 0)

    run(story)


def test_an_error_in_a_protocol_is_reported_and_the_world_goes_on() -> None:
    class Broken(asyncio.DatagramProtocol):
        def datagram_received(self, data: bytes, addr: Any) -> None:
            raise ZeroDivisionError

    async def story(loop: SimLoop) -> list[Any]:
        errors: list[Any] = []
        loop.set_exception_handler(lambda _, context: errors.append(context["exception"]))
        _, sender = await open_inbox(loop.network, "10.0.0.1")
        host = loop.network.host("10.0.0.2")
        await host.spawn(loop.create_datagram_endpoint(Broken, local_addr=("10.0.0.2", 1)))
        sender.transport.sendto(b"x", ("10.0.0.2", 1))
        await asyncio.sleep(1)
        return errors

    assert [type(error) for error in run(story)] == [ZeroDivisionError]


def test_at_the_end_of_a_world_files_are_closed_without_waiting() -> None:
    closed: list[str] = []

    async def work() -> None:
        try:
            await asyncio.sleep(1000)
        finally:
            try:
                async with asyncio.TaskGroup() as group:
                    group.create_task(asyncio.sleep(1000))
            finally:
                await asyncio.sleep(1)
                closed.append("never")

    async def outer(name: str) -> None:
        try:
            await work()
        finally:
            closed.append(name)

    with world(1) as loop:

        async def story() -> None:
            killed = loop.network.host("10.0.0.1")
            killed.spawn(outer("killed"))
            loop.network.host("10.0.0.2").spawn(outer("unfinished"))
            await asyncio.sleep(1)
            loop.kill(killed)
            await asyncio.sleep(1)
            assert closed == []

        loop.run_until_complete(story())
    assert sorted(closed) == ["killed", "unfinished"]


def test_what_gathers_tasks_at_the_end_of_a_world_makes_no_other_loop() -> None:
    """Nobody closes such a loop, and the garbage collector warns of it later, in the middle of another test."""
    used: list[asyncio.AbstractEventLoop] = []

    async def work() -> None:
        try:
            await asyncio.sleep(1000)
        finally:
            used.append(asyncio.gather().get_loop())

    with world(1) as loop:

        async def story() -> None:
            loop.network.host("10.0.0.1").spawn(work())
            await asyncio.sleep(1)

        loop.run_until_complete(story())
    assert [loop] == used


def test_what_the_collector_cancels_after_the_end_has_no_effect() -> None:
    """An HTTP client of a dead machine cancels its look-ups of names when it is freed."""
    ran: list[int] = []
    with world(1) as loop:
        task = loop.create_task(asyncio.sleep(1), name="look up")
    task.cancel()
    assert loop.call_soon(ran.append, 1).cancelled()
    assert [] == ran
