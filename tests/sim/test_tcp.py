"""Simulated streams: ordered and whole, late under faults, and ended as real ones are."""

import asyncio
import math
import tracemalloc
import weakref
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from sim import tcp
from sim.loop import SimLoop, world
from sim.network import Host

CLIENT, SERVER = "10.0.0.1", "10.0.0.2"
STREAMS = 50
STREAM_BYTES_MAX = 3_000


class End(asyncio.Protocol):
    """A protocol that records the events of one end with their instants."""

    def __init__(self) -> None:
        self.loop = asyncio.get_running_loop()
        self.received: list[tuple[float, bytes]] = []
        self.ended = False
        self.lost: list[Exception | None] = []
        self.paused = False

    def connection_made(self, transport: Any) -> None:
        self.transport: Any = transport

    def data_received(self, data: bytes) -> None:
        self.received.append((self.loop.time(), data))

    def eof_received(self) -> None:
        self.ended = True

    def pause_writing(self) -> None:
        self.paused = True

    def resume_writing(self) -> None:
        self.paused = False

    def connection_lost(self, exc: Exception | None) -> None:
        self.lost.append(exc)

    @property
    def text(self) -> bytes:
        return b"".join(data for _, data in self.received)


class Line:
    """Two hosts and, once `connected`, a stream between them."""

    def __init__(self, loop: SimLoop) -> None:
        self.loop = loop
        self.client = loop.network.host(CLIENT)
        self.server = loop.network.host(SERVER)
        self.far_ends: list[End] = []

    def accept(self) -> End:
        self.far_ends.append(End())
        return self.far_ends[-1]

    async def listen(self) -> Any:
        return await self.server.spawn(self.loop.create_server(self.accept, SERVER, 80))

    async def connect(self) -> End:
        _, end = await self.client.spawn(self.loop.create_connection(End, SERVER, 80))
        assert isinstance(end, End)
        return end

    async def connected(self) -> tuple[End, End]:
        await self.listen()
        near = await self.connect()
        await asyncio.sleep(0.1)
        return near, self.far_ends[0]


def run_on_line(story: Callable[[Line], Awaitable[Any]], seed: int = 1) -> Any:
    with world(seed) as loop:
        errors: list[Any] = []
        loop.set_exception_handler(lambda _, context: errors.append(context))

        async def told() -> Any:
            return await story(Line(loop))

        result = loop.run_until_complete(told())
        assert errors == []
        return result


@pytest.mark.parametrize("loss", [0.0, 0.3, 1.0])
def test_bytes_arrive_all_and_in_order_and_loss_is_only_delay(loss: float) -> None:
    async def story(line: Line) -> float:
        near, far = await line.connected()
        line.loop.network.conditions.loss = loss
        began = line.loop.time()
        for number in range(200):
            near.transport.write(b"%d," % number)
        await asyncio.sleep(60)
        assert far.text == b"".join(b"%d," % number for number in range(200))
        return far.received[-1][0] - began

    assert (run_on_line(story) > tcp.RESEND_S) == (loss > 0)


def test_bandwidth_stretches_what_is_long() -> None:
    async def story(line: Line) -> float:
        near, far = await line.connected()
        line.loop.network.conditions.bandwidth_bytes_s = 1000
        began = line.loop.time()
        for _ in range(5):
            near.transport.write(bytes(1000))
        await asyncio.sleep(10)
        assert len(far.text) == 5000
        return far.received[-1][0] - began

    assert 5 < run_on_line(story) < 5.1


@pytest.mark.parametrize("one_way", [False, True])
def test_a_cut_holds_bytes_back_until_it_is_healed(one_way: bool) -> None:
    async def story(line: Line) -> None:
        near, far = await line.connected()
        line.loop.network.cut([CLIENT], [SERVER], one_way=one_way)
        near.transport.write(b"a")
        near.transport.write(b"b")
        far.transport.write(b"c")
        await asyncio.sleep(5)
        assert (far.text, near.text) == (b"", b"c" if one_way else b"")
        line.loop.network.heal()
        near.transport.write(b"d")
        await asyncio.sleep(2 * tcp.RESEND_MAX_S)
        assert (far.text, near.text) == (b"abd", b"c")

    run_on_line(story)


