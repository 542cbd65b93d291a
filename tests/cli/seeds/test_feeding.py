"""Test that a command goes on with its seeds when a peer is slow for a while."""

import asyncio

import pytest

from kadcrawl.cli.seeds import feeding
from kadcrawl.cli.seeds.feeding import send_to
from kadcrawl.errors import RemoteError
from kadcrawl.link import client_connection
from kadcrawl.link.wire.messages import Refused
from kadcrawl.link.wire.seed_messages import STREAM_ID_BYTES, SeedsStreamed, StreamSeeds
from tests.support.links.link_ends import link
from tests.support.waiting import until

MESSAGE = StreamSeeds(bytes(STREAM_ID_BYTES), ["http://a.example/"])


async def test_two_batches_outlive_a_peer_that_answers_neither_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feeding, "STREAM_DEADLINE_S", 5.0)
    monkeypatch.setattr(feeding, "SEND_RETRY_S", 0.01)
    monkeypatch.setattr(client_connection, "SILENT_MIN_S", 0.0)
    asked = 0

    async def answer(message: StreamSeeds) -> SeedsStreamed:
        nonlocal asked
        asked += 1
        if asked in (2, 3):  # The peer is busy. The second batch ends with the connection, when the first is given up.
            await asyncio.Event().wait()
        return SeedsStreamed(0, 0)

    async with link() as (server, client, address):
        server.handle(StreamSeeds, answer)
        send = send_to(client, lambda: [address])
        await send(MESSAGE)
        first = asyncio.ensure_future(send(MESSAGE))
        await until(lambda: asked == 2)
        await asyncio.sleep(1.0)  # The second batch is given more time than the first.
        second = asyncio.ensure_future(send(MESSAGE))
        assert [SeedsStreamed(0, 0)] * 2 == await asyncio.gather(first, second)
    assert 5 == asked


async def test_a_refusal_ends_the_command_at_once() -> None:
    asked = 0

    async def refuse(message: StreamSeeds) -> Refused:
        nonlocal asked
        asked += 1
        return Refused("this job takes no more seeds")

    async with link() as (server, client, address):
        server.handle(StreamSeeds, refuse)
        with pytest.raises(RemoteError, match="takes no more seeds"):
            await send_to(client, lambda: [address])(MESSAGE)
    assert 1 == asked
