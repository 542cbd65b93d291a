"""Asking over TCP: every answer or none, and never anything but a RemoteError."""

import asyncio

import pytest

from kadcrawl.errors import ConfigError, DiskFullError, RemoteError, StorageError
from kadcrawl.link import client_connection
from kadcrawl.link.client_connection import IN_FLIGHT_MAX, PATIENT_MAX, BrokenError
from kadcrawl.link.wire.clock_messages import ClockQuestion, ClocksLeased, LeaseClocks
from kadcrawl.link.wire.codec import pack
from kadcrawl.link.wire.leaf_messages import leaf_contact
from kadcrawl.link.wire.messages import Accepted, Contact, GetStatus, Hello, Message, Offer, Ok, Refused, Welcome
from tests.support.links.link_ends import Gate, frames, link, serving, shake_hands
from tests.support.waiting import until


async def test_a_question_gets_its_answer() -> None:
    async with link() as (_, client, address):
        assert Ok() == await client.ask(address, Hello(1), Ok, 5)
        assert client.asked == 1


async def test_a_closed_client_asks_nobody_and_says_why() -> None:
    """Tasks of a peer that ends may still want to ask, when all connections are closed."""
    async with link() as (_, client, address):
        asked = asyncio.create_task(client.ask(address, Hello(1), Ok, 5))
        await client.close()
        with pytest.raises(RemoteError, match="as this peer ends"):
            await asked
        dialed = client.dialed
        with pytest.raises(RemoteError, match="as this peer ends"):
            await client.ask(address, Hello(1), Ok, 5)
        assert dialed == client.dialed


async def test_a_question_that_was_not_sent_before_the_client_closed_dials_nobody() -> None:
    gate = Gate()
    async with link(slow=gate) as (_, client, address):
        asks = [asyncio.create_task(client.ask(address, Hello(1), Ok, 60)) for _ in range(IN_FLIGHT_MAX + 1)]
        await until(lambda: gate.inside == IN_FLIGHT_MAX)
        gate.open()
        await client.close()
        ends = await asyncio.gather(*asks, return_exceptions=True)
        assert 1 == client.dialed
        assert all(end == Ok() or "as this peer ends" in str(end) for end in ends)
        assert "as this peer ends" in str(ends[-1])


async def test_a_refusal_is_a_remote_error_with_its_sentence() -> None:
    def refuse(hello: Hello) -> Message:
        raise ConfigError("not today")

    async with link(refuse) as (_, client, address):
        with pytest.raises(RemoteError, match="not today"):
            await client.ask(address, Hello(1), Ok, 5)


@pytest.mark.parametrize(("error", "said"), [(DiskFullError, "is full"), (StorageError, "cannot write to its disk")])
async def test_a_failing_disk_is_a_refusal_without_its_path(error: type[StorageError], said: str) -> None:
    def fail(hello: Hello) -> Message:
        raise error("cannot write to /home/somebody/crawl")

    async with link(fail) as (_, client, address):
        with pytest.raises(RemoteError, match=said) as caught:
            await client.ask(address, Hello(1), Ok, 5)
        assert "somebody" not in str(caught.value)


async def test_a_bug_in_a_handler_is_a_refusal_and_the_server_lives_on() -> None:
    def fail(hello: Hello) -> Message:
        raise ZeroDivisionError

    async with link(fail) as (_, client, address):
        for _ in range(2):
            with pytest.raises(RemoteError, match="an error of this peer"):
                await client.ask(address, Hello(1), Ok, 5)


async def test_an_answer_that_cannot_be_packed_is_a_bug_like_any_other() -> None:
    async with link(lambda hello: Welcome(object(), False, 0.0)) as (_, client, address):  # type: ignore[arg-type]
        with pytest.raises(RemoteError, match="an error of this peer"):
            await client.ask(address, Hello(1), Welcome, 5)


async def test_an_answer_of_another_kind_is_a_remote_error() -> None:
    async with link() as (_, client, address):
        with pytest.raises(RemoteError, match="malformed answer: Invalid value 'Ok'"):
            await client.ask(address, Hello(1), Welcome, 5)


async def test_a_question_nobody_handles_is_refused() -> None:
    async with link() as (_, client, address):
        with pytest.raises(RemoteError, match="does not answer GetStatus"):
            await client.ask(address, GetStatus(), Ok, 5)


async def test_nobody_there_is_a_remote_error() -> None:
    async with link() as (server, client, address):
        await server.close()
        with pytest.raises(RemoteError, match=r"cannot be reached.*\[Hello\]"):
            await client.ask(address, Hello(1), Ok, 5)


# --- many questions


async def test_many_questions_share_one_connection_and_are_answered_in_any_order() -> None:
    gates = [asyncio.Event() for _ in range(40)]

    async def slow(hello: Hello) -> Message:
        await gates[hello.version].wait()
        return Refused(str(hello.version))

    async with link(slow=slow) as (server, client, address):
        asks = [asyncio.create_task(client.ask(address, Hello(n), Refused, 60)) for n in range(40)]
        for n in reversed(range(40)):
            gates[n].set()
            with pytest.raises(RemoteError, match=f": {n}$"):
                await asks[n]
        assert len(server._incoming) == 1


