"""Test defects of the plain package that are right here: the same situation both ways, in simulated time.

The defects of the routing table itself are in `test_routing`.
"""

import asyncio
from random import Random
from typing import Any

import umsgpack
from kademlia.crawling import NodeSpiderCrawl
from kademlia.network import Server
from kademlia.node import Node
from kademlia.protocol import KademliaProtocol

from kadcrawl.keys import NodeId, firstdiff, id_bytes
from kadcrawl.link.wire.messages import Contact, FindNode, Message, Nodes, Ping, Pong
from kadcrawl.overlay import Overlay
from kadcrawl.overlay.datagrams import decode, encode
from kadcrawl.overlay.routing import Neighbor
from sim.loop import SimLoop
from tests.support.swarm.overlay_peers import (
    PORT,
    ip,
    our_peer,
    plain_contacts,
    plain_peer,
    scripted_peer,
)

ANNE, BERT, CARL = 1 << 150, 2 << 150, 3 << 150


def random_ids(count: int) -> list[int]:
    random = Random(5)
    return [random.getrandbits(160) for _ in range(count)]


def test_one_lost_question_does_not_evict_a_live_peer(loop: SimLoop) -> None:
    async def plain() -> int:
        anne = await plain_peer(loop, 0, ANNE)
        bert = await plain_peer(loop, 1, BERT, bootstrap=0)
        loop.network.conditions.loss = 1.0
        await bert.protocol.call_ping(plain_contacts(bert)[0])
        loop.network.conditions.loss = 0.0
        anne.stop()
        bert.stop()
        return len(plain_contacts(bert))

    async def ours() -> int:
        anne = await our_peer(loop, 0, ANNE)
        bert = await our_peer(loop, 1, BERT, bootstrap=0)
        loop.network.conditions.loss = 1.0
        bert.suspect(anne.me)
        await asyncio.sleep(0.7)
        loop.network.conditions.loss = 0.0
        known = len(bert.contacts())
        await asyncio.gather(anne.close(), bert.close())
        return known

    assert loop.run_until_complete(plain()) == 0
    assert loop.run_until_complete(ours()) == 1


def test_a_dead_peer_is_noticed_without_traffic(loop: SimLoop) -> None:
    async def plain() -> int:
        await plain_peer(loop, 0, ANNE)
        bert = await plain_peer(loop, 1, BERT, bootstrap=0)
        loop.kill(loop.network.hosts[ip(0)])
        await asyncio.sleep(600)
        bert.stop()
        return len(plain_contacts(bert))

    async def ours() -> int:
        await our_peer(loop, 0, ANNE)
        bert = await our_peer(loop, 1, BERT, bootstrap=0)
        loop.kill(loop.network.hosts[ip(0)])
        await asyncio.sleep(8)
        known = len(bert.contacts())
        await bert.close()
        return known

    assert loop.run_until_complete(plain()) == 1
    assert loop.run_until_complete(ours()) == 0


def test_a_lookup_does_not_wait_for_the_dead(loop: SimLoop) -> None:
    ids = random_ids(40)
    dead, target = range(1, 13), id_bytes(random_ids(41)[-1])

    async def kill_and_time(question: Any) -> float:
        for number in dead:
            loop.kill(loop.network.hosts[ip(number)])
        begin = loop.time()
        await question()
        return loop.time() - begin

    async def plain() -> float:
        servers = [await plain_peer(loop, n, i, bootstrap=0 if n else None) for n, i in enumerate(ids)]
        router = servers[0].protocol.router
        spider = NodeSpiderCrawl(
            servers[0].protocol, Node(target), router.find_neighbors(Node(target)), ksize=10, alpha=3
        )
        seconds = await kill_and_time(spider.find)
        for server in servers:
            server.stop()
        return seconds

    async def ours() -> float:
        overlays = [await our_peer(loop, n, i, bootstrap=0 if n else None) for n, i in enumerate(ids)]
        found: list[Contact] = []

        async def question() -> None:
            found.extend(await overlays[0].lookup(int.from_bytes(target), 10))

        seconds = await kill_and_time(question)
        living = [number for n, number in enumerate(ids) if n not in dead]
        nearest = sorted(living, key=lambda number: number ^ int.from_bytes(target))[:10]
        assert nearest == [contact.number for contact in found]
        await asyncio.gather(*(o.close() for n, o in enumerate(overlays) if n not in dead))
        return seconds

    assert loop.run_until_complete(plain()) >= 10
    assert loop.run_until_complete(ours()) < 1.5


