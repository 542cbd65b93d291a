"""The UDP socket of a peer: kademlia's protocol on our wire, with every byte from the network checked before use.

A datagram is decoded by `datagrams`, a request waits for its reply in `pending_requests`. A reply must carry the ID of
the peer expected. A datagram that fails a check is counted and dropped: no content of a datagram raises, makes a table
grow without bound, or closes the socket. In a swarm with a key all datagrams are sealed (members/sealing.py): one that
no member sent costs a look at its first bytes, and gets no answer.

Of the package stay the names of the calls and their hooks (`welcome_if_new`, `handle_call_response`) and the `rpc_*`
handlers, which `HANDLERS` reaches by message type. No message reaches the package's key-value handlers. Replaced are
its wire, its time-outs, its tasks (the package starts one per datagram and awaits none), and its rule that any sender
enters the table.
"""

import asyncio
import logging
from collections.abc import Callable
from contextvars import Context, copy_context
from ipaddress import ip_address
from random import Random
from typing import Any, NamedTuple, cast

from kademlia.node import Node
from kademlia.protocol import KademliaProtocol

from kadcrawl.keys import id_bytes
from kadcrawl.link.peer_score import LogLimiter, Misbehavior, PeerScore, left_out_note
from kadcrawl.link.process_links import ProcessLinks
from kadcrawl.link.wire.codec import MalformedError, VersionError
from kadcrawl.link.wire.messages import (
    DATAGRAM_BYTES_MAX,
    BacklogRecord,
    Contact,
    FindNode,
    GetRange,
    Leave,
    Left,
    Message,
    Nodes,
    OwnRange,
    Ping,
    Pong,
)
from kadcrawl.members.sealing import Sealing
from kadcrawl.overlay.addresses import sendable
from kadcrawl.overlay.datagrams import Datagram, DatagramCounters, decode, encode, fitting, is_leave
from kadcrawl.overlay.membership import Membership
from kadcrawl.overlay.pending_requests import Address, PendingRequests
from kadcrawl.overlay.routing import HeardLoad, Neighbor, shared_level
from kadcrawl.overlay.settings import OverlaySettings
from kadcrawl.system.datagram_drain import DatagramDrain

log = logging.getLogger(__name__)

Result = tuple[bool, Any]
"""The success of a request, and the answer (as in rpcudp)."""

UNPROVEN_BYTES_MAX = 346
"""Bytes of an answer to an unproven address: three times a FindNode, its seal included (as in RFC 9000, 8.1)."""
NON_MEMBERS_PER_LOG_CHECK = 1000
"""Datagrams of non-members per check whether a log line is due."""
HANDLERS: dict[type[Message], str] = {
    Ping: "rpc_ping",
    FindNode: "rpc_find_node",
    Leave: "rpc_leave",
    GetRange: "rpc_get_range",
}


class Sender(NamedTuple):
    """The origin of a request."""

    host: str
    port: int
    proven: bool
    """The datagram proves its sender. Without a key no datagram can, and every sender counts as proven."""