async def test_no_more_than_the_bound_are_handled_at_a_time_and_all_are_answered() -> None:
    gate = Gate()
    async with link(slow=gate) as (_, client, address):
        asks = [asyncio.create_task(client.ask(address, Hello(1), Ok, 60)) for _ in range(3 * IN_FLIGHT_MAX)]
        await until(lambda: gate.inside == IN_FLIGHT_MAX)
        assert IN_FLIGHT_MAX == len(client._connections[*address, None]._waiting), "the asker keeps to it as well"
        gate.open()
        assert [Ok()] * len(asks) == await asyncio.gather(*asks)
        assert IN_FLIGHT_MAX == gate.most


async def test_an_asker_that_keeps_to_no_bound_is_not_read_beyond_it() -> None:
    gate = Gate()
    async with link(slow=gate) as (_, client, address), frames(address) as socket:
        for number in range(2 * IN_FLIGHT_MAX):
            await socket.send_bytes(number.to_bytes(8, "big") + pack(Hello(1)))
        await until(lambda: gate.inside == IN_FLIGHT_MAX)
        # Asked later and answered all the same, as it comes by another connection.
        other = asyncio.create_task(client.ask(address, Hello(1), Ok, 60))
        await until(lambda: gate.inside == IN_FLIGHT_MAX + 1)
        gate.open()
        assert Ok() == await other
        answered = {(await socket.receive_bytes())[:8] for _ in range(2 * IN_FLIGHT_MAX)}
        assert len(answered) == 2 * IN_FLIGHT_MAX
        assert IN_FLIGHT_MAX + 1 == gate.most


async def test_offers_that_wait_leave_room_for_what_they_wait_for() -> None:
    gate = Gate()

    async def offered(offer: Offer) -> Message:
        await gate(offer)
        return Accepted([])

    async with link() as (server, client, address):
        server.handle(Offer, offered)
        offers = [asyncio.create_task(client.ask(address, Offer([]), Accepted, 60)) for _ in range(2 * IN_FLIGHT_MAX)]
        await until(lambda: gate.inside == PATIENT_MAX)
        assert Ok() == await client.ask(address, Hello(1), Ok, 60)
        gate.open()
        await asyncio.gather(*offers)
        assert PATIENT_MAX == gate.most


@pytest.mark.parametrize(("is_leaf", "most"), [(True, PATIENT_MAX), (False, IN_FLIGHT_MAX)])
async def test_clocks_that_leaves_wait_for_leave_room_for_their_reports(is_leaf: bool, most: int) -> None:
    gate = Gate()
    holder = leaf_contact(bytes(20)) if is_leaf else Contact(bytes(20), "192.0.2.1", 4160)
    question = LeaseClocks(holder, [ClockQuestion("ip 192.0.2.1", 0, True, False, 0, 1, 0, 0.0, 1.0)])

    async def leased(message: LeaseClocks) -> Message:
        await gate(message)
        return ClocksLeased([])

    async with link() as (server, client, address):
        server.handle(LeaseClocks, leased)
        asked = [asyncio.create_task(client.ask(address, question, ClocksLeased, 60)) for _ in range(2 * IN_FLIGHT_MAX)]
        await until(lambda: gate.inside == most)
        if is_leaf:
            assert Ok() == await client.ask(address, Hello(1), Ok, 60)
        gate.open()
        await asyncio.gather(*asked)
        assert most == gate.most


async def test_what_the_other_end_does_not_read_does_not_fill_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """One message is in the buffer of the transport, not all."""
    monkeypatch.setattr(client_connection, "CLOSE_S", 0.05)
    read_on = asyncio.Event()
    size = 4_000_000

    async def hold(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await shake_hands(reader, writer)
        await read_on.wait()
        writer.close()

    async with serving(hold) as (client, address):
        connected = client._connection((*address, None))
        asks = [asyncio.create_task(connected.ask(b"x" * size)) for _ in range(5)]
        await until(connected._sending.locked)
        assert connected._socket is not None
        transport = connected._socket._writer.transport
        for _ in range(20):
            await asyncio.sleep(0)
            assert transport.get_write_buffer_size() < 2 * size
        connected.drop("enough")
        for end in await asyncio.gather(*asks, return_exceptions=True):
            assert isinstance(end, BrokenError)
        await until(lambda: connected.task is None)
        assert transport.get_write_buffer_size() == 0
        read_on.set()


def test_people_read_an_error_without_the_name_of_the_message() -> None:
    error = RemoteError("a:1", "is silent", "Hello")
    assert ("peer a:1: is silent", "peer a:1: is silent [Hello]") == (error.for_people, str(error))