def test_joining_fills_every_bucket_that_has_a_peer(loop: SimLoop) -> None:
    ids = random_ids(64)

    def missing(known: dict[int, list[int]]) -> int:
        """Count buckets without a contact although some peer belongs there."""
        return sum(
            len({firstdiff(me, i) for i in ids if i != me} - {firstdiff(me, i) for i in contacts})
            for me, contacts in known.items()
        )

    async def plain() -> int:
        servers = [await plain_peer(loop, n, i, bootstrap=0 if n else None) for n, i in enumerate(ids)]
        for server in servers:
            server.stop()
        return missing({s.node.long_id: [n.long_id for n in plain_contacts(s)] for s in servers})

    async def ours() -> int:
        overlays = [await our_peer(loop, n, i, bootstrap=0 if n else None) for n, i in enumerate(ids)]
        known = {o.me.number: [c.number for c in o.contacts()] for o in overlays}
        await asyncio.gather(*(o.close() for o in overlays))
        return missing(known)

    assert loop.run_until_complete(plain()) > 0
    assert loop.run_until_complete(ours()) == 0


def test_a_non_member_enters_only_after_it_has_answered(loop: SimLoop) -> None:
    async def plain() -> int:
        anne = await plain_peer(loop, 0, ANNE)
        stranger = await scripted_peer(loop, 1)
        request = b"\x00" + b"i" * 20 + umsgpack.packb(["ping", [id_bytes(BERT)]])
        stranger.transport.sendto(request, (ip(0), PORT))
        await asyncio.sleep(0.1)
        anne.stop()
        return len(plain_contacts(anne))

    async def ours(answers: bool) -> int:
        anne = await our_peer(loop, 0, ANNE)
        stranger = await scripted_peer(
            loop, 1, lambda message: Pong(id_bytes(BERT), 0) if answers and isinstance(message, Ping) else None
        )
        stranger.send(Ping(id_bytes(BERT), 0), 0)
        await asyncio.sleep(2)
        known = len(anne.contacts())
        await anne.close()
        return known

    assert loop.run_until_complete(plain()) == 1
    assert loop.run_until_complete(ours(answers=False)) == 0
    assert loop.run_until_complete(ours(answers=True)) == 1


def test_a_reply_counts_only_from_the_address_asked(loop: SimLoop) -> None:
    async def plain() -> bool:
        anne = await plain_peer(loop, 0, ANNE)
        asked = asyncio.ensure_future(anne.protocol.call_ping(Node(id_bytes(BERT), ip(1), PORT)))
        await asyncio.sleep(0)
        (request_id,) = anne.protocol._outstanding
        forged = b"\x01" + request_id + umsgpack.packb(id_bytes(BERT))
        anne.protocol.datagram_received(forged, ("6.6.6.6", 666))
        answered: bool = (await asked)[0]
        anne.stop()
        return answered

    async def ours() -> bool:
        anne = await our_peer(loop, 0, ANNE)
        protocol = anne._socket
        bert = Contact(id_bytes(BERT), ip(1), PORT)
        asked = asyncio.ensure_future(protocol.call_ping(Neighbor(bert)))
        await asyncio.sleep(0)
        (request_id,) = protocol._pending.by_id
        protocol.datagram_received(encode(request_id, Pong(bert.id, 0)), ("6.6.6.6", 666))
        answered: bool = (await asked)[0]
        assert protocol.counters.unexpected == 1
        await anne.close()
        return answered

    assert loop.run_until_complete(plain())
    assert not loop.run_until_complete(ours())


def test_a_peer_that_is_another_now_is_not_kept(loop: SimLoop) -> None:
    """The address of Bert is Carl's now: a peer that asked Bert must not believe that Bert answered."""

    async def plain() -> list[int]:
        anne = await plain_peer(loop, 0, ANNE)
        await plain_peer(loop, 1, BERT, bootstrap=0)
        loop.kill(loop.network.hosts[ip(1)])
        await plain_peer(loop, 1, CARL)
        await anne.protocol.call_ping(Node(id_bytes(BERT), ip(1), PORT))
        anne.stop()
        return [node.long_id for node in plain_contacts(anne)]

    async def ours() -> list[int]:
        anne = await our_peer(loop, 0, ANNE)
        bert = await our_peer(loop, 1, BERT, bootstrap=0)
        await asyncio.sleep(0.1)
        loop.kill(loop.network.hosts[ip(1)])
        carl = await our_peer(loop, 1, CARL)
        anne.suspect(bert.me)
        await asyncio.sleep(0.1)
        known = [contact.number for contact in anne.contacts()]
        await asyncio.gather(anne.close(), carl.close())
        return known

    assert loop.run_until_complete(plain()) == [BERT]
    assert loop.run_until_complete(ours()) == [CARL]