def test_a_cut_that_lasts_ends_the_stream_for_the_one_who_writes() -> None:
    async def story(line: Line) -> None:
        near, far = await line.connected()
        line.loop.network.cut([CLIENT], [SERVER])
        near.transport.write(b"x")
        await asyncio.sleep(tcp.GIVE_UP_S + tcp.RESEND_MAX_S + 1)
        assert [type(error) for error in near.lost] == [TimeoutError]
        assert far.lost == []

    run_on_line(story)


def test_nobody_connects_where_nobody_listens() -> None:
    async def story(line: Line) -> None:
        with pytest.raises(ConnectionRefusedError):
            await line.connect()
        listener = await line.listen()
        assert (listener.getsockname(), listener.is_serving()) == ((SERVER, 80), True)
        await line.connect()
        with pytest.raises(OSError, match="in use"):
            await line.listen()
        line.loop.kill(line.server)
        with pytest.raises(ConnectionRefusedError):
            await line.connect()

    run_on_line(story)


def test_a_closed_listener_lets_nobody_in_and_its_port_go() -> None:
    async def story(line: Line) -> None:
        listener = await line.listen()
        listener.close()
        with pytest.raises(ConnectionRefusedError):
            await line.connect()
        await line.listen()

    run_on_line(story)


@pytest.mark.parametrize("from_side", [CLIENT, SERVER])
def test_connecting_takes_both_ways_and_gives_up_in_the_end(from_side: str) -> None:
    async def story(line: Line) -> float:
        await line.listen()
        line.loop.network.cut([from_side], [SERVER if from_side == CLIENT else CLIENT], one_way=True)
        with pytest.raises(TimeoutError):
            await line.connect()
        return line.loop.time()

    assert 60 < run_on_line(story) <= tcp.CONNECT_GIVE_UP_S + 1


def test_a_cut_healed_in_time_only_delays_the_connection() -> None:
    async def story(line: Line) -> None:
        await line.listen()
        line.loop.network.cut([CLIENT], [SERVER])
        line.loop.call_later(5, line.loop.network.heal)
        await line.connect()
        assert 5 < line.loop.time() < 20

    run_on_line(story)


def test_a_killed_host_resets_its_streams_after_what_it_wrote() -> None:
    async def story(line: Line) -> None:
        near, far = await line.connected()
        far.transport.write(b"last words")
        line.loop.kill(line.server)
        await asyncio.sleep(1)
        assert near.text == b"last words"
        assert [type(error) for error in near.lost] == [ConnectionResetError]
        assert far.lost == []

    run_on_line(story)


def test_close_lets_the_other_end_read_to_the_end() -> None:
    async def story(line: Line) -> None:
        near, far = await line.connected()
        near.transport.write(b"all")
        near.transport.close()
        await asyncio.sleep(1)
        assert (far.text, far.ended, far.lost, near.lost) == (b"all", True, [None], [None])

    run_on_line(story)


def test_half_a_stream_may_be_closed() -> None:
    async def story(line: Line) -> None:
        near, far = await line.connected()
        far.eof_received = lambda: True  # type: ignore[method-assign, assignment]
        near.transport.write_eof()
        await asyncio.sleep(1)
        far.transport.write(b"still here")
        far.transport.close()
        await asyncio.sleep(1)
        assert (near.text, near.lost) == (b"still here", [None])

    run_on_line(story)


def test_what_is_written_to_a_closed_end_is_answered_by_a_reset() -> None:
    async def story(line: Line) -> None:
        near, far = await line.connected()
        far.eof_received = lambda: True  # type: ignore[method-assign, assignment]
        near.transport.close()
        await asyncio.sleep(1)
        far.transport.write(b"anybody there?")
        await asyncio.sleep(1)
        assert [type(error) for error in far.lost] == [ConnectionResetError]

    run_on_line(story)


def test_abort_resets() -> None:
    async def story(line: Line) -> None:
        near, far = await line.connected()
        near.transport.abort()
        await asyncio.sleep(1)
        assert ([type(error) for error in far.lost], near.lost) == ([ConnectionResetError], [None])

    run_on_line(story)


def slow(host: Host) -> None:
    host.read_bytes_s = 40_000


def frozen(host: Host) -> None:
    host.freeze()


