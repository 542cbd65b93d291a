"""Test that nothing is sent to an address at which no peer can be.

The sender and the message that name the address do not matter.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from kadcrawl import Peer
from kadcrawl.keys import Cell, anchor, id_bytes
from kadcrawl.link.server import LinkServer
from kadcrawl.link.wire.messages import (
    CellsHeld,
    CellState,
    CellSummary,
    Contact,
    FindNode,
    Message,
    Nodes,
    Ping,
    Pong,
    TakeOver,
    TakeOverAnswer,
)
from kadcrawl.overlay.protocol import DatagramProtocol
from kadcrawl.overlay.routing import Neighbor
from sim.loop import SimLoop
from tests.support.links.liar import BYTES_MAX, DIGEST, LIAR, NOWHERE, liar, say
from tests.support.swarm.overlay_peers import ip, our_peer, scripted_peer
from tests.support.swarm.peers import MakePeer, make_peer as make_peer
from tests.support.waiting import until

ANNE, BERT, CARL = 1 << 150, 2 << 150, 3 << 150
CELL = Cell(7)


class Watched:
    """The wire of a peer, that remembers to which hosts anything was sent."""

    def __init__(self, protocol: DatagramProtocol, monkeypatch: pytest.MonkeyPatch) -> None:
        self._wire: Any = protocol.transport
        self.hosts: set[str] = set()
        monkeypatch.setattr(protocol, "transport", self)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._wire, name)

    def sendto(self, datagram: bytes, address: tuple[str, int]) -> None:
        self.hosts.add(address[0])
        if address[0] not in NOWHERE:
            self._wire.sendto(datagram, address)


def test_no_datagram_goes_to_an_address_that_an_answer_or_a_hint_names(monkeypatch: pytest.MonkeyPatch) -> None:
    loop = SimLoop(1)
    named = [Contact(id_bytes(CARL + number), host, 1) for number, host in enumerate(NOWHERE)]

    def script(message: Message) -> Message | None:
        match message:
            case Ping():
                return Pong(id_bytes(ANNE), 0)
            case FindNode():
                return Nodes(id_bytes(ANNE), named)
        return None

    async def story() -> None:
        await scripted_peer(loop, 1, script)
        bert = await our_peer(loop, 0, BERT, bootstrap=1)
        host = loop.network.hosts[ip(0)]
        with monkeypatch.context() as patch:
            watched = Watched(bert._socket, patch)
            await host.spawn(bert.lookup(CARL, 3))
            cell = next(Cell(number) for number in range(2**16) if not bert.owns(Cell(number)))
            for contact in named:

                async def hint(contact: Contact = contact) -> None:
                    nearest = id_bytes(anchor(cell, 16) ^ 1)
                    bert.learn_owner(cell, Contact(nearest, contact.host, 1))
                    before = bert.counters.malformed
                    bert._socket.welcome_if_new(Neighbor(contact))
                    assert 1 == bert.counters.malformed - before
                    await asyncio.sleep(2)

                await host.spawn(hint())
            await asyncio.sleep(5)
        await bert.close()
        assert {ip(1)} == watched.hosts

    loop.run_until_complete(story())
    loop.close()


async def claim_and_answer(
    anne: Peer, answer: Callable[[TakeOver], Awaitable[TakeOverAnswer]], asked_enough: Callable[[], object]
) -> None:
    """Let a member say that it holds a part of a cell of Anne's. Anne asks, and the member gives this answer."""
    await until(lambda: anne.cells.tasks.is_running)
    assert {CELL} == await anne.cells.sync.opened([CELL], 30.0)
    server = LinkServer(BYTES_MAX)
    server.handle(TakeOver, answer)
    port = await server.listen("127.0.0.1", 0)
    try:
        async with liar() as client:
            await say(client, anne, CellsHeld(Contact(LIAR, "127.0.0.1", port), [CellSummary(CELL, 1, 1, DIGEST)]))
            await until(asked_enough)
    finally:
        await server.close()


def nothing_of(cell: int, rival: Contact | None, others: list[Contact]) -> CellState:
    return CellState(CellSummary(cell, 0, 0, DIGEST), rival, others, False, False, [])


async def test_a_holder_somebody_names_by_a_name_is_not_dialled(make_peer: MakePeer) -> None:
    anne = await make_peer("one")
    dialled = asked = 0

    async def trap(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal dialled
        dialled += 1
        writer.close()

    async with await asyncio.start_server(trap, "127.0.0.1", 0) as listening:
        port = listening.sockets[0].getsockname()[1]
        others = [Contact(bytes([number]) * 20, host, port) for number, host in enumerate(("localhost", "127.1"), 85)]

        async def answer(sync: TakeOver) -> TakeOverAnswer:
            nonlocal asked
            asked += 1
            return TakeOverAnswer([nothing_of(cell, None, others) for cell in sync.cells])

        syncs = anne.cells.sync.syncs
        await claim_and_answer(anne, answer, lambda: asked and anne.cells.sync.syncs > syncs)
        assert {CELL} == await anne.cells.sync.opened([CELL], 30.0)
    assert 0 == dialled


async def test_a_rival_somebody_names_nowhere_is_sent_nothing(
    make_peer: MakePeer, monkeypatch: pytest.MonkeyPatch
) -> None:
    anne = await make_peer("one")
    watched = Watched(anne.overlay._socket, monkeypatch)
    asked = 0

    async def answer(sync: TakeOver) -> TakeOverAnswer:
        nonlocal asked
        asked += 1
        rival = Contact(id_bytes(asked), NOWHERE[asked % len(NOWHERE)], 9)
        return TakeOverAnswer([nothing_of(cell, rival, []) for cell in sync.cells])

    await claim_and_answer(anne, answer, lambda: asked >= 3)
    assert not watched.hosts & {*NOWHERE}
