"""One kept connection to a peer: deadlines that pass on it, and how it ends."""

import asyncio
import gc
import weakref
from typing import Any

import pytest

from kadcrawl.errors import RemoteError
from kadcrawl.link import client_connection, server_connection
from kadcrawl.link.client_connection import IN_FLIGHT_MAX
from kadcrawl.link.wire.codec import pack
from kadcrawl.link.wire.messages import Hello, Message, Ok, Refused
from tests.support.links.link_ends import Gate, link, server_frame, serving, shake_hands
from tests.support.waiting import until

# --- deadlines


@pytest.mark.parametrize(("small_bytes", "limits"), [(4096, []), (100, [1234.0])])
async def test_only_an_answer_that_may_wait_for_its_reader_has_a_time_limit(
    small_bytes: int, limits: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    set_limits: list[float | None] = []
    timeout = asyncio.timeout

    def noted(seconds: float | None) -> asyncio.Timeout:
        set_limits.append(seconds)
        return timeout(seconds)

    async def refuse(_: Hello) -> Message:
        return Refused("x" * 900)

    monkeypatch.setattr(server_connection, "SMALL_BYTES", small_bytes)
    monkeypatch.setattr(server_connection, "SEND_S", 1234.0)
    monkeypatch.setattr(asyncio, "timeout", noted)
    async with link(slow=refuse) as (_, client, address):
        with pytest.raises(RemoteError, match="xxx"):
            await client.ask(address, Hello(1), Ok, 60)
        assert limits == [seconds for seconds in set_limits if seconds == 1234.0]


async def test_silence_is_a_remote_error_at_the_deadline() -> None:
    async def never(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()

    async with serving(never) as (client, address):
        with pytest.raises(RemoteError, match="no answer"):
            await client.ask(address, Hello(1), Ok, 0.05)
        await until(lambda: not client._tasks)


async def test_a_dialling_others_wait_for_outlives_a_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_connection, "SILENT_MIN_S", 0.01)
    ready = asyncio.Event()

    async def late(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await ready.wait()
        await shake_hands(reader, writer)
        await reader.readexactly(6 + 8 + len(pack(Hello(1))))
        writer.write(server_frame((1).to_bytes(8, "big") + pack(Ok())))
        await reader.read()
        writer.close()

    async with serving(late) as (client, address):
        patient = asyncio.create_task(client.ask(address, Hello(1), Ok, 60))
        with pytest.raises(RemoteError, match="no answer"):
            await client.ask(address, Hello(1), Ok, 0.05)
        ready.set()
        assert Ok() == await patient


async def test_a_silent_connection_is_given_up_with_all_requests_that_wait(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(client_connection, "SILENT_MIN_S", 0.01)
    gate = Gate()
    async with link(slow=gate) as (_, client, address):
        other = asyncio.create_task(client.ask(address, Hello(1), Ok, 60))
        await until(lambda: gate.inside == 1)
        with pytest.raises(RemoteError, match="no answer within"):
            await client.ask(address, Hello(1), Ok, 0.05)
        with pytest.raises(RemoteError, match=r"is silent \[Hello\]"):
            await other
        gate.open()
        assert Ok() == await client.ask(address, Hello(1), Ok, 60)


async def test_a_connection_on_which_other_answers_come_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_connection, "SILENT_MIN_S", 0.01)
    gate = Gate()

    async def slow(hello: Hello) -> Message:
        return await gate(hello) if hello.version == 0 else Ok()

    async with link(slow=slow) as (server, client, address):
        unanswered = asyncio.create_task(client.ask(address, Hello(0), Ok, 1.0))
        patient = asyncio.create_task(client.ask(address, Hello(0), Ok, 60))
        await until(lambda: gate.inside == 2)
        assert Ok() == await client.ask(address, Hello(1), Ok, 60)
        with pytest.raises(RemoteError, match="no answer"):
            await unanswered
        gate.open()  # The late answer is for nobody.
        assert Ok() == await patient
        assert Ok() == await client.ask(address, Hello(1), Ok, 60)
        assert len(server._incoming) == 1


async def test_a_question_may_be_cancelled_and_the_connection_serves_on() -> None:
    gate = Gate()
    async with link(slow=gate) as (server, client, address):
        asks = [asyncio.create_task(client.ask(address, Hello(1), Ok, 60)) for _ in range(2 * IN_FLIGHT_MAX)]
        await until(lambda: gate.inside == IN_FLIGHT_MAX)
        last = asks.pop()
        for ask in asks:
            ask.cancel()
        assert all(
            isinstance(end, asyncio.CancelledError) for end in await asyncio.gather(*asks, return_exceptions=True)
        )
        gate.open()
        assert Ok() == await last
        assert len(server._incoming) == 1


# --- connections that end


async def test_the_end_of_the_other_end_is_a_remote_error_at_once() -> None:
    gate = Gate()
    async with link(slow=gate) as (server, client, address):
        asks = [asyncio.create_task(client.ask(address, Hello(1), Ok, 60)) for _ in range(3)]
        await until(lambda: gate.inside == 3)
        for one in list(server._incoming):
            one._transport.abort()
        for end in await asyncio.gather(*asks, return_exceptions=True):
            assert isinstance(end, RemoteError)
            assert "the connection is lost [Hello]" in str(end)
        gate.open()
        assert Ok() == await client.ask(address, Hello(1), Ok, 60)


async def test_a_peer_that_comes_back_is_asked_without_an_error() -> None:
    async with link() as (server, client, address):
        for _ in range(3):
            assert Ok() == await client.ask(address, Hello(1), Ok, 60)
            await server.close()
            await server.listen(*address)


async def test_a_connection_closed_before_the_question_was_sent_is_no_error() -> None:
    """Although nobody here has heard of it yet."""
    async with link() as (_, client, address):
        assert Ok() == await client.ask(address, Hello(1), Ok, 60)
        connected = client._connection((*address, None))
        assert connected._socket is not None
        connected._socket._writer.transport.close()
        assert Ok() == await client.ask(address, Hello(1), Ok, 60)
        assert client._connection((*address, None)) is not connected


async def test_a_closing_peer_lets_handlers_finish_and_says_goodbye(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kadcrawl.link.server.ANSWERS_S", 60.0)  # Another program may hold the machine meanwhile.
    gate = Gate()
    async with link(slow=gate) as (server, client, address):
        ask = asyncio.create_task(client.ask(address, Hello(1), Ok, 60))
        await until(lambda: gate.inside == 1)
        closing = asyncio.create_task(server.close())
        await asyncio.sleep(0)
        gate.open()
        assert Ok() == await ask
        await closing
        await until(lambda: not client._connections)


async def test_a_closing_peer_does_not_wait_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kadcrawl.link.server.ANSWERS_S", 0.05)
    gate = Gate()
    async with link(slow=gate) as (server, client, address):
        ask = asyncio.create_task(client.ask(address, Hello(1), Ok, 60))
        await until(lambda: gate.inside == 1)
        await server.close()
        with pytest.raises(RemoteError, match=r"closed the connection \(code 1001\)"):
            await ask
        assert not server._answering


async def test_a_closing_client_tells_who_waits() -> None:
    gate = Gate()
    async with link(slow=gate) as (_, client, address):
        ask = asyncio.create_task(client.ask(address, Hello(1), Ok, 60))
        await until(lambda: gate.inside == 1)
        await client.close()
        with pytest.raises(RemoteError, match="this peer ends"):
            await ask
        gate.open()


async def test_a_client_that_is_cancelled_as_it_closes_leaves_no_session_open() -> None:
    async def mute(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await shake_hands(reader, writer)
        await reader.read()  # It says no goodbye, so the client waits for it.
        writer.close()

    async with serving(mute) as (client, address):
        ask = asyncio.create_task(client.ask(address, Hello(1), Ok, 60))
        await until(lambda: any(one._socket is not None for one in client._connections.values()))
        session, closing = client._session, asyncio.create_task(client.close())
        with pytest.raises(RemoteError, match="this peer ends"):
            await ask
        assert session is not None
        assert not session.closed, "it closes after its connections"
        closing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await closing
        assert session.closed


async def test_the_dialler_closes_what_is_without_use_but_not_what_is_waited_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(client_connection, "KEPT_IDLE_S", 1.0)
    gate = Gate()
    async with link(slow=gate) as (server, client, address):
        ask = asyncio.create_task(client.ask(address, Hello(1), Ok, 60))
        await asyncio.sleep(4.0)
        assert len(client._connections) == len(server._incoming) == 1
        gate.open()
        assert Ok() == await ask
        await until(lambda: not client._tasks and not server._incoming)
        assert Ok() == await client.ask(address, Hello(1), Ok, 60)


async def test_a_dialler_that_vanished_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_connection, "SILENCE_MAX_S", 5.0)
    async with link() as (server, client, address):
        assert Ok() == await client.ask(address, Hello(1), Ok, 60)
        await until(lambda: not server._incoming and not client._connections)
        assert Ok() == await client.ask(address, Hello(1), Ok, 60)


async def test_nothing_is_left_behind(recwarn: pytest.WarningsRecorder, caplog: pytest.LogCaptureFixture) -> None:
    gate = Gate()
    async with link(slow=gate) as (_server, client, address):
        asks = [asyncio.create_task(client.ask(address, Hello(1), Ok, 60)) for _ in range(5)]
        await until(lambda: gate.inside == 5)
        asks.pop().cancel()
        await client.close()
        await asyncio.gather(*asks, return_exceptions=True)
        gate.open()
    await asyncio.sleep(0)
    assert {asyncio.current_task()} == asyncio.all_tasks()
    gc.collect()
    assert not recwarn.list
    assert not caplog.records


async def test_a_closed_connection_is_freed_without_the_garbage_collector() -> None:
    gc.collect()
    gc.disable()
    try:
        async with link() as (server, client, address):
            assert Ok() == await client.ask(address, Hello(1), Ok, 60)
            (connection,), (incoming,) = client._connections.values(), server._incoming
            ends: list[weakref.ref[Any]] = [weakref.ref(connection), weakref.ref(incoming)]
            del connection, incoming
            client.disconnect()
            await until(lambda: [end() for end in ends] == [None, None])
    finally:
        gc.enable()