@pytest.mark.parametrize("hinder", [slow, frozen])
def test_who_writes_feels_who_does_not_read(hinder: Callable[[Host], None]) -> None:
    async def story(line: Line) -> None:
        near, far = await line.connected()
        hinder(line.server)
        near.transport.write(bytes(tcp.WINDOW_BYTES + tcp.HIGH_BYTES))
        assert not near.paused
        near.transport.write(b"x")
        assert near.paused
        await asyncio.sleep(1)
        assert near.paused
        line.loop.thaw(line.server)
        await asyncio.sleep(10)
        assert not near.paused
        assert len(far.text) == tcp.WINDOW_BYTES + tcp.HIGH_BYTES + 1

    run_on_line(story)


def test_a_slow_reader_reads_at_its_pace() -> None:
    async def story(line: Line) -> list[float]:
        near, far = await line.connected()
        line.server.read_bytes_s = 1000
        near.transport.write(bytes(3000))
        await asyncio.sleep(10)
        assert len(far.text) == 3000
        return [at for at, _ in far.received]

    times = run_on_line(story)
    assert 2.5 < times[-1] - times[0] < 3.1


def test_a_reader_may_pause() -> None:
    async def story(line: Line) -> None:
        near, far = await line.connected()
        far.transport.pause_reading()
        near.transport.write(b"later")
        await asyncio.sleep(1)
        assert far.received == []
        far.transport.resume_reading()
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert far.text == b"later"

    run_on_line(story)


def test_a_frozen_host_takes_connections_and_bytes_and_answers_thawed() -> None:
    async def story(line: Line) -> None:
        await line.listen()
        line.loop.freeze(line.server)
        near = await line.connect()
        near.transport.write(b"hello")
        await asyncio.sleep(60)
        assert line.far_ends == []
        line.loop.thaw(line.server)
        await asyncio.sleep(1)
        assert [end.text for end in line.far_ends] == [b"hello"]

    run_on_line(story)


def test_streams_enter_the_trace() -> None:
    async def story(line: Line, text: bytes) -> str:
        near, _ = await line.connected()
        near.transport.write(text)
        await asyncio.sleep(1)
        return line.loop.network.trace()

    traces = [run_on_line(partial(story, text=text)) for text in (b"one", b"one", b"two")]
    assert traces[0] == traces[1] != traces[2]


def test_aiohttp_runs_on_it_unmodified() -> None:
    async def hello(request: web.BaseRequest) -> web.Response:
        return web.Response(body=await request.read())

    async def serve() -> None:
        runner = web.ServerRunner(web.Server(hello))
        await runner.setup()
        await web.TCPSite(runner, SERVER, 80).start()

    async def ask() -> bytes:
        async with (
            aiohttp.ClientSession(connector=aiohttp.TCPConnector(resolver=aiohttp.ThreadedResolver())) as session,
            session.post(f"http://{SERVER}/", data=b"x" * 1_000_000) as response,
        ):
            return await response.read()

    async def story(line: Line) -> None:
        await line.server.spawn(serve())
        assert len(await line.client.spawn(ask())) == 1_000_000

    run_on_line(story)


def test_a_stream_that_both_ends_have_lost_is_freed_without_the_garbage_collector() -> None:
    async def story(line: Line) -> None:
        near, far = await line.connected()
        ends = [weakref.ref(end.transport) for end in (near, far)]
        near.transport.close()
        far.transport.abort()
        await asyncio.sleep(1)
        del near.transport, far.transport
        line.far_ends.clear()
        assert [end() for end in ends] == [None, None]

    run_on_line(story)


def test_a_host_that_reads_fast_again_first_reads_what_it_has() -> None:
    async def story(line: Line) -> None:
        near, far = await line.connected()
        line.server.read_bytes_s = 10.0
        near.transport.write(b"slow and ")
        await asyncio.sleep(0.1)
        line.server.read_bytes_s = math.inf
        near.transport.write(b"steady")
        await asyncio.sleep(5)
        assert far.text == b"slow and steady"

    run_on_line(story)


def test_a_stream_takes_little_memory() -> None:
    """A large swarm has dozens of streams a peer. Empty queues made with each took 3 kB more."""

    async def story(line: Line) -> int:
        await line.connected()
        tracemalloc.start()
        try:
            ends = [await line.connect() for _ in range(STREAMS)]
            await asyncio.sleep(1)
            return tracemalloc.get_traced_memory()[0] // len(ends)
        finally:
            tracemalloc.stop()

    assert run_on_line(story) < STREAM_BYTES_MAX
