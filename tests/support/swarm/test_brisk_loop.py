"""The loop of the peers' tests: waiting is left out of it, work is not, and the order of events is the usual one."""

import asyncio
import selectors
import socket
import sys
import time

import pytest

from tests.support.swarm.brisk_loop import BriskLoop, BriskSelector, stall


@pytest.fixture
def loop() -> BriskLoop:
    return BriskLoop()


def test_most_of_a_long_wait_is_left_out(loop: BriskLoop) -> None:
    with asyncio.Runner(loop_factory=lambda: loop) as runner:
        began = loop.time()
        runner.run(asyncio.sleep(10.0))
        assert 10.0 <= loop.time() - began
        assert 5.0 < loop.left_out_s < 10.0


def test_timers_come_in_their_order_whoever_set_them(loop: BriskLoop) -> None:
    seen: list[float] = []

    async def after(seconds: float) -> None:
        await asyncio.sleep(seconds)
        seen.append(seconds)

    async def all_() -> None:
        await asyncio.gather(*(after(seconds) for seconds in (0.9, 0.1, 1.2, 0.4)))

    with asyncio.Runner(loop_factory=lambda: loop) as runner:
        runner.run(all_())
    assert [0.1, 0.4, 0.9, 1.2] == seen


def test_what_is_sent_is_there_before_any_timer(loop: BriskLoop) -> None:
    async def talk() -> bytes:
        async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            for _ in range(100):
                writer.write(await reader.readexactly(1))
            writer.close()

        async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
            reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
            async with asyncio.timeout(60.0):
                heard = b""
                for _ in range(100):
                    writer.write(b"x")
                    heard += await reader.readexactly(1)
            writer.close()
        return heard

    with asyncio.Runner(loop_factory=lambda: loop) as runner:
        assert 100 * b"x" == runner.run(talk())


def test_no_time_is_left_out_while_a_busy_machine_hands_over_what_was_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    select = selectors.DefaultSelector.select

    def delayed(self: selectors.DefaultSelector, timeout: float | None = None) -> object:
        time.sleep(0.02)
        return select(self, timeout)

    monkeypatch.setattr(selectors.DefaultSelector, "select", delayed)
    selector = BriskSelector(lambda: False)
    one, other = socket.socketpair()
    with selector, one, other:
        selector.register(one, selectors.EVENT_READ)
        other.send(b"x")
        assert [one] == [key.fileobj for key, _ in selector.select(10.0)]
        assert 0.0 == selector.left_out_s
        one.recv(1)
        assert [] == selector.select(0.1)
        assert selector.left_out_s > 0.0


def test_a_stall_passes_on_the_clock_before_anything_runs(loop: BriskLoop) -> None:
    async def stalled() -> None:
        began = loop.time()
        seen: list[int] = []
        loop.call_later(50.0, seen.append, 50)
        stall(60.0)
        assert loop.time() >= began + 60.0
        await asyncio.sleep(1.0)
        assert [50] == seen

    with asyncio.Runner(loop_factory=lambda: loop) as runner:
        runner.run(stalled())


def test_threads_and_processes_have_their_time(loop: BriskLoop) -> None:
    async def others() -> None:
        async with asyncio.timeout(60.0):
            await asyncio.to_thread(time.sleep, 0.2)
        in_thread = loop.left_out_s
        process = await asyncio.create_subprocess_exec(sys.executable, "-c", "import time; time.sleep(0.2)")
        before = loop.left_out_s
        async with asyncio.timeout(60.0):
            await process.wait()
        assert before == loop.left_out_s
        assert in_thread < 1.0
        await asyncio.sleep(1.0)
        assert loop.left_out_s > before

    with asyncio.Runner(loop_factory=lambda: loop) as runner:
        runner.run(others())


def test_those_who_begin_later_have_the_same_time(loop: BriskLoop) -> None:
    early = time.time()
    with asyncio.Runner(loop_factory=lambda: loop) as runner:
        first = loop.wall()
        assert first - early < 60.0
        runner.run(asyncio.sleep(2.0))
        assert loop.wall() - first >= 2.0
