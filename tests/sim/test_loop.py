"""The simulated world: virtual time, one order of events, and faults."""

import asyncio
import os
import subprocess
import sys
from typing import Any

import pytest

from sim.loop import SimLoop
from sim.network import Host, Network
from sim.overlays import Swarm, simulate


class Inbox(asyncio.DatagramProtocol):
    """Keeps what arrives and when."""

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


async def troubled_life(swarm: Swarm) -> None:
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