class DatagramProtocol(KademliaProtocol):  # type: ignore[misc]  # the package is untyped
    """One UDP socket: answers the requests of other peers, and sends the own requests."""

    def __init__(
        self,
        membership: Membership,
        random: Random,
        settings: OverlaySettings,
        verify: Callable[[Contact], None],
        sealing: Sealing | None = None,
        peer_score: PeerScore | None = None,
        on_heartbeat: Callable[[Contact, int, int], None] | None = None,
        process_links: ProcessLinks | None = None,
    ) -> None:
        """The callback `verify` receives each peer that should be pinged. It must not block.

        Without `sealing` datagrams are plain. `peer_score` knows the banned peers. `on_heartbeat` receives the
        state fingerprint and the time of the crawl in each heartbeat of a live contact; it must not raise. Datagrams to
        peers that `process_links` knows take no socket.
        """
        self._process_links = process_links
        self._inside: Address | None = None
        """The address of this peer for peers of the same process."""
        self.context: Context = copy_context()
        """The context of this peer's tasks."""
        super().__init__(Node(id_bytes(membership.me)), None, settings.k)
        self.use_membership(membership, sealing)
        self.counters = DatagramCounters()
        self._load = 0
        self._backlog: BacklogRecord | None = None
        self.leaving = False
        self.nameless = False
        self.closed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.transport: asyncio.DatagramTransport | None = None
        self._peer_score = peer_score or PeerScore()
        self._log_limiter = LogLimiter()
        self._state_fingerprint = 0
        self._crawl_ms = 0
        self._on_heartbeat = on_heartbeat
        self._settings = settings
        self._random = random
        self._verify = verify
        self._loop = asyncio.get_running_loop()
        self._drain: DatagramDrain | None = None
        self._ip_version: int | None = None
        self._slots = asyncio.Semaphore(settings.requests_max)
        self._pending = PendingRequests(settings, random, self.counters, self._send)

    def __getattr__(self, name: str) -> Any:
        """Raise AttributeError, where rpcudp would make up a remote call of that name."""
        raise AttributeError(name)

    def use_membership(self, membership: Membership, sealing: Sealing | None = None) -> None:
        """Act for the peer of this membership from now on."""
        self._sealing = sealing
        self.source_node = Node(id_bytes(membership.me))
        self.router = membership.table
        self._membership = membership

    def set_leaving(self, leaving: bool) -> None:
        """Answer requests only by Leave while `leaving`: the asker must not put this peer back into its table."""
        self.leaving = leaving

    def set_nameless(self, nameless: bool) -> None:
        """Answer no request while the own ID is not final: no table may have this peer under another ID."""
        self.nameless = nameless

    def advertise_load(self, level: int, backlog: BacklogRecord | None) -> None:
        """Send this load with every heartbeat from now on: a level in hundredths of a block, and the work by time."""
        self._load, self._backlog = level, backlog

    def advertise(self, *, state_fingerprint: int | None = None, crawl_ms: int | None = None) -> None:
        """Send these values with every heartbeat from now on, or None keeps the present value."""
        self._state_fingerprint = self._state_fingerprint if state_fingerprint is None else state_fingerprint
        self._crawl_ms = self._crawl_ms if crawl_ms is None else crawl_ms

    # --- the socket

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.DatagramTransport, transport)
        self._ip_version = 6 if ":" in transport.get_extra_info("sockname")[0] else 4
        self._drain = DatagramDrain(transport, self._loop)
        host, port = transport.get_extra_info("sockname")[:2]
        if self._process_links is not None and not ip_address(host).is_unspecified:
            self._inside = (host, port)
            self._process_links.add_datagrams(self._inside, self)

    def connection_lost(self, exc: Exception | None) -> None:
        self.transport = None
        if self._process_links is not None and self._inside is not None:
            self._process_links.remove_datagrams(self._inside)
        if self._drain is not None:
            self._drain.close()
        self._pending.abandon_all()
        if not self.closed.done():
            self.closed.set_result(None)

    def datagram_received(self, data: bytes, addr: tuple[Any, ...]) -> None:
        self._receive(data, addr)
        if self._drain is not None:
            for other, source in self._drain.waiting():
                self._receive(other, source)

    def _receive(self, data: bytes, addr: tuple[Any, ...]) -> None:
        self.counters.received += 1
        sender, proven = None, True
        if self._sealing is not None:
            opened = self._sealing.open(data)
            if opened is None:
                self.counters.non_members += 1
                if self.counters.non_members % NON_MEMBERS_PER_LOG_CHECK == 1:
                    self._log("non_member", addr, "no member has sent it, or not to this peer, or before")
                return
            data, sender, proven = opened.plaintext, opened.sender, opened.proven
        self._take(data, (addr[0], addr[1]), sender, proven)

    def receive_inside(self, data: bytes, source: Address, sender: Sealing | None) -> None:
        """Take a datagram of another peer of this process. It is taken for proven: the sender has a key of ours."""
        if self.transport is None:
            return
        self.counters.received += 1
        if self._sealing is None and sender is None:
            self._take(data, source, None, True)
        elif self._sealing is None or sender is None or not set(sender.labels) & set(self._sealing.labels):
            self.counters.non_members += 1
        else:
            self._take(data, source, sender.peer_key.id, True)

    def _take(self, data: bytes, address: Address, sender: bytes | None, proven: bool) -> None:
        """Take the content of a datagram from a member. `sender` is the ID that it proves or claims, if any."""
        if sender is not None and self._peer_score.banned_until(sender, self._loop.time()) is not None:
            self.counters.banned += 1
            return
        try:
            request_id, message = decode(data)
        except MalformedError as error:
            misbehavior = Misbehavior.VERSION if isinstance(error, VersionError) else Misbehavior.MALFORMED
            self._note(misbehavior, sender if proven else None, address, str(error))
            return
        if sender is not None and sender != message.sender:
            self._note(Misbehavior.CLAIM, sender if proven else None, address, "it says that it is another")
        elif type(message) not in HANDLERS:
            self._accept_reply(request_id, message, address, proven)
        elif address[1] and not self.nameless and (proven or type(message) is not Leave):  # Port 0 cannot be answered.
            self._answer(request_id, message, Sender(*address, proven))

    def _note(self, misbehavior: Misbehavior, sender: bytes | None, addr: tuple[Any, ...], why: str) -> None:
        """Count a malformed datagram. `sender` is the peer to blame, if proven."""
        self.counters.malformed += 1
        self._log("malformed", addr, why)
        if sender is not None and self._peer_score.note(sender, misbehavior, self._loop.time()):
            self._log("banned", addr, f"{sender.hex()[:8]} has misbehaved too often")

    def _log(self, event: str, addr: tuple[Any, ...], why: str) -> None:
        left_out = self._log_limiter.count(event, self._loop.time())
        if left_out is not None:
            log.warning("overlay.%s from=%s:%s why=%s%s", event, addr[0], addr[1], why, left_out_note(left_out))

    def _answer(self, request_id: int, message: Datagram, sender: Sender) -> None:
        reply = getattr(self, HANDLERS[type(message)])(sender, message)
        if reply is not None:
            self._send(encode(request_id, reply), sender[:2], message.sender)

    def _accept_reply(self, request_id: int, message: Datagram, address: Address, proven: bool) -> None:
        # The peer asked knows our key, so its reply can be a proof. Any member can forge a first-contact datagram.
        if not proven or not self._pending.accept_reply(request_id, message, address):
            self.counters.unexpected += 1

    def _send(self, data: bytes, address: Address, to: bytes | None, *, again: bool = False) -> None:
        if self.transport is None or self.transport.is_closing():
            return
        if self._process_links is not None and self._inside is not None:
            end = self._process_links.datagrams_at(address)
            if end is not None:
                self.counters.sent += 1
                # Later, as through a socket, and with the names of the other peer's context.
                self._loop.call_soon(end.receive_inside, data, self._inside, self._sealing, context=end.context)
                return
        datagram = data
        if self._sealing is not None:
            # A forged goodbye would remove another peer from tables, so a goodbye is sent only with proof.
            sealed = self._sealing.seal(data, to, again=again, proven=is_leave(data))
            if sealed is None:
                return
            datagram = sealed
        self.counters.sent += 1
        try:
            self.transport.sendto(datagram, address)
        except OSError:
            pass  # Unroutable or a full buffer: as if lost on the way.

    # --- requests of other peers

    def rpc_ping(self, sender: Sender, message: Ping) -> Message | None:
        if self.leaving:
            self._say_goodbye(sender, message.sender)
            return None
        load = self._heard_load(message, self._loop.time()) if sender.proven else None
        self._welcome(sender, message.sender, load)
        if sender.proven:
            self._report(Contact(message.sender, sender.host, sender.port), message)
        return Pong(self.source_node.id, self._load, self._state_fingerprint, self._crawl_ms, self._backlog)

    def rpc_find_node(self, sender: Sender, message: FindNode) -> Message | None:
        if self.leaving:
            self._say_goodbye(sender, message.sender)
            return None
        self._welcome(sender, message.sender)
        contacts = self._membership.nearest(int.from_bytes(message.target), self._settings.k, exclude=message.sender)
        bytes_max = DATAGRAM_BYTES_MAX if sender.proven else UNPROVEN_BYTES_MAX
        return Nodes(self.source_node.id, fitting(contacts, bytes_max))

    def rpc_get_range(self, sender: Sender, message: GetRange) -> Message | None:
        if self.leaving:
            self._say_goodbye(sender, message.sender)
            return None
        self._welcome(sender, message.sender)
        return OwnRange(self.source_node.id, id_bytes(self._membership.table.live_mask))

    def _say_goodbye(self, sender: Sender, to: bytes) -> None:
        """Send Leave to an asker that missed the goodbye, and takes our lookups for signs of life."""
        self._send(encode(self._random.getrandbits(64), Leave(self.source_node.id)), sender[:2], to)

    def rpc_leave(self, sender: Sender, message: Leave) -> Message:
        self._verify_all(self._membership.left(Contact(message.sender, sender.host, sender.port), self._loop.time()))
        return Left(self.source_node.id)

    def welcome_if_new(self, node: Neighbor) -> None:
        """Ping a peer that asked or was named, if the table has a use for it.

        Only its answer lets it into the table.
        """
        if not sendable(node.contact, self._ip_version or 0):
            self.counters.malformed += 1
        elif (asked := self._membership.met(node.contact)) is not None:
            self._verify(asked)

    def _welcome(self, sender: Sender, peer: bytes, load: HeardLoad | None = None) -> None:
        contact = Contact(peer, sender.host, sender.port)
        if sender.proven:
            self._membership.heard_request(contact, self._loop.time() if load is None else load.at)
        if (asked := self._membership.met(contact, load)) is not None:
            self._verify(asked)

    def _report(self, contact: Contact, heartbeat: Ping | Pong) -> None:
        neighbor = self._membership.table.members.get(contact.id)
        is_live = neighbor is not None and neighbor.live and neighbor.contact.address == contact.address
        if is_live and self._on_heartbeat is not None:
            self._on_heartbeat(contact, heartbeat.state_fingerprint, heartbeat.crawl_ms)

    # --- own requests

    async def ping(self, address: Address, sender: bytes) -> Result:
        """Ping an address whose peer is not known."""
        return await self._request(address, self._ping(sender), None)

    async def call_find_node(self, node_to_ask: Neighbor, node_to_find: Node) -> Result:
        contact = node_to_ask.contact
        result = await self._request(contact.address, FindNode(self.source_node.id, node_to_find.id), contact.id)
        return self.handle_call_response(result, node_to_ask)

    async def range_of(self, contact: Contact) -> int | None:
        """Return the mask of a peer's live buckets, or None without an answer."""
        result = await self._request(contact.address, GetRange(self.source_node.id), contact.id)
        answered, reply = self.handle_call_response(result, Neighbor(contact))
        return int.from_bytes(reply.live_mask, "big") if answered else None

    async def leave(self, contact: Contact) -> Result:
        return await self._request(contact.address, Leave(self.source_node.id), contact.id)

    def probe(self, contact: Contact, done: Callable[[], None]) -> None:
        """Ping a peer and update the membership by its answer. `done` is called before that.

        No task is started, as most traffic among peers is of this kind.
        """

        def conclude(reply: Message | None) -> None:
            # Later: an error in a listener would close the socket if it were raised in the socket's callback.
            self._loop.call_soon(update, reply)

        def update(reply: Message | None) -> None:
            done()
            if self.transport is not None:
                self.handle_call_response((reply is not None, reply), Neighbor(contact))

        self._pending.begin(contact.address, self._ping(self.source_node.id), contact.id, conclude)

    def _ping(self, sender: bytes) -> Ping:
        return Ping(sender, self._load, self._state_fingerprint, self._crawl_ms, self._backlog)

    def _heard_load(self, heartbeat: Ping | Pong, now: float) -> HeardLoad:
        return HeardLoad(now, shared_level(heartbeat.load), heartbeat.backlog)

    def handle_call_response(self, result: Result, node: Neighbor) -> Result:
        """Update the membership by the answer of `node`. Return the result, failed if another peer answered."""
        answered, reply = result
        now = self._loop.time()
        if not answered:
            self._verify_all(self._membership.missed(node.contact, now))
            return False, None
        actual = Contact(reply.sender, *node.contact.address)
        if actual.id != node.id:
            self._verify_all(self._membership.gone(node.contact, now))
        self._membership.heard(actual, now, self._heard_load(reply, now) if isinstance(reply, Pong) else None)
        if isinstance(reply, Pong):
            self._report(actual, reply)
        return (True, reply) if actual.id == node.id else (False, None)

    def usable(self, reply: Nodes) -> list[Contact]:
        """Return the contacts of a reply that have a sendable address and are not suspected."""
        now, version = self._loop.time(), self._ip_version or 0
        reachable = [contact for contact in reply.contacts if sendable(contact, version)]
        self.counters.malformed += len(reply.contacts) - len(reachable)
        return [contact for contact in reachable if not self._membership.liveness.suspected(contact.id, now)]

    def _verify_all(self, contacts: list[Contact]) -> None:
        for contact in contacts:
            self._verify(contact)

    async def _request(self, address: Address, message: Message, to: bytes | None) -> Result:
        """Send a request, send it again after `resend_s`, and give up after `timeout_s`."""
        async with self._slots:
            reply: asyncio.Future[Message | None] = self._loop.create_future()

            def conclude(answer: Message | None) -> None:
                if not reply.done():  # The caller may have been cancelled a moment ago.
                    reply.set_result(answer)

            request_id = self._pending.begin(address, message, to, conclude)
            try:
                answer = await reply
            finally:
                self._pending.end(request_id)
        return answer is not None, answer
