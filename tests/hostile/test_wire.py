"""Test each message of the wire with one wrong value: the peer counts and drops the message, and goes on.

No handler receives such a message.
"""

import asyncio
from collections.abc import Iterator
from typing import Any, get_args

import msgpack
import pytest
from msgspec import Raw, inspect

from kadcrawl.keys import id_bytes
from kadcrawl.link.client import LinkClient
from kadcrawl.link.client_connection import IN_FLIGHT_MAX
from kadcrawl.link.server import LinkServer
from kadcrawl.link.wire.census_rows import ROWS_AT_ONCE, read_rows
from kadcrawl.link.wire.codec import MalformedError, pack, pack_part, unpack
from kadcrawl.link.wire.messages import (
    DATAGRAM_BYTES_MAX,
    WIRE_VERSION,
    Datagram,
    Hello,
    Message,
    Ok,
    PeerRow,
    Ping,
    Pong,
    Reply,
    Request,
)
from kadcrawl.overlay.datagrams import HEADER, KINDS
from kadcrawl.settings.limits import Limits
from sim.loop import SimLoop
from tests.support.cases import cases
from tests.support.links.link_ends import LOCAL, frames
from tests.support.links.wrong_fields import plain, right_messages, wrong_messages, wrong_rows
from tests.support.swarm.overlay_peers import ip, our_peer, scripted_peer
from tests.support.swarm.sim_loop import loop as loop

BYTES_MAX = Limits().message_bytes_max
ANNE, BERT = 1 << 150, 2 << 150


def is_malformed(data: bytes, kind: Any) -> bool:
    try:
        unpack(data, kind, BYTES_MAX)
    except MalformedError:
        return True
    return False


def union_members(*kinds: Any) -> list[type[Message]]:
    return [one for kind in kinds for one in get_args(kind)]


@pytest.mark.parametrize("kind", [Datagram, Request, Reply], ids=["datagram", "request", "reply"])
def test_what_is_made_up_here_is_right_but_for_what_is_wrong(kind: Any) -> None:
    """Otherwise the tests below would prove nothing."""
    made = [type(unpack(data, kind, BYTES_MAX)) for _, data in right_messages(kind)]
    assert made == [one for one in get_args(kind) for _ in range(2)]


@cases("one", union_members(Datagram, Request, Reply))
def test_one_wrong_value_makes_any_message_malformed(one: type[Message]) -> None:
    kinds = [kind for kind in (Datagram, Request, Reply) if one in get_args(kind)]
    count = 0
    for what, data in wrong_messages(one):
        for kind in [*kinds, one]:
            assert is_malformed(data, kind), what
        count += 1
    assert count >= 5


async def test_wrong_rows_of_a_census_are_left_out_and_others_have_their_turn() -> None:
    right = msgpack.packb(plain(inspect.type_info(PeerRow), full=True))
    twice = right.replace(b"\x81\xa1a", b"\x82\xa1a\x00\xa1a", 1)
    wrong = [row for _, row in wrong_rows()]
    assert len(wrong) > 100
    turns = 0

    async def others() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    beside = asyncio.create_task(others())
    read = await read_rows([Raw(row) for row in (right, twice, *wrong, right)])
    beside.cancel()
    assert [right, right] == [pack_part(row) for row in read]
    assert turns >= len(wrong) // ROWS_AT_ONCE


async def test_a_server_counts_and_drops_each_and_answers_the_next_question() -> None:
    server, client = LinkServer(BYTES_MAX), LinkClient(BYTES_MAX)
    heard: list[Message] = []

    async def handler(message: Message) -> Message:
        heard.append(message)
        return Ok()

    for one in get_args(Request):
        server.handle(one, handler)
    port = await server.listen(LOCAL, 0)
    await client.open()
    sent = 0
    async with frames((LOCAL, port)) as socket:

        async def ask(bodies: list[bytes]) -> list[bytes]:
            for number, body in enumerate(bodies):
                await socket.send_bytes(number.to_bytes(8, "big") + body)
            answers = [await socket.receive_bytes() for _ in bodies]
            return [answer[8:] for answer in sorted(answers)]

        for one in get_args(Request):
            wrong = [data for _, data in wrong_messages(one) if len(data) < 20_000]
            for start in range(0, len(wrong), IN_FLIGHT_MAX):
                some = wrong[start : start + IN_FLIGHT_MAX]
                assert set(await ask(some)) == {b""}, one
                sent += len(some)
            assert server.malformed == sent
            assert not heard
            assert await ask([pack(Hello(1))]) == [pack(Ok())]
            assert heard.pop() == Hello(1)
    assert await client.ask((LOCAL, port), Hello(2), Ok, 5) == Ok()
    await client.close()
    await server.close()


def datagrams() -> Iterator[bytes]:
    for number, one in enumerate(KINDS):
        for _, data in wrong_messages(one):
            if len(data) <= DATAGRAM_BYTES_MAX:
                yield HEADER.pack(WIRE_VERSION, number, 7) + data


def test_a_socket_counts_and_drops_each_and_answers_the_next_ping(loop: SimLoop) -> None:
    async def story() -> None:
        anne = await our_peer(loop, 0, ANNE)
        stranger = await scripted_peer(loop, 1)
        sent = 0
        for data in datagrams():
            stranger.transport.sendto(data, (ip(0), 4160))
            sent += 1
        await asyncio.sleep(5)
        assert sent == anne.counters.malformed == anne.counters.received > 100
        assert anne.counters.sent == 0
        assert [] == anne.contacts() == stranger.heard
        stranger.send(Ping(id_bytes(BERT), 0), 0)
        await asyncio.sleep(1)
        assert Pong(anne.me.id, 0) in stranger.heard
        await anne.close()

    loop.run_until_complete(story())