async def test_a_made_up_address_does_not_close_the_socket() -> None:
    """The sockets are real: asyncio closes a socket that was told to send to port 99999."""

    class Liar(KademliaProtocol):  # type: ignore[misc]  # the package is untyped
        def rpc_find_node(self, sender: Any, nodeid: bytes, key: bytes) -> list[Any]:
            return [[id_bytes(CARL), "127.0.0.1", 99_999]]

    liar, plain = Server(node_id=id_bytes(ANNE)), Server(node_id=id_bytes(BERT))
    liar.protocol_class = Liar
    asyncio.get_running_loop().set_exception_handler(lambda *_: None)
    await liar.listen(0, "127.0.0.1")
    await plain.listen(0, "127.0.0.1")
    joining = asyncio.ensure_future(plain.bootstrap([liar.transport.get_extra_info("sockname")]))
    while not plain.transport.is_closing():
        await asyncio.sleep(0.01)
    joining.cancel()
    liar.stop()
    plain.stop()

    class OurLiar(asyncio.DatagramProtocol):
        def connection_made(self, transport: Any) -> None:
            self.transport = transport

        def datagram_received(self, data: bytes, addr: Any) -> None:
            request_id, message = decode(data)
            reply: Message = Pong(id_bytes(ANNE), 0)
            if isinstance(message, FindNode):
                hosts = ["0.0.0.0", "224.0.0.1", "255.255.255.255", "::1", "localhost", "127.1", "[::1]", "1" * 64]
                contacts = [Contact(id_bytes(CARL + n), host, 1) for n, host in enumerate(hosts)]
                reply = Nodes(id_bytes(ANNE), contacts)
            self.transport.sendto(encode(request_id, reply), addr)

    loop = asyncio.get_running_loop()
    transport, _ = await loop.create_datagram_endpoint(OurLiar, local_addr=("127.0.0.1", 0))
    ours = Overlay(NodeId(BERT), Random(1), cell_bits=16)
    await ours.listen("127.0.0.1", 0)
    await ours.join([transport.get_extra_info("sockname")])
    assert [contact.number for contact in ours.contacts()] == [ANNE]
    assert ours.counters.malformed >= 8
    await ours.lookup(CARL, 3)
    await ours.close()
    transport.close()


def test_nobody_can_store_anything(loop: SimLoop) -> None:
    key, value = id_bytes(CARL), b"x" * 1000

    async def plain() -> Any:
        anne = await plain_peer(loop, 0, ANNE)
        stranger = await scripted_peer(loop, 1)
        request = b"\x00" + b"i" * 20 + umsgpack.packb(["store", [id_bytes(BERT), key, value]])
        stranger.transport.sendto(request, (ip(0), PORT))
        await asyncio.sleep(0.1)
        anne.stop()
        return anne.storage.get(key)

    async def ours() -> int:
        anne = await our_peer(loop, 0, ANNE)
        stranger = await scripted_peer(loop, 1)
        for name in ("store", "find_value", "stun", "ping", "find_node"):
            for kind in (b"\x00", b"\x01"):
                request = kind + b"i" * 20 + umsgpack.packb([name, [id_bytes(BERT), key, value]])
                stranger.transport.sendto(request, (ip(0), PORT))
        await asyncio.sleep(0.1)
        assert anne._socket.storage is None
        assert [] == stranger.heard == anne.contacts()
        malformed = anne.counters.malformed
        await anne.close()
        return malformed

    assert value == loop.run_until_complete(plain())
    assert loop.run_until_complete(ours()) == 10


def test_no_task_remains_after_the_end(loop: SimLoop) -> None:
    def others() -> int:
        return len(asyncio.all_tasks(loop)) - 1

    async def plain() -> int:
        anne = await plain_peer(loop, 0, ANNE)
        joining = asyncio.ensure_future(anne.bootstrap([(ip(5), PORT)]))
        anne.protocol.datagram_received(b"\x00" * 30, (ip(7), PORT))
        anne.stop()
        left = others()
        await joining
        await asyncio.sleep(30)
        return left

    async def ours() -> int:
        anne = await our_peer(loop, 0, ANNE)
        bert = await our_peer(loop, 1, BERT, bootstrap=0)
        anne._socket.datagram_received(encode(1, Ping(id_bytes(CARL), 0)), (ip(7), PORT))
        bert.suspect(Contact(id_bytes(CARL), ip(7), PORT))
        await asyncio.gather(anne.close(), bert.close())
        return others()

    loop.set_exception_handler(lambda *_: None)
    assert loop.run_until_complete(plain()) > 0
    assert loop.run_until_complete(ours()) == 0
