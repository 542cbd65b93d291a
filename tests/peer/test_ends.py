"""The first words of a newcomer, where packets are lost."""

import asyncio

import pytest

from kadcrawl.errors import StartError
from kadcrawl.link.client import LinkClient
from kadcrawl.peer import ends
from kadcrawl.peer.ends import HELLO_TRIES, hello
from tests.peer.conftest import MakePeer


class DeafAtFirst:
    """Passes bytes on to a peer, but of the first connections hears nothing."""

    def __init__(self, to: tuple[str, int], deaf: int) -> None:
        self.connections = 0
        self._to, self._deaf = to, deaf
        self._tasks: set[asyncio.Task[None]] = set()
        self._writers: list[asyncio.StreamWriter] = []

    async def __aenter__(self) -> tuple[str, int]:
        self._server = await asyncio.start_server(self._passed_on, "127.0.0.1", 0)
        host, port = self._server.sockets[0].getsockname()
        return host, port

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for writer in self._writers:
            writer.transport.abort()
        await asyncio.sleep(0)

    async def _passed_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self._writers.append(writer)
        if self.connections > self._deaf:
            there, back = await asyncio.open_connection(*self._to)
            self._writers.append(back)
            for source, sink in ((reader, back), (there, writer)):
                self._tasks.add(asyncio.create_task(pumped(source, sink)))


async def pumped(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
    while data := await source.read(65_536):
        sink.write(data)


@pytest.mark.parametrize("deaf", [0, HELLO_TRIES - 1, HELLO_TRIES])
async def test_who_is_not_heard_at_once_tries_again(
    deaf: int, make_peer: MakePeer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ends, "HELLO_DEADLINE_S", 1.0)
    peer = await make_peer()
    way = DeafAtFirst(peer.contact.address, deaf)
    client = LinkClient(1_000_000)
    await client.open()
    try:
        async with way as address:
            if deaf < HELLO_TRIES:
                assert (await hello(client, [address])).job == peer.job
                assert way.connections == deaf + 1
            else:
                with pytest.raises(StartError, match=r"cannot join: peer [^;]*no answer to Hello[^;]*running there\?$"):
                    await hello(client, [address])
    finally:
        await client.close()
